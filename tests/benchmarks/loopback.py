"""A guard under the benchmarks: no socket of this process leaves the machine."""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any

import psutil

__all__ = ["Guard"]


class Guard:
    """Refuses to connect or to ask for a name anywhere else; counts what was asked.

    What connects by itself (libpq, in C) is given the server's address and nothing else.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and not _local(*arguments):
            self._refuse(str(arguments[1][0]))
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            host = arguments[0]
            if host is not None and not _loopback(host):
                self._refuse(str(host))

    def check(self) -> None:
        """Raise if anything asked to leave, or has a connection to elsewhere now."""
        remote = [c.raddr.ip for c in psutil.Process().net_connections() if _remote(c.raddr)]
        if self.refused or remote:
            raise RuntimeError(f"not on this machine: {self.refused + remote}")

    def _refuse(self, where: str) -> None:
        self.refused.append(where)
        raise ConnectionRefusedError("a benchmark stays on this machine")


def _local(connecting: socket.socket, address: Any) -> bool:
    if connecting.family == socket.AF_UNIX:
        return True
    return _loopback(address[0])


def _remote(address: Any) -> bool:
    """Say whether an address is one of the network, and elsewhere."""
    return bool(address) and not isinstance(address, str) and not _loopback(address.ip)


def _loopback(host: str | bytes) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
