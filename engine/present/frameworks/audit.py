"""An audit of files of other tools: what they will do, as plain data and as the parts of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capacity_tui.engine.errors import Place
from capacity_tui.engine.estimate import figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import all_fields
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.present.results import picked, plan_value_text, result_as_dict
from capacity_tui.engine.present.summary import further_assumptions, note_parts, verdict_part
from capacity_tui.engine.solve import Audit, Finding
from capacity_tui.engine.units import format_bytes
from capacity_tui.engine.verdict import Verdict

_TRAINED = (
    Figure.MEMORY_RESERVED_BYTES,
    Figure.STEP_SECONDS,
    Figure.TOKENS_PER_SECOND,
    Figure.ESTIMATED_TRAIN_TIME_SECONDS,
    Figure.COST_USD,
    Figure.COST_USD_PER_HOUR,
)

_SERVED = (
    Figure.MEMORY_RESERVED_BYTES,
    Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    Figure.REQUESTS_PER_SECOND,
    Figure.COST_USD_PER_HOUR,
    Figure.COST_USD_PER_MILLION_TOKENS,
)


def audit_as_dict(audit: Audit) -> dict[str, object]:
    imported, answer = audit.imported, audit.answer
    fits, verdict = (None, None) if imported.is_fragment else (False, Verdict.CANNOT_RUN.value)
    not_understood = tuple(imported.not_understood)
    return {
        "files": [{"file": reading.file, "tool": reading.tool.name} for reading in imported.readings],
        "plan": (answer.plan if answer else imported.plan).plain_data(),
        "settings": [
            {
                "field": path,
                "value": setting.value,
                "from": setting.level,
                **_place(setting.place),
                "words": setting.words,
            }
            for path, setting in imported.settings.items()
        ],
        "fits": answer.estimate.fits if answer else fits,
        "verdict": answer.estimate.verdict.value if answer else verdict,
        "moments": [
            {"moment": moment.name, "bytes": round(moment.size), "short_bytes": round(moment.short)}
            for moment in audit.memory_phases
        ],
        "contradictions": [
            {
                "rule": contradiction.code,
                **picked(contradiction, "title", "detail"),
                "places": _places(contradiction.places),
            }
            for contradiction in audit.contradictions
        ],
        "wasted": [{**picked(entry, "code", "title", "detail"), "saves": dict(entry.saves)} for entry in audit.wasted],
        "not_modelled": [
            {**_place(entry.place), "why": entry.why} for reading in imported.readings for entry in reading.unmodelled
        ],
        "unknown": [
            {**_place(entry.place), "nearest": entry.why or None}
            for reading in imported.readings
            for entry in reading.unknown
        ],
        "ignored": _places(place for reading in imported.readings for place in reading.ignored),
        "guessed": list(imported.guesses),
        "not_understood": list(not_understood),
        "result": result_as_dict(answer.plan, answer.estimate, not_understood) if answer else None,
    }


def _setting_rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Return the settings of the plan as understood: what, its value, and where it comes from."""
    fields = all_fields()
    order = {path: index for index, path in enumerate((Key.TASK, *fields))}
    rows = []
    for path, setting in sorted(audit.imported.settings.items(), key=lambda entry: order.get(entry[0], 0)):
        known = fields.get(path)
        rows.append((known.knob.label if known else path, plan_value_text(setting.value), setting.words))
    return rows


def _figure_rows(audit: Audit) -> list[tuple[str, str, str]]:
    if audit.answer is None:
        return []
    estimate = audit.answer.estimate
    keys = _SERVED if audit.answer.plan.is_inference else _TRAINED
    figures = (figure(estimate, key) for key in keys)
    return [(value.metric.label, value.text, value.range_text) for value in figures if value.number is not None]


def _place(place: Place) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "key": place.field}


def _places(places: Iterable[Place]) -> list[dict[str, object]]:
    return [_place(place) for place in places]


def audit_parts(audit: Audit, *, ignored: bool = False) -> Iterator[Part]:
    """Yield an audit from what it will do to what is not counted."""
    files = ", ".join(dict.fromkeys(f"{reading.file} ({reading.tool.name})" for reading in audit.imported.readings))
    yield TextPart(f"Read: {files}")
    yield TextPart("What it will do:", "strong")
    yield table_part(("setting", "value", "from"), _setting_rows(audit))
    if audit.imported.guesses:
        yield TextPart(f"Assumed, as no file gives it: {'; '.join(audit.imported.guesses)}")
    if audit.imported.is_fragment:
        yield TextPart(
            "No verdict: no file names a model that is known, which --model does, as --model llama-3.1-8b", "strong"
        )
    if audit.answer is not None:
        yield verdict_part(audit.answer.plan, audit.answer.estimate)
        if not audit.runs and any(audit.imported.not_understood):
            yield TextPart("What is not modelled or unknown, below, may turn this verdict.")
        yield table_part(("figure", "value", "range"), _figure_rows(audit), right=(1,))
        yield from further_assumptions(audit.answer.estimate)
        if audit.memory_phases:
            rows = (
                (phase.name, format_bytes(phase.size), f"{format_bytes(phase.short)} too much" if phase.short else "")
                for phase in audit.memory_phases
            )
            yield table_part(("phase of a step", "memory", ""), rows, right=(1,))
        if not audit.runs:
            yield from note_parts(audit.answer.plan, audit.answer.estimate)
    yield from _findings("Contradicts itself", audit.contradictions, "nothing")
    yield from _findings("Wasted", audit.wasted, "nothing found")
    yield from _not_counted(audit, ignored)


def _findings(title: str, findings: tuple[Finding, ...], none: str) -> Iterator[Part]:
    yield TextPart(f"{title}:" if findings else f"{title}: {none}", "strong")
    for finding in findings:
        yield TextPart(f"{finding.title}: {finding.detail}" if finding.detail else finding.title, "item")


def _not_counted(audit: Audit, ignored: bool) -> Iterator[Part]:
    """Yield the options that count for nothing, and why."""
    for reading in audit.imported.readings:
        for remark in reading.unmodelled:
            yield TextPart(f"Not modelled: {remark.place}: {remark.why}")
        for remark in reading.unknown:
            yield TextPart(f"Unknown: {remark.place}: {reading.words_of_unknown(remark)}")
    places = [place for reading in audit.imported.readings for place in reading.ignored]
    if places:
        names = f": {', '.join(str(place.field) for place in places)}" if ignored else " (--ignored names them)"
        yield TextPart(f"Without a part in an estimate: {len(places)} options{names}")
