"""Whatever is given as a plan: a plan comes back, or one line that says what to correct."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog, read_yaml
from capacity_tui.engine.errors import DocumentError, PlanError, StorageError
from capacity_tui.engine.models.known_models import CLASSICAL, NETWORKS, TRANSFORMERS
from capacity_tui.engine.plan import edited, refuse_unknown_names
from capacity_tui.engine.plan.files import PlanSource, apply_settings, load_plan, plan_from_data, plan_from_text
from capacity_tui.engine.solve import faults

SMALLEST = {"model": {"name": "llama-3-8b"}}
PLANNER = """\
model:
  name: "mlp"
  spec:
    n: 50000
    d_in: 784
    d_out: 10
    layers: [512, 256, 128]
    batch_size: 64
    epochs: 20
    precision: "fp16"
  optimization: "adam"
  learning_rate: 1e-3
hardware:
  name: "RTX_3060_fp16"
  efficiency: 0.4
  parallel_devices: 2
scalability:
  enabled: true
  device_counts: [1, 2, 4, 8]
"""


def refusal(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        plan_from_text(text, "p.yaml")
    line = caught.value.one_line()
    assert "\n" not in line
    return line


def in_training(entry: str) -> str:
    return refusal(f"model: {{name: llama-3-8b}}\ntraining:\n  seq_len: 4096\n  {entry}\n")


def test_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("model: {name: llama-3-8b}\ntraining: {seq_len: 8k, tokens: 2e9}\n")
    plan = load_plan(path)
    assert (plan.training.seq_len, plan.training.tokens) == (8192, 2e9)
    path.write_text('{"model": {"name": "llama-3-8b"}}')
    assert load_plan(str(path)) == plan_from_data(SMALLEST)
    with pytest.raises(StorageError, match=r"missing\.yaml"):
        load_plan(tmp_path / "missing.yaml")


def test_model_file_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "plan.yaml").write_text("model: {config: config.json}")
    assert load_plan(tmp_path / "plan.yaml").model.config == str(tmp_path / "config.json")
    (tmp_path / "plan.yaml").write_text("model: {config: elsewhere/config.json}")
    assert load_plan(tmp_path / "plan.yaml").model.config == "elsewhere/config.json"
    (tmp_path / "plan.yaml").write_text(f"model: {{config: {'x' * 5000}}}")
    assert load_plan(tmp_path / "plan.yaml").model.config == "x" * 5000


def test_planner_document_form() -> None:
    plan = plan_from_text(PLANNER, "p.yaml")
    assert plan.model.spec == {"d_in": 784, "d_out": 10, "layers": [512, 256, 128]}
    training = plan.training
    assert (training.micro_batch, training.epochs, training.samples) == (64, 20, 50000)
    assert (training.precision, training.optimizer, training.learning_rate) == ("fp16", "adamw", 1e-3)
    assert (plan.hardware.name, plan.hardware.devices, plan.hardware.efficiency) == ("RTX_3060_fp16", 2, 0.4)
    assert plan.scalability.device_counts == (1, 2, 4, 8)


def test_moved_values_are_named_as_they_were_written() -> None:
    assert refusal(PLANNER.replace("batch_size: 64", "batch_size: 0")).startswith(
        "p.yaml:8: model.spec.batch_size: not allowed: 0"
    )
    source = PlanSource(read_yaml(PLANNER.replace('"adam"', "adm"), "p.yaml"))
    (fault,) = faults(source, load_catalog(), lambda plan: None)
    assert ":11: model.optimization: no optimizer is called 'adm'; did you mean adamw?" in fault.one_line()


def test_value_in_its_old_and_new_place() -> None:
    line = refusal("model: {name: mlp}\nhardware:\n  devices: 4\n  parallel_devices: 2\n")
    assert line.startswith("p.yaml:3: hardware.devices: given twice: also as hardware.parallel_devices")


@pytest.mark.parametrize("name", CLASSICAL)
def test_classical_algorithms_are_fitted_and_keep_their_parameters(name: str) -> None:
    plan = plan_from_data({"model": {"name": name, "spec": {"n": 1000, "p": 20, "epochs": 3, "precision": "fp32"}}})
    assert plan.task == "fit"
    assert plan.model.spec == {"n": 1000, "p": 20, "epochs": 3, "precision": "fp32"}


@pytest.mark.parametrize("name", [*NETWORKS, *TRANSFORMERS])
def test_networks_are_not_fitted(name: str) -> None:
    assert plan_from_data({"model": {"name": name}}).task is None


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        (f"{key}: {value}", key)
        for key in ("micro_batch", "tokens", "global_batch", "steps")
        for value in ("0", "-1", ".nan", ".inf", "-.inf", "1e30", str(10**30), '"80GB"', "true", "[1]", "{a: 1}", "x")
    ],
)
def test_impossible_numbers(entry: str, field: str) -> None:
    line = in_training(entry)
    assert line.startswith(f"p.yaml:4: training.{field}: not allowed: ")
    assert "allowed: " in line.partition("not allowed")[2]


def test_allowed_values_are_named() -> None:
    assert in_training("micro_batch: 0").endswith("allowed: auto or a whole number from 1 to 10 000 000 (seq)")
    assert in_training("tokens: -5").endswith("auto or a number above 0 (tok)")
    assert in_training("compile: 3").endswith("allowed: true or false")
    assert in_training("routing: 3").endswith("allowed: balanced, natural")
    assert refusal("model: {name: a}\nparallelism: {zero: 7}").endswith("allowed: auto, 0, 1, 2, 3")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("training: {precision: bf61}", "did you mean bf16?"),
        ("training: {gradients: bf61}", "did you mean bf16?"),
        ("training: {checkpointing: attn}", "modules joined by +"),
        ("training: {checkpointing: selectiv}", "did you mean selective?"),
        ("inference: {kv_cache: fp61}", "did you mean fp16?"),
    ],
)
def test_names_the_catalogue_has_not_are_refused_with_the_nearest(text: str, meant: str) -> None:
    with pytest.raises(PlanError) as caught:
        refuse_unknown_names(plan_from_text(f"model: {{name: a}}\n{text}", "p.yaml"), load_catalog(Path("none")))
    assert meant in caught.value.one_line()


def test_all_names_the_catalogue_has_not_are_told_at_once() -> None:
    plan = plan_from_text("model: {name: a}\ntraining: {precision: bf61, optimizer: adamv}", "p.yaml")
    with pytest.raises(PlanError) as caught:
        refuse_unknown_names(plan, load_catalog(Path("none")))
    assert [fault.place.field for fault in (caught.value, *caught.value.further)] == [
        "training.precision",
        "training.optimizer",
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("model: {name: a}\ntraining: {precisoin: bf16}", "did you mean training.precision?"),
        ("modle: {name: a}", "did you mean model?"),
        ("model: {name: a}\nseq_len: 4096", "did you mean training.seq_len?"),
        ("model: {name: a}\ntraining: {adapter: {kind: qlroa}}", "did you mean qlora?"),
        ("model: {name: a}\ntraining: {adapter: {rnk: 8}}", "did you mean training.adapter.rank?"),
    ],
)
def test_misspelling_names_what_was_meant(text: str, meant: str) -> None:
    assert meant in refusal(text)


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "version: 2\nmodel: {name: a}", "version: true\nmodel: {name: a}", "model:", "model: []"]
)
def test_what_is_no_plan_at_all(text: str) -> None:
    assert refusal(text).startswith("p.yaml:1: ")


@pytest.mark.parametrize("text", ["model: [", "a: 1\na: 2", "? {a: 1}\n: 2", "!!python/object:os.system {}"])
def test_what_is_no_yaml(text: str) -> None:
    with pytest.raises(DocumentError, match=r"p\.yaml:"):
        plan_from_text(text, "p.yaml")


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 10**30, b"x", [math.nan], {"a": -1}])
def test_overrides_no_model_has(value: object) -> None:
    with pytest.raises(PlanError, match=r"model\.spec\.layers"):
        plan_from_data({"model": {"name": "llama-3-8b", "spec": {"layers": value}}})


def test_one_length_of_training() -> None:
    assert "only one of tokens, steps and epochs" in in_training("tokens: 1e9\n  steps: 3")


def test_settings() -> None:
    plan = apply_settings(
        plan_from_data(SMALLEST),
        ["training.micro_batch=4", "training.adapter.rank=8", "model.spec.layers=16", "hardware.name=rtx-4090"],
    ).plan
    assert plan.training.micro_batch == 4
    assert plan.training.adapter is not None
    assert plan.training.adapter.rank == 8
    assert plan.model.spec == {"layers": 16}
    assert apply_settings(plan, ["scalability.device_counts=[1, 2]"]).plan.scalability.device_counts == (1, 2)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("training.micro_batch", "write key=value"),
        ("=3", "write key=value"),
        ("training.micro_batch=0", "from 1 to"),
        ("training.micro_batch=[", "not valid YAML"),
        ("training.mirco_batch=4", "did you mean training.micro_batch"),
        ("training.micro_batch.deeper=4", "no keys of its own"),
        ("training=4", "keys and values"),
        ("a..b=4", "unknown key"),
    ],
)
def test_wrong_settings(setting: str, says: str) -> None:
    with pytest.raises(PlanError, match=says.replace("+", r"\+")):
        apply_settings(plan_from_data(SMALLEST), [setting])


def test_length_that_is_set_replaces_the_other() -> None:
    plan = plan_from_data({**SMALLEST, "training": {"steps": 100}})
    changed = edited(plan, {"training.tokens": 1e9}).plan
    assert (changed.training.tokens, changed.training.steps) == (1e9, None)
    assert plan.training.steps == 100


def test_task_follows_the_model() -> None:
    plan = plan_from_data(SMALLEST)
    fitted = edited(plan, {"model.name": "svm_rbf"}).plan
    assert fitted.task == "fit"
    assert edited(fitted, {"model.name": "mlp"}).plan.task is None


def test_values_may_be_left_to_the_modes() -> None:
    plan = edited(plan_from_data(SMALLEST), {"training.micro_batch": "auto"}).plan
    assert plan.training.micro_batch == "auto"
    assert edited(plan, {"training.tokens": None}).plan.training.tokens is None
    with pytest.raises(PlanError, match="not allowed: None"):
        edited(plan, {"training.seq_len": None})


@pytest.mark.parametrize(
    ("name", "hardware", "devices"),
    [
        ("8xH100-SXM", "H100-SXM", 8),
        ("16 × a100-sxm-80gb", "a100-sxm-80gb", 16),
        ("rtx-4090", "rtx-4090", None),
        ("8xlarge", "large", 8),
    ],
)
def test_other_hardware(name: str, hardware: str, devices: int | None) -> None:
    here = {"name": "a100", "devices": 64, "interconnect": "ib-hdr", "spec": {"tdp_w": 300}}
    plan = plan_from_data({**SMALLEST, "hardware": here, "parallelism": {"dp": 32, "tp": 2}})
    moved = edited(plan, {"hardware": {"name": name}}).plan
    assert (moved.hardware.name, moved.hardware.devices) == (hardware, devices)
    assert (moved.hardware.interconnect, moved.hardware.spec) == (None, {})
    assert (moved.parallelism.dp, moved.parallelism.tp) == (None, 2)


@pytest.mark.parametrize("name", ["8xH100-SXM", "8 × H100-SXM"])
def test_a_count_before_the_name_of_hardware_in_a_file(name: str) -> None:
    hardware = plan_from_text(f"model: {{name: llama-3-8b}}\nhardware: {{name: {name}}}\n", "p.yaml").hardware
    assert (hardware.name, hardware.devices) == ("H100-SXM", 8)
    plan = plan_from_data({**SMALLEST, "hardware": {"name": "a100", "devices": 4}})
    changed = apply_settings(plan, [f"hardware.name={name}"]).plan.hardware
    assert (changed.name, changed.devices) == ("H100-SXM", 8)


def test_two_counts_of_devices_that_differ_are_refused() -> None:
    line = refusal("model: {name: llama-3-8b}\nhardware: {name: 8xh100, devices: 4}\n")
    assert "8xh100 names 8 devices, devices says 4" in line


def test_impossible_hardware() -> None:
    with pytest.raises(PlanError, match=r"hardware\.devices: not allowed: 0"):
        edited(plan_from_data(SMALLEST), {"hardware": {"name": "0xh100"}})


@pytest.mark.parametrize(
    ("entry", "says"),
    [("tokens: many", "a number above 0 (tok)"), ("tokens: 0", "a number above 0 (tok)"), ("tokens: 1e19", "to 1e+18")],
)
def test_an_end_that_nobody_reaches_is_told_only_where_it_was_passed(entry: str, says: str) -> None:
    line = in_training(entry)
    assert says in line
    assert ("1e+18" in line) == ("1e+18" in says)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("parallelism.tensor_parallel_size", "parallelism.tp"),
        ("parallelism.pipeline", "parallelism.pp"),
        ("parallelism.fsdp", "parallelism.zero"),
        ("hardware.num_gpus", "hardware.devices"),
        ("gpus", "hardware.devices"),
        ("training.dtype", "training.precision"),
        ("training.micro_bacth", "training.micro_batch"),
    ],
)
def test_the_field_that_other_words_mean_is_told(written: str, meant: str) -> None:
    section, _, key = written.rpartition(".")
    data = {"model": {"name": "llama-3.1-8b"}, **({section: {key: 4}} if section else {key: 4})}
    with pytest.raises(PlanError, match=rf"did you mean {meant}\?"):
        plan_from_data(data)


def test_checking_names_again_and_again_takes_no_more_memory() -> None:
    plan, catalog = plan_from_text("model: {name: a}\n", "p.yaml"), load_catalog(Path("none"))

    def taken(times: int) -> int:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(times):
            refuse_unknown_names(plan, catalog)
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    taken(300)
    assert taken(1000) < 50_000
    tracemalloc.stop()
