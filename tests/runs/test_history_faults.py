"""The history among real programs: several at once, killed, out of space, without rights, without locks."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from capacity_tui.engine.machine import Host, is_on_a_share
from capacity_tui.engine.machine.disk import MOUNTS
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns

WRITER = Path(__file__).with_name("history_writer.py")
NOBODY = 65534
NO_LOCKS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
static int refused(int file, int command, long value) {
    if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) { errno = ENOLCK; return -1; }
    return syscall(SYS_fcntl, file, command, value);
}
int fcntl(int file, int command, ...) {
    va_list rest; va_start(rest, command); long value = va_arg(rest, long); va_end(rest);
    return refused(file, command, value);
}
int fcntl64(int file, int command, ...) {
    va_list rest; va_start(rest, command); long value = va_arg(rest, long); va_end(rest);
    return refused(file, command, value);
}
int flock(int file, int operation) { errno = ENOLCK; return -1; }
"""


def started(*words: object, **more) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(WRITER), *map(str, words)], stdout=subprocess.PIPE, text=True, **more)


def told(*words: object, **more) -> list[str]:
    """Return what the program told, once it has ended well."""
    program = started(*words, **more)
    lines = program.communicate(timeout=60)[0].splitlines()
    assert program.returncode == 0
    return lines


def ids(file: Path) -> set[str]:
    return {run.id for run in History(file).find(WantedRuns())}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "history.sqlite"


@pytest.fixture
def open_folder():
    """A folder that any user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_programs_that_write_at_once_lose_nothing_while_another_reads(file):
    programs = [started(file, 25, first) for first in "abcd"]
    while any(program.poll() is None for program in programs):
        History(file).find(WantedRuns())
    assert [len(program.communicate()[0].splitlines()) for program in programs] == [25] * 4
    assert ids(file) == {f"{first}{number:04d}" for first in "abcd" for number in range(25)}
    assert not list(file.parent.glob("*.taken-*"))


def test_a_program_that_is_killed_at_any_moment_loses_nothing_it_had_kept(file):
    said: set[str] = set()
    for first in "abc":
        program = started(file, 10_000, first)
        assert program.stdout
        said.add(program.stdout.readline().split()[0])
        time.sleep(random.uniform(0.0, 0.15))
        program.kill()
        said.update(line.split()[0] for line in program.communicate()[0].splitlines() if len(line.split()[0]) > 4)
    found = ids(file)
    assert said <= found
    assert len(found - said) <= 3  # what was kept, but no more told
    assert History(file).notes == []


def test_where_the_disk_is_full_the_program_goes_on_and_nothing_kept_is_lost(file):
    History(file).keep(RunRecord("run", id="before"))
    lines = told(file, 40, "a", 60_000)
    assert len(lines) == 40
    assert any("to be stored" in line or "not kept" in line for line in lines)
    silent = {line.split()[0] for line in lines if "not kept" not in line}
    assert {"before", *silent} <= ids(file)
    (line,) = told(file, 1, "b", 0)
    assert "not kept in the history" in line


def test_what_may_only_be_read_is_read_and_stops_nobody(open_folder):
    file = open_folder / "history.sqlite"
    History(file).keep(RunRecord("run"), RunRecord("profile"))
    file.chmod(0o444)
    open_folder.chmod(0o555)
    user = NOBODY if os.geteuid() == 0 else -1
    (line,) = told(file, 1, "a", -1, user)
    assert "not kept in the history" in line
    assert "Permission denied" in line
    (line,) = told(file, 0, "a", -1, user)
    assert line.split()[0] == "2"


@pytest.mark.skipif(shutil.which("cc") is None, reason="takes a C compiler to take locks away")
def test_a_file_system_without_locks_stops_nobody(file, tmp_path):
    source, library = tmp_path / "no_locks.c", tmp_path / "no_locks.so"
    source.write_text(NO_LOCKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    lines = told(file, 3, "a", env={**os.environ, "LD_PRELOAD": str(library)})
    assert [line.split()[0] for line in lines] == ["a0000", "a0001", "a0002"]
    assert "to be stored" in lines[0]
    assert ids(file) == {"a0000", "a0001", "a0002"}


def test_a_share_is_told_from_a_disk(tmp_path):
    mounts = tmp_path / MOUNTS.lstrip("/")
    mounts.parent.mkdir(parents=True)
    mounts.write_text("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:42 / /home rw - nfs4 server:/home rw\n")
    host = Host(root=tmp_path, system="Linux")
    assert is_on_a_share(Path("/home/me/.local/share/capacity-tui/history.sqlite"), host)
    assert not is_on_a_share(Path("/var/lib/history.sqlite"), host)
