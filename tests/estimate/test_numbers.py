"""Numbers in formulas are named facts of the catalogue with a source, not digits in code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sources import ROOT, nodes_of, source_files, text_of

from capacity_tui.engine.catalog import counts, load_catalog
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import explain

ESTIMATE = ROOT / "engine/estimate"
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
    return [
        (node.lineno, node.value)
        for node in nodes_of(file)
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    ]


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
