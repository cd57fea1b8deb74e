"""One line that compares: what it compares, and that lines which compare nothing are left alone."""

from __future__ import annotations

import pytest

from capacity_tui.engine.plan.line import alternatives, read_line

COMPARED = {
    "rtx 6000 ada vs l40s llama 13b inference": ["rtx 6000 ada", "l40s"],
    "h100 vs a100 80gb for finetuning 13b": ["h100", "a100 80gb"],
    "llama 3.1 8b vs qwen2.5 7b on 4090": ["llama 3-1 8b", "qwen2-5 7b"],
    "4090 vs m3 max for qwen3 30b a3b q4": ["4090", "m3 max"],
    "8 h100 vs 8 a100 llama 70b lora": ["8 h100", "8 a100"],
    "batch 8 vs 16 llama 8b h100": ["8", "16"],
    "a100 vs h100 vs b200 train 7b 1T tokens": ["a100", "h100", "b200"],
    "is a 4090 or a 3090 better for llama 8b q4": ["4090", "3090"],
    "compare 8xA100 and 4xH100 for training a 13B model": ["8xA100", "4xH100"],
    "H100 PCIe vs SXM for llama 70b inference": ["PCIe", "SXM"],
    "vllm versus sglang llama 8b h100 5 req/s": ["vllm", "sglang"],
    "rtx pro 6000 vs 2x 5090 for gpt-oss-120b": ["rtx pro 6000", "2x 5090"],
    "Llama-3.1-8B @ 500 req/min avg 1,2k in 300 out, a10g or l4?": ["a10g", "l4"],
    "is 2x 3090 faster than a 5090 for llama 8b": ["2x 3090", "5090"],
    "choosing between g5.12xlarge and g6e.12xlarge to serve llama-3.1-8b at 50 req/s, which is cheaper?": [
        "g5-12xlarge",
        "g6e-12xlarge",
    ],
    "mac mini m4 pro 24gb and a coding assistant, qwen2.5 coder 14b or 32b? 16k context, which one": ["14b", "32b"],
    "gemma 2 9b or 27b on a 4090?": ["9b", "27b"],
    "full fine-tune qwen2.5 14b on 4x a6000, 120k examples, or should i just do lora": ["full fine-tune", "lora"],
    "how much slower is qlora than lora on an A6000 for a 13b?": ["qlora", "lora"],
    "will 2x4090 beat 1xA6000 for lora on 13b?": ["2x4090", "1xA6000"],
    "4090 laptop vs desktop 4070 ti super for mistral small 3 q4": ["4090 laptop", "desktop 4070 ti super"],
    "99% of requests e2e under 4 s, 1,200 in / 90 out, 20 rps, phi-4-mini fp16. T4 or L4, and how many?": ["T4", "L4"],
    "what's faster for llama 3.1 8b inference - 4090 or A100?": ["4090", "A100"],
    "do i get more out of 2 4080s or one 4090 for 14b fp16": ["2 4080s", "one 4090"],
    "how much longer is a LoRA of llama 3.1 8b on one A100 80GB compared with one H100, 50M tokens": [
        "one A100 80GB",
        "one H100",
    ],
}


@pytest.mark.parametrize(("text", "names"), COMPARED.items(), ids=COMPARED)
def test_a_line_is_one_for_each_name_that_it_compares(text: str, names: list[str]) -> None:
    lines = alternatives(text)
    assert [line.name for line in lines] == names
    read = [read_line(line.text) for line in lines]
    assert not any(line.faults for line in read)
    assert len({str(line.values) for line in read}) == len(names)


@pytest.mark.parametrize("text", ["llama 8b lora 4090", "qlora or nothing", "foo vs bar", "h100 vs", "vs h100", ""])
def test_a_line_that_compares_nothing_is_left_alone(text: str) -> None:
    assert alternatives(text) == ()
