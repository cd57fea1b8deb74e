"""Every formula shown gives what its code gives, and its numbers are named facts of the catalogue."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from random import Random

import pytest
from formula_text import value_of, value_of_expression
from sources import ROOT, nodes_of, source_files, text_of

from capacity_tui.engine import estimate
from capacity_tui.engine.catalog import counts, load_catalog, parse_shipped
from capacity_tui.engine.estimate import recording
from capacity_tui.engine.estimate.derivation import Equation
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import explain

SAMPLES = 300
# Where a formula holds, for those that do not hold for any positive numbers.
DOMAINS = {
    "attended_in_documents": "document <= 2 * seq",
    "distinct_experts": "active <= experts",
    "expected_loss": "max(size_power, data_power) <= 2",
    "exposed_seconds": "overlap <= 1",
    "interruption_surplus": "interval <= 1000 * period",  # beyond, the difference that is shown loses its digits
    "micro_batches_in_flight": "stage < stages",
    "passes_in_step": "reading <= passes",
    "skewed_percentile": "max(deviations, scatter / mean) <= 8",
    "sort_depth": "2 <= rows",
}


def equations():
    """Return every equation of the estimates by module and name."""
    modules = [
        importlib.import_module(m.name) for m in pkgutil.walk_packages(estimate.__path__, estimate.__name__ + ".")
    ]
    found = {
        f"{each.__module__.removeprefix(estimate.__name__ + '.')}.{each.__name__}": each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, Equation)
    }
    return dict(sorted(found.items()))


EQUATIONS = equations()


def kinds(equation):
    """Return what draws a random number for each input of an equation, after what its description says."""
    if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(equation.function).parameters.values()):
        return dict.fromkeys(("data", "work", "model"), amount)
    with recording() as record:
        equation(**dict.fromkeys(equation.symbols, 1.0))
    return {entry.name: kind(entry.meaning, entry.unit) for entry in next(iter(record)).inputs}


def kind(meaning, unit):
    """Return what draws a number of one kind."""
    assert meaning, "an input without a description"
    if meaning.startswith("1 where"):
        return lambda draw: draw.choice([0.0, 1.0])
    if meaning.startswith("share") or meaning.endswith("as a share"):
        return lambda draw: draw.choice([1.0, draw.random()])
    if unit:
        return amount
    least = 0 if meaning.endswith(("from 0", "to generate")) else 1
    return lambda draw: float(draw.choice([draw.randint(least, 8), draw.randint(least, 4096)]))


def amount(draw):
    """Return a positive number of any size."""
    return 10.0 ** draw.uniform(-3, 6)


@pytest.mark.parametrize("name", EQUATIONS)
def test_the_formula_shown_is_the_one_computed(name):
    equation, draw = EQUATIONS[name], Random(name)
    drawn, domain = kinds(equation), DOMAINS.get(equation.__name__, "1 = 1")
    samples = [{symbol: each(draw) for symbol, each in drawn.items()} for _ in range(SAMPLES)]
    inside = [symbols for symbols in samples if value_of_expression(domain, symbols)]
    assert inside
    for symbols in inside:
        shown = value_of(equation.formula, symbols)
        assert float(equation(**symbols)) == pytest.approx(shown, rel=1e-9, nan_ok=True), (
            f"{equation.formula} {symbols}"
        )


def test_a_formula_that_leaves_something_out_is_found():
    symbols = {"payload": 8.0, "group": 4.0}
    assert value_of("moved = payload · share, share = (group - 1) / group", symbols) == 6.0
    assert value_of("parts = clip(group, 1, 2) if 2 divides group else 0", symbols) == 2.0
    assert value_of("time = payload / 3 600 if group = 4", symbols) == pytest.approx(8 / 3600)
    assert value_of("rest = max(payload - group^2, 0)", symbols) == 0.0


ESTIMATE = ROOT / "engine/estimate"
COMPUTED_ELSEWHERE = {"owned_usd_per_hour"}  # by a function of the catalogue
# What arithmetic itself is made of: nothing, all, both, and a half of a symmetric whole or of a mean.
OBVIOUS = {0.0, 0.5, 1.0, 2.0}
# Guards of arithmetic and of wording, none of which changes an estimate, and grids of schemes that are held to others.
_GRID = "where a load that ends is looked at; a simulation of its passes holds that"
GUARDS = {
    "assemble.py": {0.01: "least share of a step that words name"},
    "figures.py": {1000.0: "from where prices are written without cents"},
    "money.py": {50.0: "exp() beyond is no number", 100.0: "from where on nobody would run a job that way"},
    "serving/finite_load.py": dict.fromkeys((0.7, 1.2, 4.0), _GRID),
    "serving/pass_times.py": {1e-9: "no division by zero", **dict.fromkeys((2.4, 4.0), _GRID)},
    "serving/operators.py": {1e-9: "no division by zero"},
    "timing/reliability.py": {50.0: "exp() beyond is no number: hardly any work is done"},
    "timing/schedule.py": {1e-30: "no division by zero"},
    "classical/work.py": {0.1: "share of the worst condition number that is warned of"},
}
# Operations that a textbook counts for an algorithm, and bytes of what its library keeps, are written where they are
# counted: whole or half numbers, their source in the docstring. What was measured stands in algorithms.yaml.
COUNTED_IN_PLACE = "classical"


def numbers_of(file: Path) -> list[tuple[int, float]]:
    """Return the numbers of a module and of the formulas that it computes as they are written, with their lines."""
    literals = (node for node in nodes_of(file) if isinstance(node, ast.Constant) and isinstance(node.value, float))
    rows = formulas_of(file)
    written = ((line, row) for line, name in written_in(file) for row in numbers_of_formula(rows[name]["formula"]))
    return [*((node.lineno, node.value) for node in literals), *written]


def formulas_of(file: Path) -> dict[str, dict]:
    """Return the rows of the formulas of a module's package."""
    package = "_".join(file.relative_to(ROOT / "engine").parts[:-1])
    rows = ROOT / "profiles/formulas" / f"{package}.yaml"
    return parse_shipped(rows) if rows.exists() else {}


def written_in(file: Path) -> list[tuple[int, str]]:
    """Return the formulas that a module computes as they are written, with their lines."""
    return [
        (line, match[1])
        for line, text in enumerate(text_of(file).splitlines(), 1)
        if (match := re.match(r"(\w+) = formula\(\)", text))
    ]


def numbers_of_formula(text: str) -> list[float]:
    """Return the numbers of a formula but those between units: of seconds and hours, of J and kWh, powers of ten."""
    plain = re.sub(r"\b(?:3 ?600(?: 000)?|1 ?000|100|10\^\d+)\b", "", text.partition(" = ")[2])
    return [float(number.replace(" ", "")) for number in re.findall(r"(?<![\w.])\d[\d ]*(?:\.\d+)?", plain)]


@pytest.mark.parametrize("file", source_files("engine/estimate"), ids=lambda file: str(file.relative_to(ESTIMATE)))
def test_no_formula_holds_a_number_without_a_source(file):
    name = file.relative_to(ESTIMATE).as_posix()
    allowed = OBVIOUS | set(GUARDS.get(name, {}))
    found = [(line, value) for line, value in numbers_of(file) if value not in allowed]
    if name.startswith(COUNTED_IN_PLACE):
        found = [(line, value) for line, value in found if (2.0 * value) % 1.0]
    assert not found, "give it a row in profiles/counts.yaml (counted) or coefficients.yaml (fitted), with its source"


def test_every_count_is_used_and_says_how_it_was_counted():
    code = "".join(map(text_of, source_files("engine")))
    for key, count in counts().items():
        assert f'counted("{key}")' in code, key
        assert count.value > 0
        assert len(count.source) > 10 and len(count.name) > 10


def _with_inner(derivations):
    for derivation in derivations:
        yield derivation
        yield from _with_inner(each.derivation for each in derivation.inputs if each.derivation is not None)


def test_explanations_say_where_a_counted_number_comes_from():
    plan = plan_from_data({"model": {"name": "llama-3-8b"}, "hardware": {"name": "h100-sxm-80gb", "devices": 8}})
    explanation = explain(plan, "computation.parts.compute", catalog=load_catalog()).explanation
    assert explanation.sum is not None
    found = _with_inner(term.derivation for term in explanation.sum.terms if term.derivation is not None)
    provenance = [each.provenance for derivation in found for each in derivation.inputs]
    assert any("counted: the norm reads and writes" in text for text in provenance)
    assert any("still in caches" in text for text in provenance)


PACKAGES = sorted({file.parent for file in source_files("engine") if formulas_of(file)})


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_formula_names_what_is_put_in_and_is_used(package: Path) -> None:
    modules = sorted(package.glob("*.py"))
    written = {name for file in modules for _, name in written_in(file)}
    marked = {name for file in modules for name in re.findall(r"^@equation\ndef (\w+)", text_of(file), re.MULTILINE)}
    rows = formulas_of(modules[0])
    assert written | marked | COMPUTED_ELSEWHERE & rows.keys() == rows.keys()
    for name, row in rows.items():
        assert row["source"]
        if name in written:
            words = set(re.findall(r"[A-Za-z_]\w*", row["formula"].partition(" = ")[2]))
            assert words - {"min", "max", "ceil", "sqrt", "exp", "ln"} == row["symbols"].keys()


def test_there_is_no_file_of_formulas_of_no_package() -> None:
    files = {path.stem for path in (ROOT / "profiles/formulas").glob("*.yaml")}
    assert files == {"_".join(package.relative_to(ROOT / "engine").parts) for package in PACKAGES}
