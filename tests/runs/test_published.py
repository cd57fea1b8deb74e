"""Published measurements: every row reads, is a valid plan, and its hardware, link and model are known."""

import csv
from collections.abc import Mapping
from importlib.resources import files

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.models.known_models import TRANSFORMERS
from capacity_tui.engine.models.networks.specs import CatalogueNetwork
from capacity_tui.engine.models.transformer import count_parameters, shape_from_spec
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.runs.accuracy.published import (
    KINDS,
    Measurement,
    field,
    parallelism_class,
    read_measurements,
    read_skipped,
)

FEWEST = {
    "train_time": 800,
    "train_memory": 180,
    "finetune_time": 39,
    "finetune_memory": 78,
    "finetune_fit": 10,
    "prefill": 520,
    "decode": 650,
    "generate": 900,
    "serving": 310,
    "ttft": 220,
    "ttft_p99": 150,
    "tpot": 170,
    "tpot_p99": 90,
    "inference_memory": 340,
    "encoder_time": 500,
    "vision": 500,
    "vision_memory": 12,
}


@pytest.fixture(scope="module")
def measured() -> Mapping[str, tuple[Measurement, ...]]:
    return {kind: read_measurements(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_are_there_with_their_source(measured, kind):
    rows = measured[kind]
    assert len(rows) >= FEWEST[kind]
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        assert row.source and row.url.startswith("https://") and row.quality in ("A", "B", "C")
        assert row.value > 0 or row.unit == "bool"


@pytest.mark.parametrize("kind", KINDS)
def test_every_measurement_is_a_valid_plan(measured, kind):
    for row in measured[kind]:
        plan = plan_from_data(row.plan)
        assert plan.hardware.devices == row.devices


def test_models_hardware_and_links_are_in_the_catalogue(measured):
    catalog = load_catalog()
    for rows in measured.values():
        for row in rows:
            catalog.find_hardware(str(field(row.plan, "hardware.name")))
            link = field(row.plan, "hardware.interconnect")
            if link:
                catalog.links[str(link)]


def test_counted_parameters_agree_with_the_published_model(measured):
    catalog = load_catalog()
    for rows in measured.values():
        for row in rows:
            name = str(field(row.plan, "model.name"))
            if name in catalog.networks:
                found = CatalogueNetwork().network(catalog, name).parameters
                assert found == pytest.approx(row.parameters, rel=0.02), row.id
                continue
            known = None if name in TRANSFORMERS else catalog.architectures[name]
            family = name if known is None else "transformer_decoder"
            shape = shape_from_spec(known, field(row.plan, "model.spec") or {}, family)
            assert count_parameters(shape).total == pytest.approx(row.parameters, rel=0.02), row.id


def test_layouts_and_batches_multiply_out(measured):
    for kind in ("train_time", "train_memory", "finetune_time"):
        for row in measured[kind]:
            layout = [int(field(row.plan, f"parallelism.{name}")) for name in ("dp", "tp", "pp", "cp")]
            assert np.prod(layout) == row.devices, row.id
            each = int(field(row.plan, "training.micro_batch")) * layout[0]
            assert int(field(row.plan, "training.global_batch")) % each == 0, row.id


def test_skipped_rows_say_why():
    skipped = read_skipped("train_time")
    assert skipped and all(row.reason for row in skipped)
    kept = {row.id for row in read_measurements("train_time")}
    assert not kept & {row.id for row in skipped}


def test_every_source_has_an_id_of_its_own():
    text = files("capacity_tui.profiles").joinpath("measurements", "sources.csv").read_text("utf-8")
    ids = [row["id"] for row in csv.DictReader(text.splitlines())]
    assert len(ids) == len(set(ids))


def test_no_published_row_is_lost():
    for name, kinds in (("train_time", ["train_time"]), ("train_memory", ["train_memory"])):
        text = files("capacity_tui.profiles").joinpath("measurements", f"{name}.csv").read_text("utf-8")
        listed = {row["id"] for row in csv.DictReader(text.splitlines())}
        used = {row.id for kind in kinds for row in read_measurements(kind)}
        left_out = {row.id for kind in kinds for row in read_skipped(kind)}
        unstated = {row for row in listed if row not in used | left_out}
        assert not unstated


def test_a_known_row_reads_as_published(measured):
    row = next(row for row in measured["train_time"] if row.id == "titan-t1-2")
    assert row.quantity == "step_seconds"
    assert row.value == pytest.approx(16 * 8192 / (6667 * 8), rel=1e-3)
    assert field(row.plan, "model.name") == "llama-3-8b"
    assert field(row.plan, "training.checkpointing") == "selective-ops"
    assert field(row.plan, "parallelism.zero") == 3
    assert field(row.plan, "hardware.spec.tdp_w") == 500
    assert row.tags["parallelism"] == "fsdp"


def test_first_tokens_of_a_program_without_a_server_are_the_rate_of_its_prompts(measured):
    row = next(row for row in measured["prefill"] if row.id == "trt05-ttft-h100-llama2-7b-tp1-2048")
    assert row.quantity == "prefill_tokens_per_second"
    assert row.value == pytest.approx(2048 / 0.036)


def test_memory_is_in_bytes_of_the_published_unit(measured):
    row = next(row for row in measured["train_memory"] if row.id == "mem-titan-t1-1")
    assert row.unit == "bytes"
    assert row.quantity == "reserved_bytes"
    assert 20 * 2**30 < row.value < 96 * 2**30


def test_model_flops_follow_the_one_counter(measured):
    row = next(row for row in measured["train_time"] if row.id == "titan-t1-1")
    per_token = 6 * (8_030_261_248 - 128256 * 4096) + 6 * 32 * 4096 * 8192
    assert row.model_flops == pytest.approx(per_token * 16 * 8192, rel=1e-4)


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        ({"dp": 1}, "single"),
        ({"dp": 8, "zero": 1}, "data"),
        ({"dp": 8, "zero": 3}, "fsdp"),
        ({"dp": 2, "tp": 4, "pp": 8}, "tp+pp"),
        ({"dp": 2, "tp": 8, "zero": 3}, "fsdp+tp"),
    ],
)
def test_parallelism_class_names_what_splits_the_model(layout, name):
    assert parallelism_class({"parallelism": layout}) == name
