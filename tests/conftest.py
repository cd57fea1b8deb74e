"""What all tests have in common: examples of properties, one day on which prices are read, no history of the user's."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

from capacity_tui.engine.catalog.loading import cached_catalog
from capacity_tui.engine.machine.cpu import probe_cpu
from capacity_tui.engine.machine.probing import Host

SHARED = bool(os.environ.get("CI"))

os.environ["CAPACITY_TUI_HISTORY"] = "off"

if sys.dont_write_bytecode:
    # Nothing is written beside the sources; but tests, and the programs that they start, are compiled once.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests make many objects that live long, which a collector of garbage need not look through all the time.
gc.set_threshold(50_000, 20, 50)

settings.register_profile("default", deadline=None, derandomize=SHARED, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("default")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes share all tests: one more than threads that can run, as some wait. A few share none."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return 0
    return (probe_cpu(Host()).usable_threads.value or 1) + 1


def pytest_collection_finish() -> None:
    """Pass over modules and collected tests as garbage is looked for: they stay until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _signals() -> None:
    """Hear signals, here and in what tests start, also where a shell runs them in the background without any."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(autouse=True, scope="session")
def _day_of_prices() -> Iterator[None]:
    """Let prices be as old on any day as on this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("capacity_tui.engine.catalog.rows.prices"), "today", lambda: date(2026, 11, 22))
        yield


@pytest.fixture(autouse=True, scope="session")
def _short_load() -> Iterator[None]:
    """Load the processor for a moment where a benchmark does for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capacity_tui.engine.machine.benchmark.all_benchmarks.LOAD_SECONDS", 0.1)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_progress() -> Iterator[None]:
    """Say nothing of progress, which depends on how fast the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capacity_tui.tui.cli.output.PATIENCE", 3600.0)
        yield


@pytest.fixture(scope="session")
def mongodb_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve MongoDB's protocol on this machine, over WiredTiger, MongoDB's own storage engine.

    That shows what is said to a server and what it answers over a connection. It does not show how fast MongoDB is, nor
    what it takes on disk: this server is another program, and tells sizes without compression.
    """
    pytest.importorskip("pymongo", reason="the extra mongodb is not installed")
    program = Path(sys.executable).with_name("secantusd-py")
    if not program.exists():
        pytest.skip("what serves MongoDB's protocol in tests is not installed")
    folder = tmp_path_factory.mktemp("mongodb")
    words = (program, "--host", "127.0.0.1", "--port", "0", "--storage-path", folder, "--standalone")
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder) as server:
        try:
            line = next((line for line in server.stderr or () if "listening on " in line), "")
            if not line:
                pytest.skip("what serves MongoDB's protocol in tests does not start")
            yield f"mongodb://{line.rpartition('listening on ')[2].strip()}"
        finally:
            server.kill()


@pytest.fixture
def fresh_catalog() -> Iterator[None]:
    """Let the catalogue be read anew, from the folders of this test, and again after it."""
    cached_catalog.cache_clear()
    yield
    cached_catalog.cache_clear()


@pytest.fixture(autouse=True, scope="session")
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let what commands leave behind about runs lie where no user has any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAPACITY_TUI_STATE", str(tmp_path_factory.mktemp("state")))
        yield
