"""The rendezvous of a run's ranks: the store at an address, gloo and NCCL on that address's network card.

    with on_this_host(): …              # gloo's ports are this host's alone
    with between_hosts("10.0.0.5"): …   # gloo and NCCL use the card which has that address

None of these ports has a password, so none is opened to more than it must be.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from contextlib import AbstractContextManager, suppress
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import torch.distributed as dist

from foresail.ray_cluster import environment

HERE = "127.0.0.1"
GLOO, NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
ADDRESS, MASK = 0x8915, 0x891B  # of Linux's ioctl: SIOCGIFADDR, SIOCGIFNETMASK
BACKLOG = 1024  # connections that may wait to be accepted


def open_store(address: str) -> Any:
    """Rank 0's store; it listens at this address alone, where PyTorch would listen at all of the host's."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.create_server((address, 0), family=family, backlog=BACKLOG)
    port = listening.getsockname()[1]
    return dist.TCPStore(
        address, port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach()
    )


def on_this_host() -> AbstractContextManager[None]:
    return unless_set({GLOO: "lo"} if sys.platform.startswith("linux") else {})


def between_hosts(address: str) -> AbstractContextManager[None]:
    """`address` is this host's. If its card is not found, gloo uses the host's name, and NCCL chooses."""
    card = card_of(address)
    return unless_set({} if card is None else {GLOO: card, NCCL: f"={card}"})


def unless_set(changes: dict[str, str]) -> AbstractContextManager[None]:
    """Set environment variables, except those that the user has set."""
    return environment({name: value for name, value in changes.items() if name not in os.environ})


def card_of(address: str) -> str | None:
    """card_of("127.0.0.1") -> "lo"; a card that only has a neighbour's address is the second choice."""
    try:
        own_address, cards = IPv4Address(address), network_cards()
    except ValueError:  # IPv6: there is no such call
        return None
    exact = [name for name, own in cards.items() if own.ip == own_address]
    near = [name for name, own in cards.items() if own_address in own.network]
    return next(iter(exact + near), None)


def network_cards() -> dict[str, IPv4Interface]:
    """network_cards() -> {"lo": IPv4Interface("127.0.0.1/8"), …}; empty where this is not Linux."""
    interfaces: dict[str, IPv4Interface] = {}
    if sys.platform.startswith("linux"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
            for _, name in socket.if_nameindex():
                with suppress(OSError):  # it has no address
                    interfaces[name] = IPv4Interface(
                        (ask(connection, name, ADDRESS), ask(connection, name, MASK))
                    )
    return interfaces


def ask(connection: socket.socket, name: str, what: int) -> str:
    import fcntl  # not on Windows

    answer = fcntl.ioctl(connection, what, struct.pack("256s", name.encode()))
    return socket.inet_ntoa(answer[20:24])
