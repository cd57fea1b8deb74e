"""What a line asks beside a plan is asked, whatever its words and its place, and changes nothing of the plan."""

from __future__ import annotations

from functools import cache

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line

PLACES = (
    *("{q}? {c}", "{c}, {q}?", "{q} for {c}", "{c} {q}", "{c} - {q}?", "hi all, {c}. {q}? thanks", "{q}: {c}"),
    *("wondering, {q} with {c}?", "{c}; {q} pls", "need to know {q}, {c}", "{c}, and {q}?"),
)
SERVED = (
    "llama-3.1-8b on an h100",
    "qwen2.5-32b awq, 2x 4090",
    "llama 3.1 70b 4xh100, prompts of 6k tokens, ttft under 2s",
)
TRAINED = ("lora llama-3.1-8b 4090", "full finetune qwen2.5-7b 8xh100 bf16 zero3", "qwen2.5-14b lora r=64 2x a100 80gb")
LIMITED = ("full finetune llama-3.1-8b 8xh100 seq 4096 within 24h", "train a 1.3b on 16 a100s within 7 days")
ASKED = (
    (
        "training.seq_len",
        TRAINED,
        "max seq len|max_seq_length|longest sequence i can squeeze in|how long can my sequences be|"
        "how much context can i squeeze in|what seq length fits|how far can i push the seq len|context limit|"
        "max trainable context|how many tokens of context|seqlen max|how long a context|"
        "which sequence length is possible|biggest seqlen before oom",
    ),
    (
        "inference.prompt_tokens",
        SERVED[:2],
        "max ctx|max_model_len|longest prompt|how long a prompt can i feed it|how much context|"
        "how big a context fits|context max|what ctx can i run|how many context tokens|"
        "the most context i can get away with",
    ),
    (
        "training.micro_batch",
        TRAINED,
        "max bs|biggest micro batch i can get away with|highest mbs before oom|what bs can i use|"
        "max per_device_train_batch_size|how high can i push batch size|how many samples per gpu fit|"
        "batch size limit|optimal batch size|how large can the batch be|max micro-batch|"
        "how many sequences per gpu can i fit",
    ),
    (
        "inference.batch",
        SERVED,
        "how many concurrent|how many seqs|max_num_seqs|how many in parallel|how many requests at once|"
        "max concurrent requests|how many streams|concurrency limit|what concurrency can it handle|"
        "how many reqs in flight|max bs|max concurrent users|how many people can use it at once",
    ),
    (
        "inference.users",
        SERVED,
        "how many users|how many ppl|user limit|how many coworkers|max people|"
        "how many devs can share it|number of users it can handle",
    ),
    (
        "inference.request_rate",
        SERVED[2:],
        "max rps|what qps|peak qps|sustainable rps|how many requests a second|how much traffic",
    ),
    (
        "training.adapter.rank",
        TRAINED[:1],
        "max rank|highest lora rank|how high can rank go|largest r|what lora rank fits|rank limit",
    ),
    (
        "inference.gpu_layers",
        ("llama 70b q4_k_m on a 3090",),
        "how many layers on the gpu|what ngl|n_gpu_layers|max gpu layers|how many layers can i offload",
    ),
    ("training.epochs", ("resnet-50 imagenet 8xv100 within 12 hours",), "how many epochs|max epochs|how many passes"),
    (
        "training.samples",
        LIMITED[:1],
        "how many samples|max dataset size|how many rows can i get through|how big a dataset",
    ),
    ("training.tokens", LIMITED, "how many tokens|how much data|how many billion tokens|max tokens"),
    (
        "hardware.devices",
        ("serve deepseek-r1 on h200s for 500 users",),
        "how many gpus|min gpus|how many of them do i need|gpu count|how few gpus can i get away with|"
        "how many will i need|smallest number of cards",
    ),
    (
        "hardware.name",
        ("llama-3.1-70b fp8", "qlora qwen2.5-32b"),
        "how many gb of vram|what do i need|vram|how big a gpu|what hw|gpu requirements|min vram|how many gpus",
    ),
    (
        "",
        (*SERVED, *TRAINED),
        "checkpoint size and mem per gpu|how fast|price|total $|$/day|what's the bill|how much memory does it use",
    ),
    ("", TRAINED, "days or weeks|eta|hrs|how many hours|s/it|gpu-hours|how long per epoch|how long will it take"),
    ("", SERVED[:2], "how many tok/s|what latency|$/M tokens|inter-token latency|cost per 1M tokens"),
)
LINES = [
    (field, carriers[number % len(carriers)], PLACES[number % len(PLACES)], words)
    for field, carriers, phrases in ASKED
    for number, words in enumerate(phrases.split("|"))
]
before = cache(read_line)  # a plan without the question


@pytest.mark.parametrize(("field", "carrier", "place", "words"), LINES, ids=[f"{row[3]}-{row[0]}" for row in LINES])
def test_a_question_is_asked_and_leaves_the_plan_as_it_is(field: str, carrier: str, place: str, words: str) -> None:
    line, plan = read_line(place.format(q=words, c=carrier)), before(carrier)
    assert not line.faults
    assert dict(line.values) == dict(plan.values)
    assert ("" if line.asked is None else line.asked.solve) == field
    limits = plan.limits if plan.asked is None else plan.asked.limits
    assert (line.limits if line.asked is None else line.asked.limits) == limits


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("max seq length for lora on gemma-3-12b 8bit, H100 80GB? my samples avg 28k tokens", "training.seq_len", None),
        ("mixtral 8x7b 2 h100 16000 in 200 out, how many concurrent with TTFT under 5s", "inference.batch", 16000),
        ("llama-3.1-8b h100 128k context how many seqs", "inference.batch", 131072),
        ("llama 8b h100 8k context, 16 users, max batch size?", "inference.batch", 8192),
    ],
)
def test_numbers_of_the_same_kind_are_no_answer(text: str, field: str, value: int | None) -> None:
    line = read_line(text)
    assert not line.faults
    assert line.asked is not None and line.asked.solve == field
    assert value is None or line.values["inference.prompt_tokens"] == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("llama 8b h100, max context and max users?", "max users"),
        ("llama 8b h100, max batch and context?", "context"),
        ("serve mistral 7b on a single l40s - how many can it take", "how many can"),
        ("which GPU for qlora llama 3 70b, I only have a 3090", "which GPU"),
        ("OOM with 2 GPUs llama 3 70b awq 3090, min number of gpus?", "min number of gpus"),
    ],
)
def test_of_two_questions_the_other_is_said(text: str, words: str) -> None:
    line = read_line(text)
    assert not line.faults
    assert any(remark.startswith("not answered") and words in remark for remark in line.remarks)


@pytest.mark.parametrize(
    "text",
    [
        "llama 8b h100 max context 8k",
        "llama 8b h100 context limit 8k",
        "llama 8b h100 max 16 users",
        "llama 8b 4090, is it enough for long context?",
        "what speed can users expect, llama 8b 4090",
        "lora llama 8b 4090 max seq 2048 max batch 4",
        "how long does a 2k prompt take, llama 8b 4090",
    ],
)
def test_words_that_have_their_number_ask_nothing(text: str) -> None:
    line = read_line(text)
    assert not line.faults
    assert line.asked is None


@pytest.mark.parametrize("words", ["largest {} on {}", "how big a {} fits {}", "{} on {}, which model size?"])
@pytest.mark.parametrize("hardware", ["2x 3090", "an h100"])
@pytest.mark.parametrize(
    ("family", "first"), [("llama", "llama-3.1-405b"), ("gemma", "gemma-4-31b"), ("gpt", "gpt3-175b")]
)
def test_the_largest_of_a_family_is_looked_for_among_its_models(
    words: str, hardware: str, family: str, first: str
) -> None:
    line = read_line(words.format(family, hardware))
    assert not line.faults
    assert line.asked is not None and line.asked.solve == "model.name"
    assert line.asked.models[0] == first
    assert all(name.startswith(family) for name in line.asked.models)


def test_a_family_with_a_number_has_no_models_of_another_and_none_for_another_thing_than_text() -> None:
    asked = read_line("largest qwen3 i can lora on a 3090").asked
    assert asked is not None and "qwen3-14b" in asked.models
    assert not any("vl" in name or "3.5" in name or "embedding" in name for name in asked.models)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("largest deepseek r1 distill on a 4090", "deepseek-r1-distill-llama-70b", "deepseek-r1-distill-qwen-1.5b"),
        ("best embedding model under 1b on a t4", "qwen3-embedding-0.6b", "minilm-l6"),
        ("best moe model under 40b on 2x3090", "qwen3.5-35b-a3b", ""),
        ("best vision model under 10b on a 3090", "glm-4.1v-9b", ""),
        ("best llm for coding under 30 billion parameters on a 4090", "qwen3-coder-reap-25b-a3b", ""),
        ("largest mistral up to 30b on 2x3090", "mistral-small-3.1-24b", ""),
        ("best qwen3 moe for 2x3090", "qwen3-coder-480b-a35b", ""),
        ("best model <8b for a 3060", "qwen2.5-7b", "gpt2-small"),
        ("llm under 8b, 4060", "qwen2.5-7b", "gpt2-small"),
        ("best model with less than 8b parameters on a 3060", "qwen2.5-7b", "gpt2-small"),
        ("best llm between 7b and 14b on a 4070", "qwen2.5-14b", "mistral-7b-v0.3"),
        ("best model over 100b on 8x h100", "llama-3.1-405b", ""),
    ],
)
def test_a_model_is_looked_for_among_those_of_its_kind_family_and_size(text: str, first: str, last: str) -> None:
    line = read_line(text)
    assert not line.faults
    assert line.asked is not None and line.asked.solve == "model.name"
    assert line.asked.models[0] == first
    assert line.asked.models[-1] == last or not last


@pytest.mark.parametrize("text", ["fastest llm under 4b, 3060", "smallest model on a 4060", "cheapest model under 8b"])
def test_the_smallest_of_all_models_is_refused_with_what_to_say(text: str) -> None:
    assert any("of several models is no plan" in fault.title for fault in read_line(text).faults)


@pytest.mark.parametrize("text", ["smallest llm", "lightest llm", "tiniest model"])
def test_a_word_for_the_smallest_that_is_refused_is_no_unknown_one(text: str) -> None:
    assert len(read_line(text).faults) == 1


def test_the_smallest_of_a_family_is_named() -> None:
    assert read_line("smallest llama on a 4060").values["model.name"] == "llama-3.2-1b"


def test_hardware_for_models_up_to_a_size_is_for_the_largest_of_them() -> None:
    line = read_line("what gpu do i need for models under 70b")
    assert line.values["model.name"] == "llama-3.1-70b"
    assert any("under 70b: planned for the largest" in entry.why for entry in line.assumptions)


@pytest.mark.parametrize("text", ["chatbot for 300 employees, what hardware", "private chatgpt for 40 lawyers, $15k"])
def test_where_hardware_is_asked_a_model_that_nobody_names_is_a_usual_one_whatever_this_machine_is(text: str) -> None:
    made = plan_of_line(read_line(text))
    assert made.plan.model.name == "llama-3.1-8b"
    assert any(why.startswith("llama-3.1-8b, a usual model") for why in made.assumed)


def others_than(*left: str) -> tuple[str, ...]:
    """Return all providers of the catalogue but some."""
    return tuple(sorted({row.provider for row in load_catalog().instances.values()} - {*left}))


@pytest.mark.parametrize(
    ("text", "clouds"),
    [
        ("cheapest gpu for llama 70b, no aws, gcp ok", ("GCP",)),
        ("cheapest gpu for llama 70b not aws but azure", ("Azure",)),
        ("cheapest gpu for llama 70b, nothing beats runpod", ("RunPod",)),
        ("cheapest gpu for llama 70b, dont know if aws or gcp", ("AWS", "GCP")),
        ("llama 3.3 70b for 30 users, which aws instance should i order", ("AWS",)),
        ("cheapest gcp or azure box for qwen2.5-32b fp8, 10 users", ("GCP", "Azure")),
        ("llama 8b chat for 50 users, moving away from aws, cheapest machine", others_than("AWS")),
        ("llama 8b chat for 50 users, cheapest machine, not on azure", others_than("Azure")),
        ("cheapest machine for llama 70b on any cloud but aws", others_than("AWS")),
        ("not on aws: cheapest box for a 7b chatbot with 30 users", others_than("AWS")),
        ("cheapest box for llama 8b, 10 users, no aws or gcp", others_than("AWS", "GCP")),
        ("cheapest box for llama 8b, 10 users, except aws, azure and gcp", others_than("AWS", "Azure", "GCP")),
        ("cheapest box on gcp for llama 8b, 10 users, not aws", ("GCP",)),
        ("cheapest box for llama 8b 10 users, i don't want aws", others_than("AWS")),
        ("moving off aws to gcp, cheapest box for llama 8b, 10 users", ("GCP",)),
    ],
)
def test_machines_of_the_provider_that_a_line_names_are_asked_for(text: str, clouds: tuple[str, ...]) -> None:
    line = read_line(text)
    assert not line.faults
    assert line.asked is not None and line.asked.solve == "hardware.name"
    assert sorted(line.asked.clouds) == sorted(clouds)


def test_images_of_a_vision_transformer_have_the_size_that_a_line_says() -> None:
    made = plan_of_line(read_line("finetune vit-l-16 200k images 384x384 2x 4090"))
    assert made.plan.model.spec == {"image_size": 384}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("how much vram for full fine-tuning llama 7b", "memory: 155"),
        ("how much gpu memory to fine tune llama-7b", "memory: full 155"),
        ("how much ram does llama 8b need at q4", "GiB, on one device with room for all"),
        ("llama 3.3 70b at 8-bit with 128k context for 5 people, how much vram", "all 5 users at once"),
        ("vram needed for qlora 70b, batch 2", "with checkpointing), on one device with room for all, batch 2"),
    ],
)
def test_a_question_for_memory_is_answered_with_that_of_what_the_line_says(text: str, words: str) -> None:
    assert words in plan_of_line(read_line(text)).remarks[0]


def test_memory_of_a_line_that_says_no_method_is_told_of_each() -> None:
    remark = plan_of_line(read_line("how much vram to fine tune llama 3.1 8b")).remarks[0]
    assert all(method in remark for method in ("full", "lora", "qlora"))


@pytest.mark.parametrize("text", ["biggest model for 24gb vram", "llama 8b on 24gb vram", "which gpu for llama 8b"])
def test_other_lines_are_told_no_memory(text: str) -> None:
    assert not any(remark.startswith("memory: ") for remark in plan_of_line(read_line(text)).remarks)


@pytest.mark.parametrize(
    ("text", "asked", "engine"),
    [
        ("llama.cpp llama-3.1-70b q4 ryzen 7950x 128gb + 3090", "inference.gpu_layers", "llama.cpp"),
        ("gpt-oss-120b 4090 + 64gb ddr5", "inference.host_expert_layers", "llamacpp"),
        ("ollama llama-3.1-8b q4 4090 64gb ram", "", "ollama"),  # all of it has room
        ("vllm llama-3.1-70b 4090 64gb ram", "", "vllm"),  # which keeps no layers there
        ("llama.cpp llama-3.1-70b q4 3090 64gb ram, gpu layers 40", "", "llama.cpp"),
        ("llama.cpp llama-3.1-70b q4 3090", "", "llama.cpp"),
    ],
)
def test_a_host_whose_memory_is_named_takes_the_layers_that_a_card_has_no_room_for(text, asked, engine):
    made = plan_of_line(read_line(text))
    assert ("" if made.asked is None else made.asked.solve) == asked
    assert made.plan.inference.engine == engine


@pytest.mark.parametrize("text", ["epyc 7742 and one 3090", "one 3090, epyc 7742"])
def test_a_processor_beside_a_card_is_named_as_that_of_the_host_wherever_it_stands(text):
    assert read_line(f"llama-3.1-8b {text}").values["hardware.host"].startswith("epyc-7")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("serve llama-3.1-70b 24/7 monthly cost 4xh100 at $2/gpu/h", "monthly: 720 h at $8.00 an hour are $5 760.00"),
        ("llama-3.1-8b a100 at $1.5/h for 3 months, cost", "3 months: 2 160 h at $1.50 an hour are $3 240.00"),
        (
            "running llama-3.1-8b on an l4 at $0.5/h 10h/day, price per month?",
            "per month of 10 h a day: 300 h at $0.50 an hour are $150.00",
        ),
        (
            "serve llama-3.1-70b 8xh100 at $2 each, or buy for 250k over 3 years",
            "3 years: 26 280 h at $16.00 an hour are $420 480.00",
        ),
        ("serve llama-3.1-8b l4 at $1/h 24/7, how much does it cost", "a month: 720 h at $1.00 an hour are $720.00"),
        ("serve llama-3.1-8b l4 at $1/h daily cost", "daily: 24 h at $1.00 an hour are $24.00"),
        ("serve llama-3.1-8b l4 at $1/h, cost for the weekend", "weekend: 48 h at $1.00 an hour are $48.00"),
        ("serve llama-3.1-8b l4 at $1/h cost for 100 hours", "100 hours: 100 h at $1.00 an hour are $100.00"),
        (
            "serve llama-3.1-8b l4 at $1/h cost for 2 weeks 8h/day",
            "2 weeks of 8 h a day: 112 h at $1.00 an hour are $112.00",
        ),
        (
            "serve llama-3.1-8b l4 at $1/h 100 hours a month, cost",
            "a month of 3.33 h a day: 100 h at $1.00 an hour are $100.00",
        ),
        (
            "serve llama-3.1-8b l4 at $1/h 8 hours a day 5 days a week, weekly bill",
            "weekly of 5.71 h a day: 40 h at $1.00 an hour are $40.00",
        ),
        (
            "serve llama-3.1-8b l4 at $1/h 9 to 5, cost per week",
            "per week of 5.71 h a day: 40 h at $1.00 an hour are $40.00",
        ),
        (
            "serve llama-3.1-8b l4 at $1/h business hours, weekly cost",
            "weekly of 5.71 h a day: 40 h at $1.00 an hour are $40.00",
        ),
        ("llama-3.1-8b auf l4 at $1/h, kosten pro Monat", "pro Monat: 720 h at $1.00 an hour are $720.00"),
        ("llama-3.1-8b l4 at $1/h coût par mois", "par mois: 720 h at $1.00 an hour are $720.00"),
        ("llama-3.1-8b l4 at $1/h coste al mes", "al mes: 720 h at $1.00 an hour are $720.00"),
        ("llama-3.1-8b l4 at $1/h 每月成本", "每月: 720 h at $1.00 an hour are $720.00"),
        ("serve llama-3.1-8b on an l4 24/7", ""),
        ("serve llama-3.1-8b 4090 at $1/h monthly cost", "monthly: 720 h at $1.00 an hour are $720.00"),
        ("serve llama-3.1-8b on my own 4090, monthly cost", "monthly: 720 h at $0.00 an hour are $0.00"),
        ("serve llama-3.1-8b on an l4, 1M requests per month", ""),
        ("lora llama-3.1-8b 4090 within 8 hours", ""),
        ("serve llama-3.1-8b, $500 a month", ""),
    ],
)
def test_what_is_served_has_a_bill_of_the_span_that_a_line_names(text, words):
    bills = [remark for remark in plan_of_line(read_line(text)).remarks if " h at " in remark]
    assert bills == ([words] if words else [])


def test_a_job_that_runs_some_hours_of_each_day_takes_more_days():
    line = read_line("resnet50 imagenet 90 epochs 3090 10 hours a day, how many days")
    assert not line.limits and line.asked is None
    (days,) = [remark for remark in plan_of_line(line).remarks if "h a day" in remark]
    whole = plan_of_line(read_line("resnet50 imagenet 90 epochs 3090 5 hours a day, how many days"))
    (twice,) = [remark for remark in whole.remarks if "h a day" in remark]
    counts = [float(words.split(": ")[1].split()[0]) for words in (days, twice)]
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.03)
