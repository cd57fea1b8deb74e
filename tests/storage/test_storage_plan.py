"""What a training keeps and moves: sizes by hand, checkpoints by Young and Daly, and the same from the command."""

from __future__ import annotations

import json
import math

import pytest
from click.testing import CliRunner

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import checkpoint_period
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.storage import storage_plan_as_dict
from capacity_tui.engine.solve import answer
from capacity_tui.engine.storage import StoragePlan, storage_plan
from capacity_tui.tui.cli.program import group

HARDWARE = {"hardware": {"name": "aws-p5-48xlarge"}}
TEXT: dict[str, object] = {
    "model": {"name": "llama-3.2-1b"},
    "training": {"tokens": 8e9, "micro_batch": 4, "global_batch": 64, "seq_len": 4096},
    "parallelism": {"zero": 3},
    **HARDWARE,
}


def found(plan: dict[str, object], **data: object) -> StoragePlan:
    return storage_plan(answer(plan_from_data({**plan, "data": data})))


@pytest.fixture(scope="module")
def text() -> StoragePlan:
    phases = [
        {
            "name": "A",
            "share": 0.75,
            "changes": {"training.seq_len": 1024, "training.micro_batch": 16, "training.global_batch": 256},
        },
        {"name": "B", "share": 0.25},
    ]
    return found(TEXT, unique_tokens=2e9, phases=phases, format="tokens")


def test_the_data_set_is_what_its_tokens_take(text: StoragePlan) -> None:
    assert float(text.supply.unit_bytes) == 4  # a vocabulary above 65 536
    assert float(text.supply.bytes or 0) == 2e9 * 4
    assert float(text.supply.epochs) == 4
    assert text.temporary["source_data"] == pytest.approx(2e9 * 4.7)
    assert text.answer.plan.data.cache == "ram"
    assert text.memory.cache == 2e9 * 4


def test_short_vocabularies_take_two_bytes_a_token() -> None:
    small = found({**TEXT, "model": {"name": "gpt2"}, "training": {"tokens": 1e9, "seq_len": 1024}})
    assert float(small.supply.unit_bytes) == 2


def test_a_checkpoint_holds_weights_copy_and_states(text: StoragePlan) -> None:
    parameters = float(text.answer.estimate.model.parameters)
    saved = text.checkpoints
    assert saved.bytes == pytest.approx(14 * parameters)  # bf16, its fp32 copy, two fp32 states
    assert saved.save_seconds == pytest.approx(saved.bytes / 1.9e9)
    assert saved.failure_seconds == pytest.approx(50000 * 3600 / 8)
    assert saved.best_interval_seconds == pytest.approx(float(checkpoint_period(saved.save_seconds, 50000 * 450)))
    assert saved.stall_share == pytest.approx(saved.save_seconds / saved.interval_seconds)
    assert saved.lost_share > saved.stall_share * 0.9


def test_adapters_are_saved_without_their_base() -> None:
    lora = found({**TEXT, "task": "finetune", "training": {"method": "lora", "tokens": 1e8, "seq_len": 4096}})
    assert lora.checkpoints.bytes < 0.1 * 2 * float(lora.answer.estimate.model.parameters)


def test_phases_share_the_tokens_and_each_is_estimated(text: StoragePlan) -> None:
    first, second = text.phases
    assert (first.tokens, second.tokens) == (6e9, 2e9)
    assert first.plan.training.seq_len == 1024
    assert second.step_seconds == pytest.approx(float(text.answer.estimate.computation.step_seconds.value))
    assert first.seconds / first.tokens < second.seconds / second.tokens  # less attention in short sequences


def test_main_memory_adds_up_and_says_whether_it_fits(text: StoragePlan) -> None:
    memory, data = text.memory, text.answer.plan.data
    assert memory.workers == pytest.approx(8 * int(data.workers) * 0.35e9)
    assert memory.prefetched == 8 * int(data.workers) * int(data.prefetch) * 4 * 4096 * 16
    assert memory.total == pytest.approx(memory.workers + memory.prefetched + memory.pinned + memory.cache)
    assert memory.fits


def test_streaming_pays_for_every_pass_that_no_cache_spares() -> None:
    long = {**TEXT, "training": {"tokens": 8e11, "seq_len": 4096}}
    cached, streamed = (
        found(long, format="jsonl", source="streaming", unique_tokens=1e11, cache=cache) for cache in ("nvme", "none")
    )
    once, often = ({each.provider: each for each in plan.egress} for plan in (cached, streamed))
    assert once["AWS"].usd_streamed == once["AWS"].usd_once
    assert often["AWS"].usd_streamed > once["AWS"].usd_once
    assert streamed.sources[0].tier.place == "streaming"
    assert math.isclose(streamed.sources[0].bandwidth, 0.1e9)


def test_what_reads_no_data_says_so() -> None:
    with pytest.raises(PlanError, match="nothing is read"):
        found({"task": "infer", "model": {"name": "llama-3.2-1b"}, **HARDWARE})


def test_a_phase_that_cannot_be_names_itself() -> None:
    with pytest.raises(PlanError) as refused:
        found(TEXT, phases=[{"name": "long", "share": 1, "changes": {"training.seq_length": 1}}])
    assert refused.value.place.field == "data.phases.long"


def test_the_command_gives_the_blocks_of_the_contract(text: StoragePlan) -> None:
    words = ["storage", "plan", "--model", "llama-3.2-1b", "--gpu", "8xH100-SXM", "--tokens", "1B", "--format", "json"]
    told = json.loads(CliRunner().invoke(group, words).output)
    blocks = {"dataset", "checkpoints", "caches", "streaming", "host_memory", "temporary_space", "token_budget"}
    assert blocks <= told.keys()
    assert told.keys() == storage_plan_as_dict(text).keys()
    assert told["data"]["workers"] >= 1
