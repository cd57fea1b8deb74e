"""``audit``: what a configuration will do, what contradicts itself, what is wasted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capacity_tui.tui.cli import main

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def of(text: str, *arguments: str, name: str = "file.yaml") -> tuple[int, dict[str, Any]]:
        (tmp_path / name).write_text(text)
        code = main(["audit", str(tmp_path / name), *arguments, "--format", "json"])
        return code, json.loads(capsys.readouterr().out)

    return of


def test_an_audit_tells_where_every_setting_comes_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["audit", str(SAMPLES / "training_args.yaml"), "--gpu", "8xh100-sxm", "--seq", "4096"]) == 0
    told = capsys.readouterr().out
    assert "training_args.yaml:3: per_device_train_batch_size 4" in told
    assert "mistral-7b-v0.1, train, 8 x h100-sxm-80gb: fits" in told
    assert "backward peak" in told
    assert "Contradicts itself: nothing" in told
    assert "Unnecessary offload" in told
    assert "Unused memory" in told


def test_an_audit_without_a_model_assumes_no_sequence_of_it(audited) -> None:
    _, told = audited('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}', "--gpu", "8xh100-sxm")
    assert (told["verdict"], told["guessed"]) == (None, [])


@pytest.mark.parametrize(("option", "is_open"), [("use_badam: true\n", True), ("", False)])
def test_a_verdict_says_what_it_may_rest_on(tmp_path: Path, capsys, option: str, is_open: bool) -> None:
    (tmp_path / "a.yaml").write_text(
        f"model_name_or_path: Qwen/Qwen2.5-72B\nstage: sft\nfinetuning_type: full\n{option}"
    )
    assert main(["audit", str(tmp_path / "a.yaml"), "--gpu", "h100-sxm"]) == 1
    assert ("may turn this verdict" in capsys.readouterr().out) == is_open


def test_what_is_counted_as_something_else_is_no_assumption(audited) -> None:
    options = "base_model: Qwen/Qwen2.5-7B\nadapter: lora\nlora_target_modules: [q_proj, o_proj]\n"
    _, told = audited(options, "--gpu", "8xh100-sxm")
    assert not [guess for guess in told["guessed"] if "counted as" in guess]
    assert "counted as attention" in told["not_modelled"][0]["why"]


def test_an_audit_tells_what_is_taken_for_granted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Adapters stand beside every expert where these are modules, which a verdict that stands alone would hide."""
    (tmp_path / "a.yaml").write_text(
        "model_name_or_path: Qwen/Qwen3-30B-A3B\nstage: sft\ndo_train: true\nfinetuning_type: lora\ncutoff_len: 512\n"
    )
    main(["audit", str(tmp_path / "a.yaml"), "--gpu", "8xh100-sxm"])
    assert "Also assumed: " in capsys.readouterr().out


def test_ignored_options_are_counted_and_named_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", str(SAMPLES / "run_clm.sh"), "--gpu", "4xl4"]
    main(arguments)
    assert "Without a part in an estimate: 1 options (--ignored names them)" in capsys.readouterr().out
    main([*arguments, "--ignored"])
    assert "--output_dir" in capsys.readouterr().out


def test_what_does_not_fit_is_told_with_the_moment(audited) -> None:
    code, told = audited("base_model: meta-llama/Llama-3.1-70B\nmicro_batch_size: 8\n", "--gpu", "rtx-4090")
    assert (code, told["fits"]) == (1, False)
    short = {each["moment"]: each["short_bytes"] for each in told["moments"]}
    assert short["load"] > 0
    assert told["result"]["recommendations"]


def test_stable_keys(audited) -> None:
    code, told = audited("per_device_train_batch_size: 2\nmax_step: 5\n", "--gpu", "h100", "--model", "gpt2-small")
    assert code == 0
    assert set(told) == {
        "files", "plan", "settings", "fits", "verdict", "moments", "contradictions", "wasted", "not_modelled",
        "unknown", "ignored", "guessed", "not_understood", "result",
    }  # fmt: skip
    [micro] = [each for each in told["settings"] if each["field"] == "training.micro_batch"]
    assert (micro["value"], micro["from"], micro["line"]) == (2, "said", 1)
    assert micro["key"] == "per_device_train_batch_size"
    assert [(each["line"], each["nearest"]) for each in told["unknown"]] == [(2, "max_steps")]


@pytest.mark.parametrize(
    ("text", "arguments", "rule"),
    [
        ('{"zero_optimization": {"stage": 3}, "pipeline": {"stages": 2}}', (), "sharding_with_stages"),
        ('{"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}', (), "offload_without_sharding"),
        ("per_device_train_batch_size: 1\ngradient_checkpointing_kwargs: {use_reentrant: true}\n", (),
         "recomputation_off"),
        ("per_device_train_batch_size: 1\nbf16: true\nfp16: true\n", (), "given_twice"),
        ("vllm serve gpt2 --max-num-seqs 512 --max-num-batched-tokens 256", (), "tokens_below_requests"),
        ("vllm serve gpt2 --max-model-len 8192", (), "beyond_context"),
        ("vllm serve gpt2 -tp 8", (), "cannot_run"),
        ("base_model: gpt2\nlora_r: 8\n", (), "adapter_without_method"),
        ("--num-layers 12 --hidden-size 100 --num-attention-heads 12 --micro-batch-size 1 --vocab-size 1000", (),
         "heads_of_width"),
        ("--num-layers 12 --hidden-size 768 --num-attention-heads 12 --micro-batch-size 1 --vocab-size 1000 "
         "--seq-length 4096 --max-position-embeddings 2048", (), "beyond_positions"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_told(audited, text: str, arguments: tuple[str, ...], rule: str) -> None:
    model = () if "num-layers" in text else ("--model", "gpt2-small")
    _, told = audited(text, "--gpu", "8xh100-sxm", *model, *arguments)
    assert rule in [each["rule"] for each in told["contradictions"]]


def test_devices_that_are_left_idle_are_wasted(audited) -> None:
    _, told = audited("vllm serve gpt2 -tp 2", "--gpu", "8xh100-sxm")
    assert [each["code"] for each in told["wasted"]][:1] == ["idle_devices"]


def test_long_numbers_and_a_bubble_are_wasted(audited) -> None:
    text = (
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
        "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 4 --vocab-size 512 "
        "--pipeline-model-parallel-size 4\n"
    )
    _, told = audited(text, "--gpu", "h100-sxm")
    codes = [each["code"] for each in told["wasted"]]
    assert "bubble" in codes
    assert "mixed_precision" in codes


def test_what_is_missing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("base_model: gpt2\nmicro_batch_size: 1\n")
    assert main(["audit", str(tmp_path / "a.yaml")]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "--gpu" in told.err


def test_files_that_name_no_model_are_read_without_a_verdict(audited) -> None:
    code, found = audited(
        '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4}', "--gpu", "8xh100-sxm"
    )
    assert code == 0
    assert (found["fits"], found["verdict"], found["result"]) == (None, None, None)
    assert found["plan"]["parallelism"]["zero"] == 2
    assert found["plan"]["training"]["micro_batch"] == 4


def test_what_lies_outside_the_section_of_a_tool_is_named(audited) -> None:
    text = "project: mine\nsampling: {top_k: 5}\ntraining_args: {output_dir: out, per_device_train_batch_size: 2}\n"
    _, found = audited(text, "--gpu", "8xh100-sxm", "--model", "llama-3.1-8b")
    assert [entry["key"] for entry in found["unknown"]] == ["project", "sampling"]
    assert len(found["not_understood"]) == len(found["result"]["not_understood"]) == 2


def test_references_to_other_keys_of_a_file_are_followed(audited) -> None:
    text = (
        "base: /data/Qwen2.5-3B\nsize: 4\ncheckpointer: {checkpoint_dir: '${base}'}\nbatch_size: ${size}\n"
        "metric_logger: {log_dir: '${base}/logs'}\nenable_activation_checkpointing: true\n"
        "optimizer: {lr: 1}\ndataset: {}\n"
    )
    _, found = audited(text, "--gpu", "8xh100-sxm")
    assert (found["plan"]["model"]["name"], found["plan"]["training"]["micro_batch"]) == ("qwen2.5-3b", 4)


def test_a_path_is_of_the_model_that_one_of_its_folders_is_called_by(audited) -> None:
    _, found = audited("model_name_or_path: saves/qwen3-4b/full/sft\ntemplate: qwen3\n", "--gpu", "8xh100-sxm")
    assert (found["plan"]["task"], found["plan"]["model"]["name"]) == ("infer", "qwen3-4b")


def test_a_tool_that_a_file_calls_several_times_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / "run.py").write_text(
        "from nemo import lightning as nl\nfrom nemo.collections import llm\n"
        "data = llm.SquadDataModule(seq_length=2048, micro_batch_size=1, global_batch_size=8)\n"
        "llm.finetune(model=llm.LlamaModel(llm.Llama3Config8B()), trainer=nl.Trainer(devices=1), data=data)\n"
    )
    main(["audit", str(tmp_path / "run.py"), "--gpu", "h100-sxm"])
    assert capsys.readouterr().out.count("parts of NeMo Framework 25)") == 1
