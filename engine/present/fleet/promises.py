"""What people promise of moving beside what true prices give, for people and for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from capacity_tui.engine.fleet.migration import Kept, Promise
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.part_pages import parts_as_html, parts_as_markdown
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.present.results import to_json, to_yaml

_HEADS = ("promise", "promised", "found", "range", "holds", "difference", "with")
_WORDS = {"saving_percent": "% saved", "performance_ratio": "x as fast", "spot_percent": "% off on spot"}
_TITLE = "What is promised of moving, on true prices"


def promises_as_dict(kept: Sequence[Kept]) -> dict[str, object]:
    """Return promises and what was found as plain data."""
    return {"promises": [_as_dict(each) for each in kept]}


def promises_parts(kept: Sequence[Kept]) -> Iterator[Part]:
    """Yield promises and what was found as a table, and how many hold."""
    holding = sum(each.holds for each in kept)
    yield TextPart(f"{holding} of {len(kept)} promises hold", "strong")
    yield table_part(_HEADS, map(_row, kept))
    yield TextPart("same work on both machines; spot with its interruptions; `fleet migrate` tells the rest", "quiet")


def write_promises(form: str, kept: Sequence[Kept]) -> str:
    """Return promises and what was found as json, yaml, markdown or html."""
    return _WRITERS[form](kept)


def _as_dict(each: Kept) -> dict[str, object]:
    promise, best = each.promise, each.best
    return {
        "id": promise.id,
        "promise": promise.name,
        "figure": promise.figure,
        "least": promise.least,
        "most": promise.most,
        "found": to_builtins(each.found),
        "holds": each.holds,
        "misses": each.misses,
        "from": {"instance": promise.job.instance, "devices": promise.job.devices},
        "to": None if best is None else {"instance": best.instance, "count": best.count, "price": best.price_source},
        "source": promise.source,
    }


def _row(each: Kept) -> tuple[str, ...]:
    promise = each.promise
    if each.found is None or each.best is None:
        return (promise.name, _promised(promise), "-", "-", "not known", "no price, or it does not fit", "-")
    low, high = mean(each.found.low), mean(each.found.high)
    spread = "" if low == high else f"{low:.3g} to {high:.3g}"
    found = f"{mean(each.found.value):.3g} {_WORDS[promise.figure]}"
    with_what = f"{each.best.count} x {each.best.instance}"
    return (
        promise.name,
        _promised(promise),
        found,
        spread,
        "yes" if each.holds else "no",
        _difference(each),
        with_what,
    )


def _promised(promise: Promise) -> str:
    end = " or more" if promise.most is None else f" to {promise.most:g}"
    return f"{promise.least:g}{end} {_WORDS[promise.figure]}"


def _difference(each: Kept) -> str:
    misses = each.misses or 0.0
    if not misses:
        return "as promised"
    return f"{misses:.3g} less" if misses > 0 else f"{-misses:.3g} more than the most"


_WRITERS: Mapping[str, Callable[[Sequence[Kept]], str]] = {
    "json": lambda kept: to_json(promises_as_dict(kept)),
    "yaml": lambda kept: to_yaml(promises_as_dict(kept)),
    "markdown": lambda kept: parts_as_markdown(_TITLE, promises_parts(kept)),
    "html": lambda kept: parts_as_html(_TITLE, promises_parts(kept)),
}
