"""A command keeps its exit code, its streams and its signals."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.runs.command import RunningCommand

RUN = """
import sys
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.runs.command import RunningCommand
try:
    command = RunningCommand(sys.argv[1:])
except CapacityError as error:
    sys.exit(error.exit_code)
ended = command.wait()
print("held", ended.largest_rss_bytes or 0, file=sys.stderr)
sys.exit(ended.exit_code)
"""
COUNTING = """
import signal, sys, time
got = []
def count(number, frame):
    got.append(number)
    print("got", number, len(got), flush=True)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, count)
print("ready", flush=True)
while len(got) < 3:
    time.sleep(0.01)
time.sleep(0.1)
sys.exit(len(got))
"""


def run(*words: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *words], capture_output=True, text=True, timeout=30, check=False, **settings
    )


def test_streams_and_exit_code_are_the_commands():
    done = run("sh", "-c", "cat; exit 3", input="from stdin\n")
    assert (done.returncode, done.stdout) == (3, "from stdin\n")


def test_death_by_a_signal_exits_as_in_a_shell():
    assert run("sh", "-c", "kill -9 $$").returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/dev/null", 126)])
def test_what_cannot_be_started_exits_as_in_a_shell(command, code):
    assert run(command).returncode == code


def test_a_script_without_an_interpreter_is_the_shells(tmp_path):
    script = tmp_path / "script"
    script.write_text("exit 5\n")
    script.chmod(0o755)
    assert run(str(script)).returncode == 5


def test_a_peak_between_samples_is_the_kernels_to_tell():
    # The kernel begins to count at the peak of the program that starts another, here at that of the tests.
    unit = 1 if sys.platform == "darwin" else 1024
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit + (100 << 20)
    held = run(sys.executable, "-S", "-c", f"held = b'x' * {size}").stderr.split()
    assert size < int(held[-1]) < size + (100 << 20)


def test_each_signal_for_the_program_alone_reaches_the_command_once():
    with subprocess.Popen(
        [sys.executable, "-c", RUN, sys.executable, "-S", "-c", COUNTING],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as started:
        assert started.stdout.readline() == "ready\n"
        for count, number in enumerate((signal.SIGTERM, signal.SIGHUP, signal.SIGINT), 1):
            started.send_signal(number)
            assert started.stdout.readline() == f"got {number.value} {count}\n"
        assert started.wait(20) == 3


def test_what_is_sent_to_the_terminals_group_reaches_the_command_once():
    """Ctrl-C in a terminal: the kernel sends it to all of the group, so that passing it on would make two of it."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", RUN, sys.executable, "-S", "-c", COUNTING])
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, b"\x03")
    while b"got 2 1" not in shown:
        shown += os.read(terminal, 1024)
    time.sleep(0.1)
    os.kill(pid, signal.SIGTERM)
    while b"got 15 2" not in shown:
        shown += os.read(terminal, 1024)
    os.kill(pid, signal.SIGHUP)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    os.close(terminal)


EARLY = """
import os, signal, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()  # as libraries do: it holds no signal back
from capacity_tui.engine.runs.command import RunningCommand
command = RunningCommand(["sleep", "60"])
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.1)
ended = command.wait()
assert ended.signal == signal.SIGTERM, ended
print("passed on")
"""


def test_a_signal_before_anybody_waits_is_passed_on():
    done = subprocess.run([sys.executable, "-c", EARLY], check=False, capture_output=True, text=True, timeout=50)
    assert done.stdout == "passed on\n", done


def test_a_signal_that_another_thread_took_is_not_waited_for(monkeypatch):
    pending = iter([{signal.SIGCHLD}])
    monkeypatch.setattr(signal, "sigpending", lambda: next(pending, set()))
    monkeypatch.setattr(signal, "sigwait", lambda _: pytest.fail("waits for what is gone"))
    with pytest.raises(CapacityError, match="cannot be started"):
        RunningCommand(["no-such-program"])
