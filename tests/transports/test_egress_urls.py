from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.core.errors import EgressRefusedError
from tenure.transports.policy import EgressPolicy, Target, read_target

REFUSED = {
    "plain http": "http://example.com/",
    "no scheme": "example.com/hook",
    "a relative one": "//example.com/hook",
    "empty": "",
    "file": "file:///etc/passwd",
    "gopher": "gopher://example.com/_x",
    "ftp": "ftp://example.com/",
    "javascript": "javascript:alert(1)",
    "data": "data:text/plain,x",
    "no host": "https:///path",
    "no host but a port": "https://:443/",
    "one slash": "https:/example.com",
    "ssh's port": "https://example.com:22/",
    "redis's port": "https://example.com:6379/",
    "http's port without http": "https://example.com:80/",
    "port 0": "https://example.com:0/",
    "a port too large": "https://example.com:65536/",
    "a port of six digits": "https://example.com:000443/",
    "an empty port": "https://example.com:/",
    "a signed port": "https://example.com:+443/",
    "a port that is none": "https://example.com:https/",
    "two ports": "https://example.com:443:443/",
    "a user": "https://user@example.com/",
    "a user and a password": "https://user:secret@example.com/",
    "an empty user": "https://@example.com/",
    "a host in the user's place": "https://example.com@127.0.0.1/",
    "a backslash before the at sign": "https://example.com\\@127.0.0.1/",
    "a backslash": "https:\\\\example.com",
    "a fragment": "https://example.com/#part",
    "an empty fragment": "https://example.com/#",
    "a fragment before the at sign": "https://example.com#@127.0.0.1/",
    "a space": "https://example.com/a b",
    "a leading space": " https://example.com/",
    "a tab": "https://exam\tple.com/",
    "a line break": "https://example.com/\r\nHost: inner",
    "a NUL": "https://example.com/\0",
    "a DEL": "https://example.com/\x7f",
    "a trailing dot": "https://example.com./",
    "an empty label": "https://example..com/",
    "a long label": f"https://{'a' * 64}.com/",
    "a long name": f"https://{'.'.join(['abcdefg'] * 32)}.com/",
    "a label that starts with a dash": "https://-example.com/",
    "a percent-encoded host": "https://%31%32%37.0.0.1/",
    "an international host": "https://bücher.example/",
    "circled digits": "https://①②⑦.⓪.⓪.①/",
    "full-width digits": "https://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
    "an ideographic full stop": "https://127。0。0。1/",
    "a soft hyphen": "https://exam\u00adple.com/",
    "decimal": "https://2130706433/",
    "hexadecimal": "https://0x7f000001/",
    "hexadecimal in parts": "https://0x7f.0x0.0x0.0x1/",
    "upper-case hexadecimal": "https://0X7F000001/",
    "a bare 0x": "https://127.0.0.0x/",
    "octal": "https://017700000001/",
    "octal in parts": "https://0177.0.0.1/",
    "short": "https://127.1/",
    "three parts": "https://127.0.1/",
    "zero": "https://0/",
    "five parts": "https://1.2.3.4.5/",
    "a number too large": "https://256.256.256.256/",
    "a name that ends in a number": "https://example.1/",
    "a leading zero": "https://8.8.8.08/",
    "brackets with a name": "https://[example.com]/",
    "brackets with IPv4": "https://[127.0.0.1]/",
    "open brackets": "https://[::1/",
    "empty brackets": "https://[]/",
    "brackets and more": "https://[::1]x/",
    "a zone": "https://[fe80::1%25eth0]/",
    "IPv6 without brackets": "https://::1/",
    "an IPvFuture": "https://[v1.x]/",
    "too long": "https://example.com/" + "a" * 2029,
}


@pytest.mark.parametrize("why", REFUSED)
def test_an_address_is_refused_that_has(why):
    with pytest.raises(EgressRefusedError):
        read_target(REFUSED[why], EgressPolicy())


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("https://example.com", "example.com", 443, "/", "example.com"),
        ("https://example.com:443/", "example.com", 443, "/", "example.com"),
        ("HTTPS://Hooks.Example.COM/In?key=a/b?c@d", "hooks.example.com", 443, "/In?key=a/b?c@d", "hooks.example.com"),
        ("https://example.com?key=1", "example.com", 443, "/?key=1", "example.com"),
        ("https://xn--bcher-kva.example/%20", "xn--bcher-kva.example", 443, "/%20", "xn--bcher-kva.example"),
        ("https://a_b.example.com//x/../y", "a_b.example.com", 443, "//x/../y", "a_b.example.com"),
        ("https://8.8.8.8/", "8.8.8.8", 443, "/", "8.8.8.8"),
        ("https://[2606:4700:0::1111]/", "2606:4700::1111", 443, "/", "[2606:4700::1111]"),
        ("https://[::FFFF:8.8.8.8]/", "::ffff:808:808", 443, "/", "[::ffff:808:808]"),
        ("https://example.com/" + "a" * 2028, "example.com", 443, "/" + "a" * 2028, "example.com"),
    ],
)
def test_an_ordinary_address_is_taken_apart(url, host, port, path, authority):
    target = read_target(url, EgressPolicy())
    assert target == Target(scheme="https", host=host, port=port, path=path)
    assert target.authority == authority


def test_http_and_its_port_open_together():
    policy = EgressPolicy(allow_http=True)
    assert read_target("http://example.com/", policy).authority == "example.com"
    assert read_target("http://example.com:443/", policy).authority == "example.com:443"
    assert read_target("https://example.com:80/", policy).authority == "example.com:80"
    with pytest.raises(EgressRefusedError):
        read_target("http://example.com:8080/", policy)


def test_further_ports_open_beside_443():
    policy = EgressPolicy(allowed_ports=(8443,))
    assert read_target("https://example.com:8443/", policy).port == 8443
    assert read_target("https://example.com/", policy).port == 443
    with pytest.raises(EgressRefusedError):
        read_target("https://example.com:8444/", policy)


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_shows_no_secret_of_the_address(why):
    with pytest.raises(EgressRefusedError) as refusal:
        read_target(REFUSED[why] + "?token=hunter2", EgressPolicy())
    assert "hunter2" not in str(refusal.value)
    assert "secret" not in str(refusal.value)


@given(st.text(alphabet=":/?#@[]\\.%0x1aA-_ \t\ufe52①", max_size=30).map(lambda tail: f"https://{tail}"))
@example("https://a@b")
@example("https://[::1]:443?")
def test_whatever_passes_is_read_alike_by_another_parser(url):
    try:
        target = read_target(url, EgressPolicy())
    except EgressRefusedError:
        return
    other = urlsplit(url)
    assert (other.username, other.password, other.fragment) == (None, None, "")
    assert (other.port or 443) == target.port
    if ":" not in target.host:
        assert other.hostname == target.host
