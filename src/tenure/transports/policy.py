"""What may be called: an address as text, then the IP addresses behind it. Nothing is resolved or sent here."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from tenure.core.errors import EgressRefusedError
from tenure.transports.addresses import Address, Network, is_metadata, is_public, unmapped

URL_CHARS_MAX = 2048
HOST_CHARS_MAX = 253
_DEFAULT_PORTS = {"https": 443, "http": 80}

_PLAIN = re.compile(r"[\x21-\x5b\x5d-\x7e]+")
_URL = re.compile(r"(https?)://([^/?]*)(.*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
# The WHATWG URL standard's "ends in a number": such a host is an IPv4 address to getaddrinfo, however it is spelt.
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    """What an installation may call, and how long and how much it listens."""

    allowed_networks: tuple[Network, ...] = ()
    """Private networks that may be called too. Cloud metadata services inside them stay closed."""
    allow_http: bool = False
    """Also call plain http addresses, and port 80."""
    allowed_ports: tuple[int, ...] = ()
    """Ports that may be called besides 443."""
    total_deadline_seconds: float = 20.0
    """From the name's resolution to the answer's last byte. Standard Webhooks: 15 to 30."""
    body_bytes_max: int = 64 * 1024
    """How much of an answer's body is read; the rest is left on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The parts of a URL that passed."""

    scheme: str
    host: str
    """A lower-case name, or an IP address without brackets."""
    port: int
    path: str
    """With the query. It may hold a receiver's token, so it is kept out of messages."""

    @property
    def authority(self) -> str:
        """The Host header (RFC 9110, 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_target(url: str, policy: EgressPolicy) -> Target:
    """Check a URL as text. Raises EgressRefusedError; where its host leads is judged when it is called.

    Strict, and split by these expressions only: a second parser that saw another host would be a way around the guard.
    """
    if len(url) > URL_CHARS_MAX:
        _refuse(f"the address is longer than {URL_CHARS_MAX} characters")
    if not _PLAIN.fullmatch(url):
        _refuse("the address must be plain ASCII without spaces and backslashes; write a host as punycode")
    if "#" in url:
        _refuse("the address must not have a fragment")
    match = _URL.fullmatch(url)
    if match is None or (match[1].lower() == "http" and not policy.allow_http):
        _refuse("the address must start with https://")
    scheme, authority, path = match[1].lower(), match[2], match[3]
    host, port = _read_authority(authority, _DEFAULT_PORTS[scheme])
    if port not in {443, *policy.allowed_ports, *((80,) if policy.allow_http else ())}:
        _refuse(f"port {port} is not one that may be called")
    return Target(scheme=scheme, host=host, port=port, path=path if path.startswith("/") else f"/{path}")


def check_addresses(found: Iterable[str], policy: EgressPolicy) -> tuple[Address, ...]:
    """The addresses a host leads to, in their order, each one allowed.

    Raises EgressRefusedError when any is not: a name with one foot inside is an attack, not a choice. The message does
    not name the address, which would tell outsiders how an inner network is numbered.
    """
    addresses = tuple(dict.fromkeys(unmapped(ipaddress.ip_address(text)) for text in found))
    if not all(_may_call(address, policy) for address in addresses):
        _refuse("the host leads to an IP address that may not be called")
    return addresses


def _may_call(address: Address, policy: EgressPolicy) -> bool:
    # A scope (`fe80::1%eth0`) would make one address look like another to the lists.
    if is_metadata(address) or "%" in str(address):
        return False
    return is_public(address) or any(address in network for network in policy.allowed_networks)


def _read_authority(authority: str, default_port: int) -> tuple[str, int]:
    if "@" in authority:
        _refuse("the address must not carry a user name or password")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        _refuse("the address must name a host, with or without a port")
    host = match[1].lower()
    if host.startswith("["):
        host = _read_ipv6(host[1:-1])
    elif not _is_host(host):
        _refuse("the host is neither a full name nor an IP address in its usual form")
    return host, default_port if match[2] is None else int(match[2])


def _read_ipv6(text: str) -> str:
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        _refuse("the host is not a valid IPv6 address")


def _is_host(host: str) -> bool:
    labels = host.split(".")
    if len(host) > HOST_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        return False
    if not _NUMBER.fullmatch(labels[-1]):
        return True
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


def _refuse(detail: str) -> NoReturn:
    raise EgressRefusedError(detail)
