"""Formulas as the program shows them, evaluated from their text alone."""

import math
import re

_SPELLING = (
    ("·", "*"),
    ("^", "**"),
    (r"re:(?<=\d) (?=\d)", ""),
    (r"re:(\w+) divides (\w+)", r"(\2 % \1 == 0)"),
    (r"re:(?<![<>=])=(?!=)", "=="),
)
FUNCTIONS = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "ln": math.log,
    "inf": math.inf,
    "exp": math.exp,
    "clip": lambda value, low, high: max(low, min(value, high)),
}


def value_of(formula, symbols):
    """Return what a formula gives: ``result = expression``, then ``name = expression`` for what it names."""
    first, *further = _clauses(formula.replace("{addends}", "total = " + " + ".join(symbols)))
    names = dict(symbols)
    for clause in (*reversed(further), first):
        name, _, expression = clause.partition(" = ")
        names[name] = value_of_expression(expression, names)
    return names[first.partition(" = ")[0]]


def value_of_expression(expression, names):
    """Return what one expression gives; nothing where its only condition does not hold."""
    if " if " in expression and " else " not in expression:
        expression += " else nan"
    for old, new in _SPELLING:
        expression = re.sub(old[3:], new, expression) if old.startswith("re:") else expression.replace(old, new)
    return eval(expression, {"__builtins__": {}}, {**FUNCTIONS, "nan": math.nan, **names})


def _clauses(formula):
    """Split a formula at the commas outside its brackets."""
    depth, clauses = 0, [""]
    for letter in formula:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            clauses.append("")
        else:
            clauses[-1] += letter
    return [clause.strip() for clause in clauses]
