"""An audit of other tools' configurations as plain data, under the names that scripts rely on."""

from __future__ import annotations

from collections.abc import Iterable

from capacity_tui.engine.errors import Place
from capacity_tui.engine.estimate import figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan import all_fields
from capacity_tui.engine.plan.imports import ImportedSetting
from capacity_tui.engine.present.plan_values import plan_value_text
from capacity_tui.engine.present.results import result_as_dict
from capacity_tui.engine.solve import Audit, Finding
from capacity_tui.engine.verdict import Verdict

_TRAINED = (
    Figure.MEMORY_RESERVED_BYTES, Figure.STEP_SECONDS, Figure.TOKENS_PER_SECOND,
    Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.COST_USD, Figure.COST_USD_PER_HOUR,
)  # fmt: skip
_SERVED = (
    Figure.MEMORY_RESERVED_BYTES, Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS, Figure.REQUESTS_PER_SECOND,
    Figure.COST_USD_PER_HOUR, Figure.COST_USD_PER_MILLION_TOKENS,
)  # fmt: skip


def audit_as_dict(audit: Audit) -> dict[str, object]:
    """Return the whole audit as plain data."""
    imported, answer = audit.imported, audit.answer
    return {
        "files": [{"file": each.file, "tool": each.tool.name} for each in imported.readings],
        "plan": (answer.plan if answer else imported.plan).plain_data(),
        "settings": [_setting(path, setting) for path, setting in imported.settings.items()],
        "fits": answer.estimate.fits if answer else False,
        "verdict": answer.estimate.verdict.value if answer else Verdict.CANNOT_RUN.value,
        "moments": [
            {"moment": each.name, "bytes": round(each.size), "short_bytes": round(each.short)} for each in audit.moments
        ],
        "contradictions": [
            {"rule": each.code, "title": each.title, "detail": each.detail, "places": _places(each.places)}
            for each in audit.contradictions
        ],
        "wasted": [_wasted(each) for each in audit.wasted],
        "not_modelled": [
            {**_place(each.place), "why": each.why} for reading in imported.readings for each in reading.unmodelled
        ],
        "unknown": [
            {**_place(each.place), "nearest": each.why or None}
            for reading in imported.readings
            for each in reading.unknown
        ],
        "ignored": _places(place for reading in imported.readings for place in reading.ignored),
        "guessed": list(imported.guesses),
        "result": result_as_dict(answer.plan, answer.estimate) if answer else None,
    }


def setting_rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Return the settings of the plan as understood: what, its value, and where it comes from."""
    fields = all_fields()
    order = {path: place for place, path in enumerate(("task", *fields))}
    rows = []
    for path, setting in sorted(audit.imported.settings.items(), key=lambda entry: order.get(entry[0], 0)):
        known = fields.get(path)
        rows.append((known.knob.label if known else path, plan_value_text(setting.value), setting.words))
    return rows


def figure_rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Return what the run comes to: figures, each with its range."""
    if audit.answer is None:
        return []
    estimate = audit.answer.estimate
    keys = _SERVED if audit.answer.plan.task == "infer" else _TRAINED
    found = (figure(estimate, key) for key in keys)
    return [(each.metric.label, each.text, each.range_text) for each in found if each.number is not None]


def _setting(path: str, setting: ImportedSetting) -> dict[str, object]:
    return {
        "field": path,
        "value": setting.value,
        "from": setting.level,
        **_place(setting.place),
        "words": setting.words,
    }


def _place(place: Place) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "key": place.field}


def _places(places: Iterable[Place]) -> list[dict[str, object]]:
    return [_place(place) for place in places]


def _wasted(found: Finding) -> dict[str, object]:
    return {"code": found.code, "title": found.title, "detail": found.detail, "saves": dict(found.saves)}
