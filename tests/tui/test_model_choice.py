"""Any kind of model on the screen: what can be picked, its own fields, its numbers."""

from __future__ import annotations

import pytest
from flow import press, settle, shown, type_text

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.models import known_models
from capacity_tui.engine.schema import stepped
from capacity_tui.engine.solve.modes import fill, single
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.settings import Settings
from capacity_tui.tui.shown.comparison import Column
from capacity_tui.tui.shown.results import AUTO, Field, Kind
from capacity_tui.tui.store import Store
from capacity_tui.tui.views.plan.field_list import FieldList
from capacity_tui.tui.views.plan.present import column

STARTS = {
    "training": "model: {name: llama-3.2-1b}\ntraining: {tokens: 1e9, micro_batch: auto}\nhardware: {name: rtx-4090}",
    "inference": "model: {name: llama-3.2-1b}\ntask: infer\nhardware: {name: rtx-4090}",
    "adapter": "model: {name: llama-3.1-8b}\ntask: finetune\ntraining: {adapter: {kind: qlora}, tokens: 1e6}\n"
    "hardware: {name: rtx-4090}",
    "many devices": "model: {name: llama-3.1-8b}\ntraining: {tokens: 1e9, checkpointing: selective}\n"
    "parallelism: {tp: 4, pp: 2, zero: 1}\nhardware: {name: h100-sxm-80gb, devices: 8}",
    "fit": "model: {name: svm_rbf, spec: {n: 5000, p: 20}}\nhardware: {name: rtx-4090}",
    "network": "model: {name: unet, spec: {image_size: 256}}\ntraining: {samples: 1000, epochs: 3}\n"
    "hardware: {name: rtx-4090}",
}
FIT = "model: {name: svm_rbf, spec: {n: 200000, p: 100}}\nhardware: {name: epyc-9654}"


@pytest.fixture(scope="module")
def engine() -> CapacityEngine:
    return CapacityEngine()


def field_of(document: PlanDocument, key: str) -> Field:
    return next(field for field in document.fields() if field.key == key)


def balanced(document: PlanDocument) -> Column:
    return document.compare().column("balanced")


def labels(column: Column) -> dict[str, str]:
    return {row.label: row.text for row in column.rows}


def test_picker_offers_every_model_once(engine: CapacityEngine) -> None:
    ids = [choice.id for choice in engine.catalogue("model")]
    assert len(ids) == len(set(ids))
    assert {"svm_rbf", "mlp", "unet", "resnet-50", "transformer_decoder", "llama-3.1-8b"} <= set(ids)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", ["kmeans", "mlp", "unet", "transformer_encoder", "llama-3.2-1b", "vit-b-16"])
def test_any_model_after_any_other_has_numbers_at_once(engine: CapacityEngine, start: str, name: str) -> None:
    document = engine.open(STARTS[start]).edited("model.name", name)
    column = balanced(document)
    assert column.row("memory.reserved_bytes").value > 0
    assert any(row.text.endswith("/s") and row.value for row in column.rows)


@pytest.mark.parametrize("start", ["inference", "fit", "network"])
def test_every_row_is_explained(engine: CapacityEngine, start: str) -> None:
    document = engine.open(STARTS[start])
    for row in balanced(document).rows:
        explanation = document.explain("balanced", row.key)
        assert explanation.formula or explanation.inputs or explanation.result or explanation.remarks, row.key


@pytest.mark.parametrize("model", [model.id for model in known_models(load_catalog())])
def test_own_fields_are_shown_stepped_and_given_back(engine: CapacityEngine, model: str) -> None:
    document = engine.open(STARTS["training"]).edited("model.name", model)
    filled = fill(document.plan, "balanced", document.machine, document.catalog)
    chosen = column(single(filled), document.catalog, document.machine).chosen
    own = [field for field in document.fields() if field.key.startswith("model.spec.")]
    assert own
    for field in own:
        text = stepped(field, 1, chosen=chosen.get(field.key)) or field.text
        if text and text != AUTO:
            changed = document.edited(field.key, text)
            assert field_of(changed, field.key).text
            again = field_of(changed.edited(field.key, AUTO), field.key)
            assert again.is_auto or again.text == field_of(document.edited(field.key, AUTO), field.key).text


def test_data_stay_when_algorithms_are_compared(engine: CapacityEngine) -> None:
    document = engine.open(FIT).edited("model.name", "random_forest")
    assert (document.plan.model.spec["n"], document.plan.model.spec["p"]) == (200000, 100)
    assert field_of(document, "model.spec.n_jobs").is_auto
    assert balanced(document).chosen["model.spec.n_jobs"].reason


def test_lists_are_text_and_counts_may_be_short(engine: CapacityEngine) -> None:
    document = engine.open(STARTS["training"]).edited("model.name", "mlp")
    layers = field_of(document, "model.spec.layers")
    assert (layers.text, layers.kind) == ("512, 256, 128", Kind.TEXT)
    wider = document.edited("model.spec.layers", "4096, 4k 1024")
    assert wider.plan.model.spec["layers"] == [4096, 4000, 1024]
    before, after = balanced(document), balanced(wider)
    assert after.row("memory.parts.weights").value > before.row("memory.parts.weights").value
    assert engine.open(FIT).edited("model.spec.n", "50k").plan.model.spec["n"] == 50_000


def test_edit_replaces_a_value_under_another_name(engine: CapacityEngine) -> None:
    document = engine.open("model: {name: mlp, spec: {hidden: [64, 64]}}\nhardware: {name: rtx-4090}")
    assert field_of(document, "model.spec.layers").text == "64, 64"
    changed = document.edited("model.spec.layers", "32")
    assert changed.plan.model.spec == {"layers": [32]}
    assert field_of(changed.edited("model.spec.layers", AUTO), "model.spec.layers").text == "512, 256, 128"


@pytest.mark.parametrize(
    ("model", "key", "text"),
    [("mlp", "layers", "512, many"), ("svm_rbf", "n", "-3"), ("unet", "image_size", "0"), ("svm_rbf", "density", "2"),
     ("transformer_decoder", "layers", "deep")],
)  # fmt: skip
def test_refused_values_leave_the_plan(engine: CapacityEngine, model: str, key: str, text: str) -> None:
    document = engine.open(STARTS["training"]).edited("model.name", model)
    with pytest.raises(CapacityError, match=key):
        document.edited(f"model.spec.{key}", text)


def test_undo_brings_back_model_task_and_fields(engine: CapacityEngine) -> None:
    store = Store()
    store.open(engine.open(STARTS["inference"]))
    before = store.document
    store.edit("model.name", "svm_rbf")
    store.edit("model.spec.n", "7000")
    assert store.document.plan.model.spec["n"] == 7000
    assert (store.undo(), store.undo()) == ("model.spec.n", "model.name")
    assert store.document == before
    assert store.document.plan.task == "infer"


def test_fields_of_a_model_are_those_that_its_figures_follow(engine: CapacityEngine) -> None:
    def values(name: str, task: str) -> dict[str, str]:
        document = engine.open(STARTS["network"]).edited("model.name", name).edited("task", task)
        return {entry.key: entry.text for entry in document.fields()}

    of_picture, of_class = values("stable-diffusion-xl", "infer"), values("resnet-50", "train")
    assert {"model.spec.c_in", "model.spec.num_classes"} <= of_class.keys()
    assert not {"model.spec.c_in", "model.spec.num_classes"} & of_picture.keys()
    assert of_picture["model.spec.image_size"] == "1 024"
    assert values("whisper-small", "finetune")["training.seq_len"] == "1 500"
    assert values("whisper-small", "infer")["inference.prompt_tokens"] == "1 500"
    assert values("vit-b-16", "train")["training.seq_len"] == "197"


def test_rows_are_in_the_words_of_the_kind(engine: CapacityEngine) -> None:
    fit = labels(balanced(engine.open(FIT)))
    assert {"data", "copies", "work", "model", "cores", "fit time", "throughput"} <= fit.keys()
    assert fit["throughput"].endswith(" rows/s")
    assert "step time" not in fit
    network = engine.open(STARTS["network"])
    trained = labels(balanced(network))
    assert "training time" in trained
    assert trained["throughput"].endswith(" images/s")
    served = labels(balanced(network.edited("task", "infer")))
    assert "batch time" in served
    assert served["throughput"].endswith(" images/s")
    assert "training time" not in served
    other = labels(balanced(engine.open(STARTS["network"]).edited("model.name", "mlp")))
    assert other["throughput"].endswith(" samples/s")
    served = labels(balanced(engine.open(STARTS["inference"])))
    assert {"prefill throughput", "decode throughput", "time to first token"} <= served.keys()
    assert any(label.startswith("cost per million tokens") for label in served)


def test_sizes_of_the_catalogue_show_where_the_plan_gives_none(engine: CapacityEngine) -> None:
    document = engine.open("model: {name: unet}\nhardware: {name: rtx-4090}")
    assert field_of(document, "model.spec.image_size").text == ""
    assert balanced(document).chosen["model.spec.image_size"].text == "512"


def test_warnings_stand_in_the_column_and_in_explanations(engine: CapacityEngine) -> None:
    document = engine.open(FIT)
    assert any("slow at 200" in note.title for note in balanced(document).notes)
    remarks = document.explain("balanced", "computation.estimated_train_time_seconds").remarks
    assert any("up to about" in remark for remark in remarks)
    extreme = engine.open(STARTS["training"]).compare().column("extreme")
    assert any("danger zone" in note.title for note in extreme.notes)


async def test_gravest_warning_is_in_sight_on_a_small_terminal() -> None:
    app = CapacityApp(engine=CapacityEngine, source=FIT, settings=Settings(hint=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "! RBF SVM is slow at 200" in shown(pilot, "note")


async def test_family_is_picked_and_its_list_typed() -> None:
    app = CapacityApp(engine=CapacityEngine, source=STARTS["inference"], settings=Settings(hint=False))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await type_text(pilot, "mlp")
        assert "512, 256, 128" in shown(pilot, "config")
        assert "samples/s" in shown(pilot, "plans")
        app.screen.query_one(FieldList).select("model.spec.layers")
        await press(pilot, "enter")
        await type_text(pilot, "64 32")
        assert "64, 32" in shown(pilot, "config")
        await press(pilot, "u", "u")
        assert "prefill throughput" in shown(pilot, "plans")
