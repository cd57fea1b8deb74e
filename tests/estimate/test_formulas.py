"""Every formula the program shows gives what its code gives."""

import importlib
import inspect
import pkgutil
from random import Random

import pytest
from formula_text import value_of, value_of_expression

from capacity_tui.engine import estimate
from capacity_tui.engine.estimate import recording
from capacity_tui.engine.estimate.derivation import Equation

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
        f"{each.function.__module__.removeprefix(estimate.__name__ + '.')}.{each.function.__name__}": each
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
