"""Nothing of a line is lost silently: a number or a word changes what is read, is refused, or is said as left out."""

from __future__ import annotations

import re
from functools import cache

import pytest

from capacity_tui.engine.plan.line import read_line, rented_time, vocabulary
from capacity_tui.engine.solve import plan_of_line

LINES = (
    "serve llama-3.1-8b 2xh100",
    "serve llama-3.1-8b h100 batch 16 prompt 2k output 300",
    "llama-3.1-8b lora 4090 4k 10M tokens",
    "train llama-3.1-8b 64xh100 2T tokens seq 4096",
    "qlora llama-3.1-70b 20k samples 3 epochs",
    "how many h100 for llama-3.1-70b with 200 users",
    "fit xgboost_like 1M rows 30 features",
    "resnet-50 imagenet 8xv100 90 epochs",
    "1M documents of 500 tokens llama-3.1-8b l4",
    "cheapest gpu for llama-3.1-8b",
)
REMAINDER = re.compile("left out|without a number|not answered")
NUMBERS = (
    *("5 min", "3 TB", "3TB", "40 tok/s", "2k users", "10 epochs", "7 days", "500 W", "$20/h", "17", "3.7", "2026"),
    *("10%", "5 ms", "2 weeks", "$5000", "€300", "rank 8", "64gb ram", "24gb", "900 GB/s", "300 TFLOPs", "4 nodes"),
    *("32 cores", "$0.12/kwh", "20 kwh", "100 gbit", "x3", "2x", "70b", "4bit", "int8", "5 people", "10 rps", "1/4"),
    *("2 replicas", "3 years", "16k", "p99", "5 agents", "2 models", "6 experts", "10 seeds", "5 runs", "20 trials"),
    *("mfu 40%", "4:1", "10,000", "1e9", "100 km", "dropout 0.1", "temperature 0.7", "#2", "5-10", "3+", "32 loras"),
    *("seven", "half", "twice", "a dozen", "two hundred", "zorble", "no gpu", "without nvlink", "monday"),
    *("every 500 steps", "3 to 5 epochs", "batches of 48 images", "prompts of 700 words", "one more h100"),
    *("every 30 min", "50% of users", "2B tokens/day", "three teams", "half an hour", "ttft within a second"),
    *("20% prefix hits", "300 tok/s", "4000 tok/s", "8 cores of an epyc 9654", "100MB of text", "30 of them at once"),
    *("took 7 hours", "takes 18GB", "sla 99.9%", "45 min/epoch", "5 min per epoch"),
    *("twenty-five users", "5 rollouts", "two seconds", "a hundred and twenty requests a minute", "6-8k", "orpo"),
)


def reading(line):
    return line.task, dict(line.values), line.asked, line.limits


before = cache(read_line)  # a line without the words


def is_accounted_for(words, line, before):
    """Whether a line with some more words than another is read otherwise, or says of the words what became of them."""
    if line.faults or reading(line) != reading(before):
        return True
    new = " ".join({*line.guesses, line.understood} - {*before.guesses})
    telling = [word for word in words.split() if re.search(r"\d", word)] or words.split()[-1:]
    return any(word.casefold() in new.casefold() for word in telling)


@pytest.mark.parametrize(("number", "words"), [*enumerate(NUMBERS)], ids=NUMBERS)
def test_numbers_and_words_of_no_list_are_accounted_for(number: int, words: str) -> None:
    """At the end of every other line, and at the head of those between; of the next words it is the other way round."""
    for place, text in enumerate(LINES, number):
        assert not before(text).faults
        line = f"{text} {words}" if place % 2 else f"{words} {text}"
        assert is_accounted_for(words, read_line(line), before(text)), line


@pytest.mark.parametrize("word", sorted(vocabulary().circumstances))
def test_what_bears_on_a_plan_and_goes_into_none_is_said(word: str) -> None:
    for text in LINES[2::2]:
        assert is_accounted_for(word, read_line(f"{text}, {word}"), before(text))


def test_what_is_left_out_is_what_no_plan_has() -> None:
    def left_out(text: str) -> list[str]:
        return [remark for remark in read_line(text).remarks if REMAINDER.search(remark)]

    assert left_out("train 7b 64xh100 2T tokens within soon") == ["left out: soon"]
    assert left_out("llama-3.1-8b h100 serving thousands of users") == ["left out: thousands; without a number: users"]
    assert left_out("full finetune qwen2.5-14b 8xh100 zero3, will cp help?") == ["without a number: cp"]
    assert left_out("llama 70b 2x3090 no nvlink") == ["left out: no nvlink"]
    assert left_out("llama 70b 2x3090 nvlink") == []  # as its row has
    assert left_out("deepseek v3 moe 8xh200") == []
    assert left_out("how many replicas of llama-3.1-8b on l4 at 12 rps") == []
    assert left_out("how many h100 for llama-3.1-8b on 8xh100") == ["not answered: how many h100"]
    assert left_out("train 8xh100 under $50k: which model and how many tokens") == ["not answered: how many tokens"]
    assert left_out("serve qwen3 8b pro on h100") == ["left out: pro"]
    assert left_out("train wide unet on h100") == ["left out: wide"]
    assert left_out("serve gpt2 large on h100, large batches") == ["without a number: batches"]
    assert left_out("r1 on 16 h100 with sglang gives 19 tok/s, vllm gives 30") == [
        "left out: 19 tok/s, as measured",
        "left out: vllm gives 30",
    ]
    assert "left out: It works fine at 16k." in left_out(
        "OOM with qwen3 8b on an l4 at 32k context. It works fine at 16k."
    )
    assert read_line("serve qwen3 8b on an l4, we have 5 dogs and 3 cats, 12 frobs").faults  # settings are no narration
    assert left_out("hi, can anyone tell me whether mistral 7b suffices for my invoices on a 4090? thx") == []


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        ("within 5 min", "time<=5min"),
        ("in 30 minutes", "time<=30min"),
        ("in a weekend", "time<=48h"),
        ("overnight", "time<=12h"),
        ("by tomorrow", "time<=24h"),
        ("within the hour", "time<=1h"),
        ("en un día", "time<=1d"),
        ("em menos de um dia", "time<=1d"),
        ("en moins d'un jour", "time<=1d"),
        ("en une journée", "time<=1d"),
        ("in weniger als einem Tag", "time<=1d"),
        ("меньше чем за день", "time<=1d"),
        ("за неделю", "time<=7d"),
        ("1日以内", "time<=1d"),
    ],
)
def test_deadlines_are_limits(words: str, limit: str) -> None:
    line = read_line(f"llama-3.1-8b lora 2xh100 10M {words}")
    assert (line.faults, line.limits, line.values["training.tokens"]) == ((), (limit,), 10_000_000)


def test_limits_of_other_figures_name_the_command_that_has_them() -> None:
    line = read_line("serve llama-3.1-8b h100 memory<=80% energy<=5kWh")
    assert [fault.title for fault in line.faults] == ["no such limit"] * 2
    assert "need --limit 'memory<=80%'" in line.faults[0].hint


@pytest.mark.parametrize(
    ("words", "path", "larger"),
    [
        ("3 to 5 epochs", "training.epochs", 5),
        ("20-30k samples", "training.samples", 30_000),
        ("batch between 64 and 128", "training.global_batch", 128),
    ],
)
def test_of_a_range_the_larger_is_planned_and_that_is_said(words: str, path: str, larger: int) -> None:
    line = read_line(f"train llama-2-13b on 8xa100 {words}")
    assert float(str(line.values[path])) == larger
    assert "planned for the larger" in " ".join((*line.readings, *(entry.why for entry in line.assumptions)))


def test_the_longer_of_two_deadlines_is_planned_and_that_is_said() -> None:
    line = read_line("train llama-2-13b on 8xa100 10B tokens in 3-5 days")
    assert line.limits == ("time<=5d",)
    assert "3-5: planned for the larger (time<=5d)" in line.remarks


@pytest.mark.parametrize("words", ["2k to 4k", "$10k to $20k"])
def test_ranges_of_nothing_that_is_counted_are_no_plan(words: str) -> None:
    assert "a range is no plan" in {fault.title for fault in read_line(f"train llama-2-13b on a100s {words}").faults}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rent or buy a 4090 (1800 usd) for lora of 8b models, 50k samples", "$1800 to buy"),
        ("which gpu for llama 8b under 1500", "$1500 to buy"),
        ("which gpu under $1500 for sdxl lora", "$1500 to buy"),
        ("llama 8b lora 3090 currently takes 6h", "6h, as measured"),
        ("encoding 2M records with minilm takes more than 24 hours on an i7", "24h, as measured"),
        ("host qwen2.5-32b for 40 people, budget 10k", "10k to buy"),
        ("serve llama-3.1-70b 8xh100 at $2 each, or buy for 250k over 3 years", "$250k to buy"),
        ("qlora 8b on a 4090, then serve a 70b on 2 h100", "serve a 70b on 2 h100: a second job"),
        ("sft plus dpo of llama-3.1-8b on 8xh100, 100k samples", "sft; a plan is one run"),
        ("serve llama-3.1-8b on l4s for 50 users and finetune it on 10k samples", "finetune it on 10k samples"),
    ],
)
def test_what_is_bought_and_a_second_job_are_said_as_left_out(text: str, words: str) -> None:
    line = read_line(text)
    assert not line.faults
    assert any(remark.startswith(f"left out: {words}") for remark in line.remarks)
    assert line.limits == ()


@pytest.mark.parametrize("kind", ["consumer gpu", "datacenter cards", "consumer grade card"])
def test_a_kind_of_hardware_that_is_asked_for_is_said_to_be_compared_with_all(kind: str) -> None:
    assert any("all kinds are compared" in remark for remark in read_line(f"which {kind} for llama 8b").remarks)


def test_a_batch_that_is_too_small_for_all_devices_is_said_to_be_of_each() -> None:
    assert any("of each device" in guess for guess in read_line("8xa100 batch size 2 zero3 llama 8b full").guesses)


@pytest.mark.parametrize(("number", "count"), [("several hundred", 300), ("a couple thousand", 2000), ("2 mil", 2e6)])
@pytest.mark.parametrize("carrier", ["finetune llama-3.1-8b 4090 {} samples", "{} documents, llama-3.1-8b l4"])
def test_a_number_that_nobody_means_exactly_is_planned_and_said(carrier: str, number: str, count: int) -> None:
    line = read_line(carrier.format(number))
    counted = [line.values.get(path) for path in ("training.samples", "inference.requests")]
    assert count in counted
    assert any(number.removeprefix("a ") in guess for guess in line.guesses)


@pytest.mark.parametrize(
    ("text", "model", "why"),
    [
        ("model is 40GB, 2x 3090", "20b", "40GB of weights: a decoder of 20.0 B parameters in bf16"),
        ("a 7 GB q4 gguf on a 3060", "12.1b", "12.1 B parameters in q4_0"),
        ("text embeddings for 10 million documents", "bge-m3", "bge-m3, a usual model for this"),
        ("transcribe 3000 hours of audio on a T4", "whisper-large-v3", "whisper-large-v3, a usual model for this"),
    ],
)
def test_a_model_that_no_name_says_is_said(text: str, model: str, why: str) -> None:
    line = read_line(text)
    assert (line.faults, line.values["model.name"]) == ((), model)
    assert any(why in guess for guess in line.guesses)


@pytest.mark.parametrize("asked", ["which model for 24gb", "largest model 24gb", "best llm 24gb vram", "7b model 24gb"])
def test_a_memory_near_a_model_that_is_asked_for_or_named_is_of_the_device(asked: str) -> None:
    line = read_line(asked)
    assert line.values["hardware.spec"] == {"memory_mib": 24576}
    assert line.values.get("model.name", "qwen2.5-7b") == "qwen2.5-7b"


def test_how_good_a_model_becomes_is_said_to_be_no_part_of_a_plan() -> None:
    line = read_line("what gsm8k accuracy do i get from llama-3.1-8b after grpo on 8xh100")
    assert any(remark.startswith("how good a model becomes is not estimated") for remark in line.remarks)


def test_a_sum_that_has_no_sign_is_said_to_be_one() -> None:
    assert "2.49/hr: $2.49/h of money (requests are requests/h)" in read_line("lora 8b 8xh100 2.49/hr 1M").guesses
    assert read_line("serve 8b 8xh100, 5000 requests/h").values["inference.request_rate"] == "1.389"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("serve llama 8b on a100 batch 32, 10 requests/s", "batch 32"),
        ("sdxl lora 4090 20 images 1500 steps", "20 images"),
        ("serve llama 8b 4090, 30 cents a kWh", "30 cents a kWh"),
        ("llama 8b lora 8 a100, 400G infiniband, 20k samples", "400G infiniband"),
        ("llama 8b on 2 h100 p99 ttft", "p99"),
        ("lora llama 8b 4090 rank 16 zero 3", "zero 3"),
        ("train resnet-50 on a100 batch 256 seq 4096", "seq 4096"),
        ("serve llama 8b on a 3090, i5-9400f", "i5-9400f"),
    ],
)
def test_what_a_plan_does_not_follow_is_said(text: str, words: str) -> None:
    line = read_line(text)
    assert not line.faults
    assert any(remark.startswith(f"{words}: no effect here: ") for remark in plan_of_line(line).remarks)


@pytest.mark.parametrize(
    "text", ["gpt-oss-120b --n-cpu-moe 28 3090 ryzen 7950x", "llama 70b q4 -ngl 30 3090 ryzen 7950x"]
)
def test_a_processor_that_runs_a_part_of_the_model_has_its_effect(text: str) -> None:
    assert not any("ryzen 7950x: no effect" in remark for remark in plan_of_line(read_line(text)).remarks)


@pytest.mark.parametrize(
    "text",
    [
        "64 h100 with 8x400G IB per node, 70b, 2T tokens",
        "how many lora adapters of rank 32 fit on a 24gb card with llama 3 8b",
        "deepspeed zero-infinity 70b single a100",
        "sdxl lora rank 16 4090 1500 steps",
        "serve llama 8b on a100 batch 32",
        "embed 1M docs of 400 tokens with bge-large batch 512 on t4",
    ],
)
def test_nothing_is_said_of_what_a_plan_follows(text: str) -> None:
    assert not [remark for remark in plan_of_line(read_line(text)).remarks if "no effect" in remark]


def test_a_job_of_pictures_says_how_long_all_of_them_take() -> None:
    remarks = plan_of_line(read_line("sdxl 10k images 30 steps on an h100, how long")).remarks
    assert any(re.match(r"all 10\.0 k take [\d.]+ (h|min)", remark) for remark in remarks)


@pytest.mark.parametrize(
    "text", ["llama-3.1-70b 2x3090 vllm tried awq still oom", "lora llama-3.1-8b 3090 tried batch size 8"]
)
def test_what_was_tried_is_said_to_be_planned_for(text: str) -> None:
    assert any("tried, and planned for" in entry.why for entry in read_line(text).assumptions)


def test_a_task_that_was_tried_is_no_setting() -> None:
    line = read_line("i tried to serve llama-3.1-8b awq on a 4090")
    assert not any("tried" in entry.why for entry in line.assumptions)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("llama 8b h100 10 usres", "usres: users is the nearest"),
        ("llama 70b m3 max 128gb iogpu.wired_limit_mb=0", "iogpu.wired_limit_mb 0: as the system sets it"),
        ("bge-m3 embed 1m docs 1024 d a100", "left out: 1024 d; a model has vectors as long as its own"),
    ],
)
def test_a_slip_and_what_changes_nothing_are_said(text: str, said: str) -> None:
    assert said in read_line(text).guesses


def test_a_word_that_only_resembles_a_span_is_no_bill() -> None:
    """A year is ``y`` too, and ``an y`` is no year."""
    used = rented_time("is there any way to serve llama-2-70b on 8 a100")
    assert used == rented_time("is there a way to serve llama-2-70b on 8 a100")
    assert used != rented_time("yearly cost to serve llama-2-70b on 8 a100")


@pytest.mark.parametrize(
    "words", ["rent 8xh100 for 3 days at $2.49/hr each, how many tokens", "8xh100 budget $5000, max tokens"]
)
def test_the_most_that_a_budget_pays_for_is_asked_for_not_the_cheapest(words: str) -> None:
    asked = read_line(f"train 7b {words}").asked
    assert asked is not None
    assert (asked.solve, asked.goal) == ("training.tokens", "")
