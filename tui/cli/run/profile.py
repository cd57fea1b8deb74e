"""``profile``: runs a command and says what it used and what held it up; the command notices nothing of it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.cli.history_store import history_option
from capacity_tui.tui.cli.output import tell
from capacity_tui.tui.cli.run.piped_command import OutputReading, work_in_output
from capacity_tui.tui.cli.run.run_output import finish, outlet_options, tell_problems_of

if TYPE_CHECKING:
    from capacity_tui.engine.runs.profile import Profile, ResourceSnapshot

_NAMES = 12
"""Cells that names of rows take."""
_WIDEST = 160


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--interval", metavar="SECONDS", type=float, default=1.0, show_default=True, help="Time between looks.")
@click.option(
    "--samples",
    metavar="N|REGEX",
    help="Samples that the command gets done, or the lines of its output that tell: a (group) how many so far.",
)
@click.option(
    "--stage",
    "stages",
    metavar="NAME[=REGEX]",
    multiple=True,
    help="What the command works on; of several, the line of its output with which each begins.",
)
@click.option("--url", metavar="URL", help="An endpoint that the command depends on: asked meanwhile, for its latency.")
@click.option("--tier", metavar="TIER", help="Take the thresholds of machines of this tier, as detect tells it.")
@click.option(
    "--threshold",
    "thresholds",
    metavar="NAME=VALUE",
    multiple=True,
    help="From which use on cpu, memory, disk, network or gpu hold a run up, such as disk=500MB/s.",
)
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path), help="Write all of it as JSON.")
@click.option("--html", "html_file", metavar="FILE", type=click.Path(path_type=Path), help="Write it as a page.")
@outlet_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but what goes wrong.")
@history_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def profile(
    interval: float,
    samples: str | None,
    stages: tuple[str, ...],
    url: str | None,
    tier: str | None,
    thresholds: tuple[str, ...],
    json_file: Path | None,
    html_file: Path | None,
    jsonl: Path | None,
    serve: str | None,
    quiet: bool,
    no_history: bool,
    command: tuple[str, ...],
) -> int:
    """Run a command and say what it used: memory, CPU, disk, network, GPUs, and what held it up.

    The command's output, input, signals and exit code stay as they are; what was found goes to stderr. Write `--`
    before the command.
    """
    from capacity_tui.engine.runs import Outlets, RunningCommand, RunWriter
    from capacity_tui.engine.runs.profile import (
        ProfilingEngine,
        begun_profile,
        gauges_of,
        parse_thresholds,
        profile_entry,
        snapshot_as_dict,
        thresholds_of_tier,
    )

    count, work = work_in_output(samples, stages)
    limits = {**(thresholds_of_tier(tier) if tier else {}), **parse_thresholds(dict(map(_named, thresholds)))}
    with closing(Outlets(jsonl, serve)) as outlets:

        def seen(snapshot: ResourceSnapshot) -> None:
            data = snapshot_as_dict(snapshot)
            outlets.show(data, gauges_of(snapshot))
            writer.write({"event": "sample", **data})
            if reading is not None:
                reading.look(engine)

        # What is wrong with any of this is said before the command runs.
        engine = ProfilingEngine(interval, url=url, thresholds=limits, seen=seen)
        reading = OutputReading(work) if work else None
        running = reading.started(command) if reading else RunningCommand(command)
        writer = RunWriter(begun_profile(command), "profile", running.pid)
        _guarded(outlets.start)
        _guarded(lambda: engine.start(running.pid))
        with engine.stage(stages[0], count) if stages and not work else nullcontext():
            ended = running.wait()
        if reading is not None:
            _guarded(lambda: reading.end(engine))

        def report() -> None:
            if count is not None and (work or not stages):
                engine.done(count)
            result = engine.profile(ended, command)
            _write(result, json_file, html_file)
            for line in () if quiet else _lines(result):
                tell(line)
            tell_problems_of(outlets)
            finish(writer, profile_entry(result), no_history, ended.exit_code)

        _guarded(report)
    return ended.exit_code


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--threshold takes NAME=VALUE, not {text!r}")
    return name.strip(), value


def _guarded(work: Callable[[], None]) -> None:
    """Do something beside the command, whose exit code stands whatever comes of it."""
    try:
        work()
    except CapacityError as error:
        tell(f"capacity-tui: {error.one_line()}")
    except Exception as error:
        tell(f"capacity-tui: profiling failed, the command did not: {type(error).__name__}: {error}")


def _write(result: Profile, json_file: Path | None, html_file: Path | None) -> None:
    if json_file is not None:
        from capacity_tui.engine.files import write_atomically
        from capacity_tui.engine.runs.profile import profile_as_json

        _guarded(lambda: write_atomically(json_file, profile_as_json(result), overwrite=True))
    if html_file is not None:
        from capacity_tui.engine.files import write_atomically
        from capacity_tui.engine.present.runs import profile_page

        _guarded(lambda: write_atomically(html_file, profile_page(result), overwrite=True))


def _lines(result: Profile) -> Iterator[str]:
    """Yield what was found, folded to the width of the terminal."""
    from capacity_tui.engine.present.runs import profile_rows, profile_title

    width = min(_WIDEST, shutil.get_terminal_size().columns) if sys.stderr.isatty() else _WIDEST
    yield profile_title(result)
    for name, text in (*profile_rows(result.summary), *(("Problem", problem) for problem in result.problems)):
        folded = textwrap.wrap(text, max(20, width - _NAMES - 2)) or [""]
        for number, line in enumerate(folded):
            yield f"{'' if number else name:<{_NAMES}}  {line}"
