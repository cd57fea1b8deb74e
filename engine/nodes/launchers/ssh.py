"""Nodes reached by the user's own ``ssh``: its configuration, keys, agents and jump hosts apply."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import LauncherError, Place
from capacity_tui.engine.files import reading_error
from capacity_tui.engine.nodes.launchers.each_node import on_each_node
from capacity_tui.engine.nodes.launchers.launcher import NodeAnswer, Order

_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-T")
"""Never asks, gives up on hosts that do not answer, and notices those that die meanwhile."""
_PAIR, _RACK = "=", "rack"


@dataclass(frozen=True, slots=True)
class Ssh:
    """The hosts of a file.

    Attributes:
        hosts: how ``ssh`` knows them.
        racks: what the file says of where they stand, by host.
    """

    hosts: tuple[str, ...]
    racks: Mapping[str, str] = field(default_factory=dict)
    program: str = "ssh"

    @property
    def name(self) -> str:
        """What reaches the nodes."""
        return "SSH"

    def nodes(self) -> tuple[str, ...]:
        """Return the hosts.

        Raises:
            LauncherError: there is no ssh.
        """
        if shutil.which(self.program) is None:
            raise LauncherError(f"{self.program} is not installed", hint="install OpenSSH's client")
        return self.hosts

    def run(self, order: Order, nodes: Sequence[str], cancelled: Event | None = None) -> Iterator[NodeAnswer]:
        """Run a command on each of some hosts."""
        words = shlex.join(order.words)
        yield from on_each_node(order, nodes, lambda node: (self.program, *_OPTIONS, "--", node, words), cancelled)


def read_hosts(path: Path) -> Ssh:
    """Return the hosts of a file: one a line, as ``ssh`` knows it, with ``rack=NAME`` behind it where that is known.

    What stands behind a ``#`` is a remark; other words behind a host (``slots=8`` of MPI) are left alone.

    Raises:
        LauncherError: there is none in it, or one that cannot be a host.
        CapacityError: the file cannot be read.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise reading_error(error, path) from error
    hosts: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        host, *others = words
        if host.startswith("-") or not host.isprintable():
            hint = "write one host a line, as ssh knows it"
            raise LauncherError(f"{host[:60]!r} is no host", hint=hint, place=Place(str(path), number))
        named = dict(other.split(_PAIR, 1) for other in others if _PAIR in other)
        for key in named:
            if key != _RACK and nearest(key, (_RACK,)):
                raise LauncherError(
                    f"unknown word {key!r:.60}", hint="did you mean rack?", place=Place(str(path), number)
                )
        hosts.setdefault(host, named.get(_RACK, ""))
    if not hosts:
        raise LauncherError(
            "no host in the file", hint="write one host a line, as ssh knows it", place=Place(str(path))
        )
    return Ssh(tuple(hosts), {host: rack for host, rack in hosts.items() if rack})
