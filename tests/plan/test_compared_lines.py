"""One line that compares: what it compares, and that lines which compare nothing are left alone."""

from __future__ import annotations

import pytest

from capacity_tui.engine.plan.line import alternatives, read_line

COMPARED = {
    "my 1080ti trains resnet50 imagenet, is a 3080 worth it?": ["1080ti", "3080"],
    "llama 3 8b lora. I have an A100, how much faster is an H100?": ["A100", "H100"],
    "t4/l4/a10g llama 8b": ["t4", "l4", "a10g"],
    "llama 3.1 8b on a100 8 and 16 concurrent, what throughput": ["8", "16"],
    "is llama 3.1 8b on an l4 fast enough at 8, 16 and 32 concurrent?": ["8", "16", "32"],
    "llama 3.1 8b l4, 8/16/32 concurrent": ["8", "16", "32"],
    "qwen2.5-7b a100 80gb vllm 8并发，16并发": ["8并发", "16并发"],
    "QLoRA Llama 3 70B on 4 * A10G OOM, would 8 * A10G solve it?": ["4 - A10G", "8 - A10G"],
    "lora llama 8b on 2x3090 oom, would 4x3090 help?": ["2x3090", "4x3090"],
    "lora llama 13b oom on 3090. Will an a100 work?": ["3090", "a100"],
    "lora llama 13b on 3090, is a a6000 enough?": ["3090", "a6000"],
    "lora qwen 7b on 4090, but would a 3090 do?": ["4090", "3090"],
    "full ft 7b on 4xa100 40gb OOMs. Would 8xa100 40gb work?": ["4xa100 40gb", "8xa100 40gb"],
    "a100 or h100 for full ft of gemma 2 9b, 1b tokens": ["a100", "h100"],
    "8b/70b on h100": ["8b", "70b"],
    "serve llama-8b/qwen-7b on a 4090": ["llama-8b", "qwen-7b"],
    "llama 8b/qwen 7b on a 4090 q4": ["llama 8b", "qwen 7b"],
    "minimum gpu for llama2 7b, 13b, 70b": ["7b", "13b", "70b"],
    "llama 7b, 13b and 70b on a100": ["7b", "13b", "70b"],
    "serve llama 3 8b, qwen2.5 7b, mistral 7b on a 4090": ["llama 3 8b", "qwen2-5 7b", "mistral 7b"],
    "llama 8b lora on h100, a100, l40s, 20k samples": ["h100", "a100", "l40s"],
    "llama 8b q4 on 4090, 3090 or a6000": ["4090", "3090", "a6000"],
    "fp8/int8 llama 8b l4": ["fp8", "int8"],
    "lora/qlora llama 8b 4090": ["lora", "qlora"],
    "rtx 3060 12gb vs m2 macbook air 16gb qwen 8b": ["rtx 3060 12gb", "m2 macbook air 16gb"],
    "qwen 8b on rtx 3060 12gb or m2 macbook air 16gb": ["rtx 3060 12gb", "m2 macbook air 16gb"],
    "dgx spark 128gb vs framework desktop 128gb gpt-oss-120b": ["dgx spark 128gb", "framework desktop 128gb"],
    "epyc 9654 with 768gb ram vs 2x 3090 deepseek r1": ["epyc 9654 with 768gb ram", "2x 3090"],
    "4090 on runpod or a100 for llama 8b": ["4090 on runpod", "a100"],
    "lightgbm cpu or xgboost on the t4": ["lightgbm cpu", "xgboost on the t4"],
    "t4 or 16 cores for xgboost 10m rows": ["t4", "16 cores"],
    "2x 4090/3090 llama 8b": ["2x 4090", "2x 3090"],
    "llama 8b on 4090/3090": ["4090", "3090"],
    "grad checkpointing or not, lora llama 8b 4090": ["grad checkpointing", "no grad checkpointing"],
    "zero offload on or off, qlora llama 8b 4090": ["zero offload", "no zero offload"],
    "lora llama 8b 10M tokens on runpod 4090 vs lambda a100": ["runpod 4090", "lambda a100"],
    "llama 8b a100 on lambda vs h100 on runpod": ["a100 on lambda", "h100 on runpod"],
    "is 2 x rtx 5090 better than 1 x rtx 6000 pro 96GB for lora on a 32b": ["2 x rtx 5090", "1 x rtx 6000 pro 96GB"],
    "llama 70b on 4xh100 with 200 users instead of 100": ["200 users", "100 users"],
    "are three nodes of 8 h100 sufficient or do i need four for llama 405b": ["three nodes", "four nodes"],
    "llama 3 8b 8-bit/6-bit on 4090": ["8-bit", "6-bit"],
    "finetune 8b on h100/a100, 10k samples": ["h100", "a100"],
    "llama 70b on 2x A100/A800": ["2x A100", "2x A800"],
    "llama 70b 8*A100/H100": ["8-A100", "8-H100"],
    "full fine-tune of 3b/7b on 8x a100 40gb": ["3b", "7b"],
    "qlora llama 70b on 2x3090 took 20 hours for 10k samples, how about 4xA100?": ["2x3090", "4xA100"],
    "llama 8b on one T4 or just 32 cores": ["one T4", "32 cores"],
    "llama 8b either on a 3060 or just on my ryzen 5800x": ["3060", "ryzen 5800x"],
    "8b on a 4090 or on cpu i9-13900k": ["4090", "i9-13900k"],
    "serve 70B and 405B on 8 h100": ["70B", "405B"],
    "how many nodes of 8 H100s for Llama 3.1 70B and 405B": ["70B", "405B"],
    "llama 8b on 3090 for $800 or 4090 for $2755": ["3090 for -800", "4090 for -2755"],
    "do i need qlora for 13b on 24gb": ["qlora", "lora"],
    "do i need lora for llama 8b on 2 a100": ["lora", "full fine-tuning"],
    "rtx 6000 ada vs l40s llama 13b inference": ["rtx 6000 ada", "l40s"],
    "qwen3 14b q4 on a 3060 or should i take 8b?": ["14b", "8b"],
    "qwen2.5-14b q4 or 7b, 3060": ["14b", "7b"],
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
    "lora or full llama 8b 8xh100 100M tokens": ["lora", "full"],
    "how much slower is qlora than lora on an A6000 for a 13b?": ["qlora", "lora"],
    "will 2x4090 beat 1xA6000 for lora on 13b?": ["2x4090", "1xA6000"],
    "4090 laptop vs desktop 4070 ti super for mistral small 3 q4": ["4090 laptop", "desktop 4070 ti super"],
    "99% of requests e2e under 4 s, 1,200 in / 90 out, 20 rps, phi-4-mini fp16. T4 or L4, and how many?": ["T4", "L4"],
    "what's faster for llama 3.1 8b inference - 4090 or A100?": ["4090", "A100"],
    "do i get more out of 2 4080s or one 4090 for 14b fp16": ["2 4080s", "one 4090"],
    "is it worth going qlora instead of lora for llama 70b on an a100 80gb": ["qlora", "lora"],
    "serve qwen2.5-32b on 2x 4090 in int8 rather than fp16": ["int8", "fp16"],
    "is int8 enough for qwen2.5-32b on 2x 4090 or do i need fp16": ["int8", "fp16"],
    "is 8k sufficient for serving qwen2.5-14b awq on a 4090 or should i get 32k": ["8k", "32k"],
    "llama 70b lora on 4xh100, does it fit or do i need 8?": ["4xh100", "8 h100"],
    "are three A100 nodes sufficient or do i need four for llama 405b": ["three A100 nodes", "four A100 nodes"],
    "how much sooner with 8 h100 instead of 4 for llama 8b lora 100M": ["8 h100", "4 h100"],
    "does gpt-oss-120b really need 2 dgx sparks or is one enough": ["2 dgx sparks", "one dgx sparks"],
    "m4 pro mini 24 or 48gb for qwen2.5-coder 32b": ["24gb", "48gb"],
    "llama-3.1-405b fp8 on 8xh100 with tp8 or pp8": ["tp8", "pp8"],
    "llama-3.1-405b fp8 on 8xh100: tp2 pp4 vs tp8": ["tp2 pp4", "tp8"],
    "should i get a strix halo 128gb or a mac mini m4 pro 48gb for gpt-oss-120b": [
        "strix halo 128gb",
        "mac mini m4 pro 48gb",
    ],
    "do i need grad checkpointing for lora llama 8b on a 4090 seq 4096": [
        "grad checkpointing",
        "no grad checkpointing",
    ],
    "is flash attention needed for lora llama 8b on a 4090": ["flash attention", "no flash attention"],
    "lora llama 8b on a 4090 with or without activation checkpointing": [
        "activation checkpointing",
        "no activation checkpointing",
    ],
    "full ft 7b 2x a100 80gb, should i use cpu offload?": ["cpu offload", "no cpu offload"],
    "do i need fp8 for llama 70b on 2 h100": ["fp8", "as usual"],
    "do i need zero3 offload for llama 13b full finetune on 4 a100": ["zero3 offload", "as usual"],
    "should i use awq or gptq for qwen 32b on 2 4090": ["awq", "gptq"],
    "llama 70b int8 rather than fp8 on 2 a100": ["int8", "fp8"],
    "llama 70b tp8 rather than pp8 on 8 h100": ["tp8", "pp8"],
    "TP=8 x1 or TP=4 x2 for llama 70b on 8 h100": ["TP-8 x1", "TP-4 x2"],
    "llama2-7b pretraining 8xA800 80G, TP4-PP1-DP2 or TP1-PP1-DP8, token/sec/GPU": ["TP4-PP1-DP2", "TP1-PP1-DP8"],
    "pp 4 dp 2 vs tp 8 for llama 70b on 8 a100": ["dp 2", "tp 8"],
    "fp8 (transformer engine) vs bf16 on h100 for 13b pretrain, 64 gpus": ["fp8 -transformer engine", "bf16"],
    "dp 8 instead of tp 8 for llama 8b training on 8xh100": ["dp 8", "tp 8"],
    "second 3090 or sell it and get a 5090 for 70b models": ["second 3090", "5090"],
    "qlora mixtral 8x7b or 34b on 2x titan rtx": ["mixtral 8x7b", "34b"],
    "stable diffusion on a graphics card with 6 GB or 4 GB": ["6GB", "4GB"],
    "third 3090 or swap to a single rtx pro 6000, llama 70b q4": ["third 3090", "single rtx pro 6000"],
    "speculative decoding eagle3 for llama3.3-70b on 2xh200, speedup vs plain?": [
        "speculative decoding eagle3",
        "no speculative decoding eagle3",
    ],
    "llama3.3-70b eagle3 vs no speculation 2xh200": ["eagle3", "no eagle3"],
    "llama3.3-70b eagle3 vs without 2xh200": ["eagle3", "no eagle3"],
    "llama 70b eagle3 vs no speculative decoding on 2xh100, how much faster": ["eagle3", "no eagle3"],
    "llama 70b 2xh100 fp8 kv cache vs without": ["fp8", "no fp8"],
    "llama 8b lora 4090 gradient checkpointing vs without": ["checkpointing", "no checkpointing"],
    "llama 8b lora 4090 flash attention vs no flash attention": ["flash attention", "no flash attention"],
    "llama 8b lora 4090 with and without flash attention": ["flash attention", "no flash attention"],
    "llama 8b lora 4090 unsloth vs plain": ["unsloth", "no unsloth"],
    "zero3 offload vs no offload 8xa100 llama 70b full ft": ["offload", "no offload"],
    "llama 8b lora 1B tokens 8xh100 on lambda vs aws": ["lambda", "aws"],
    "serve llama 70b on runpod vs lambda, 2xh100": ["runpod", "lambda"],
    "yolov8m tensorrt vs plain t4": ["tensorrt", "no tensorrt"],
    "mistral 7b on a g5.xlarge is slow. Should we switch to a g6e.xlarge?": ["g5-xlarge is slow", "g6e-xlarge"],
    "sdxl on gtx 1660 super 6gb takes 2 minutes per image, would a 3060 be much faster?": ["gtx 1660 super", "3060"],
    "DGX Spark or Mac Studio 128GB for gpt-oss-120b": ["DGX Spark", "Mac Studio 128GB"],
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


@pytest.mark.parametrize("first", ["buy 5090s", "rent a B200 @ $4.10/h", "use 2 l40s"])
@pytest.mark.parametrize("model", ["qwen 32b", "llama 70b q4, 20 users"])
@pytest.mark.parametrize("price", ["@ $1.60/h", "at 1.60/h"])
def test_a_price_is_of_the_option_that_it_stands_behind(first: str, model: str, price: str) -> None:
    lines = alternatives(f"{first} or rent an A100 {price} for {model}")
    prices = [read_line(line.text).values.get("pricing.usd_per_hour") for line in lines]
    assert prices == [4.1 if "4.10" in first else None, 1.6]
    assert [line.name for line in lines] == [first.partition(" @")[0].partition(" ")[2].removeprefix("a "), "A100"]


@pytest.mark.parametrize(
    "text", ["what gpu do i need fp8 70b", "llama 70b fp8 required vram", "how many h100 do i need fp8 llama 405b"]
)
def test_what_is_needed_with_a_setting_asks_for_no_other_setting(text: str) -> None:
    line = read_line(text)
    assert not line.faults
    assert line.asked is not None and line.asked.solve.startswith("hardware.")
    assert line.values["inference.weights"] == "fp8"


@pytest.mark.parametrize("text", ["9" * 400 + " llama 8b", "4090/" * 400])
def test_a_line_without_end_is_refused_at_once(text: str) -> None:
    line = read_line(text)
    assert "too long" in str(line.faults[0])
    assert alternatives(text, None, line) == ()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "llama 8b lora 4090",
            "qlora or nothing",
            "foo vs bar",
            "h100 vs",
            "vs h100",
            "",
            "lora of 8b or full on 2 a100",
        ),
        "vllm qwen1.5-7b, which is 2298.89 tokens/s in your blog. I set the number of input tokens to 1000 and "
        '"min_tokens" to 1000 using a single A100-80GB GPU. I get about 1000 tokens/s, which is far away from 2000.',
    ],
)
def test_a_line_that_compares_nothing_is_left_alone(text: str) -> None:
    assert alternatives(text) == ()


@pytest.mark.parametrize(
    "text", ["can my 3070 run qwen2.5-coder 14b q4 or do i need 7b", "llama 13b q4 or only 8b on 3070"]
)
def test_sizes_of_a_model_have_the_format_that_stands_behind_the_first(text: str) -> None:
    assert [read_line(one.text).values["inference.weights"] for one in alternatives(text)] == ["q4_0", "q4_0"]
