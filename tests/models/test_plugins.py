"""Models of other packages, and the worked examples of the page that explains them."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CatalogError, PlanError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.models import family_of, load_plugins, plugin_problems, plugins, register_model
from capacity_tui.engine.plan import plan_fields
from capacity_tui.engine.plan.files import load_plan, plan_from_data, plan_from_text
from capacity_tui.engine.solve import answer
from capacity_tui.tui.cli.program import group

PAGE = Path(__file__).parents[2] / "docs" / "own-models-and-hardware.md"
Install = Callable[[str, str], None]


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of the page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.S)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package of one module whose function ``model`` is an entry point of its name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(name: str, source: str) -> None:
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
        information = tmp_path / f"{name}-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[capacity_tui.models]\n{name} = {name}:model\n")
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        load_plugins.cache_clear()

    load_plugins.cache_clear()
    yield installed
    load_plugins.cache_clear()


@pytest.fixture
def neighbours(install: Install) -> None:
    """The package of the page."""
    (source,) = blocks("python")
    install("nearest_neighbours", source)


@pytest.mark.usefixtures("neighbours")
def test_the_worked_example_of_a_model() -> None:
    found = answer(plan_from_text(blocks("yaml")[-1], "page"))
    assert (found.plan.task, found.plan.model.spec["n"]) == ("fit", 2_000_000)
    estimate = found.estimate
    assert estimate.model.parameters == 2_000_000 * 64
    assert estimate.model.complexity == "O(n·p·log n)"
    assert sum(estimate.memory.parts.values()) == pytest.approx(2 * 2_000_000 * 64 * 8)
    assert estimate.computation.step_seconds.value > 0
    assert estimate.computation.units_per_step == 2_000_000
    assert "nearest_neighbours" in estimate.basis.method


@pytest.mark.usefixtures("neighbours")
def test_fields_have_knobs_and_bounds() -> None:
    plan = plan_from_data({"model": {"name": "Nearest-Neighbours"}, "hardware": {"name": "rtx-4090"}})
    family = family_of(plan.model.name, load_catalog())
    assert (family.id, family.kind) == ("nearest_neighbours", "plugin")
    fields = {field.path: field for field in plan_fields(plan, "plugin", "fit")}
    assert fields["model.spec.leaf_size"].knob.maximum == 1000
    assert fields["model.spec.metric"].knob.choices == ("euclidean", "manhattan")


@pytest.mark.usefixtures("neighbours")
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"leaf_sise": 10}, "did you mean leaf_size"),
        ({"leaf_size": 5000}, "allowed: 1 to 1000"),
        ({"metric": "cosine"}, "allowed: euclidean, manhattan"),
        ({"n": 0}, "not allowed"),
    ],
)
def test_what_is_wrong_in_a_spec_is_named(spec: dict[str, object], said: str) -> None:
    plan = plan_from_data({"model": {"name": "nearest_neighbours", "spec": spec}, "hardware": {"name": "rtx-4090"}})
    with pytest.raises(PlanError) as caught:
        estimate_plan(plan)
    assert said in caught.value.one_line()
    assert caught.value.place.field == f"model.spec.{next(iter(spec))}"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_like_this\n", "nothing_like_this"),
        ("def model():\n    raise ValueError('out of order')\n", "out of order"),
        ("def model():\n    return {'fields': {}}\n", "calculate"),
        ("model = 3\n", "not callable"),
        ("def model():\n    return {'fields': {'n': [1]}, 'calculate': len}\n", "default"),
    ],
)
def test_a_broken_package_is_named_and_left_out(install: Install, source: str, reason: str) -> None:
    install("broken_model", source)
    (problem,) = plugin_problems(load_catalog())
    assert "broken_model" in problem.one_line()
    assert reason in problem.one_line()
    plan = plan_from_data({"model": {"name": "broken_model"}, "hardware": {"name": "rtx-4090"}})
    with pytest.raises(PlanError, match="no model is called"):
        estimate_plan(plan)


def test_a_known_name_stays_with_the_program(install: Install) -> None:
    install("gpt2", "def model():\n    return {'fields': {}, 'calculate': dict}\n")
    (problem,) = plugin_problems(load_catalog())
    assert "the name of another model" in problem.one_line()
    assert family_of("gpt2", load_catalog()).kind == "transformer"


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ("{'params': 1}", "train_flops"),
        ("{'params': -1, 'train_flops': 1}", "params"),
        ("{'params': float('nan'), 'train_flops': 1}", "params"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_failing_calculation_is_an_error_with_a_name(install: Install, returned: str, reason: str) -> None:
    model = "def model():\n    return {'fields': {'n': 5}, 'calculate': calculate}\n"
    source = f"{model}\n\ndef calculate(spec):\n    return {returned}\n"
    install("odd_model", source)
    plan = plan_from_data({"model": {"name": "odd_model"}, "hardware": {"name": "rtx-4090"}})
    with pytest.raises(PlanError) as caught:
        estimate_plan(plan)
    assert "odd_model" in caught.value.one_line()
    assert reason in caught.value.one_line()


def test_the_worked_example_of_catalogue_rows(tmp_path: Path) -> None:
    accelerators, architectures, instances, more_instances, plan, _ = blocks("yaml")
    folder = tmp_path / "catalog"
    folder.mkdir()
    named = {"accelerators": accelerators, "architectures": architectures, "instances": instances + more_instances}
    for name, text in named.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    catalog = load_catalog(folder)
    assert not catalog.problems
    file = tmp_path / "plan.yaml"
    file.write_text(plan, "utf-8")
    estimate = answer(load_plan(file), catalog=catalog).estimate
    assert estimate.fits
    assert 1.0e9 < float(estimate.model.parameters) < 1.5e9
    assert estimate.memory.capacity_bytes == 24000 * 2**20
    assert estimate.cost.usd_per_hour == pytest.approx(3.20)
    wanted = {"region": "us", "commitment": "3y"}
    cores = plan_from_data({"model": {"name": "xgboost_like"}, "hardware": {"name": "lab-cores"}, "pricing": wanted})
    assert answer(cores, catalog=catalog).estimate.cost.usd_per_hour == pytest.approx(0.70)


MODEL = """
import sys, time
def calculate(values):
    {calculate}
    return {{"params": 1e6, "train_flops": 1e12}}
def model():
    {model}
    return {{"fields": {fields}, "calculate": calculate}}
"""


@pytest.mark.parametrize(
    ("model", "fields", "said"),
    [
        ("sys.exit(1)", "{}", "SystemExit: 1"),
        ("raise BaseException('no')", "{}", "BaseException: no"),
        ("class Mute(Exception):\n        def __str__(self): raise ValueError\n    raise Mute", "{}", "Mute"),
        ("pass", "{'model_dump': 1}", "cannot be the name of a field"),
        ("pass", "{'_hidden': 1}", "cannot be the name of a field"),
        ("pass", "{'a': object()}", "a"),
        ("time.sleep(60)", "{}", "took longer than"),
    ],
)
def test_a_plug_in_that_misbehaves_is_left_out_and_named(
    install: Install, monkeypatch: pytest.MonkeyPatch, model: str, fields: str, said: str
) -> None:
    monkeypatch.setattr("capacity_tui.engine.models.plugins.PATIENCE_SECONDS", 0.2)
    install("rude_model", MODEL.format(model=model, calculate="pass", fields=fields))
    (problem,) = plugin_problems(load_catalog())
    assert "rude_model" in problem.one_line()
    assert said in problem.one_line()
    assert answer(plan_from_data({"model": {"name": "gpt2-small"}, "hardware": {"name": "rtx-4090"}})).estimate.fits


@pytest.mark.parametrize(("calculate", "said"), [("sys.exit(0)", "SystemExit"), ("time.sleep(60)", "took longer than")])
def test_a_plug_in_that_ends_or_hangs_while_computing_is_refused(
    install: Install, monkeypatch: pytest.MonkeyPatch, calculate: str, said: str
) -> None:
    monkeypatch.setattr("capacity_tui.engine.models.plugins.PATIENCE_SECONDS", 0.2)
    install("rude_model", MODEL.format(model="pass", calculate=calculate, fields="{}"))
    with pytest.raises(PlanError, match=said):
        answer(plan_from_data({"model": {"name": "rude_model"}, "hardware": {"name": "rtx-4090"}}))


def test_what_a_plug_in_prints_stays_out_of_the_data(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("loud_model", MODEL.format(model="print('hello')", calculate="print('there')", fields="{'n': 'text'}"))
    found = answer(plan_from_data({"model": {"name": "loud_model"}, "hardware": {"name": "rtx-4090"}}))
    assert found.estimate.model.parameters == 1e6
    out, err = capsys.readouterr()
    assert out == ""
    assert "hello" in err


def test_texts_of_a_plug_in_do_nothing_to_the_terminal(install: Install) -> None:
    fields = r"{'n': 1}, 'title': '\x1b]0;PWNED\x07mine', 'best_use': 'a\nb'"
    install("evil_model", MODEL.format(model="pass", calculate="pass", fields=fields))
    for words in (["models"], ["models", "--format", "json"]):
        told = CliRunner().invoke(group, words).output
        assert "mine" in told
        assert "\x1b" not in told


def test_a_script_registers_a_function_as_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})
    fields = {"n": 10_000, "p": {"default": 50, "help": "columns"}}

    @register_model("my_table_lookup", fields, title="a lookup")
    def calculate(spec: Mapping[str, float]) -> Mapping[str, float]:
        return {"params": spec["n"] * spec["p"], "train_flops": 2e12 * spec["n"]}

    plan = {"model": {"name": "my-table-lookup", "spec": {"n": 20_000}}, "hardware": {"name": "h100"}}
    estimate = answer(plan_from_data(plan)).estimate
    assert float(estimate.model.parameters) == 20_000 * 50
    assert calculate({"n": 1, "p": 1})["params"] == 1
    with pytest.raises(CatalogError, match="my_other"):
        register_model("my_other", {"_hidden": 1})(calculate)
    monkeypatch.undo()
    load_plugins.cache_clear()
