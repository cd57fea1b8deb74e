"""Recorded machines: what the probes would read of a machine, as one text that any POSIX shell prints.

So a node needs nothing of this program: the text is printed there and understood here. ``=== path`` starts a file,
``$ command`` what commands that start so print, ``--> path target`` makes a symbolic link; what stands before is a
comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from capacity_tui.engine.errors import HardwareError
from capacity_tui.engine.machine.commands import TOOLS
from capacity_tui.engine.machine.host_files import Host, Space
from capacity_tui.engine.machine.recorded_files import RecordedFiles
from capacity_tui.engine.machine.vendors.registry import VENDORS

_FILE, _COMMAND, _LINK = "=== ", "$ ", "--> "
_NAMES, _SPACE = "uname -sm", "df -Pk"
_BLOCK = 1024
MOST_BYTES = 64 * 2**20
"""Longest recording that is read: a node with a thousand processors has some ten megabytes."""

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
    """Return the machine of a recording.

    Raises:
        HardwareError: the text is no recording, or holds impossible facts.
    """
    if len(text) > MOST_BYTES:
        raise HardwareError("the recording is too long", hint=f"a machine tells less than {MOST_BYTES >> 20} MiB")
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
    return {path: "\n".join(held) + "\n" for path, held in files.items()}, _joined(answers), links


def _joined(texts: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: "\n".join(lines) for name, lines in texts.items()}


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
