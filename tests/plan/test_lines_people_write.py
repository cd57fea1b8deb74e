"""Lines as people write them in forums, issues and chats: read right, or refused with the word that is not known."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.plan.line.alternatives import alternatives
from capacity_tui.engine.plan.line.lexicon.similarity import ONE_OF

with (Path(__file__).parent / "lines_people_write.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file, delimiter="|"))


def plain(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def read_values(line):
    """The values of a line by path, those of a device of one's own among them, numbers as floats."""
    values = {}
    for path, value in line.values.items():
        if isinstance(value, dict):
            values |= {f"{path}.{key}": plain(entry) for key, entry in value.items()}
        else:
            values[str(path)] = plain(value)
    return values


def expected_values(row):
    task, _, method = row["task"].partition("/")
    count, _, name = row["hardware"].rpartition(" ") if " " in row["hardware"] else ("", "", row["hardware"])
    if name.isdigit():
        count, name = name, ""
    given = {"task": task, "training.method": method, "model.name": row["model"]}
    given |= {"hardware.name": name, "hardware.devices": count}
    given |= dict(entry.split("=") for entry in row["values"].split(",") if entry not in ("", "*"))
    return {path: plain(value) for path, value in given.items() if value}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["line"])
def test_a_line_is_read_right_or_refused(row):
    line = read_line(row["line"])
    if row["refused"]:
        assert line.faults
        return
    assert not line.faults
    asked = line.asked
    assert row["asked"] == ("" if asked is None else " ".join((asked.solve, *asked.limits)))
    expected, values = expected_values(row), read_values(line)
    if "hardware.spec.memory_mib" in expected and "hardware.name" not in expected:
        values.pop("hardware.name")  # the nearest of the catalogue, which is said
        assert any(entry.key == "hardware.name" for entry in line.assumptions)
    for path, value in expected.items():
        assert path in values
        assert value in ("*", values[path])
    if "*" not in row["values"]:
        assert values.keys() == expected.keys()


def test_a_line_says_that_memory_is_of_all_devices_together():
    whys = [word.meaning.why for word in read_line("2x 4090 (48gb) llama 70b awq").words]
    assert any("24GB of each" in why for why in whys)


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("qwen2.5-7b lora a100 --config_file ../accelerate/fsdp.yaml", "../accelerate/fsdp.yaml"),
        ("xgboost 1M rows 50 cols t4 parallel_for failed", "parallel_for"),
        ("full fine-tune 7b 16 * 7 = 112 GB on 2 h100", "16 * 7 = 112gb"),
        ("mixtral llama.cpp 4090 should ollama be slower?", "ollama"),
        ("train mixtral on 16 h100 gets only 130 TFLOPS, is that low?", "130tflops"),
        ("qwen2.5 32b qlora 3xL40S 3 epochs 在128步报错", "128 步"),
        ("llama 8b lora 4090 用掉19G显存", "19G"),
        ("xgboost (483903, 2897) and (483903,) t4", "483903()"),
        ("lora qwen2.5-7b a100 exit code -9", "code -9"),
        ("lora qwen2.5-7b a100 exitcode -9", "exitcode -9"),
        ("lora qwen2.5-7b a100 crashes at 100% VRAM", "100%"),
        ("yolov8n 5000 images 1/8 2.8G 25848/25848 [5:32:46<00:00, 1.29it/s] gtx 1060", "1/8"),
        ("yolov8n 5000 images 1/8 2.8G 25848/25848 [5:32:46<00:00, 1.29it/s] gtx 1060", "2.8G"),
        ("yolov8n 5000 images 1/8 2.8G 25848/25848 [5:32:46<00:00, 1.29it/s] gtx 1060", "25848/25848"),
        ("yolov8n 5000 images 1/8 2.8G 25848/25848 [5:32:46<00:00, 1.29it/s] gtx 1060", "5:32:46<00:00"),
        ("pretrain 12-layer GPT-2 10B tokens 8xa100", "12-layer"),
        ("lora whisper large v3 a100 100 hours of audio, double the rank (64 instead of 32)", "32"),
        ("lora whisper large v3 a100 100 hours of audio in 400k rows", "400k rows; the hours of sound say"),
    ],
)
def test_what_goes_into_no_plan_is_said(text, left_out):
    assert any(f"left out: {left_out}" in remark for remark in read_line(text).remarks)


def test_a_model_that_is_not_known_is_what_is_refused():
    faults = read_line("vram for blorbo-v2-large 4090").faults
    assert ["blorbo-v2-large" in fault.title for fault in faults] == [True]


@pytest.mark.parametrize(
    "text", ["rt-detr 2700 images on 3090 and 4090", "faiss ivf-pq index for 200M 1024d vectors, how much ram"]
)
def test_what_cannot_be_planned_is_said_before_other_faults(text):
    faults = read_line(text).faults
    assert len(faults) > 1
    assert faults[0].title.endswith("cannot be planned")


def test_sizes_joined_to_one_name_are_refused_or_compared():
    assert [fault.title for fault in read_line("pretrain ViT-B/S/T imagenet 8 v100").faults] == [ONE_OF]
    lines = alternatives("train vit-s/b/l imagenet 8 v100", None, read_line("train vit-s/b/l imagenet 8 v100"))
    assert [line.name for line in lines] == ["vit-s", "vit-b", "vit-l"]


def test_features_of_words_are_asked_for():
    faults = read_line("tf-idf + logistic regression on 5M docs, 8 vcpu").faults
    assert any("tf-idf" in fault.title and "features 50000" in str(fault.hint) for fault in faults)


def test_most_lines_are_understood():
    refused = [row for row in ROWS if row["refused"]]
    assert len(ROWS) >= 300
    assert len(refused) < 0.1 * len(ROWS)


@pytest.mark.parametrize("text", ["¥1000 an hour", "500 cad/month", "budget 500 cad", "jpy 5000 a month"])
def test_a_sum_whose_rate_nobody_knows_says_so(text):
    faults = read_line(f"which gpu for llama 8b, {text}").faults
    assert [fault.title for fault in faults] == ["no rate of this currency is known here"]


@pytest.mark.parametrize("text", ["llama 8b and qwen 14b on one card", "llama 8b & phi-4, 20 users on l40s"])
def test_two_models_on_the_same_hardware_are_refused_as_such(text):
    assert [fault.title for fault in read_line(text).faults] == ["a plan has one model"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("lora 7b 3090, took 7 hours", "7h, as measured"),
        ("llama 8b on 4090, uses 18gb", "18gb, as measured"),
        ("lora 7b 3090, 88 hours, is this normal?", "88h, as measured"),
        ("yolov8m 30k images 100 epochs 3060 would take 5 days, is that normal?", "5days, as measured"),
        ("llama 8b q4 on a 3060 does 25 t/s. Is that the expected speed?", "25 t/s, as measured"),
    ],
)
def test_what_was_measured_is_left_out_and_said(text, part):
    line = read_line(text)
    assert not line.limits
    assert line.asked is None
    assert any(part in word.meaning.why for word in line.words)


def test_a_line_without_model_and_hardware_says_what_to_name():
    faults = read_line("write me a python script that plots a csv").faults
    assert "nothing to plan without a model or hardware" in str(faults[0])


def test_answers_to_each_prompt_are_said_where_steps_are_the_length_of_a_training():
    line = read_line("grpo qwen2.5-7b 8 h100s 1000 steps 16 rollouts per prompt")
    assert any("16 answers to each prompt: left out" in entry.why for entry in line.assumptions)


def test_a_model_computed_as_one_of_another_name_says_so_with_its_context():
    why = "airoboros 70b has the shape of llama-2-70b, which reads 4096 tokens"
    assert why in read_line("airoboros 70b 2x3090 max context").guesses
    assert not any("has the shape" in guess for guess in read_line("llama2-70b 2x a100").guesses)
    why = "qwen 3.6 27b has the shape of qwen3.5-27b, which reads 262144 tokens"
    assert why in read_line("serve qwen 3.6 27b on h100").guesses


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            "full finetune llama-3.1-8b paged_adamw_8bit bf16 rtx 4090",
            "paged: states of adamw8bit counted on the device",
        ),
        ("qlora 14b t4, packing, 4096 ctx, 12k convos", "packing: 12000 samples counted as a sequence each"),
        ("catboost 1M rows 80 features (30 categorical) 16 cores", "30 of 80 features: counted like the others"),
        ("catboost 1M rows 200 features, 20 of them categorical 16 cores", "20 of 200 features: counted like"),
        ("flux lora 1000 steps 4090 fp8", "fp8: the frozen base"),
        ("lora llama 8b r16 ckpt 3090", "ckpt: gradient checkpointing"),
        ("cheapest setup to run llama 70b q4 at home", "left out: at home; machines to rent are compared"),
        ("xgboost 10M rows 100 features subsample very small", "left out: subsample"),
        ("random forest 54M rows 11 cols 3 GB", "left out: 3gb; rows and columns tell"),
        ("lora llama 8b 3090 OOM, but llama 3b on a 3060 works", "left out: llama 3b on a 3060 works"),
        ("ppo llama 8b rollout tp 2 8xh100", "left out; an engine that generates answers"),
        ("unet segmentation 2d 4000 ct slices 512x512 3090", "left out: 2d"),
        ("flan-t5-xl finetune 300k samples in 512 out 64 a100", "targets of 64 tokens"),
        ("catboost 4M rows 300 feats 5 folds total time", "folds 5: left out; a plan is one run"),
        ("dpo llama-3.1-8b reference free 8xa100", "DPO is counted with its reference all the same"),
        ("dpo qwen2.5-7b reference model offloaded", "left out: reference model offloaded; counted on the device"),
        ("grpo qwen2.5-7b 7b reward model", "left out: 7b reward model"),
        ("grpo qwen2.5-7b 8xh100 vllm colocate 0.4", "vllm colocate 0.4: an engine that answers"),
        ("llava 7b sft projector frozen 8xa100", "projector frozen; its few weights are counted as trained"),
        ("llava 7b stage 1 pretrain 558k pairs 8xa100", "left out: stage 1; a plan is one run"),
        ("dpo llama-3.1-8b max_length 1024 max_prompt_length 512 a100", "prompt 512: within sequences of 1024 tokens"),
        ("qwen2.5-vl-7b lora, 3 images per sample, seq 4096 a100", "3 pictures: within sequences of 4096 tokens"),
        ("whisper small finetune common voice a100", "depends on the language, the subset or the release"),
        ("whisper small finetune took 7 hours a6000", "left out: 7h, as measured"),
        ("resnet152 imagnet 90 epochs", "imagnet: imagenet is the nearest name"),
    ],
)
def test_words_that_a_plan_follows_in_part_are_said(text, part):
    assert any(part in guess for guess in read_line(text).guesses)


@pytest.mark.parametrize("reward", ["rule-based reward", "with reward functions", "accuracy reward 8 generations"])
def test_a_reward_without_a_model_has_no_weights(reward):
    assert not any("its weights" in guess for guess in read_line(f"grpo qwen2.5-7b {reward}").guesses)


def test_a_word_is_not_offered_for_itself():
    fault = read_line("k=5 fold xgboost_like 100k rows").faults[0]
    assert fault.title == "no such field"
    assert "did you mean k" not in fault.hint


def test_hidden_layers_may_end_in_and():
    assert read_line("mlp hidden layers 256, 128 and 64").values["model.spec.layers"] == [256, 128, 64]


def test_all_layers_of_a_perceptron_begin_with_what_it_reads():
    values = read_line("mlp 784-512-256-10 mnist 20 epochs").values
    assert values["model.spec.layers"] == [512, 256]
    assert (values["model.spec.d_in"], values["model.spec.d_out"]) == (784, 10)


def test_samples_that_are_not_packed_are_not_called_so():
    assert not any("packing: 12000" in guess for guess in read_line("lora 8b h100 no packing 12k samples").guesses)


def test_a_day_of_a_month_until_which_a_training_ends_is_a_deadline():
    day = datetime.now(UTC).date() + timedelta(days=20)
    for written in (f"{day.day} {day:%B}", f"{day:%b} {day.day}"):
        line = read_line(f"we have $18k till {written.casefold()}: cpt 7b on 60B tokens, h100")
        assert line.asked is not None
        assert line.asked.limits == ("usd<=18k", "time<=20d")


def test_a_day_of_the_week_until_which_a_training_ends_is_a_deadline():
    day = datetime.now(UTC).date() + timedelta(days=3)
    for written in (f"by {day:%A}", f"must finish before {day:%A}", f"deadline is {day:%A}"):
        line = read_line(f"llama 3 8b lora 1B tokens h100 {written.casefold()}")
        assert line.asked is not None
        assert line.asked.limits == ("time<=3d",)


def test_what_devices_that_serve_draw_in_a_month_is_said_beside_the_price_of_energy():
    guesses = read_line("power bill of 6x 3090 at 280W each for a month at $0.36/kWh while serving mixtral").guesses
    assert any("6 x 280 W for a month: 1.2 MWh, $435" in guess for guess in guesses)
