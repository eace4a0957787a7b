"""IP addresses, for deployments that ask for them: in most logs they name machines, not people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from memory.redaction.candidate import Candidate
from memory.redaction.view import View

__all__ = ["ip_addresses"]

_FOUR = re.compile(r"(?<![A-Za-z0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![A-Za-z0-9]|\.[0-9])")
_SIX = re.compile(r"(?<![A-Za-z0-9:.])[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,43}(?![A-Za-z0-9:])")


def ip_addresses(view: View) -> Iterator[Candidate]:
    """RFC 791 dotted quads and RFC 4291 text forms, parsed; not the unspecified ``::``."""
    for match in _SIX.finditer(view.text):
        address = match[0].rstrip(".")
        if address.count(":") > 1 and address.strip(":") and _parses(IPv6Address, address):
            yield Candidate(match.start(), match.start() + len(address), "ip_address")
    for match in _FOUR.finditer(view.text):
        if _parses(IPv4Address, match[0]):
            yield Candidate(*match.span(), "ip_address")


def _parses(form: type[IPv4Address] | type[IPv6Address], address: str) -> bool:
    try:
        form(address)
    except AddressValueError:
        return False
    return True
