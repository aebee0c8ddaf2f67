"""The expectations here are written by hand from the registries, not derived from the tables they test."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import EgressRefusedError
from tenure.transports.addresses import is_public
from tenure.transports.egress import SystemResolver
from tenure.transports.policy import EgressPolicy, check_addresses

PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0
192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
203.0.112.255 203.0.114.0 223.255.255.255
2606:4700:4700::1111 2001:4860:4860::8888 2001:200::1 2a00:1450:4001:81b::200e 2400:cb00::1 2003::1 2600::
64:ff9b::808:808 ::ffff:8.8.8.8
"""

METADATA = """
169.254.169.254 169.254.170.2 169.254.170.23 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd00:ec2::23
fd20:ce::254 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 fd00:ec2::254%1
"""

SPECIAL = {
    "this network": "0.0.0.0 0.0.0.1 0.255.255.255",
    "private": "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255",
    "carrier NAT": "100.64.0.0 100.127.255.255",
    "loopback": "127.0.0.0 127.0.0.1 127.255.255.255 ::1",
    "link-local": "169.254.0.0 169.254.255.255 fe80:: fe80::1 febf:ffff::1 fe80::1%1",
    "IETF protocols": "192.0.0.0 192.0.0.8 192.0.0.170 192.0.0.255 2001::1 2001:1::1 2001:1ff:ffff::1",
    "documentation": "192.0.2.0 192.0.2.255 198.51.100.7 203.0.113.255 2001:db8::1 2001:db8:ffff::1 3fff::1",
    "longer documentation": "3fff:fff:ffff::1",
    "6to4 relay": "192.88.99.0 192.88.99.1 192.88.99.255",
    "AS112 and AMT": "192.31.196.1 192.52.193.1 192.175.48.1 2620:4f:8000::1",
    "benchmarks": "198.18.0.0 198.19.255.255 2001:2::1",
    "multicast": "224.0.0.0 224.0.0.1 239.255.255.255 ff00:: ff02::1 ff0e::1",
    "reserved": "240.0.0.0 255.255.255.254 255.255.255.255",
    "cloud metadata": METADATA,
    "unspecified": "::",
    "v4-mapped": "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:0 ::ffff:168.63.129.16",
    "v4-compatible": "::127.0.0.1 ::10.0.0.1 ::8.8.8.8 ::169.254.169.254",
    "v4-translated (SIIT)": "::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8",
    "NAT64": "64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::10.1.2.3 64:ff9b::a83f:8110 64:ff9b::",
    "local NAT64": "64:ff9b:1::1 64:ff9b:1::7f00:1 64:ff9b:1:ffff::8.8.8.8",
    "6to4": "2002:7f00:1::1 2002:a9fe:a9fe::1 2002:a00:1:: 2002:808:808::1",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:0:7f00:1::1 2001::80ff:fffe",
    "ORCHID": "2001:10::1 2001:20::1 2001:2f:ffff::1",
    "site-local": "fec0:: fec0::1 feff:ffff::1",
    "unique local": "fc00:: fd12:3456::1 fdff:ffff::1",
    "discard-only": "100::1 100:0:0:1::1",
    "segment routing": "5f00::1",
    "6bone": "3ffe::1",
    "not handed out": "1fff::1 4000::1 8000::1 fe00::1",
    "a scope on a public one": "2606:4700::1111%1",
}
CASES = [(why, text) for why, texts in SPECIAL.items() for text in texts.split()]


@pytest.mark.parametrize("text", PUBLIC.split())
def test_a_public_address_may_be_called(text):
    assert len(check_addresses([text], EgressPolicy())) == 1


@pytest.mark.parametrize(("why", "text"), CASES)
def test_a_special_address_is_refused(why, text):
    with pytest.raises(EgressRefusedError) as refusal:
        check_addresses([text], EgressPolicy())
    assert text not in str(refusal.value)


@pytest.mark.parametrize(("why", "text"), CASES)
def test_one_special_address_among_public_ones_refuses_them_all(why, text):
    for found in (["8.8.8.8", text], [text, "8.8.8.8"], ["2606:4700::1111", "8.8.8.8", text, "1.1.1.1"]):
        with pytest.raises(EgressRefusedError):
            check_addresses(found, EgressPolicy())


@given(st.ip_addresses())
def test_no_address_is_public_that_the_standard_library_calls_special(address):
    """One way only: the library's list is shorter than ours. It calls all of NAT64 reserved; ours looks inside."""
    if is_public(address) and address not in ipaddress.ip_network("64:ff9b::/96"):
        assert address.is_global
        assert not any((address.is_private, address.is_multicast, address.is_reserved, address.is_link_local))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_mapped_and_behind_nat64(address):
    def callable_as(text: str) -> bool:
        try:
            return bool(check_addresses([text], EgressPolicy()))
        except EgressRefusedError:
            return False

    assert callable_as(f"::ffff:{address}") == callable_as(f"64:ff9b::{address}") == is_public(address)


def test_a_mapped_address_is_called_as_the_ipv4_address_it_is():
    assert check_addresses(["::ffff:8.8.8.8", "8.8.8.8"], EgressPolicy()) == (ipaddress.ip_address("8.8.8.8"),)


def test_an_allow_listed_network_may_be_called_and_its_neighbours_may_not():
    policy = EgressPolicy(allowed_networks=(ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd12::/16")))
    for text in ("10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "fd12::1"):
        assert check_addresses([text], policy)
    for text in ("10.0.255.255", "10.2.0.0", "fd13::1", "127.0.0.1", "64:ff9b::10.1.2.3", "2002:a01:203::1"):
        with pytest.raises(EgressRefusedError):
            check_addresses([text], policy)


@pytest.mark.parametrize("text", METADATA.split())
def test_no_allow_list_opens_cloud_metadata(text):
    policy = EgressPolicy(allowed_networks=(ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")))
    with pytest.raises(EgressRefusedError):
        check_addresses([text], policy)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "017700000001", "127.1", "0177.0.0.1", "0x7f.1", "0"])
async def test_a_number_that_the_system_resolves_to_loopback_is_refused_by_where_it_leads(host):
    """The second line of defence; `test_egress_urls` holds the first."""
    found = await SystemResolver()(host, 443)
    assert found
    with pytest.raises(EgressRefusedError):
        check_addresses(found, EgressPolicy())
