"""The one line that says a plan: words in any order, guesses that are told, and nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.line import PlanFlags, completions, line_of_flags, read_line
from capacity_tui.engine.solve import answer, plan_of_line

LORA_70B = {
    "model.name": "llama-3.1-70b",
    "task": "finetune",
    "training.method": "lora",
    "hardware.name": "h100-sxm-80gb",
    "hardware.devices": 8,
    "training.seq_len": 4096,
    "training.tokens": 50_000_000,
}
WORDS = ("llama-3.1-70b", "lora", "8xh100", "4k", "50M")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (" ".join(WORDS), LORA_70B),
        ("70b lora 8h100 4k 50M", LORA_70B),
        ("meta-llama/Llama-3.1-70B-Instruct lora 8 x H100 seq 4096 50M tokens", LORA_70B),
        ("https://huggingface.co/meta-llama/Llama-3.1-70B lora h100x8 context=4k tokens=50M", LORA_70B),
        ("fine-tune llama 3.1 70b with LoRA on 8 H100s, 4k, 50M", LORA_70B),
        ("qlora 4090", {"task": "finetune", "training.method": "qlora", "hardware.name": "rtx-4090"}),
        (
            "serve qwen2.5-72b 2xh200 batch 16",
            {"task": "infer", "model.name": "qwen2.5-72b", "hardware.name": "h200-sxm", "hardware.devices": 2}
            | {"inference.batch": 16},
        ),
        (
            "vllm llama-3.1-8b awq rtx 4090 prompt 8k output 512",
            {"task": "infer", "model.name": "llama-3.1-8b", "hardware.name": "rtx-4090", "inference.engine": "vllm"}
            | {"inference.weights": "awq-4", "inference.prompt_tokens": 8192, "inference.output_tokens": 512},
        ),
        (
            "train 8x7b 64xh100 2T tokens bf16 megatron tp4 rank=8 global batch 1024",
            {"task": "train", "model.name": "mixtral-8x7b", "hardware.name": "h100-sxm-80gb", "hardware.devices": 64}
            | {"training.tokens": 2 * 10**12, "training.precision": "bf16", "training.framework": "megatron"}
            | {"parallelism.tp": 4, "training.adapter.rank": 8, "training.global_batch": 1024},
        ),
        (
            "fit xgboost-like 1e6 rows 50 features 300 trees",
            {"task": "fit", "model.name": "xgboost_like", "model.spec.n": 10**6, "model.spec.p": 50}
            | {"model.spec.n_estimators": 300},
        ),
        (
            "4 nodes 8xh100 train llama-3.1-8b",
            {"task": "train", "model.name": "llama-3.1-8b", "hardware.name": "h100-sxm-80gb"}
            | {"hardware.devices": 32, "hardware.per_node": 8},
        ),
        (
            "2xp5.48xlarge train llama-3.1-8b",
            {"task": "train", "model.name": "llama-3.1-8b", "hardware.name": "aws-p5-48xlarge", "hardware.devices": 16},
        ),
    ],
)
def test_a_line_says(line: str, said: dict[str, object]) -> None:
    assert dict(read_line(line).values) == said


@given(st.permutations(WORDS))
@settings(max_examples=10, deadline=None)
def test_words_stand_in_any_order(words: list[str]) -> None:
    assert dict(read_line(" ".join(words)).values) == LORA_70B


def test_what_is_guessed_is_told() -> None:
    line = read_line("lama-3.1-70b qlor 8xh100 4k")
    assert (line.values["model.name"], line.values["training.method"]) == ("llama-3.1-70b", "qlora")
    assert (line.values["hardware.name"], line.values["hardware.devices"]) == ("h100-sxm-80gb", 8)
    told = " ".join(line.guesses)
    assert all(word in told for word in ("lama-3.1-70b", "qlor:", "4k"))
    assert not line.faults
    assert "task: serving" in " ".join(read_line("llama-3.1-8b 4090").guesses)
    assert "usual model of that size" in " ".join(read_line("train 7b").guesses)
    assert read_line("acme/Wonder-7B lora").faults  # no stand-in that nobody asked for


def test_a_size_that_no_model_has_becomes_a_transformer_of_that_size() -> None:
    plan = plan_of_line(read_line("train 250b 1024xh100 8k 1T tp 8 zero 1")).plan
    assert plan.model.name == "250b"
    assert answer(plan).estimate.model.parameters == pytest.approx(250e9, rel=1e-3)


@pytest.mark.parametrize(
    "gpu", ["gpu(48GiB,180TFLOPs,900GB/s)", "4x gpu(48 GiB, 180 TFLOPs, 0.9TB/s)", "4 x 48GiB 180TFLOPs 900GB/s"]
)
def test_a_device_of_ones_own_is_typed_right_there(gpu: str) -> None:
    line = read_line(f"serve llama-3.1-8b {gpu}")
    spec = line.values["hardware.spec"]
    assert isinstance(spec, dict)
    assert (spec["memory_mib"], spec["bf16_tflops"], spec["bandwidth_gbs"]) == (48 * 1024, 180.0, 900.0)
    assert "nearest known" in " ".join(line.guesses)
    cluster = answer(plan_of_line(line).plan).resolved.cluster
    assert cluster.device.memory_bytes == 48 * 2**30
    assert "own device" in cluster.device.name
    assert cluster.price.usd_per_hour is None  # nobody sells it


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("llama-3.1-8b train wibblewobble", "wibblewobble"),
        ("serve llama-3.1-8b 2T", "2T"),
        ("llama-3.1-8b qwen2.5-7b train", "given twice"),
        ("train llama-3.1-8b trainig.tokens=5", "training.tokens"),
        ("fit kmeans rank 8", "rank"),
        ("gpu(nonsense) train 7b", "nonsense"),
        ("train 7b " + "x " * 400, "too long"),
    ],
)
def test_what_is_not_understood_is_refused_with_a_remedy(line: str, about: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of_line(read_line(line))
    told = " ".join(fault.one_line() for fault in (caught.value, *caught.value.further))
    assert about in told
    assert caught.value.hint


@given(st.text(max_size=60))
@settings(max_examples=25, deadline=None)
def test_whatever_is_typed_is_read(text: str) -> None:
    line = read_line(text)
    for word in line.words:
        assert text[word.start : word.end] == word.text
    completions(text)


def test_without_a_model_the_largest_that_fits_is_taken() -> None:
    made = plan_of_line(read_line("qlora 4090"))
    size = answer(made.plan).estimate
    assert size.fits
    assert 10e9 < size.model.parameters < 20e9
    told = " ".join(made.assumed)
    assert "largest" in told
    assert "qwen2.5-32b is on the edge" in told


@pytest.mark.parametrize(
    ("line", "engine"),
    [
        ("serve llama-3.1-8b h100", "vllm"),
        ("serve llama-3.1-8b mi300x awq", "vllm"),
        ("serve llama-3.1-8b 4090 q4_k_m", "llamacpp"),
        ("serve llama-3.1-8b m4-max", "llamacpp"),
        ("serve llama-3.1-8b i9-13900k", "llamacpp"),
        ("serve llama-3.1-8b h100 transformers", "transformers"),
        ("serve resnet50 h100", "transformers"),
        ("serve bert-base h100", "transformers"),
    ],
)
def test_serving_without_an_engine_takes_the_usual_one(line: str, engine: str) -> None:
    made = plan_of_line(read_line(line))
    assert made.plan.inference.engine == engine
    told = any(engine in guess for guess in made.assumed)
    assert told == (engine != "transformers")


def test_the_middle_of_a_name_is_completed_where_none_begins_so() -> None:
    assert completions("lora 3.1-70")[0].text == "llama-3.1-70b"


def test_words_are_completed() -> None:
    assert completions("l")[0].text == "lora"
    assert completions("train 8xh1")[0].line == "train 8xh100 "
    assert "qwen2.5-72b" in [entry.text for entry in completions("serve qwen2.5-7 4k", len("serve qwen2.5-7"))]
    assert completions("serve qwen2.5-72 4k", len("serve qwen2.5-72"))[0].line == "serve qwen2.5-72b 4k"
    assert completions("train ") == ()


def test_flags_say_what_the_line_says() -> None:
    flags = PlanFlags("llama-3.1-70b", "lora", "8xH100-SXM", "4096", "50M")
    assert dict(line_of_flags(flags).values) == LORA_70B
    served = line_of_flags(PlanFlags("llama-3.1-8b", "infer", None, "4k", None))
    assert served.values["inference.prompt_tokens"] == 4096
    with pytest.raises(PlanError, match="lora"):
        plan_of_line(line_of_flags(PlanFlags("llama-3.1-8b", "lorra")))


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("run llama-3.1-8b on rtx 4090", "infer"),
        ("chat with llama-3.1-8b on a 4090", "infer"),
        ("host llama-3.1-8b on a 4090", "infer"),
        ("llama-3.1-8b 4090", "infer"),
        ("run biggest model on rtx 4070", "infer"),
        ("llama-3.3-70b-instruct-awq 2xl40s", "infer"),
        ("run lora llama-3.1-8b on a 4090", "finetune"),
        ("llama-3.1-8b 4090 1B", "train"),
        ("llama-3.1-8b 8xh100 megatron", "train"),
        ("deepseek-v3 2048 h800 14.8T 4k fp8", "train"),
        ("resnet50 a100", "train"),
        ("unsloth/Meta-Llama-3.1-8B-bnb-4bit qlora 4090", "finetune"),
    ],
)
def test_the_task_follows_from_the_words(line: str, task: str) -> None:
    found = read_line(line)
    assert (found.task, found.faults) == (task, ())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve gpt-4 8xh100", ("gpt-4",)),
        ("train llama-3.1-8b 8xh10", ("8xh10",)),
        ("train llama-3.1-9b h100", ("llama-3.1-9b",)),
        ("lora wibble h100 wobble", ("wibble", "wobble")),
        ("serve llama-3.1-8b 0xh100", ("0xh100",)),
        ("lora llama-3.1-8b h100 p95", ("p95",)),
        ("serve cerebras-gpt-67b h100", ("cerebras-gpt-67b",)),
        ("train yolov8m-pose h100", ("yolov8m-pose",)),
        ("serve xlm-roberta-xl h100", ("xlm-roberta-xl",)),
    ],
)
def test_nothing_is_guessed_where_digits_differ_or_letters_are_few(line: str, words: tuple[str, ...]) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of_line(read_line(line))
    told = caught.value.one_line()
    assert all(word in told for word in words)


def test_what_a_line_leaves_open_is_data() -> None:
    made = plan_of_line(read_line("serve llama-3.1-8b h100 cheapest"))
    assert {entry.key for entry in made.assumptions} == {"inference.engine"}
    assert any("cheapest" in remark for remark in made.remarks)
    found = answer(made.plan).estimate.assumed
    keys = [entry.key for entry in found]
    assert keys[:3] == ["inference.batch", "inference.prompt_tokens", "inference.output_tokens"]
    assert all(entry.moves for entry in found)
    network = plan_of_line(read_line("resnet50 train a100")).assumptions
    assert [entry.value for entry in network if entry.key == "training.steps"] == [1000]


def test_a_job_without_a_length_says_so_first() -> None:
    plan = edited(plan_of_line(read_line("train llama-3.1-8b 8xh100")).plan, {"training.tokens": None}).plan
    open_job = answer(plan).estimate.assumed
    assert (open_job[0].key, open_job[0].value) == ("training.tokens", None)


def test_memory_that_nobody_knows_is_asked_for() -> None:
    found = answer(plan_of_line(read_line("serve llama-3.2-3b q4_k_m i7-1165g7")).plan).estimate.assumed
    assert (found[0].key, found[0].value) == ("hardware.spec.memory_mib", None)
    assert "16GiB ram" in found[0].why
    told = answer(plan_of_line(read_line("serve llama-3.2-3b q4_k_m i7-1165g7 16GiB ram")).plan).estimate
    assert told.fits


@pytest.mark.parametrize(
    ("line", "solve", "limits", "goal"),
    [
        ("how many h100 for llama-3.1-405b", "hardware.devices", (), ""),
        ("how many h100 to train 7b on 2T tokens in 30 days", "hardware.devices", ("time<=30d",), ""),
        ("how many gpus to train a 7b model", "hardware.name", (), ""),
        ("how many users can 2xl40s serve with llama-3.1-8b", "inference.users", (), ""),
        ("biggest model for rtx 4070", "model.name", (), ""),
        ("longest context llama-3.1-8b on a 4090", "inference.prompt_tokens", (), ""),
        ("max batch size resnet50 2080 ti", "training.micro_batch", (), ""),
        ("cheapest gpu to lora llama-3.1-8b under $20", "hardware.name", ("usd<=20",), "usd"),
        ("serve llama-3.1-8b for 50 users", "hardware.name", (), "cost.usd_per_hour"),
        (
            "serve llama-3.1-8b ttft 500ms $2000 per month",
            "hardware.name",
            ("cost.usd_per_hour<=2.778",),
            "cost.usd_per_hour",
        ),
        ("lora llama-2-13b 100M tokens at $1.19/hr", "hardware.name", ("cost.usd_per_hour<=1.19",), "usd"),
        ("72 hours on 16 a100, how many tokens can I train a 7B on", "training.tokens", ("time<=72h",), ""),
        ("serve llama-2-13b for 100 users, 24GB cards, how many?", "hardware.devices", (), ""),
        ("how big a model can I full fine-tune on 8x80GB", "model.name", (), ""),
        ("16xh100 2 weeks: largest model I can train", "model.name", ("time<=14d",), ""),
        ("lora llama-3.1-8b 50M h100 overnight", "hardware.devices", ("time<=12h",), ""),
    ],
)
def test_a_question_is_one(line: str, solve: str, limits: tuple[str, ...], goal: str) -> None:
    found = read_line(line)
    asked = found.asked
    assert found.faults == ()
    assert asked is not None
    assert (asked.solve, asked.limits, asked.goal) == (solve, limits, goal)


@pytest.mark.parametrize(
    "line", ["llama-3.1-8b 4090", "how long to train gpt2 on 8xa100 300B tokens", "how many tokens/s llama-3.1-8b 4090"]
)
def test_what_a_plan_says_is_no_question(line: str) -> None:
    assert read_line(line).asked is None


@pytest.mark.parametrize(
    ("line", "path", "value"),
    [
        ("train llama-3.1-8b 8xh100 20B tokens within 72h", "limits.seconds", 72 * 3600),
        ("train llama-3.1-405b 4096 h100 15T tokens within 300 days", "limits.seconds", 300 * 86400),
        ("train llama-3.1-8b 8xh100 20B tokens under $5k", "limits.usd", 5000),
        ("lora llama-3.1-8b 1xh100 10M tokens under $3/h", "limits.usd_per_hour", 3),
        ("embed 10M documents with bge-large on l4 within 2 days", "limits.seconds", 48 * 3600),
    ],
)
def test_a_limit_that_no_question_keeps_is_one_of_the_plan(line: str, path: str, value: float) -> None:
    made = plan_of_line(read_line(line))
    assert made.asked is None
    assert made.plan.value(path) == value


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("finetune llama-3.1-8b without qlora 4090", "without qlora"),
        ("llama-3.1-8b vs qwen3-8b on a 4090", "--compare"),
        ("qwen3-8b 3090 or 4090", "A vs B"),
        ("h100 mig 3g.40gb llama-3.1-8b", "gpu(40GiB"),
        ("wavlm-base on a t4", "whisper-large-v3"),
        ("full fine-tune llama-3.1-8b 4bit h100", "qlora"),
        ("pretrain bert-base on 16GB of pictures with 8 v100", "how much data"),
        ("the largest qwen for $2/h", "models --filter qwen"),
        ("train gpt2-small 4k something h100", "4k something"),
        ("llama-3.1-70b q4 3090 128gb", "whose memory"),
        ("nemotron 90b 2xa100", "nemotron"),
    ],
)
def test_what_could_be_two_things_is_asked_back(line: str, about: str) -> None:
    told = " ".join(fault.one_line() for fault in read_line(line).faults)
    assert about in told


def test_unknown_words_can_be_left_out_and_that_is_said() -> None:
    line = read_line("serve llama-3.1-8b wibble h100").without_meaningless()
    assert line.faults == ()
    assert any("wibble" in remark for remark in plan_of_line(line).remarks)


@pytest.mark.parametrize(("line", "prompt"), [("serve bert-base l4", 512), ("serve gpt2-small 4090", 512)])
def test_a_prompt_that_nobody_said_is_one_that_the_model_reads(line: str, prompt: int) -> None:
    made = plan_of_line(read_line(line))
    assert made.plan.inference.prompt_tokens == prompt
    assert any(entry.startswith(f"prompt: {prompt} tokens") for entry in made.assumed)
    assert plan_of_line(read_line(f"{line} 400 tokens")).plan.inference.prompt_tokens == 400


@pytest.mark.parametrize(("options", "prompt"), [("-c 0", 40960 - 512), ("--ctx-size 0 -n 256", 40960 - 256)])
def test_a_context_of_nothing_is_all_of_the_models_as_llamacpp_has_it(options: str, prompt: int) -> None:
    made = plan_of_line(read_line(f"llama-server -m Qwen3-8B-Q8_0.gguf {options} on h100"))
    assert made.plan.inference.prompt_tokens == prompt
    assert any(entry.startswith(f"prompt: {prompt} tokens") for entry in made.assumed)


@pytest.mark.parametrize("line", ["vllm serve qwen3-8b --max-model-len 0 on h100", "ollama qwen3-8b ctx 0 on h100"])
def test_a_context_of_nothing_is_refused_of_others(line: str) -> None:
    with pytest.raises(PlanError, match="not allowed"):
        plan_of_line(read_line(line))


@pytest.mark.parametrize(
    ("line", "engine"), [("llama-3.1-8b gaudi3", "optimum-habana"), ("llama-3.1-8b arc b580", "llamacpp")]
)
def test_a_line_is_served_by_what_is_usual_on_its_devices(line: str, engine: str) -> None:
    assert plan_of_line(read_line(line)).plan.inference.engine == engine


def test_an_encoder_is_asked_for_no_answer_and_what_hears_for_no_prompt():
    made = plan_of_line(read_line("serve bge-large l4 batch 32"))
    answered = answer(made.plan)
    assert "inference.output_tokens" not in [entry.key for entry in answered.estimate.assumed]
    assert "beyond_context" not in [note.code for note in answered.estimate.warnings]
    heard = plan_of_line(read_line("serve whisper large l4")).plan
    assert (heard.inference.prompt_tokens, heard.inference.output_tokens) == (1500, 100)


@pytest.mark.parametrize(
    ("line", "path", "value"),
    [
        ("another titan v llama-3.1-8b", "hardware.devices", 2),
        ("another rtx 4000 ada llama-3.1-8b", "hardware.devices", 2),
        ("lora llama-3.1-8b batch 64 h100 and another h100", "hardware.devices", 2),
        ("llama-3.1-8b lora 8xh100 at $1k/h", "pricing.usd_per_hour", 1000),
        ("llama-3.1-8b lora 8xh100 at $2,50 per gpu hour", "pricing.usd_per_hour", 20),
        ("serve llama-3.1-8b 4090 two dozen users", "inference.users", 24),
    ],
)
def test_devices_prices_and_dozens_are_counted_as_people_do(line: str, path: str, value: float) -> None:
    reading = read_line(line)
    assert not reading.faults
    assert float(str(reading.values[path])) == value


@pytest.mark.parametrize("line", ["llama-3.1-8b lora ² h100 nodes", "llama-3.1-8b lora 3 h100 nodes of ²"])
def test_digits_that_are_no_numbers_are_refused(line: str) -> None:
    assert read_line(line).faults
