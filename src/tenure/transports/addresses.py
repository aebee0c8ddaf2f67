"""Which IP addresses are ordinary public ones.

Sources: the IANA special-purpose address registries (RFC 6890, as of 2025) for IPv4 and IPv6, and the cloud vendors'
documentation. `ipaddress.is_global` is no substitute: it calls `64:ff9b::a9fe:a9fe`, `2002:a9fe:a9fe::1`, `fec0::1`,
`224.0.0.1` and `168.63.129.16` global.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

SPECIAL_IPV4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network; Linux takes 0.0.0.0 for loopback
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared behind carrier NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocols
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112: answers nobody
        "192.52.193.0/24",  # multicast tunnels
        "192.88.99.0/24",  # 6to4 relays, withdrawn
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)

# Everything outside is not handed out as global unicast: unspecified, loopback, v4-compatible, NAT64, discard-only,
# segment routing, unique local, link-local, site-local and multicast need no line of their own.
GLOBAL_UNICAST_IPV6 = IPv6Network("2000::/3")
SPECIAL_IPV6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # IETF protocols, among them Teredo (2001::/32), benchmarks and ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: leads to the IPv4 address inside
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # the 6bone, given back
        "3fff::/20",  # documentation
    )
)

# RFC 6052: where a network speaks IPv6 only, its DNS64 writes every public IPv4 address in this form.
NAT64 = IPv6Network("64:ff9b::/96")

METADATA = frozenset(
    (
        IPv4Address("169.254.169.254"),  # AWS, Google, Azure and most others
        IPv4Address("169.254.170.2"),  # AWS ECS credentials
        IPv4Address("169.254.170.23"),  # AWS EKS credentials
        IPv4Address("168.63.129.16"),  # Azure; a public address by its range
        IPv4Address("100.100.100.200"),  # Alibaba
        IPv4Address("192.0.0.192"),  # Oracle
        IPv6Address("fd00:ec2::254"),  # AWS
        IPv6Address("fd00:ec2::23"),  # AWS EKS credentials
        IPv6Address("fd20:ce::254"),  # Google
    )
)
"""Where clouds hand out a machine's credentials to whoever asks from it."""


def unmapped(address: Address) -> Address:
    """The IPv4 address that a socket really talks to when given `::ffff:a.b.c.d`; any other address itself."""
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def is_metadata(address: Address) -> bool:
    return address in METADATA or _translated(address) in METADATA


def is_public(address: Address) -> bool:
    """Whether anybody on the internet may own this address, unmapped and without a scope."""
    if is_metadata(address):
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in SPECIAL_IPV4)
    if (translated := _translated(address)) is not None:
        return is_public(translated)
    return address in GLOBAL_UNICAST_IPV6 and not any(address in network for network in SPECIAL_IPV6)


def _translated(address: Address) -> IPv4Address | None:
    """The IPv4 address that a NAT64 translator would call."""
    if isinstance(address, IPv6Address) and address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
