"""Recorded machines: what the probes would read of a machine, as one text that any POSIX shell prints.

So a node needs nothing of this program: the text is printed there and understood here. ``=== path`` starts a file,
``$ command`` what commands that start so print, ``--> path target`` makes a symbolic link; what stands before is a
comment.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath

from capacity_tui.engine.errors import HardwareError
from capacity_tui.engine.machine.probing import TOOLS, Host, Space
from capacity_tui.engine.machine.vendors.registry import VENDORS

_FILE, _COMMAND, _LINK = "=== ", "$ ", "--> "
_NAMES, _SPACE = "uname -sm", "df -Pk"
_BLOCK = 1024
MOST_BYTES = 64 * 2**20  # Longest recording that is read: a node with a thousand processors has some ten megabytes
_CPU = "/sys/devices/system/cpu"
_CARD = "/sys/class/drm/card[0-9]*/device"
_PCIE = tuple(f"{end}_link_{name}" for end in ("current", "max") for name in ("speed", "width"))

_FILES = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/swaps"),
    *(f"/proc/self/{name}" for name in ("mountinfo", "cgroup", "status")),
    *("/proc/sys/kernel/osrelease", "/proc/sys/abi/sve_default_vector_length", "/proc/device-tree/model"),
    *("/.dockerenv", "/run/.containerenv", "/sys/class/dmi/id/sys_vendor"),
    *(f"{_CPU}/online", f"{_CPU}/cpu0/acpi_cppc/nominal_freq", "/sys/devices/cpu_atom/cpus"),
    *(f"{_CPU}/cpu[0-9]*/topology/{name}" for name in ("physical_package_id", "thread_siblings_list")),
    *(f"{_CPU}/cpu[0-9]*/{name}" for name in ("cpufreq/cpuinfo_max_freq", "cpufreq/base_frequency", "cpu_capacity")),
    *(f"{_CPU}/cpu[0-9]*/cache/index*/{name}" for name in ("level", "type", "size", "shared_cpu_list")),
    *(f"/sys/devices/system/node/node[0-9]*/{name}" for name in ("cpulist", "meminfo")),
    *(f"/sys/class/net/*/{name}" for name in ("speed", "operstate", "type")),
    *(f"/sys/class/infiniband/*/ports/*/{name}" for name in ("link_layer", "state", "rate")),
    *(f"{_CARD}/{name}" for name in ("vendor", "device", "revision", "uevent", "numa_node", *_PCIE)),
    *(f"/sys/class/powercap/*/{name}" for name in ("name", "constraint_0_power_limit_uw")),
    *(pattern for vendor in VENDORS for pattern in vendor.read),
)

_LINKS = ("/sys/class/net/*/device", "/sys/class/infiniband/*/device", _CARD)
_COMMANDS = ((_NAMES,), (_SPACE,), *(command for vendor in VENDORS for command in vendor.asked))

_SCRIPT = """\
LC_ALL=C; export LC_ALL
PATH=$PATH:{folders}
files() {{ for file; do
  if [ -f "$file" ]; then text=$(cat "$file") && printf '=== %s\\n%s\\n' "$file" "$text"
  elif [ -e "$file" ]; then printf '=== %s\\n' "$file"; fi
done; }}
links() {{ for file; do [ -L "$file" ] && printf -- '--> %s %s\\n' "$file" "$(readlink -f "$file")"; done; }}
tool() {{ if command -v "${{1%% *}}" > /dev/null; then printf '$ %s\\n' "$1"; $1 < /dev/null; fi; }}
{{
links {links}
files {files}
{tools}
}} 2> /dev/null
exit 0
"""

RECORDING_SCRIPT = _SCRIPT.format(
    folders=":".join((*TOOLS, *(folder for vendor in VENDORS for folder in vendor.folders))),
    links=" ".join(_LINKS),
    files=" ".join(_FILES),
    tools="\n".join(f"tool '{' '.join(words)}'" for words in _COMMANDS),
)
"""What prints a recording of the machine that runs it, for the standard input of ``sh -s``."""


def recorded_host(text: str) -> Host:
    """Return the machine of a recording; raises HardwareError where the text is none, or holds impossible facts."""
    if len(text) > MOST_BYTES:
        raise HardwareError("the recording is too long", hint=f"a machine reports less than {MOST_BYTES >> 20} MiB")
    files, answers, links = recorded_parts(text)
    if not files and not answers:
        raise HardwareError("nothing was recorded", hint="it begins with lines such as `=== /proc/cpuinfo`")
    host = Host(
        recorded=RecordedFiles(files, links),
        system="Linux",
        environment={},
        run=partial(_answer, answers),
        space=_spaces(answers),
    )
    system, _, architecture = answers.get(_NAMES, "").strip().partition(" ")
    return replace(host, system=system, architecture=architecture) if system in {"Linux", "Darwin"} else host


def recorded_parts(text: str) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return files, outputs of commands, and links of a recording."""
    files: dict[str, list[str]] = {}
    answers: dict[str, list[str]] = {}
    links: dict[str, str] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(_FILE):
            lines = files[line.removeprefix(_FILE)] = []
        elif line.startswith(_COMMAND):
            lines = answers[line.removeprefix(_COMMAND)] = []
        elif line.startswith(_LINK) and len(line.split()) == 3:
            _, link, target = line.split()
            links[link] = target
        else:
            lines.append(line)
    texts = {path: "\n".join(lines) + "\n" for path, lines in files.items()}
    return texts, {words: "\n".join(lines) for words, lines in answers.items()}, links


def _answer(answers: Mapping[str, str], words: tuple[str, ...], seconds: float) -> str:  # noqa: ARG001 - nothing to wait for
    command = " ".join(words)
    matching = [start for start in answers if command.startswith(start)]
    if not matching:
        raise FileNotFoundError(words[0])
    return answers[max(matching, key=len)]


def _spaces(answers: Mapping[str, str]) -> Callable[[str], Space]:
    """Return a function from mount points to sizes of file systems, by the output of ``df -Pk``."""
    rows = (line.split(None, 5) for line in answers.get(_SPACE, "").splitlines()[1:])
    known = dict(_mounted(rows))

    def space(mount: str) -> Space:
        if mount not in known:
            raise FileNotFoundError(mount)
        return known[mount]

    return space


def _mounted(rows: Iterator[list[str]]) -> Iterator[tuple[str, Space]]:
    for row in rows:
        if len(row) == 6 and row[1].isdigit() and row[3].isdigit():
            yield row[5], Space(int(row[1]) * _BLOCK, int(row[3]) * _BLOCK)


_MOST_LINKS = 40  # Links that one path may lead through, as Linux has it


class RecordedFiles:
    """The files of a machine, by their paths from its root; with the interface of files on disk.

    Args:
        links: where symbolic links to directories lead, from the root or from where the link lies.

    Raises:
        HardwareError: a path is not that of a file below a root.
    """

    def __init__(self, files: Mapping[str, str], links: Mapping[str, str]) -> None:
        for path in (*files, *links):
            if not path.startswith("/") or normpath(path) != path:
                raise HardwareError("a path of the recording leads elsewhere", path, "record the machine again")
        self._links = {link: normpath(join(dirname(link), target)) for link, target in links.items()}
        self._files = {self._resolved(path): text for path, text in files.items()}

    def read(self, path: str) -> bytes:
        resolved = self._resolved(path)
        if resolved not in self._files:
            raise _error(errno.EISDIR if resolved in self._folders else errno.ENOENT, path)
        return self._files[resolved].encode()

    def names(self, directory: str) -> Iterable[str]:
        resolved = self._resolved(directory)
        if resolved not in self._folders:
            raise _error(errno.ENOENT, directory)
        return self._folders[resolved]

    def exists(self, path: str) -> bool:
        resolved = self._resolved(path)
        return resolved in self._files or resolved in self._folders

    def target(self, path: str) -> PurePosixPath:
        if not self.exists(path):
            raise _error(errno.ENOENT, path)
        return PurePosixPath(self._resolved(path))

    @cached_property
    def _folders(self) -> Mapping[str, set[str]]:
        """The names in each directory."""
        folders: dict[str, set[str]] = {"/": set()}

        def enter(path: str) -> None:
            folder = dirname(path)
            if folder not in folders:
                folders[folder] = set()
                enter(folder)
            folders[folder].add(path.rpartition("/")[2])

        for path in self._files:
            enter(path)
        for link in self._links:
            enter(join(self._resolved(dirname(link)), link.rpartition("/")[2]))
        for target in {self._resolved(link) for link in self._links} - {"/", *self._links}:
            folders.setdefault(target, set())
            enter(target)
        return folders

    def _resolved(self, path: str) -> str:
        """Return a path with no link in it; where links lead to each other, one where nothing is."""
        path = normpath(path)
        for _ in range(_MOST_LINKS):
            link = next((start for start in _starts(path) if start in self._links), None)
            if link is None:
                break
            path = normpath(self._links[link] + path[len(link) :])
        return path


def _starts(path: str) -> Iterable[str]:
    """Yield the directories above a path from the root on, and the path itself."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
