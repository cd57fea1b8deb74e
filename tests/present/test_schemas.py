"""JSON schemas of plan and catalogue files: they take what the program takes, and find faults in an editor."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from capacity_tui.engine.catalog import Catalog, load_catalog, parse_shipped, read_yaml
from capacity_tui.engine.catalog.table import shipped_files
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan import all_fields, refuse_unknown_names
from capacity_tui.engine.plan.files import dump_plan, example_names, example_text, plan_from_data, plan_from_text
from capacity_tui.engine.present import schema_names
from capacity_tui.engine.present.schemas import schema_of
from capacity_tui.engine.schema import Knob
from capacity_tui.tui.cli.program import run_command

CATALOG = load_catalog()
WRONG_PLANS = {
    "an unknown key": "{model: {name: llama-3-8b}, training: {micro_bach: 4}}",
    "an unknown section": "{model: {name: llama-3-8b}, trainig: {micro_batch: 4}}",
    "no model": "{hardware: {name: h100-sxm-80gb}}",
    "a name that must be known": "{model: {name: llama-3-8b}, training: {optimizer: adamww}}",
    "a choice that is none": "{model: {name: llama-3-8b}, inference: {engine: vllm}, task: trian}",
    "a number too small": "{model: {name: llama-3-8b}, training: {micro_batch: 0}}",
    "a word for a number": "{model: {name: llama-3-8b}, training: {global_batch: many}}",
    "an entry of a list": "{model: {name: llama-3-8b}, scalability: {device_counts: [1, few]}}",
    "a plan beside it": "{model: {name: llama-3-8b}, scenarios: {B: {model: {nam: llama-3-8b}}}}",
    "a switch": "{model: {name: llama-3-8b}, training: {compile: 3}}",
}
WRITTEN = """
version: 1
model: {name: meta-llama/Llama-3.1-8B-Instruct}
training: {seq_len: 8k, tokens: 2.0B, micro_batch: auto, framework: my own trainer, adapter: {rank: 8}}
hardware: {name: 8xH100-SXM, levels: [{name: rail, devices: 256, link: ib-ndr}]}
scalability: {device_counts: [8, 16]}
"""


@cache
def plan_validator() -> Draft7Validator:
    return Draft7Validator(schema_of("plan", CATALOG))


@pytest.fixture
def plans() -> Draft7Validator:
    return plan_validator()


@pytest.mark.parametrize("name", example_names())
def test_every_example_is_a_plan_of_the_schema(plans: Draft7Validator, name: str) -> None:
    assert list(plans.iter_errors(read_yaml(example_text(name)).data)) == []
    whole = read_yaml(dump_plan(plan_from_text(example_text(name), name))).data
    assert list(plans.iter_errors(whole)) == []


def test_what_people_write_is_a_plan_of_the_schema(plans: Draft7Validator) -> None:
    assert list(plans.iter_errors(read_yaml(WRITTEN).data)) == []
    plan_from_text(WRITTEN, "written")


@pytest.mark.parametrize("fault", WRONG_PLANS)
def test_an_editor_finds_what_the_program_refuses(plans: Draft7Validator, fault: str) -> None:
    assert list(plans.iter_errors(read_yaml(WRONG_PLANS[fault]).data))
    with pytest.raises(CapacityError):
        refuse_unknown_names(plan_from_text(WRONG_PLANS[fault], "wrong"), CATALOG)


WORDS = ("bf16", "adamw", "none", "local", None, [], {})
NUMBERS = (0, 1, 3, 0.5, 2.5, 1e9, "8k", "80%", "10min", [1, 2])


@st.composite
def plan_data(draw: st.DrawFn) -> dict[str, object]:
    data: dict[str, object] = {"model": {"name": "llama-3-8b"}}
    for path in draw(st.lists(st.sampled_from(sorted(all_fields())), max_size=4)):
        holder = data
        *above, name = path.split(".")
        for part in above:
            inner = holder.setdefault(part, {})
            holder = inner if isinstance(inner, dict) else {}
        holder[name] = draw(st.sampled_from(values_of(all_fields()[path].knob)))
    return data


def values_of(knob: Knob) -> tuple[object, ...]:
    """Return values to try; a switch that is a number, or the other way, is read but never meant."""
    if knob.kind == "switch":
        return (*WORDS, True, False)
    return (*WORDS, *NUMBERS, *knob.choices, knob.minimum, knob.maximum, *(["auto"] if knob.automatic else []))


@settings(max_examples=60)
@given(plan_data())
def test_a_plan_that_the_program_reads_is_one_of_the_schema(data: dict[str, object]) -> None:
    try:
        refuse_unknown_names(plan_from_data(data), CATALOG)
    except CapacityError:
        return
    assert [error.message for error in plan_validator().iter_errors(data)] == []


@pytest.mark.parametrize("name", [name for name in schema_names(CATALOG) if name != "plan"])
def test_shipped_files_keep_to_their_schema(name: str) -> None:
    validator = Draft7Validator(schema_of(name, CATALOG))
    Draft7Validator.check_schema(validator.schema)
    found = [(file, parse_shipped(file)) for file in shipped_files(name)]
    assert found
    for file, data in found:
        assert [f"{file}: {error.json_path}: {error.message}" for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("accelerators", "{lab-card: {memory_gib: 24}}"),
        ("accelerators", "{lab-card: {memory_mib: much}}"),
        ("architectures", "{house-model: {layers: [16]}}"),
        ("instances", "{lab-node: [accelerator]}"),
        ("aliases", "{accelerator: {lab: h100-sxm-80gb}}"),
    ],
)
def test_a_wrong_row_is_found(name: str, text: str, tmp_path: Path) -> None:
    assert list(Draft7Validator(schema_of(name, CATALOG)).iter_errors(read_yaml(text).data))
    (tmp_path / f"{name}.yaml").write_text(text)
    assert Catalog(tmp_path).problems


def test_a_field_has_its_help_and_the_words_of_its_choices(plans: Draft7Validator) -> None:
    optimizer = plans.schema["$defs"]["TrainingSection"]["properties"]["optimizer"]
    assert optimizer["title"] == "Optimizer"
    assert len(optimizer["description"]) > 20
    assert len(optimizer["enum"]) == len(optimizer["enumDescriptions"]) >= 8
    assert set(all_fields()) >= {"training.optimizer"}


def test_the_command_prints_a_schema_or_lists_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["schema"]) == 0
    assert "accelerators" in capsys.readouterr().out
    assert run_command(["schema", "plan", "-o", str(tmp_path / "plan.json")]) == 0
    assert json.loads((tmp_path / "plan.json").read_text("utf-8"))["title"] == "capacity-tui plan"
    with pytest.raises(CapacityError, match="accelerators"):
        run_command(["schema", "accelerator"])
