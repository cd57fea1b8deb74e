"""Lines as programs write them, and what each tells."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from capacity_tui.engine.catalog.rows import LOG_FIGURES, RunLog
from capacity_tui.engine.runs.logs import LineReader, RunCurve, figures_of, parse_user_expression
from capacity_tui.engine.runs.logs.line_reader import ExpressionError, LogEntry

GIB = 2**30
LINES = yaml.safe_load(Path(__file__).with_name("recorded_lines.yaml").read_text("utf-8"))
SILENT = [
    "",
    "Loading checkpoint shards:  50%|█████     | 2/4 [00:10<00:10,  2.05s/it]",
    "Map:  50%|█████     | 500/1000 [00:10<00:10, 48.70 examples/s]",
    "model.safetensors: 100%|██████████| 1.61M/1.61M [00:00<00:00, 3.18MB/s]",
    "val_loss: 0.3",
    "llama_print_timings: sample time = 301.80 ms / 512 runs ( 0.59 ms per token, 1696.48 tokens per second)",
    "{'a': [1, 2",
    "\x00" * 50,
    "it was 10 o'clock",
]


@pytest.fixture(scope="module")
def reader() -> LineReader:
    return LineReader()


@pytest.mark.parametrize("recorded", LINES, ids=[recorded["program"] for recorded in LINES])
def test_a_line_tells_its_figures(reader: LineReader, recorded: dict[str, Any]) -> None:
    found = reader.read(recorded["line"])
    assert found is not None
    assert dict(found.figures) == pytest.approx(recorded["figures"])
    assert found.program == recorded["program"]


@pytest.mark.parametrize("line", SILENT)
def test_other_lines_tell_nothing(reader: LineReader, line: str) -> None:
    assert reader.read(line) is None


@pytest.mark.parametrize(
    "junk", ["9" * 70_000, "{" * 70_000, "1/2 [ " * 12_000, "Epoch 1 " + "1/2 " * 17_000, "\ufffd" * 70_000]
)
def test_long_junk_is_passed_over(reader: LineReader, junk: str) -> None:
    found = reader.read(junk)
    assert found is None or all(figure in LOG_FIGURES for figure in found.figures)


def test_what_is_no_number_is_told_as_such(reader: LineReader) -> None:
    found = reader.read("{'loss': nan, 'grad_norm': inf, 'epoch': 1.0}")
    assert found is not None
    assert math.isnan(found.figures["loss"])
    assert math.isinf(found.figures["grad_norm"])


def test_columns_follow_their_head() -> None:
    table = LineReader()
    assert table.read("epoch,step,train_loss,val_loss") is None
    assert dict(table.read("0,49,3.5,").figures) == {"epoch": 0, "step": 49, "loss": 3.5}
    assert dict(table.read("0,99,,2.1").figures) == {"epoch": 0, "step": 99}


def test_the_precision_that_a_log_says_is_kept(reader: LineReader) -> None:
    assert reader.read("Using bfloat16 Automatic Mixed Precision (AMP)").precision == "bf16"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("llama_kv_cache: size = 2.13 MiB ( 512 cells), K (q8_0): 1.06 MiB, V (q8_0): 1.06 MiB", "q8_0"),
        ("0.00.040.429 I llama_kv_cache: size =    1.12 MiB (   512 cells), K (iq4_nl):    0.56 MiB", "iq4_nl"),
        ("0.00.089.405 I llama_kv_cache: size =    4.00 MiB (   512 cells), K (f16):    2.00 MiB", "fp16"),
        ("INFO Initializing a V1 LLM engine with config: dtype=torch.bfloat16, kv_cache_dtype=fp8_e4m3, seed=0", "fp8"),
        ("[2026-05-19 10:13:11] KV Cache is allocated. dtype: torch.float8_e5m2, #tokens: 1024, K size: 1 GB", "fp8"),
    ],
)  # fmt: skip
def test_the_format_of_keys_and_values_that_an_engine_says_is_kept(reader: LineReader, line: str, kept: str) -> None:
    assert reader.read(line).precision == kept


def test_own_expressions_count_first() -> None:
    own = (
        parse_user_expression(r"it=(?P<step>\d+) L=(?P<loss>\S+)"),
        parse_user_expression("tokens_per_second=json:a.tps"),
    )
    table = LineReader(expressions=own)
    assert dict(table.read("it=7 L=0.25").figures) == {"step": 7, "loss": 0.25}
    assert table.read('{"a": {"tps": 12.5}}').figures["tokens_per_second"] == 12.5


@pytest.mark.parametrize("text", ["(", "loss", "(?P<los>x)", "json:a.b", "los=json:x", "", "(?P<loss>" + "(" * 300])
def test_expressions_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse_user_expression(text)
    assert "\n" not in refused.value.one_line()


def test_a_block_of_ones_own_is_enough_for_another_program() -> None:
    row = RunLog.model_validate(
        {"id": "mine", "name": "mine", "source": "me", "checked": "2026-01-01", "confidence": "A", "signs": ["~"],
         "figures": {"step": "~<number>", "memory_bytes": "mem <size>"}}
    )  # fmt: skip
    assert dict(LineReader([row]).read("~12 mem 3 GB").figures) == {"step": 12, "memory_bytes": 3e9}
    for wrong in ({"speed": "<number>"}, {"step": "no number"}, {"step": "(<number>"}):
        with pytest.raises(ValueError, match=r"figure|holds one|regular"):
            RunLog.model_validate({**row.model_dump(exclude={"figures"}), "figures": wrong})


def told(*figures: dict[str, float], at: float | None = None) -> list[LogEntry]:
    return [LogEntry(each, "x", at) for each in figures]


def test_step_times_come_from_the_times_of_lines_where_nothing_tells_them() -> None:
    curve = RunCurve()
    curve.add(told({"step": 10, "loss": 2.0}, at=100.0))
    curve.add(told({"step": 20, "loss": 1.9}, at=130.0))
    assert curve.step_seconds()[1].tolist() == [3.0]
    assert curve.column("loss")[1].tolist() == [2.0, 1.9]


def test_a_step_that_several_processes_tell_is_one_step() -> None:
    curve = RunCurve()
    curve.add(
        told(
            {"step": 4, "loss": 2.0}, {"step": 4, "loss": 2.0}, {"step": 5, "loss": 1.5}, {"step": 4, "grad_norm": 1.0}
        )
    )
    assert [point.step for point in curve.points] == [4, 5]
    assert curve.points[0].figures["grad_norm"] == 1.0
    assert curve.resumed == []


def test_a_resumed_run_goes_on_from_its_checkpoint() -> None:
    curve = RunCurve()
    curve.add(told(*({"step": step, "loss": 3.0 - step / 10} for step in range(1, 11))))
    curve.add(told({"step": 5, "loss": 9.0}, {"step": 6, "loss": 8.0}))
    assert curve.step == 6
    assert curve.resumed == [5]
    assert curve.column("loss")[1].tolist()[-2:] == [9.0, 8.0]


def test_steps_of_epochs_count_on() -> None:
    curve = RunCurve()
    curve.add(told({"epoch": 0, "epoch_step": 18, "epoch_steps": 18}, {"epoch": 1, "epoch_step": 2, "epoch_steps": 18}))
    assert curve.step == 20


@pytest.mark.parametrize(
    ("lines", "seconds", "peak"),
    [
        (["elapsed time per iteration (ms): 1903.2 | x"] * 3, 1.9032, None),
        (["50%|#### | 5/10 [00:10<00:10,  2.05s/it]"] * 3, 2.05, None),
        (["step: 10  loss: 4.1  memory: 61.00GiB(77%)  tps: 7,000"], None, 61 * GIB),
        (["max_memory_allocated: 12.5 GiB", "peak memory usage: 13 GiB"], None, 13 * GIB),
        (["step time: 30.0 s", *["step time: 2.0 s"] * 3], 2.0, None),
        (["nothing of the kind", ""], None, None),
    ],
)
def test_what_a_run_is_compared_with_its_plan_by(
    reader: LineReader, lines: list[str], seconds: float | None, peak: float | None
) -> None:
    found = figures_of([entry for line in lines if (entry := reader.read(line)) is not None])
    assert found.step_seconds == (None if seconds is None else pytest.approx(seconds))
    assert found.peak_bytes == (None if peak is None else pytest.approx(peak))
