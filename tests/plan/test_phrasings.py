"""Models, formats, settings and data as people write them: the same meaning at every place and in every form."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from capacity_tui.engine.plan.line import read_line

SERVED = ("llama-3.1-8b on l40s {}", "{} serving llama-3.1-8b on l40s", "vllm llama-3.1-8b, {}, 1 l40s")
LOCAL = ("llama.cpp llama-3.1-8b 4090 {}", "{} gguf qwen2.5-14b 3090", "llama 3.1 8b {} macbook pro m4 max")
TUNED = ("llama-3.1-8b lora 8xh100 {}", "{} lora qwen2.5-14b 4090", "full finetune of llama 3 8b, {}, 8 a100s")
TRAINED = (
    "pretrain llama-3.1-70b 1024xh100 {}",
    "{} train gpt3-175b 1024 a100",
    "megatron llama-3.1-70b, {}, 1024 h100s",
)
NAMED = ("{} on 8xh100", "serve {} h200 50 users", "8 a100, {}, lora", "b200 prompt 2k out 300 {}")

MODELS = {
    "gpt-oss-120b": ("the 120b model of gpt-oss", "120b gpt-oss", "gpt oss 120b", "gpt-oss (120b)"),
    "deepseek-r1": ("R1", "full R1", "the full 671b r1", "R1-0528", "deepseek r1 671b"),
    "deepseek-v3": ("v3 0324", "671B/37B", "671b-a37b", "671B A37B MoE", "deepseek-v3 style MoE, 671B/37B active"),
    "qwen3-30b-a3b": ("qwen3:30b-a3b", "qwen3-30b-a3b instruct"),
    "qwen3-30b-a3b-2507": ("qwen3-30b-a3b 2507", "Qwen3-30B-A3B-Instruct-2507", "qwen3 30b 2507"),
    "qwen3-4b-2507": ("Qwen/Qwen3-4B-Thinking-2507", "qwen3 4b instruct 2507"),
    "qwen3-235b-a22b-2507": ("qwen3-235b-a22b-instruct-2507", "qwen3 235b 2507"),
    "qwen3-coder-30b-a3b": ("qwen3-coder:30b", "Qwen3 Coder Flash"),
    "llama-3.3-70b": ("llama 3 3 70b", "llama3-3-70b", "llama-3_3-70b", "llama v3.3 70b"),
    "qwen2-vl-72b": ("UI-TARS 72B", "ui-tars-72b-dpo"),
    "mixtral-8x7b": ("nous hermes 2 mixtral", "mixtral 8x7"),
    "mistral-nemo-12b": ("nemo 12b instruct",),
    "qwen2.5-32b": ("qwq", "qwen coder 32b", "r1 distill 32b"),
    "llama-3.1-70b": ("70b-ish", "70-billion model"),
    "llava-1.5-7b": ("llava:7b", "llava 1.6 7b"),
}
PHRASINGS = (
    (LOCAL, {"inference.weights": "q4_k_m"}, ("4bit", "4-bit", "int4", "q4km", "Q4_K_M")),
    (LOCAL, {"inference.weights": "q8_0"}, ("int8", "8bit", "q8")),
    (LOCAL, {"inference.kv_cache": "q8_0"}, ("kv cache at q8", "8-bit kv", "q8_0 kv cache")),
    (SERVED, {"inference.weights": "awq-4"}, ("4bit", "awq 4 bit quant", "w4a16")),
    (
        SERVED,
        {"inference.kv_cache": "fp8"},
        ("kv cache dtype fp8", "--kv-cache-dtype=fp8", "kv in fp8", "fp8 for kv cache"),
    ),
    (SERVED, {"inference.weights": "fp8", "inference.kv_cache": "fp8"}, ("fp8 weights and kv cache", "fp8, kv fp8")),
    (SERVED, {"inference.output_tokens": 500}, ("500 output", "response length 500", "500 tokens per answer")),
    (
        SERVED,
        {"inference.prompt_tokens": 16384},
        ("16k input", "16k token context", "context of 16k", "max-model-len 20000, prompt 16k"),
    ),
    (
        SERVED,
        {"inference.prompt_tokens": 15872},
        ("--max-model-len=16384", "max_seq_len 16k", "max total tokens 16384"),
    ),
    (SERVED, {"inference.prompt_tokens": 16000, "inference.output_tokens": 200}, ("16000:200", "16000 in => 200 out")),
    (SERVED, {"inference.request_rate": 20}, ("20req/s", "20 requests every second", "20 req / s")),
    (SERVED, {"inference.concurrency": 50}, ("50-way concurrency", "concurrency of 50", "concurrency 50")),
    (
        TUNED,
        {"training.samples": 52000},
        ("52 k samples", "52k dataset", "52k sft examples", "alpaca 52k", "52,000 samples"),
    ),
    (TUNED, {"training.samples": 1_000_000}, ("a million examples", "1 M pairs", "1,000k rows")),
    (TUNED, {"training.tokens": 400_000_000}, ("400 M tokens", "400M token dataset", "dataset of 400M tokens")),
    (TUNED, {"training.epochs": 2}, ("num_train_epochs=2", "2ep", "num_epochs: 2")),
    (TUNED, {"training.steps": 1000}, ("--max_steps=1000", "num_steps 1000", "1000 optimizer steps")),
    (TUNED, {"training.micro_batch": 2}, ("bs=2/gpu", "batch 2/gpu", "micro bs 2", "--micro-batch-size 2", "2 mbs")),
    (TUNED, {"training.seq_len": 4096}, ("@4k", "model_max_length 4096", "cutoff_len=4096")),
    (TUNED, {"training.optimizer": "adamw8bit"}, ("optim=adamw_8bit", "--optim paged_adamw_8bit", "8-bit adam")),
    (TUNED, {"training.checkpointing": "full"}, ("gc", "act ckpt", "gradient_checkpointing=true", "recomputation")),
    (
        TUNED,
        {"training.checkpointing": "none"},
        ("no act ckpt", "gc off", "gradient_checkpointing: false", "no recompute"),
    ),
    (
        TUNED,
        {"parallelism.zero": 3, "parallelism.offload": "optimizer"},
        ("zero-3-offload", "z3 offload", "zero3 offloading"),
    ),
    (TUNED, {}, ("lr=2e-4", "warmup 3%", "beta2 0.95", "cosine", "packing=True", "--save_strategy=epoch", "=>")),
    (
        TRAINED,
        {"parallelism.tp": 8, "parallelism.pp": 16},
        ("tp8/pp16", "tp8xpp16", "8-way tp, 16-way pp", "8 tp 16 pp"),
    ),
    (TRAINED, {"training.precision": "bf16"}, ("bf16 amp", "amp bf16", "bf16=true", "torch_dtype=bfloat16")),
    (
        TRAINED,
        {"training.master_weights": "fp32"},
        ("fp32 master weights", "master weights in fp32", "fp32 master copy"),
    ),
    (TRAINED, {"training.gradients": "fp32"}, ("fp32 grads", "fp32 grad accumulation")),
)
CASES = [(carrier, words, values) for carriers, values, texts in PHRASINGS for words in texts for carrier in carriers]


def plain(value: object) -> object:
    try:
        return float(str(value))
    except ValueError:
        return str(value)


@pytest.mark.parametrize(("carrier", "words", "values"), CASES, ids=lambda value: str(value)[:40])
def test_a_phrasing_adds_its_values_and_nothing_else(carrier: str, words: str, values: dict[str, object]) -> None:
    before, line = read_line(carrier.format("").strip(" ,")), read_line(carrier.format(words))
    assert not line.faults
    assert (line.task, line.asked, line.limits) == (before.task, before.asked, before.limits)
    added = {path: plain(value) for path, value in line.values.items() if before.values.get(path) != value}
    assert added == {path: plain(value) for path, value in values.items()}


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, texts in MODELS.items() for words in texts])
def test_a_model_is_known_at_every_place(name: str, words: str) -> None:
    for carrier in NAMED:
        line = read_line(carrier.format(words))
        assert not line.faults, line.text
        assert line.values["model.name"] == name, line.text


@pytest.mark.parametrize("words", ["bs=big", "r=64/a=128"])
def test_what_is_no_number_is_refused_with_what_to_write(words: str) -> None:
    assert all(fault.hint for fault in read_line(f"lora llama 8b 4090 {words}").faults or [None])


@pytest.mark.parametrize("words", ["qwen-7b", "llava 1.6 7b", "70b", "R1"])
def test_a_model_that_stands_for_another_is_said(words: str) -> None:
    assert any(words in why for why in read_line(f"{words} on l40s").guesses)


with (Path(__file__).parent / "lines_people_write.csv").open(encoding="utf-8", newline="") as file:
    LINES = [row["line"] for row in csv.DictReader(file, delimiter="|") if not row["refused"]]
COUNTED = re.compile(r"(?<![\w.\-/])(\d+)x ?(h100|a100|4090|3090|l40s|a10g|t4)(?![\w\-])", re.IGNORECASE)
AS_PEOPLE_WRITE = {  # What is written, and other ways to write the same
    COUNTED: (r"\1 x \2", r"\1*\2", r"\1 × \2", r"\2 x\1", r"\1 \2 gpus", r"\1x \2s"),
    re.compile(r"(?<![\w.])(\d+) ?ms\b"): (r"\1 ms", r"\1 msec", r"\1msec", r"\1 milliseconds"),
    re.compile(r"(?<=[a-z<] )(\d)s(?=,|$)"): (r"\1 s", r"\1sec", r"\1 seconds"),
    re.compile(r"(?<![\w.])(\d+)gb\b"): (r"\1 GB", r"\1G", r"\1 G", r"\1 gig"),
    re.compile(r"\$(\d+)(?=,|$)"): (r"\1$", r"$ \1", r"USD \1", r"usd\1", r"\1 dollars"),
    re.compile(r"(?<= )(\d+)k(?= (?:samples|examples|images|rows)\b)"): (r"\1 k", r"\1,000", r"\1 000", r"\1 thousand"),
    re.compile(r"(?<= )(\d+)M(?= (?:tokens|samples|rows)\b)"): (r"\1 million", r"\g<1>e6", r"\1,000,000"),
    re.compile(r" (?=on |with |for )"): ("  ",),
    re.compile(r"^(?=\w)"): ("hey, ", "quick question: ", "just wondering, "),
    re.compile(r"(?<=\w)$"): (" thanks!", ", anyone?", " pls"),
}
LINES_OF_A_FORM = 7  # Of those that have it, which keeps the whole below a few seconds


def changed_lines() -> list[tuple[str, str]]:
    """Return lines with others that mean the same, in which one part is written otherwise."""
    pairs = []
    for written, forms in AS_PEOPLE_WRITE.items():
        lines = [line for line in LINES if written.search(line)]
        for at, form in enumerate(forms):
            some = lines[at * LINES_OF_A_FORM :][:LINES_OF_A_FORM]
            pairs += [(line, written.sub(form, line, count=1)) for line in some]
    return pairs


@pytest.mark.parametrize(("line", "changed"), changed_lines())
def test_what_is_written_otherwise_means_the_same(line: str, changed: str) -> None:
    before, after = read_line(line), read_line(changed)
    assert not after.faults
    assert {path: plain(value) for path, value in after.values.items()} == {
        path: plain(value) for path, value in before.values.items()
    }
    assert (after.asked and after.asked.solve) == (before.asked and before.asked.solve)
