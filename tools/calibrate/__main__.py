"""Fit the constants and ranges in ``profiles/`` to measurements, and say how sure they are.

    uv run python -m tools.calibrate training     step times: efficiency.yaml, frameworks.yaml, coefficients.yaml
    uv run python -m tools.calibrate memory       memory of training and fine-tuning: frameworks.yaml
    uv run python -m tools.calibrate unnamed      the row of software without a name, on runs whose software is withheld
    uv run python -m tools.calibrate serving      speed and memory of inference engines: engines.yaml
    uv run python -m tools.calibrate networks     throughput of networks of layers: coefficients.yaml
    uv run python -m tools.calibrate classical    classical algorithms: algorithms.yaml; --measure measures fits first
                                                  (uv run --group measure)
    uv run python -m tools.calibrate ranges       what ships, with each publisher left out: reliability.yaml, fits/;
                                                  --of latency: of these figures alone, the others stay as they are

Nothing is written without ``--write``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.runs.accuracy import Kind
from tools.calibrate.classical import MEASURED, classical_problem
from tools.calibrate.classical_measuring import CALIBRATION, append_measured, measure, read_measured
from tools.calibrate.constants import Fits, network_constants, serving_constants, training_constants, unnamed_constants
from tools.calibrate.fitting import Fit, Problem, RunT, as_shipped, fit, left_out
from tools.calibrate.ranges import Judged, RangesOfFigure, ranges_of
from tools.calibrate.runs import Run, published_runs
from tools.calibrate.served import served_together
from tools.calibrate.telling import evidence, fit_in_words, ranges_in_words
from tools.calibrate.writing import write_constants, write_evidence, write_ranges, write_unseen

TRAINING: dict[Fits, tuple[Kind, ...]] = {
    "time": ("train_time", "finetune_time"),
    "memory": ("train_memory", "finetune_memory"),
}
NETWORKS: tuple[Kind, ...] = ("vision",)
UNFITTED: tuple[Kind, ...] = ("encoder_time", "vision_memory")
SERVING: dict[Fits, tuple[Kind, ...]] = {
    "speed": ("prefill", "decode", "generate", "serving"),
    "memory": ("inference_memory",),
    "latency": ("ttft", "ttft_p99", "tpot", "tpot_p99"),
}
# Kinds of figures whose ranges are made together, since they share spreads.
PARTS = ("training", "serving", "latency")


def training_problem(fits: Fits, catalog: Catalog) -> Problem[Run]:
    """Return the problem of step times or of memory of training."""
    return Problem(published_runs(TRAINING[fits], catalog), training_constants(fits), catalog)


def network_problem(catalog: Catalog) -> Problem[Run]:
    """Return the problem of throughputs of networks of layers."""
    return Problem(published_runs(NETWORKS, catalog), network_constants(), catalog)


def unnamed_problem(fits: Fits, catalog: Catalog) -> Problem[Run]:
    """Return the problem of software without a name: the same runs, none of which says what software ran it."""
    return Problem(published_runs(TRAINING[fits], catalog, named=False), unnamed_constants(fits), catalog)


def serving_problem(fits: Fits, catalog: Catalog) -> Problem[Run]:
    """Return the problem of speeds or of memory of serving, of the engines that anyone measured."""
    runs = published_runs(SERVING[fits], catalog)
    read = [each for each in serving_constants(fits, catalog) if any(run.reads(each) for run in runs)]
    return Problem(runs, read, catalog, served_together)


def fit_and_tell(problem: Problem[RunT], *, write: bool) -> None:
    """Fit a problem, print what was found, and write it where that is asked for."""
    shipped = problem.errors(problem.shipped).residuals
    found = fit(problem)
    print("\n".join(fit_in_words(found, shipped)))
    if write:
        write_constants(found.values)


def classical(path: Path, catalog: Catalog, *, measured_anew: bool, write: bool) -> None:
    """Fit time and memory of classical algorithms to the fits of a file, measured anew where that is asked for."""
    if measured_anew:
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        for each in measure(CALIBRATION):
            append_measured(path, each)
            print(f"{each.algorithm:28s}{each.seconds:9.3f} s {each.bytes / 1e6:9.1f} MB", flush=True)
    measured = read_measured(path)
    fit_and_tell(classical_problem("time", measured, catalog), write=write)
    fit_and_tell(classical_problem("memory", measured, catalog), write=write)


def judgements(part: str, catalog: Catalog) -> Iterator[Judged]:
    """Yield what ships with publishers left out, problem by problem; of training also with the software withheld."""
    if part == "training":
        for fits in TRAINING:
            yield judged_apart(as_shipped(training_problem(fits, catalog)))
            yield Judged(as_shipped(unnamed_problem(fits, catalog)), withheld=True)
        yield judged_apart(as_shipped(network_problem(catalog)))
        for kind in UNFITTED:
            yield as_they_are(kind, catalog)
    else:
        for fits in SERVING:
            if (fits == "latency") == (part == "latency"):
                yield judged_apart(as_shipped(serving_problem(fits, catalog)))


def as_they_are(kind: Kind, catalog: Catalog) -> Judged:
    """Return the runs of a kind that no constant is fitted to."""
    return Judged(as_shipped(Problem(published_runs((kind,), catalog), (), catalog)))


def judged_apart(found: Fit[Run]) -> Judged:
    """Return a fit with families of software, and generations of hardware, left out in turn as well."""
    runs = found.problem.runs
    groups = [run.software for run in runs], [run.hardware for run in runs]
    problem, distances, errors = found.problem, found.distances, found.errors
    software, hardware = (left_out(problem, distances, errors, group, anew=False) for group in groups)
    return Judged(found, (software, hardware))


def ranges(catalog: Catalog, parts: Sequence[str], *, write: bool) -> None:
    """Make ranges and unseen figures of what ships, print them, and write them where that is asked for."""
    judged = [each for part in parts for each in judgements(part, catalog)]
    found: list[RangesOfFigure] = []
    for each in ranges_of(judged):
        found.append(each)
        print("\n".join(ranges_in_words(each)), flush=True)
    if write:
        write_ranges(found)
        write_unseen(run for each in found for run in each.unseen)
        write_evidence(row for each in judged for row in evidence(each.fit))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        "tools.calibrate", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("training", "memory", "unnamed", "serving", "networks", "classical", "ranges"))
    parser.add_argument("--of", choices=PARTS, help="ranges of these figures alone")
    parser.add_argument("--write", action="store_true", help="put what was found into profiles/")
    parser.add_argument(
        "--measured", type=Path, default=MEASURED, help="fits of classical models, one JSON object a line"
    )
    parser.add_argument("--measure", action="store_true", help="measure them first, some twenty minutes of one core")
    chosen = parser.parse_args(arguments)
    catalog = load_catalog()
    if chosen.what == "training":
        fit_and_tell(training_problem("time", catalog), write=chosen.write)
    elif chosen.what == "memory":
        fit_and_tell(training_problem("memory", catalog), write=chosen.write)
    elif chosen.what == "unnamed":
        for fits in TRAINING:
            fit_and_tell(unnamed_problem(fits, catalog), write=chosen.write)
    elif chosen.what == "serving":
        for fits in SERVING:
            fit_and_tell(serving_problem(fits, catalog), write=chosen.write)
    elif chosen.what == "networks":
        fit_and_tell(network_problem(catalog), write=chosen.write)
    elif chosen.what == "classical":
        if not (chosen.measure or chosen.measured.exists()):
            parser.error(f"no measured fits in {chosen.measured}: give --measure, or a file with --measured")
        classical(chosen.measured, catalog, measured_anew=chosen.measure, write=chosen.write)
    else:
        ranges(catalog, (chosen.of,) if chosen.of else PARTS, write=chosen.write)


if __name__ == "__main__":
    main()
