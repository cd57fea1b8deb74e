"""The engine in the words of the screen: real plans, real estimates."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow import press, settle

from capacity_tui.engine.errors import CapacityError, PlanError, StorageError
from capacity_tui.engine.plan.files import example_names
from capacity_tui.engine.plan.files.saved import save_plan
from capacity_tui.engine.schema import stepped
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.shown.results import AUTO
from capacity_tui.tui.store import Store

PLAN = """
model: {name: llama-3.1-8b}
training: {seq_len: 8192, micro_batch: auto, global_batch: 256, checkpointing: auto, tokens: 2.0e9}
parallelism: {zero: auto}
hardware: {name: h100-sxm-80gb, devices: 8}
"""


@pytest.fixture(scope="module")
def engine() -> CapacityEngine:
    return CapacityEngine()


@pytest.fixture(scope="module")
def document(engine: CapacityEngine) -> PlanDocument:
    return engine.open(PLAN)


def test_proposal_suits_the_hardware_that_is_asked_for(engine: CapacityEngine) -> None:
    assert engine.propose("8xH100-SXM").name == "llama-3.1-8b"
    assert engine.propose("rtx-3060-12gb").compare().column("balanced").verdict is not Verdict.DOES_NOT_FIT


def test_a_model_too_large_for_the_proposal_is_made_to_fit_and_saved_as_such(engine: CapacityEngine) -> None:
    """What an edit leaves at its default is nothing the user insists on, on the screen as in a file."""
    document = engine.propose("8xH100-SXM").edited("model.name", "llama-3.1-70b").edited("training.tokens", "2e9")
    column = document.compare().column("balanced")
    assert column.verdict in {Verdict.FITS, Verdict.TIGHT}
    assert any("optimizer states in host memory" in note.detail for note in column.notes)
    again = engine.open(document.dump())
    assert again.compare().column("balanced").rows == column.rows


@pytest.mark.parametrize(
    ("model", "hardware", "key", "sizes"),
    [
        ("llama-3.1-8b", "8xH100-SXM", "parallelism.tp", (1, 2, 4, 8)),
        ("qwen2.5-0.5b", "8xH100-SXM", "parallelism.tp", (1, 2)),  # 14 heads
        ("mixtral-8x7b", "16xH100-SXM", "parallelism.ep", (1, 2, 4, 8)),
        ("llama-3.1-8b", "8xH100-SXM", "parallelism.ep", (1,)),
        ("llama-3.1-8b", "8xH100-SXM", "training.micro_batch", ()),
    ],
)
def test_steps_land_on_layouts_that_can_be(
    engine: CapacityEngine, model: str, hardware: str, key: str, sizes: tuple[int, ...]
) -> None:
    assert engine.propose(hardware).edited("model.name", model).sizes(key) == sizes


def test_three_columns_with_the_same_quantities(document: PlanDocument) -> None:
    columns = document.compare().columns
    assert [column.mode for column in columns] == ["conservative", "balanced", "extreme"]
    keys = {row.key for row in columns[1].rows}
    assert {"memory.reserved_bytes", "memory.parts.activations", "computation.tokens_per_second"} <= keys
    assert all(column.verdict in {Verdict.FITS, Verdict.TIGHT} for column in columns)


def test_what_is_open_of_the_job_stands_in_every_column_alike(engine: CapacityEngine) -> None:
    columns = engine.open(PLAN.replace("seq_len: 8192", "seq_len: auto")).compare().columns
    assert {column.row("training.seq_len").text for column in columns} == {"2 048"}
    network = engine.open("model: {name: resnet50}\nhardware: {name: h100-sxm-80gb}").compare().column("balanced")
    assert "training.seq_len" not in {row.key for row in network.rows}


def test_every_row_can_be_explained(document: PlanDocument) -> None:
    column = document.compare().column("balanced")
    for row in column.rows:
        explanation = document.explain("balanced", row.key)
        assert explanation.title
        assert explanation.formula or explanation.inputs or explanation.result, row.key


def test_automatic_fields_carry_the_choice_and_its_reason(document: PlanDocument) -> None:
    chosen = document.compare().column("balanced").chosen["training.micro_batch"]
    assert chosen.value is not None
    assert chosen.reason
    assert document.explain("balanced", "training.micro_batch").formula == chosen.reason


def test_every_field_can_be_stepped_up_or_says_why_not(document: PlanDocument) -> None:
    chosen = document.compare().column("balanced").chosen
    for field in document.fields():
        text = stepped(field, 1, chosen=chosen.get(field.key))
        if text is not None:
            try:
                changed = document.edited(field.key, text)
            except CapacityError as error:
                assert error.title
            else:
                assert changed != document


def test_typed_amounts_and_return_to_auto(document: PlanDocument) -> None:
    typed = document.edited("training.seq_len", "8k").edited("training.tokens", "3.5B")
    assert typed.plan.training.seq_len == 8192
    assert typed.plan.training.tokens == 3.5e9
    fixed = document.edited("training.micro_batch", "4")
    assert fixed.plan.training.micro_batch == 4
    assert fixed.edited("training.micro_batch", AUTO) == document
    assert document.edited("pricing.usd_per_kwh", "0.3").edited("pricing.usd_per_kwh", AUTO) == document


def test_other_accelerators_keep_their_number(document: PlanDocument) -> None:
    other = document.edited("hardware.name", "a100-sxm-80gb")
    assert (other.plan.hardware.name, other.plan.hardware.devices) == ("a100-sxm-80gb", 8)
    assert document.edited("hardware.name", "detected").plan.hardware.devices is None


def test_refused_value_says_what_is_allowed(document: PlanDocument) -> None:
    with pytest.raises(CapacityError, match="micro_batch"):
        document.edited("training.micro_batch", "0")


def test_dump_of_a_mode_opens_as_the_same_numbers(
    document: PlanDocument, engine: CapacityEngine, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(document.dump("balanced"), encoding="utf-8")
    again = engine.open(path).compare().column("balanced")
    before = document.compare().column("balanced")
    figures = [row.text for row in before.rows if not row.key.startswith("mode.")]
    assert [row.text for row in again.rows] == figures


@pytest.mark.parametrize("name", example_names())
def test_examples_open_and_show_numbers_or_say_why_not(name: str) -> None:
    engine = CapacityEngine()
    engine.detect()
    document = engine.open(name)
    assert document.fields()
    try:
        comparison = document.compare()
    except CapacityError as error:
        assert error.hint or error.detail
    else:
        assert comparison.hardware
        assert all(column.rows for column in comparison.columns)


def test_plan_is_proposed_for_this_machine(engine: CapacityEngine) -> None:
    rows = engine.detect()
    assert {row.label.split()[0] for row in rows} >= {"GPU", "CPU", "RAM"}
    assert all(row.text or row.reason for row in rows)
    assert engine.propose().compare().columns


@pytest.mark.parametrize("name", ["model", "accelerator", "interconnect", "profile"])
def test_catalogues_can_be_picked_from(engine: CapacityEngine, name: str) -> None:
    choices = engine.catalogue(name)
    assert len({choice.id for choice in choices}) == len(choices) > 3


def test_sensors_have_values_or_reasons(engine: CapacityEngine) -> None:
    readings = engine.sampler().sample()
    assert {"CPU", "RAM"} <= {reading.name for reading in readings}
    assert all(reading.text if reading.value is not None else reading.reason for reading in readings)


def test_a_damaged_saved_plan_is_kept_aside_when_it_is_opened(
    engine: CapacityEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path))
    folder = engine.plans_folder()
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_bytes(b"\xff\xfe damaged")
    with pytest.raises(CapacityError, match="kept as"):
        engine.open(folder / "mine.yaml")
    assert [path.read_bytes() for path in folder.iterdir()] == [b"\xff\xfe damaged"]


def test_the_screens_plan_is_a_file_an_example_or_a_saved_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path))
    engine = CapacityEngine()
    assert engine.locate(Path("qlora_rtx_4090")) == "qlora_rtx_4090"
    kept = save_plan("my run", engine.open("qlora_rtx_4090").plan)
    assert engine.locate(Path("my run")) == engine.locate(kept) == kept
    with pytest.raises(PlanError, match="did you mean my run"):
        engine.locate(Path("my rum"))
    with pytest.raises(StorageError):
        engine.locate(Path("absent.yaml"))


async def test_an_example_opens_by_name_and_belongs_to_no_file() -> None:
    app = CapacityApp(source=Path("qlora_rtx_4090"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        document, path = app.session.store.document, app.session.store.path
    assert isinstance(document, PlanDocument)
    assert (document.plan.training.method, path) == ("qlora", None)


def test_a_peak_that_nobody_published_is_not_zero(engine: CapacityEngine) -> None:
    details = {choice.id: choice.detail for choice in engine.catalogue("accelerator")}
    assert "n/a" in details["mi308x"]
    assert not [name for name, detail in details.items() if "· 0 " in detail]


def test_equal_columns_are_one_and_answer_to_all_of_their_names(engine: CapacityEngine) -> None:
    given = engine.open("model: {name: gpt2}\nhardware: {name: rtx-4090}")
    compared = given.compare()
    (only,) = compared.columns
    assert (only.head, compared.column("extreme")) == ("the plan", only)
    assert compared.remarks == ("conservative = balanced = extreme: nothing is open",)
    assert "mode.memory" not in {row.key for row in only.rows}
    assert given.dump("extreme") and given.explain("extreme", "memory.reserved_bytes").result


def test_a_column_tells_what_its_mode_is_and_what_of_its_shares_the_run_uses(document: PlanDocument) -> None:
    first = document.compare().columns[0]
    assert first.about[0].startswith("conservative: up to 50 % of memory")
    assert any("power limit, the mode allows 40 %: " in line for line in first.about)
    power = first.row("mode.power")
    assert power and power.text.endswith(" %")
    memory = first.row("mode.memory")
    assert memory and memory.text.endswith(" of 50 %")
    assert document.explain("conservative", "mode.power").result in first.about


def test_a_step_that_was_foreseen_has_its_numbers_and_is_no_other_plan(
    engine: CapacityEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, change = engine.open(PLAN), {"training.seq_len": "4096"}
    plain = document.changed(change)
    document.foresee(change)
    with monkeypatch.context() as patch:
        patch.setattr("capacity_tui.tui.plan_document.compare", lambda *_: pytest.fail("it is estimated already"))
        foreseen = document.changed(change)
        found = foreseen.compare()
    assert foreseen == plain
    assert found == plain.compare()
    with pytest.raises(CapacityError):
        document.foresee({"training.seq_len": "-1"})


def test_rows_of_other_counts_say_where_their_micro_batch_is_another(engine: CapacityEngine) -> None:
    training = "training: {seq_len: 2048, tokens: 1e9, micro_batch: 8, global_batch: 64}"
    plan = f"model: {{name: llama-3.2-1b}}\n{training}\nhardware: {{name: h100-sxm-80gb, devices: 8}}\n"
    *_, found = engine.open(plan).scaled("balanced", "strong")
    layout = [column.title for column in found.columns].index("layout")
    layouts = {row.devices: row.cells[layout] for row in found.rows}
    assert [layouts[count] for count in (4, 8, 16, 32)] == ["dp4", "dp8", "dp16, micro 4", "dp32, micro 2"]


def test_plans_far_back_in_the_history_come_back_without_what_they_were_estimated_to_come_to(
    engine: CapacityEngine,
) -> None:
    store, lengths = Store(), ["512", "1024", "2048", "4096", "8192"]
    store.open(engine.open(PLAN))
    for length in lengths:
        store.edit("training.seq_len", length)
        assert store.document is not None
        store.document.compare()
    answered = []
    for length in reversed(lengths):
        document = store.document
        assert isinstance(document, PlanDocument)
        assert document.plan.training.seq_len == int(length)
        answered.append("_comparison" in vars(document))
        store.undo()
    assert answered == [True, True, True, False, False]


async def test_steps_are_foreseen_once_the_keys_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    app = CapacityApp(source=PLAN)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "down", "down", "slash", *"sequence", "enter")
        document = app.session.store.document
        assert isinstance(document, PlanDocument)
        compared = []
        compare = PlanDocument.compare
        monkeypatch.setattr(
            PlanDocument, "compare", lambda self: (compared.append("_comparison" in vars(self)), compare(self))[1]
        )
        await press(pilot, "plus")
        assert compared[0], "the numbers were there before the key"
        assert app.session.store.column is not None


def test_a_line_that_compares_pins_what_the_plan_is_compared_with(engine: CapacityEngine) -> None:
    understood = engine.read_line("lora llama-3.2-1b 4090 vs a100", 0)
    assert not understood.faults
    assert "compared with a100" in understood.guesses
    document, assumed = engine.plan_of_line("lora llama-3.2-1b 4090 vs a100", None)
    assert (document.plan.hardware.name, document.pins()) == ("rtx-4090", ("a100",))
    assert document.plan.scenarios["a100"].hardware.name == "a100-sxm-80gb"
    assert any("10 M tokens" in entry for entry in assumed)


def test_a_deadline_of_a_line_is_a_limit_of_every_mode_and_of_the_search(engine: CapacityEngine) -> None:
    document, _ = engine.plan_of_line("train gpt2-small 10B tokens on 1x4090 in 1h", None)
    for after in (document, document.edited("training.micro_batch", "4")):
        column = after.compare().column("balanced")
        assert column.verdict is Verdict.MISSES_LIMIT
        assert column.verdict_brief == "misses time"
    assert next(part.text for part in document.question({}).fields() if part.key == "time") == "1h"
    offers = document.migration("", {"shown": "all"}).answer(lambda _: None, lambda: False)
    assert offers.rows[0].verdict is Verdict.MISSES_LIMIT
    within, _ = engine.plan_of_line("train gpt2-small 10M tokens on 1x4090 in 20d", None)
    assert within.compare().column("balanced").verdict is Verdict.FITS


def test_a_load_that_ends_is_headed_by_the_time_and_the_cost_of_all_its_requests(engine: CapacityEngine) -> None:
    document, _ = engine.plan_of_line("embed 1M documents of 512 tokens with bge-large on an l4", None)
    column = document.compare().column("balanced")
    first, second = column.headlines[:2]
    assert first.text.startswith("all requests ")
    assert second.text.startswith("$")
    assert column.row("computation.infer.all_requests_seconds") is not None
