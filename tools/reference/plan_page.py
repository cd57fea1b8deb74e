"""The page of the plan file key by key, as Markdown, from what is known of each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.plan import KnownField, all_fields, field_text, is_closed, known_words
from capacity_tui.engine.plan.field_table import condition_text

_HEAD = """# The plan file, key by key

A plan is YAML (or JSON). It needs a model, and hardware where that is not this machine; every other key has a
default, `auto` lets a mode choose, and the answer shows what was filled in. An unknown key is refused with the nearest
known one. Written by `python -m tools.reference` from what the program knows of its fields.

```yaml
version: 1
model: {name: llama-3-8b}          # or config: path/to/config.json, a .gguf, a safetensors index
training: {seq_len: 8192, micro_batch: auto, global_batch: 64, tokens: 2.0e9, checkpointing: auto}
parallelism: {zero: 3}
hardware: {name: h100-sxm-80gb, devices: 8}
```

Numbers may be written `8k` (of lengths 8192), `2.0B`, `2.0e9`, shares `85%`, durations `10min`. On the command line a
key is `--set training.micro_batch=4`. `capacity-tui validate FILE` names every fault with its line;
[editors.md](editors.md) has a schema for editors. The form of the older planner (`optimization`, `batch_size`, `epochs`
and `parallel_devices` beside the model) is read too.
"""
_TASKS = {"train": "training", "finetune": "fine-tuning", "infer": "serving", "fit": "classical models"}
_CATALOGUES = {
    "model": "a model of `capacity-tui models`, a hub id, a family, or a count of parameters such as `35B`",
    "accelerator": (
        "a name of `capacity-tui hardware` or `instances`, such as `rtx-4090` or, with a count, `8xH100-SXM`; "
        "or `detected`"
    ),
    "region": "a region of `profiles/regions.yaml`, or a part of the world such as `europe`",
    "interconnect": "a link of `profiles/links.yaml`",
}
_UNBOUNDED = 1e6  # From here on the end of a range only keeps numbers inside what can be computed
_SECTIONS = {
    "": "What is done, and with which form of plan.",
    "model": "Which model.",
    "training": "Training and fine-tuning.",
    "training.adapter": "What is trained beside a frozen base.",
    "inference": "Serving.",
    "parallelism": "How the model is spread over devices.",
    "hardware": "On what.",
    "data": "The data of a training.",
    "scalability": "Which device counts and batch sizes are compared.",
    "pricing": "What an hour costs.",
    "limits": "What the whole job may take and cost; a plan that misses one says so.",
    "watch": "What is watched for while a run goes on.",
    "recovery": "What is done when a run fails.",
    "recovery.battery": "What is done on a battery.",
    "report": "How a report is written.",
}


def plan_page() -> str:
    """Return the page, with the names that the shipped catalogue has."""
    catalog = Catalog(Path("none"))
    lines = [_HEAD]
    for section, fields in groupby(all_fields().values(), lambda field: field.path.rpartition(".")[0]):
        lines += [f"## {section or 'The whole plan'}\n", f"{_SECTIONS[section]}\n"]
        lines += [line for field in fields for line in (*_entry(field, catalog), "")]
    return "\n".join(lines)


def _entry(field: KnownField, catalog: Catalog) -> Iterator[str]:
    """Yield the lines of one field."""
    words, knob = field_text(field.path), field.knob
    yield f"### {field.path}\n"
    yield f"{knob.label}. {words.help or knob.help}\n".replace(". \n", ".\n")
    facts = (*_allowed(field), _default(field), *_where(field))
    yield f"*{'; '.join(facts)}.*"
    choices = _choices(field, words.choices, catalog)
    if choices:
        yield ""
        yield from (f"- `{name}`{f': {text}' if text else ''}" for name, text in choices.items())


def _choices(field: KnownField, told: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    known = known_words(field.path, catalog) or dict.fromkeys(field.knob.choices, "")
    return {name: told.get(name) or called for name, called in known.items()}


def _allowed(field: KnownField) -> Iterator[str]:
    """Yield what values there are."""
    knob = field.knob
    unit = f" {knob.unit}" if knob.unit else ""
    if knob.catalogue:
        yield _CATALOGUES[knob.catalogue]
    elif knob.rows or knob.choices:
        yield "one of the names below" if is_closed(field.path) or not knob.rows else "a name below, or another"
    elif knob.kind == "switch":
        yield "`true` or `false`"
    elif knob.minimum is not None and knob.maximum is not None:
        most = f" to {_number(knob.maximum)}" if knob.maximum < _UNBOUNDED else " up"
        yield f"{_number(knob.minimum)}{most}{unit}"
    else:
        yield f"a {knob.kind}{unit}" if knob.kind != "integer" else f"a whole number{unit}"
    if knob.automatic:
        yield "or `auto`"


def _number(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:g}"


def _default(field: KnownField) -> str:
    if field.default in (None, (), {}):
        return "by default as other fields say" if field.knob.resolved_from_others else "no default"
    if isinstance(field.default, bool):
        return f"default `{str(field.default).lower()}`"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"default `{value}`" if isinstance(value, str | int | float | list) else "by default its own fields"


def _where(field: KnownField) -> Iterator[str]:
    """Yield where the field applies."""
    if field.knob.tasks:
        yield f"for {' and '.join(_TASKS[task] for task in field.knob.tasks)}"
    yield from (condition_text(need) for need in field.knob.needs)
