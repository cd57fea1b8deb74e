"""Hardware, its memory, prices, times and speeds, in the words of people, at any place of a line."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from capacity_tui.engine.catalog import key_of, load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.machine import detect
from capacity_tui.engine.plan.line import read_line, vocabulary
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.need import question_of_line

DEVICES, NODE, HOST = "hardware.devices", "hardware.per_node", "hardware.spec.host_memory_gib"
PRICE, ENERGY, COMMITMENT, SPEED = "pricing.usd_per_hour", "pricing.usd_per_kwh", "pricing.commitment", "training.mfu"
A100, A100_40, H100 = "a100-sxm-80gb", "a100-sxm-40gb", "h100-sxm-80gb"
CARRIERS = (
    "llama-3.1-70b lora {} 50M tokens",
    "{} vllm llama-3.3-70b fp8 batch 16 prompt 2k",
    "train 7b on {}, 10B tokens",
)
HARDWARE = {
    "just 2 of my 8 a100-80s": (A100, 2, None),
    "all 8 of our h100s": (H100, 8, None),
    "a pair of used 3090s": ("rtx-3090", 2, None),
    "2 3090 Ti's": ("rtx-3090-ti", 2, None),
    "8x a100 (8x40G)": (A100_40, 8, None),
    "A6000 (4x)": ("rtx-a6000", 4, None),
    "96 DGX A100 (8x40G)": (A100_40, 768, 8),
    "three A100 nodes (8x80GB)": (A100, 24, 8),
    "2x DGX-A100": (A100, 16, 8),
    "GB200-NVL72": ("gb200", 72, 72),
    "2 h100 boxes": (H100, 16, 8),
    "2 boxes of 8 h100": (H100, 16, 8),
    "64 h100s, 8 per node": (H100, 64, 8),
    "64 h100 in nodes of 8": (H100, 64, 8),
    "32 h100 across 4 nodes": (H100, 32, 8),
    "h100 80gb pcie": ("h100-pcie-80gb", None, None),
    "rtx 4060 mobile": ("rtx-4060-laptop", None, None),
}
MORE = {
    "1.2T ram": {HOST: 153.6},
    "744G CPU memory": {HOST: 93},
    "64 gb of regular ram": {HOST: 8},
    "host memory is 1TB": {HOST: 128},
    "128 G of RAM": {HOST: 16},
    "64gbs of ram": {HOST: 8},
    "the box is $18.40/hr": {PRICE: 18.4},
    "at $20/h": {PRICE: 20},
    "at $2/h": {PRICE: 16},
    "for $16/h": {PRICE: 16},
    "$20/hr for the node": {PRICE: 20},
    "$20 hourly": {PRICE: 20},
    "costs $480/day": {PRICE: 20},
    "€2 per gpu hour": {PRICE: 18.784},
    "$2/h100/hr": {PRICE: 16},
    **{f"{price} an hour": {PRICE: 19.92} for price in ("at 2.49", "@2.49", "2.49 each")},
    "for 16/h": {PRICE: 16},
    "under 21.6k a month": {"cost.usd_per_hour": "30"},
    "max 30/h": {"cost.usd_per_hour": "30"},
    "spot at $14.2/h": {PRICE: 14.2, "pricing.spot": True},
    "preemptible": {"pricing.spot": True},
    "0.31 eur/kwh": {ENERGY: 0.36},
    "30 cents a kWh": {ENERGY: 0.3},
    "1yr reserved": {COMMITMENT: "1y"},
    "reserved for 3 years": {COMMITMENT: "3y"},
    "36 month commitment": {COMMITMENT: "3y"},
    **{f"{limit} $30/h": {"cost.usd_per_hour": "30"} for limit in ("under", "budget of", "not over", "up to", "<")},
    "$30/h at most": {"cost.usd_per_hour": "30"},
}
OF_TRAINING = {
    "assume 45% utilization": {SPEED: 0.45},
    "38pct mfu": {SPEED: 0.38},
    "45% of peak": {SPEED: 0.45},
    "gives 296 TFLOPs": {SPEED: 0.2992},
    "at 400 TFLOPS per gpu": {SPEED: 0.4043},
    "overnite": {"time": "12h"},
    "inside a week": {"time": "7d"},
    "3-day deadline": {"time": "3d"},
    "budget=$2000": {"usd": "2000"},
    "budget 2000": {"usd": "2000"},
    "5000 gpu-hrs": {"time": "625h"},
    "at most 200 GPU-days": {"time": "600h"},
    "600 node hours": {"time": "600h"},
    "on a $2000 budget": {"usd": "2000"},
}
LEFT_OUT = {
    "before the end of march": "march",
    "3 jobs a day": "3 jobs/day",
    "20 trials": "runs 20: left out",
    "power limit 6 kW": "6kw",
    "Dell XE9680": "Dell XE9680",
}
OF_OTHERS = (
    *("the desktop takes 3 GB", "6 GB is already used", "4gb for each process", "4 GB per worker"),
    *("each user gets 2 GB", "each user gets 20 GB", "swap 32 gb", "30 GB per day", "the psu is 850W", "shm 8gb"),
    *("i only get 12 tok/s", "currently 30 t/s", "it took 6 hours", "port 8000"),
    *(
        "peak memory was 20 GB",
        "a license costs 500 a year",
        "the gpu has 83 C",
        "ssd does 7 GB/s",
        "4 GB of 8 GB in use",
    ),
)
REFUSED = ("90% gpu util",)
PLACES = ("{1} {0}", "{1}, {0}", "{0} {1}")


def plain(values: dict[str, object]) -> dict[str, str]:
    """Values as they are compared: numbers to three digits."""
    numbers = {path: value for path, value in values.items() if str(value).replace(".", "", 1).isdecimal()}
    return {path: str(value) for path, value in values.items()} | {
        path: f"{float(str(value)):.3g}" for path, value in numbers.items()
    }


@cache
def sayings(text: str) -> dict[str, str]:
    """What a line says: values of its plan, and limits."""
    line = read_line(text)
    assert not line.faults, text
    limits = line.limits or (line.asked.limits if line.asked else ())
    return plain(
        {**{str(path): value for path, value in line.values.items()}, **dict(limit.split("<=") for limit in limits)}
    )


@pytest.mark.parametrize("words", HARDWARE)
def test_hardware_is_read_wherever_it_stands(words: str) -> None:
    for carrier in CARRIERS:
        name, devices, node = HARDWARE[words]
        others = {path: value for path, value in sayings(carrier.format("8xh100")).items() if "hardware" not in path}
        counts = {DEVICES: devices, NODE: node}
        wanted = others | plain({"hardware.name": name, **{path: count for path, count in counts.items() if count}})
        assert sayings(carrier.format(words)) == wanted, carrier


@pytest.mark.parametrize("words", [*MORE, *OF_TRAINING])
def test_words_of_hardware_add_what_they_say_and_nothing_else(words: str) -> None:
    lines = (*CARRIERS[::2], *CARRIERS[1 : 2 * (words in MORE)])
    for text in (carrier.format("8xh100") for carrier in lines):
        for place in PLACES:
            line = place.format(text, words)
            assert sayings(line) == sayings(text) | plain({**MORE, **OF_TRAINING}[words]), line


@pytest.mark.parametrize("words", LEFT_OUT)
def test_what_no_plan_has_is_said_as_left_out_wherever_it_stands(words: str) -> None:
    for text in (carrier.format("8xh100") for carrier in CARRIERS[::2]):
        for place in PLACES:
            line = place.format(text, words)
            assert sayings(line) == sayings(text), line
            assert any(LEFT_OUT[words] in remark for remark in read_line(line).remarks), line


@pytest.mark.parametrize("words", REFUSED)
def test_what_no_plan_has_is_refused_wherever_it_stands(words: str) -> None:
    for place in PLACES:
        assert read_line(place.format(CARRIERS[0].format("8xh100"), words)).faults


def test_what_so_much_an_hour_is_of_is_said() -> None:
    def price(text: str) -> str:
        return next(entry.why for entry in read_line(text).assumptions if entry.key == PRICE)

    assert "for all 8 devices" in price("llama-3.1-8b lora 8xh100 at $20/h")
    assert "for each device" in price("llama-3.1-8b lora 8xh100 at $2/h")
    assert "for each machine" in price("llama-3.1-8b lora 2 nodes of 8 h100 at $20/h")


@pytest.mark.parametrize("words", OF_OTHERS)
def test_figures_of_something_else_are_left_out_and_never_those_of_a_device(words: str) -> None:
    for text in ("serve llama-3.1-8b rtx 4090", "llama-3.1-8b lora 4k a6000"):
        for place in PLACES:
            line = place.format(text, words)
            assert sayings(line) == sayings(text), line
            number = next(word for word in words.split() if word[:1].isdigit())
            assert any("left out" in said and number in said for said in read_line(line).guesses), line


@pytest.mark.parametrize("words", ["can i get 12 tok/s", "i want to get 12 tok/s", "12 tok/s for each user"])
def test_a_speed_that_is_wished_for_is_a_limit(words: str) -> None:
    assert sayings(f"serve llama-3.1-8b rtx 4090, {words}")["inference.tpot_seconds"] == "0.08333s"


@pytest.mark.parametrize("words", ["it shows 20 GB", "96gb", "the dataset has 18 GB"])
def test_a_memory_that_a_card_is_not_sold_with_is_asked_for_unless_it_stands_beside_its_name(words: str) -> None:
    assert [fault.title for fault in read_line(f"serve llama-3.1-8b a6000, batch 8, {words}").faults]
    for beside in ("modded 4090 with 48gb", "48gb 4090", "4090, 48 GB vram"):
        assert sayings(f"serve llama-3.1-8b {beside}")["hardware.spec.memory_mib"] == "4.92e+04"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("llama-3.1-8b on an i7-1365u, 1 core", "1 of 10 cores (2 fast, 8 slow)"),
        ("llama-3.1-8b q4 on i9-14999k", "of 24 cores (8 fast, 16 slow)"),
        ("qwen2.5-1.5b with 1 core", "1 core: taken for"),
    ],
)
def test_cores_are_counted_in_words_and_all_of_them(text, words):
    line = read_line(text)
    assert any(words in str(entry) for entry in (*line.faults, *(assumed.why for assumed in line.assumptions)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wan2.1-T2V-14B on a 4090", "makes films"),
        ("HunyuanVideo-I2V on an h100", "makes films"),
        ("CogVideoX-5b lora on a 4090", "makes films"),
        ("LTX-Video on a 3090", "makes films"),
        ("sam-vit-h on a 4090", "pads its images"),
        ("rt-detr-l on a t4", "samples what it attends to"),
        ("step-3 on 8 h100", "narrower layer"),
        ("depth-anything-small-hf on a t4", "how far things are"),
        ("resnest50 on a t4", "no network of this catalogue"),
        ("llama-2-7b on 8 gaudi 1", "no published peak"),
    ],
)
def test_a_release_of_what_cannot_be_planned_says_why(text, words):
    assert any(words in str(fault) and "not known here" not in str(fault) for fault in read_line(text).faults)


@pytest.mark.parametrize("text", ["llama 8b lora on g5", "2x g5 llama 70b q4", "llama 8b q4 on c5"])
def test_a_family_of_machines_says_which_of_its_sizes_is_planned_for(text: str) -> None:
    assert any("sizes (or name another)" in entry.why for entry in read_line(text).assumptions)


def test_no_refused_name_is_how_a_model_that_can_be_planned_begins() -> None:
    """``vits`` is also ViT-S; those left are refused only where the longer name is not written."""
    catalog, refused = load_catalog(), vocabulary().refused
    beginnings = {
        key_of("-".join(pieces[:count]))
        for name in (*catalog.architectures, *catalog.networks)
        for pieces in [name.split("-")]
        for count in range(1, len(pieces) + 1)
    }
    assert {key for key in beginnings if key in refused} <= {"clip", "paddleocr", "cerebras"}


def test_the_smallest_gpu_is_one_with_the_least_memory() -> None:
    made = plan_of_line(read_line("what is the smallest gpu for qlora llama 3 8b"))
    assert made.asked is not None
    question = question_of_line(made.plan, made.asked, load_catalog())
    assert (question.devices, question.goal and question.goal.figure) == ((1,), "memory.capacity_bytes")


@pytest.mark.parametrize(
    "text", ["xgboost 1M rows 30 cols gpu_hist", "lightgbm 5M rows 50 cols gpu", "xgboost cuda 1M x 9"]
)
def test_an_algorithm_on_a_gpu_asks_which_where_this_machine_has_none(text: str) -> None:
    bare = replace(detect(), accelerators=())
    with pytest.raises(PlanError, match="which gpu"):
        plan_of_line(read_line(text), bare)
    assert plan_of_line(read_line(f"{text} 3090"), bare).plan.hardware.name == "rtx-3090"
