"""Which figure a name stands for: short words, result keys, and what tables call it. One understanding of them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from capacity_tui.engine.catalog import key_of, nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate.figure_table import METRICS
from capacity_tui.engine.estimate.figures import keys, read_figure, usual_words
from capacity_tui.engine.estimate.metric import PARTS, Metric
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.keys import Figure

_SERVED = "infer"
_ENDS = re.compile(r"\.(value|low|high)$")


def figure_keys(name: str, task: str | None = None, known: Iterable[str] = METRICS) -> tuple[str, ...]:
    """Return the result keys that a word, a key or the name that tables show stands for, the usual one first.

    Args:
        name: a short word, a result key, or what a figure is called, as ``training time`` or ``training_time``.
        task: what is done with the model; ``infer`` has other words than all the rest.
        known: the keys that a hint may name.

    Raises:
        PlanError: no figure is called that; the hint tells the nearest.
    """
    words, text = figure_words(task), name.strip()
    if text.casefold() in words:
        return words[text.casefold()]
    key = result_key(text)
    group, _, part = key.rpartition(".")
    if key in METRICS or part in PARTS.get(group, ()):
        return (key,)
    if key_of(text) in _labels():
        return (_labels()[key_of(text)],)
    near = nearest(text, (*words, *known))
    hint = f"did you mean {' or '.join(near)}?" if near else f"short words: {', '.join(words)}"
    raise PlanError("no figure is called", repr(name)[:80], hint)


def named_figure(name: str, estimate: Estimate, task: str | None = None) -> str:
    """Return the result key of a figure of an estimate: of several that a name means the first that it has.

    Raises:
        PlanError: no figure is called that.
    """
    if (key := result_key(name.strip())) in keys(estimate):
        return key
    named = figure_keys(name, task, keys(estimate))
    return next((key for key in named if read_figure(estimate, key) is not None), named[0])


def result_key(name: str) -> str:
    """Return the result key a name stands for: its ends and short forms are names of it too."""
    bare = _ENDS.sub("", name)
    if bare.startswith(Figure.MODEL_FORWARD_FLOPS):
        return Figure.MODEL_FORWARD_FLOPS
    group, _, part = bare.partition(".")
    return f"{group}.parts.{part}" if part in PARTS.get(f"{group}.parts", ()) else bare


def open_length(key: str) -> str:
    """Return the figure that leads to the same choice where the length of a job is open: mostly the figure itself."""
    metric = METRICS.get(key)
    return key if metric is None or metric.open_length is None else metric.open_length


@cache
def figure_words(task: str | None = None) -> Mapping[str, tuple[str, ...]]:
    """Return the figures of each short word; of several percentages come first, as bare numbers are read as those."""
    by_word: dict[str, tuple[Metric, ...]] = {}
    for metric in METRICS.values():
        for word in (*metric.words, *(metric.served if task == _SERVED else metric.trained)):
            by_word[word] = (*by_word.get(word, ()), metric)
    return {
        word: tuple(metric.key for metric in sorted(metrics, key=lambda metric: metric.unit != "%"))
        for word, metrics in by_word.items()
    }


@cache
def _labels() -> Mapping[str, str]:
    """Return the figure of each name that tables show, of several the first."""
    return {key_of(usual_words(metric.label)): key for key, metric in reversed([*METRICS.items()])}
