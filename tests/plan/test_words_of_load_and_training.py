"""Words of a plan that stand for others, or for kinds of training: users, longest answers, preferences, adapters."""

from __future__ import annotations

from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.plan.options import agreed
from capacity_tui.engine.solve import plan_of_line

CATALOG = load_catalog()
HIDDEN, LAYERS = 4096, 32


def served(**inference: Any) -> Estimate:
    settings = {"engine": "vllm", "prompt_tokens": 512, "output_tokens": 256, **inference}
    hardware = {"name": "h100-sxm-80gb", "devices": 1}
    data = {"task": "infer", "model": {"name": "llama-3.1-8b"}, "inference": settings, "hardware": hardware}
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate


def trained(**training: Any) -> Estimate:
    data = {
        "task": "finetune",
        "model": {"name": "llama-3-8b"},
        "training": {"seq_len": 2048, "global_batch": 8, "framework": "transformers", **training},
        "hardware": {"name": "h100-sxm-80gb", "devices": 8},
        "parallelism": {"zero": 2},
    }
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate


def test_users_who_send_one_request_a_while_are_a_rate() -> None:
    users, rate = served(users=200, seconds_between_requests=60), served(request_rate=200 / 60)
    assert users.computation.infer == rate.computation.infer


def test_users_who_wait_for_answers_are_requests_at_once() -> None:
    assert served(users=24).computation.infer == served(concurrency=24).computation.infer


@pytest.mark.parametrize(
    "words", [{"seconds_between_requests": 5}, {"users": 3, "request_rate": 2}, {"longest_output_tokens": 128}]
)
def test_words_that_contradict_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        served(**words)


def test_a_batch_goes_on_until_its_longest_answer() -> None:
    equal, drains = served(batch=64), served(batch=64, longest_output_tokens=512)
    rates = [float(each.computation.infer.output_tokens_per_second.value) for each in (equal, drains)]
    assert rates[0] / 2 < rates[1] < 0.75 * rates[0]
    alone = served(batch=1, longest_output_tokens=512)
    assert float(alone.computation.step_seconds.value) == pytest.approx(
        float(served(batch=1).computation.step_seconds.value), rel=1e-3
    )


@pytest.mark.parametrize(
    ("kind", "trainable"),
    [
        ("lora", LAYERS * 16 * (2 * (HIDDEN + HIDDEN) + 2 * (HIDDEN + HIDDEN // 4))),
        ("ia3", LAYERS * 2 * (HIDDEN + HIDDEN // 4)),
        ("prompt", 16 * HIDDEN),
        ("vera", LAYERS * (4 * 16 + 2 * (HIDDEN + HIDDEN // 4))),
    ],
)
def test_adapters_train_as_many_parameters_as_their_kind_has(kind: str, trainable: int) -> None:
    """Of Llama 3 8B's attention, whose keys and values are a quarter as wide as its queries."""
    found = trained(adapter={"kind": kind, "rank": 16, "targets": "attention", "fp32": True})
    adam, devices = 8, 8
    assert float(found.memory.parts["optimizer"]) == pytest.approx(adam * trainable / devices)


@pytest.mark.parametrize(
    "kind", ["lora", "qlora", "dora", "adalora", "ia3", "vera", "oft", "boft", "loha", "lokr", "prompt"]
)
def test_every_kind_of_adapter_takes_less_than_full_training(kind: str) -> None:
    adapter, full = trained(adapter={"kind": kind}), trained(method="full")
    assert float(adapter.memory.per_device_bytes.value) < float(full.memory.per_device_bytes.value)


def test_preferences_run_more_than_the_data_alone() -> None:
    seconds = {
        word: float(trained(preference=word).computation.step_seconds.value)
        for word in ("none", "dpo", "kto", "ppo", "grpo", "distillation")
    }
    assert all(seconds[word] > seconds["none"] for word in seconds if word != "none")
    assert seconds["distillation"] < seconds["kto"] < seconds["ppo"]


def test_overlap_hides_communication_as_current_releases_do() -> None:
    def exposed(**training: Any) -> float:
        data = {
            "model": {"name": "llama-3-70b"},
            "training": {"seq_len": 4096, "global_batch": 512, **training},
            "hardware": {"name": "h100-sxm-80gb", "devices": 64},
            "parallelism": {"tp": 8, "pp": 2, "dp": 4, "zero": 1},
        }
        return float(estimate_plan(plan_from_data(data), None, CATALOG).estimate.computation.step_seconds.value)

    old, current = "megatron==2023.06", "megatron"
    assert exposed(framework=old, overlap=True) == pytest.approx(exposed(framework=current))
    assert exposed(framework=current, overlap=False) > exposed(framework=current)


def tuned(method: str, name: str = "stable-diffusion-xl", **training: Any) -> Estimate:
    settings = {"method": method, "steps": 10, "micro_batch": 1, "checkpointing": "full", **training}
    data = {"task": "finetune", "model": {"name": name}, "training": settings, "hardware": {"name": "rtx-4090"}}
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate


def test_adapters_of_a_network_take_less_memory_and_time_than_all_its_weights() -> None:
    lora, full = tuned("lora", adapter={"rank": 4}), tuned("full")
    # 797 184 and 5 806 080 trained parameters, as Diffusers counts them of U-Nets at rank 4.
    states = float(full.memory.parts["optimizer"]) / 2_567_463_684
    assert float(lora.memory.parts["optimizer"]) == pytest.approx(5_806_080 * states)
    assert float(lora.memory.parts["weights"]) == pytest.approx(2 * 2_567_463_684)
    assert float(lora.memory.per_device_bytes.value) < 12 * 2**30 < float(full.memory.per_device_bytes.value)
    assert float(lora.computation.step_seconds.value) < 0.9 * float(full.computation.step_seconds.value)
    # NF4 with double quantization has 4.127 bits a weight, and is unpacked in each pass.
    packed = tuned("qlora")
    assert float(packed.memory.parts["weights"]) == pytest.approx(4.127 / 8 * 2_567_463_684, rel=0.001)
    assert float(packed.computation.step_seconds.value) > float(lora.computation.step_seconds.value)


@pytest.mark.parametrize(("method", "name"), [("lora", "resnet-50"), ("qlora", "resnet-50")])
def test_adapters_that_a_network_does_not_have_are_refused_not_ignored(method: str, name: str) -> None:
    with pytest.raises(PlanError, match="adapters are not modelled"):
        tuned(method, name)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("cheapest machine for llama-3.1-8b, 30 users", 0.19),
        ("how many users can llama-3.1-8b on an l40s serve", 0.19),
        ("cheapest machine for llama-3.1-8b, 30 users at 20 tok/s", 0.05),
        ("cheapest machine for llama-3.1-8b, 30 users, ttft 1s", None),
        ("serve llama-3.1-8b on an h100, 30 users", None),
        ("cheapest machine for whisper-large-v3, 30 users", None),
        ("cheapest machine for llama-3.1-8b, 2 requests/s", None),
    ],
)
def test_users_are_answered_as_fast_as_they_read_where_a_line_asks_what_they_need(line: str, seconds: float | None):
    asked = plan_of_line(read_line(line))
    assert asked.plan.inference.tpot_seconds == seconds
    assert any("as fast as people read" in why for why in asked.assumed) is (seconds == 0.19)


@pytest.mark.parametrize("words", ["step3 of the pipeline", "epoch2 of our recipe"])
def test_the_number_of_a_step_is_not_how_many_there_are(words: str) -> None:
    line = read_line(f"train 8b in {words} on 8xh100")
    assert not line.faults
    assert line.values.keys().isdisjoint({"training.steps", "training.epochs"})
    assert any(words.split(maxsplit=1)[0] in remark for remark in line.remarks)


def test_pictures_of_all_cameras_are_told_and_those_without_a_rate_asked_for() -> None:
    line = read_line("yolo11m on an l4, 16 cameras, 15 fps each")
    assert any("240 pictures a second: 15 of each of 16" in guess for guess in line.guesses)
    assert "how often" in str(read_line("yolo11m, 16 cameras, on an l4").faults[0])


def test_a_model_is_asked_for_among_those_that_are_no_larger() -> None:
    rows = CATALOG.architectures
    for words, most in (("best llm below 8b", 8e9), ("any llm under 10b", 10e9), ("best qwen under 14b", 14e9)):
        asked = read_line(f"{words} on a 4090").asked
        assert asked is not None
        assert asked.models
        assert all((rows[name].params_total or 0) < 1.01 * most for name in asked.models)
    up_to = read_line("best llm up to 8b on a 4090").asked
    assert up_to is not None
    assert "llama-3.1-8b" in up_to.models


@pytest.mark.parametrize(
    ("words", "widths"),
    [
        ("layers 512,256,128", [512, 256, 128]),
        ("layers 512, 256, 128", [512, 256, 128]),
        ("layers=512,256", [512, 256]),
        ("3 layers 512 hidden", [512, 512, 512]),
        ("hidden 512 3 layers", [512, 512, 512]),
        ("2 hidden layers of 256 units", [256, 256]),
        ("3x512", [512, 512, 512]),
        ("3-layer 1024-wide", [1024, 1024, 1024]),
        ("hidden_size=256", [256]),
    ],
)
def test_hidden_layers_of_a_perceptron_are_read(words, widths):
    line = read_line(f"train mlp {words} 1M rows 50 features t4")
    assert not line.faults
    assert list(line.values["model.spec.layers"]) == widths


@pytest.mark.parametrize("option", ["dataloader_num_workers 4", "--group_by_length", "lora_dropout=0.05"])
def test_options_without_effect_are_said_so(option):
    line = read_line(f"lora llama 8b {option} 4090")
    assert not line.faults
    words = [f"{word.meaning.words} {word.meaning.why}" for word in line.words]
    assert any("no effect" in text for text in words)


def test_tools_that_say_different_things_by_one_option_do_not_agree():
    option = agreed("batch_size", 8, serves=False, read={}, named=frozenset())
    assert option is not None
    assert not option.values
    assert len(option.others) > 1
    alone = agreed("batch_size", 8, serves=False, read={}, named={"openrlhf"})
    assert alone is not None
    assert alone.values == {"training.global_batch": 8}


def test_a_switch_takes_no_number_behind_it():
    line = read_line("pretrain llama 8b --use-distributed-optimizer 64 h100")
    assert line.values["hardware.devices"] == 64
    assert str(line.values["parallelism.zero"]) == "1"


@pytest.mark.parametrize(
    "layers", ["train mlp layers 512,256 batch 1024", "train mlp 512 units t4 10 classes 3 layers"]
)
def test_other_numbers_of_a_perceptron_stay_apart_from_its_layers(layers):
    line = read_line(f"{layers} 100 features 1M rows")
    assert not line.faults
    assert line.values["model.spec.layers"] in ([512, 256], [512, 512, 512])
    assert line.values["model.spec.d_in"] == 100
    assert "hardware.devices" not in line.values
