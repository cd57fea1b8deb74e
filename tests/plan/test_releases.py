"""A release is part of the software that a plan names."""

from collections.abc import Mapping

import pytest

from capacity_tui.engine.catalog import load_catalog, named_release, rows_of_release
from capacity_tui.engine.errors import CapacityError, CatalogError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.estimate.result import InferenceSpeed
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan, refuse_unknown_names, software_id
from capacity_tui.engine.plan.line import read_line

CATALOG = load_catalog()


def _engine_row(engine: str, vendor: str = "NVIDIA") -> str:
    rows = CATALOG.engine_rows(engine)
    return next(row.id for row in rows if vendor in (row.vendors or (vendor,)))


def _served(engine: str, **inference: object) -> Estimate:
    settings = {"engine": engine, "prompt_tokens": 1024, "output_tokens": 256, "batch": 64, **inference}
    document = {
        "task": "infer",
        "model": {"name": "llama-3.1-8b"},
        "inference": settings,
        "hardware": {"name": "h100-sxm-80gb", "devices": 1},
    }
    return estimate_plan(Plan.model_validate(document), catalog=CATALOG).estimate


def _speed(engine: str, **inference: object) -> InferenceSpeed:
    speed = _served(engine, **inference).computation.infer
    assert speed is not None
    return speed


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("vllm", "vllm"),
        ("vllm==0.8.5.post1", "vllm"),
        ("vllm==v0.7.3", "vllm-v0"),
        ("vllm==0.5.2", "vllm-2024"),
        ("vllm==2023.10", "vllm-2023"),
        ("vllm==2024.11", "vllm-v0"),
        ("vllm-v0", "vllm-v0"),
        ("sglang==0.4.3.post2", "sglang-2024"),
        ("sglang==0.4.6", "sglang"),
        ("tgi==2.3", "tgi"),
    ],
)
def test_a_release_chooses_the_row(name: str, row: str) -> None:
    assert _engine_row(name) == row


def test_builds_for_a_maker_have_releases_of_their_own() -> None:
    assert "vllm-rocm-2024" in [row.id for row in CATALOG.engine_rows("vllm==0.5.1")]
    assert "vllm-rocm-2024" not in [row.id for row in CATALOG.engine_rows("vllm==0.6.6")]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("megatron", "megatron"),
        ("megatron==2023.06", "megatron-2023"),
        ("Megatron-LM==core_r0.12.0", "megatron"),
        ("transformers==4.44", "transformers"),
    ],
)
def test_a_release_of_training_software_chooses_the_row(name: str, row: str) -> None:
    assert software_id(name, CATALOG) == row


@pytest.mark.parametrize("name", ["vllm==nightly", "vllm==8.5", "sglang==1999.01"])
def test_releases_nobody_knows_are_refused_with_the_known_ones(name: str) -> None:
    plan = Plan.model_validate({"task": "infer", "model": {"name": "llama-3.1-8b"}, "inference": {"engine": name}})
    with pytest.raises(CapacityError) as refusal:
        refuse_unknown_names(plan, CATALOG)
    assert refusal.value.place is not None
    assert refusal.value.place.field == Key.INFERENCE_ENGINE
    software, release = named_release(name)
    with pytest.raises(CatalogError) as of_rows:
        rows_of_release(CATALOG.engines.where("engine", software), software, release)
    assert all(row.id in (of_rows.value.hint or "") for row in CATALOG.engine_rows(software))


def test_the_one_line_takes_a_release() -> None:
    served = read_line("llama-3.1-8b 1xh100 vllm==0.7.3")
    assert served.values[Key.INFERENCE_ENGINE] == "vllm==0.7.3"
    trained = read_line("train llama-3.1-8b 64xh100 megatron==2023.06 50B")
    assert trained.values[Key.TRAINING_FRAMEWORK] == "megatron==2023.06"


def test_without_a_release_the_answer_says_so_and_its_range_holds_older_ones() -> None:
    unsaid, current, older = (_served(name) for name in ("vllm", "vllm==0.10", "vllm==0.7.3"))
    assert "vllm: current release assumed" in unsaid.basis.assumed
    assert not any("release" in line for line in (*current.basis.assumed, *older.basis.assumed))
    rates = [_speed(name).decode_tokens_per_second for name in ("vllm", "vllm==0.10", "vllm==0.7.3")]
    found = [rate for rate in rates if rate is not None]
    assert found[0].value == found[1].value > found[2].value
    assert found[0].low <= 0.36 * found[0].value < found[1].low
    assert found[0].high == found[1].high


def test_an_engine_with_one_row_needs_no_release() -> None:
    assert not any("release" in line for line in _served("lmdeploy").basis.assumed)


def test_eager_decode_beyond_captured_contexts_is_slow() -> None:
    short, long = ({"prompt_tokens": tokens, "batch": 1} for tokens in (4096, 28672))

    def step(engine: str, load: Mapping[str, object]) -> float:
        each = _speed(engine, **load).time_per_output_token_seconds
        assert each is not None
        return float(each.value)

    # Its host takes some 1.5 ms a pass in both cases.
    assert step("vllm==0.8", short) < step("vllm==0.7.3", short) < step("vllm==0.8", short) + 2e-3
    assert step("vllm==0.7.3", long) > 1.2 * step("vllm==0.8", long)
