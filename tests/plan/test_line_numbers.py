"""Numbers in the one line that says a plan: as people write them, each with the word that it counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line


@pytest.mark.parametrize(
    ("line", "path", "value"),
    [
        ("serve llama-3.1-8b on 2 4090", "hardware.devices", 2),
        ("llama-3.1-8b lora 4096 4090", "training.seq_len", 4096),
        ("serve llama-3.1-70b on 4 h100 at 5 requests/s", "inference.request_rate", 5),
        ("serve llama-3.1-8b h100 for 64 users", "inference.users", 64),
        ("serve llama-3.1-8b h100 users 64", "inference.users", 64),
        ("serve llama-3.1-8b h100 batch:16", "inference.batch", 16),
        ("llama-3.1-8b on 2 4090 ttft 0.5", "inference.ttft_seconds", 0.5),
    ],
)
def test_numbers_are_read_as_people_say_them(line: str, path: str, value: float) -> None:
    found = read_line(line)
    assert not found.faults
    assert float(str(found.values[path])) == value


@pytest.mark.parametrize("limit", ["ttft 500ms", "500ms ttft", "ttft<500ms", "ttft<=500ms", "ttft=0.5", "TTFT: 500ms"])
def test_limits_of_latency_are_times(limit: str) -> None:
    line = read_line(f"llama-3.1-8b 4090 {limit}")
    assert (line.faults, line.task) == ((), "infer")
    assert plan_of_line(line).plan.inference.ttft_seconds == 0.5


@pytest.mark.parametrize(
    ("line", "path", "value"),
    [
        ("llama-3.1-70b lora 8xh100 50M examples", "training.samples", 50_000_000),
        ("llama-3.1-70b lora 8xh100 50M examples", "training.epochs", 1),
        ("llama-3.1-8b lora h100 10 million tokens", "training.tokens", 10_000_000),
        ("llama-3.1-8b lora h100 100 Mio Token", "training.tokens", 100_000_000),
        ("llama-3.1-8b lora h100 10,5M", "training.tokens", 10_500_000),
        ("llama-3.1-8b lora h100 10,000,000 tokens", "training.tokens", 10_000_000),
        ("llama-3.1-8b lora h100 tokens = 50M", "training.tokens", 50_000_000),
        ("mistral 7b full finetune h100 3 epochs", "training.tokens", 30_000_000),
        ("serve qwen2.5-72b 8xh100 ttft < 1s", "inference.ttft_seconds", 1),
        ("serve qwen2.5-72b 8xh100 ttft 1 s p95", "inference.ttft_seconds", 1),
        ("serve qwen2.5-72b 8xh100 3 req/s p99", "inference.percentile", 99),
        ("serve qwen2.5-72b 8xh100 200 concurrent users", "inference.concurrency", 200),
        ("serve llama-3.1-8b rtx 4090 64GiB ram", "hardware.spec.host_memory_gib", 64),
        ("serve llama-3.2-3b q4_k_m i7-1165g7 16GiB ram", "hardware.spec.memory_mib", 16384),
        ("deepseek-v3 2048 h800 14.8T 4k fp8", "training.tokens", 14.8e12),
    ],
)
def test_what_people_say_is_in_the_plan(line: str, path: str, value: float) -> None:
    assert float(str(plan_of_line(read_line(line)).plan.value(path))) == value


def test_percentiles_name_no_instance() -> None:
    line = read_line("serve qwen2.5-72b p95")
    assert "hardware.name" not in line.values
    assert line.values["inference.percentile"] == 95


def test_users_send_a_request_a_minute_and_requests_at_once_follow_each_other() -> None:
    users = plan_of_line(read_line("serve llama-3.1-8b h100 200 users"))
    assert users.plan.inference.arrival_rate == pytest.approx(200 / 60)
    assert any("every 60 s" in entry.why for entry in users.assumptions)
    for words in ("64 concurrent requests", "concurrency 64", "64 requests at once"):
        assert plan_of_line(read_line(f"serve llama-3.1-8b h100 {words}")).plan.inference.concurrency == 64
    assert plan_of_line(read_line("serve llama-3.1-8b h100 64 sequences at once")).plan.inference.batch == 64


@pytest.mark.parametrize(
    ("line", "values"),
    [
        # Words that always stand behind a number, before one that another word counts.
        ("serve qwen3-8b tp 8 max-num-seqs 16 l40s", {"parallelism.tp": "8", "inference.batch": 16}),
        ("serve qwen3-8b h100 700 tok prompts, 150 tok completions", {"inference.prompt_tokens": 700}),
        ("train gpt3-1.3b epochs 3 h100", {"training.epochs": 3}),
        ("fit xgboost 1M x 2000", {"model.spec.n": 10**6, "model.spec.p": 2000}),
        ("train lstm 2 layers hidden 512", {"model.spec.depth": 2, "model.spec.state": 512}),
        ("serve qwen3-8b h100 eagle3, 4 draft tokens", {"inference.num_speculative_tokens": 4}),
        ("lora llama-3.1-8b 4bit 4090", {"training.method": "qlora", "training.quantization": "nf4"}),
        ("finetune llama-3.1-8b without lora 4090", {"training.method": "full"}),
        ("finetune llama-3.1-8b on 100 000 samples", {"training.samples": 100_000}),
        ("finetune llama-3.1-8b on 10.000 samples", {"training.samples": 10_000}),
        ("train llama-3.1-8b 8 used single-gpu h100", {"hardware.devices": 8, "hardware.per_node": 1}),
        ("train llama-3.1-8b 2x8xh100", {"hardware.devices": 16, "hardware.per_node": 8}),
        ("what quant of llama-3.1-70b fits on 2x3090", {"inference.weights": "auto"}),
        ("train gpt2-xl deepspeed stage 2 + offload on 2 x 2080ti", {"parallelism.offload": "optimizer"}),
        ("i9-13900k, 64GB RAM, RTX 4080, mixtral-8x7b", {"hardware.spec.host_memory_gib": 64.0}),
        ("serve qwen3-32b h100 to a 10 person team", {"inference.users": 10}),
        ("train llama-2-13b 2 nodes of p5.48xlarge", {"hardware.devices": 16}),
        ("serve qwen3-32b on a 1660 super", {"hardware.name": "gtx-1660-super"}),
        ("train gru hidden 256, seq 200", {"model.spec.steps": 200}),
        ("serve qwen3-32b h100 1.5 tok/s", {"inference.tpot_seconds": "0.6667s"}),
        ("serve qwen3-32b h100 2.5 requests/min", {"inference.request_rate": "0.04167"}),
        ("serve qwen3-32b h100 prompt 1.2k", {"inference.prompt_tokens": 1200}),
        ("full fine-tune llama-3.1-8b 4xa6000 bs=2 per gpu", {"training.micro_batch": 2}),
        ("train llama-3.1-8b 64 nodes dgx h100", {"hardware.devices": 512, "hardware.per_node": 8}),
        ("serve nemotron 3 super 120b h100", {"model.name": "nemotron-3-super-120b-a12b"}),
        ("lora flan-t5-xl 50k summarization pairs a5000", {"training.samples": 50_000}),
        ("train llama-3.1-8b 10B tokens on two DGX A100", {"hardware.devices": 16, "hardware.per_node": 8}),
        ("lora gemma-3-12b 4k sequences", {"training.seq_len": 4096}),
        ("train gemma-3-12b 64 sequences", {"training.global_batch": 64}),
        ("train a 400M model on 8B tokens 4090", {"training.tokens": 8 * 10**9}),
        ("train convnext-large imagenet 22k h100", {"training.samples": 14_197_122}),
        ("serve llama-4-scout 8xh200 2M token context", {"task": "infer"}),
        ("用4张A100微调llama-3-8b", {"hardware.devices": 4, "task": "finetune"}),
    ],
)
def test_numbers_go_to_the_words_that_count_them(line: str, values: dict[str, object]) -> None:
    found = read_line(line)
    assert found.faults == ()
    assert {path: str(found.values.get(path)) for path in values} == {
        path: str(value) for path, value in values.items()
    }


@pytest.mark.parametrize("word", ["tp 0", "tp=auto", "hardware.devices=auto", "pp=x"])
def test_a_degree_that_is_no_count_is_left_to_the_plan(word: str) -> None:
    line = read_line(f"lora llama-3.1-8b 8xh100 micro batch 2 accumulation 8 {word}")
    assert line.values["training.micro_batch"] == 2


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        ("serve llama-3.1-8b h100 tpot below a tenth of a second", "inference.tpot_seconds", 0.1),
        ("serve llama-3.1-8b h100 ttft within a quarter of a second", "inference.ttft_seconds", 0.25),
        ("serve llama-3.1-8b h100 ttft under one and a half seconds", "inference.ttft_seconds", 1.5),
        ("train gpt2 on a 3090 50M tokens within one and a half days", "limits.seconds", 1.5 * 86400),
        ("train gpt2 on a 3090 50M tokens within an hour and a half", "limits.seconds", 5400),
        ("train gpt2 on a 3090 50M tokens within three quarters of an hour", "limits.seconds", 2700),
        ("train gpt2 on a 3090 with two million tokens", "training.tokens", 2e6),
        ("train gpt2 on a 3090 with half a billion tokens", "training.tokens", 5e8),
    ],
)
def test_parts_and_scales_in_words_are_numbers(words: str, path: str, value: float) -> None:
    assert float(str(plan_of_line(read_line(words)).plan.value(path))) == pytest.approx(value)


@pytest.mark.parametrize("words", ["minus five users", "a tenth of the users", "5 rps 3000 tok/s"])
def test_numbers_that_would_be_lost_are_asked_back(words: str) -> None:
    assert read_line(f"serve llama-3.1-8b h100 {words}").faults


TRAINED = {
    "training.global_batch": ("batch 16",),
    "training.seq_len": ("seq 2048",),
    "training.adapter.rank": ("rank 64",),
    "training.steps": ("steps 1000", "1000 steps"),
    "training.samples": ("samples 5000", "5000 samples"),
    "parallelism.tp": ("tp 2",),
    "hardware.devices": ("gpus 8", "8 gpus"),
}
SERVED = {
    "inference.users": ("users 50", "50 users"),
    "inference.prompt_tokens": ("input 1500", "1500 input tokens"),
    "inference.output_tokens": ("output 300", "300 output tokens"),
    "parallelism.tp": ("tp 2",),
    "hardware.devices": ("gpus 8", "8 gpus"),
}


@given(st.data(), st.sampled_from([("llama-3.1-8b lora h100", TRAINED), ("serve llama-3.1-8b h100", SERVED)]))
def test_settings_are_read_in_any_order_with_names_on_either_side(
    data: st.DataObject, asked: tuple[str, dict[str, tuple[str, ...]]]
) -> None:
    start, settings = asked
    paths = data.draw(st.lists(st.sampled_from(sorted(settings)), min_size=2, max_size=4, unique=True))
    parts = [data.draw(st.sampled_from(settings[path])) for path in paths]
    line = " ".join(data.draw(st.permutations([start, " ".join(parts)])))
    found = read_line(line)
    assert not found.faults
    for path, part in zip(paths, parts, strict=True):
        assert str(found.values[path]) in part.split(), line


@pytest.mark.parametrize(
    "text", ["{}", "best model under {}b on a 4060", "{0}b/{0}b on h100", "5 requests every {} seconds llama 8b"]
)
def test_numbers_of_more_digits_than_any_has_are_no_traceback(text: str) -> None:
    assert read_line(text.format("9" * 30)).text


MEMORY, NAME, COUNT = "hardware.spec.memory_mib", "hardware.name", "hardware.devices"
PROMPT, EPOCHS = "inference.prompt_tokens", "training.epochs"


@pytest.mark.parametrize("text", ["1e100", "llama 8b 1e30 tokens l4", f"train {'9' * 40} tokens", "$1e400 lora 8b"])
def test_a_number_beyond_any_is_refused(text: str) -> None:
    assert read_line(text).faults


@pytest.mark.parametrize(
    ("line", "open_", "answering"),
    [
        ("which GPU for qlora llama 3 70b, I only have a 3090", "which GPU", "hardware.name"),
        ("how many h100 for llama-3.1-8b on 8xh100", "how many h100", "hardware.devices"),
        ("4xL4 too slow for qwen3 32b, what would be faster?", "what would be faster", "hardware.name"),
    ],
)
def test_a_question_for_other_hardware_than_is_named_with_it_is_left_open_with_the_line_that_answers_it(
    line: str, open_: str, answering: str
) -> None:
    read = read_line(line)
    assert not read.faults
    assert read.asked is None
    assert f"not answered: {open_}" in read.remarks
    begins = "what answers it: "
    other = read_line(next(remark for remark in read.remarks if remark.startswith(begins)).removeprefix(begins))
    assert other.asked is not None
    assert other.asked.solve == answering


@pytest.mark.parametrize(
    ("line", "answering", "told"),
    [
        ("llama 3 70b qlora OOMs on my 3090, what should I use instead?", "hardware.name", "3090"),
        ("llama 3 70b qlora OOMs on my 3090, which GPU do I need?", "hardware.name", "3090"),
        ("GRPO of a 32B model OOMs on 8x a100. Minimum number of GPUs?", "hardware.devices", "8x"),
        ("I have two 3090s, how many do I need for llama 3.3 70b fp16?", "hardware.devices", "two"),
        ("I have 2 x A100 40GB, full llama-2-13b gives OOM. How many A100s do I need?", "hardware.devices", "2 x"),
    ],
)
def test_a_question_for_other_hardware_than_a_line_tells_of_is_answered(line: str, answering: str, told: str) -> None:
    read = read_line(line)
    assert not read.faults
    assert read.asked is not None
    assert read.asked.solve == answering
    assert any(remark.startswith(f"left out: {told}, which is told; planned for") for remark in read.remarks)


@pytest.mark.parametrize(
    ("line", "field", "value", "told"),
    [
        ("deepseek r1 q4 won't load on my EPYC 9654 with 64GB RAM. Is 768GB enough?", MEMORY, 786432, "64GB RAM"),
        ("My mate gets 40 tok/s with a 4090 on qwen 32b q4. What would I get on my 3090?", NAME, "rtx-3090", "4090"),
        ("llama 8b at 4k context works on my 8GB RTX 3070. Can I run it at 16k context?", PROMPT, 16384, "4k context"),
        (
            "The paper used 64 TPUv4 for 3 days. How long to pretrain 1.3B on 26B tokens with 8x A100?",
            COUNT,
            8,
            "3 days",
        ),
        ("One epoch took 5 hours for vit-large on a 3090. How long for 50 epochs?", EPOCHS, 50, "One epoch"),
        ("I have a 24GB 4090, they say you need 80GB for a full 3B fine-tune. Can I?", NAME, "rtx-4090", "80GB"),
        ("resnet18 on imagenet with 2 RTX3090 takes a week. How long on 8 V100?", COUNT, 8, "2 RTX3090"),
    ],
)
def test_a_question_holds_over_what_a_line_tells(line: str, field: str, value: object, told: str) -> None:
    read = read_line(line)
    assert not read.faults
    assert str(read.values[field]) == str(value)
    assert any(remark.startswith(f"left out: {told}, which is told; planned for") for remark in read.remarks)


@pytest.mark.parametrize(
    "line",
    [
        "llama 8b on a 3090 with 8k context. It has 16k context",
        "Is a 3090 enough for llama 8b? Is a 4090 enough",
        "lora llama 8b, a 3090, a 4090",
        "no more than 24h and $300 on A100; would L4 be enough? llama 8b lora 200M tokens",
        "ttft has to be < 200ms on A100, would L4 be ok? llama 8b",
        "users on our A100 need a p95 ttft of 500ms. can L4 do that? llama 8b",
        "I rent a 4090 for $0.5/h. How much is llama 8b lora 100M tokens on an A100?",
    ],
)
def test_clauses_on_a_par_that_say_a_field_twice_are_asked_back(line: str) -> None:
    assert any("is given twice" in fault.title for fault in read_line(line).faults)


def test_a_setting_of_somebody_elses_is_planned_for_and_that_is_said() -> None:
    read = read_line("finetune vit-b-16; the paper used batch size 256. I have 2x 3090")
    assert read.values["training.global_batch"] == 256
    assert any(remark.startswith("batch size 256: as is reported") for remark in read.remarks)
