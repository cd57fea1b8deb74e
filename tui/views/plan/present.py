"""The plan of each mode and each pinned plan as columns, and in the forms it can be exported as."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import METRICS as FIGURES
from capacity_tui.engine.estimate import (
    Answer,
    Estimate,
    UsedShare,
    figure,
    figure_text,
    interval_text,
    limit_label,
    panel_figures,
    resolve_plan,
)
from capacity_tui.engine.estimate import Note as EngineNote
from capacity_tui.engine.explain import roofline
from capacity_tui.engine.keys import Figure, Key, Parts
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.models import family_of, find_known_model
from capacity_tui.engine.plan import OWN_PARAMETERS, Plan, field_text, plan_values
from capacity_tui.engine.present import ExplanationText, Report, exported_plan, headline, plan_value_text, write_report
from capacity_tui.engine.present.frameworks import (
    TARGETS,
    TOOLS,
    adapter_tools,
    export_files,
    framework_files,
    targets_of,
)
from capacity_tui.engine.present.pictures import PICTURES, picture_file, picture_of
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import history_entry, history_place, record_run
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve import EstimatedPlan, answer, command_text, command_words, settings_for_plan
from capacity_tui.engine.solve.advice import larger_devices_note
from capacity_tui.engine.solve.modes import ModeGroup, ModePlan, fill, single
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_bytes
from capacity_tui.engine.verdict import Holds, Verdict
from capacity_tui.tui.shown.comparison import Chosen, Column, Note, Row
from capacity_tui.tui.shown.results import Export
from capacity_tui.tui.views.plan.field_values import headlines, missed, usage, verdict_words

_SHARE = "mode."  # Before the figure of which a mode allows a share
ROOM = (Figure.INFERENCE_LARGEST_BATCH, Figure.INFERENCE_LONGEST_CONTEXT)  # How much more would fit
_ROLES = {Holds.YES: "", Holds.LIKELY: "warn", Holds.NO: "bad"}

_BRIEF = {
    "conservative": "cons.",
    "balanced": "bal.",
    "extreme": "extr.",
    "lowest latency": "fast",
    "cheapest token": "cheap",
}
"""Names of modes where there is little room."""

# What decides first whether a run fits; limits of other figures come next.
_MEMORY = (Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_UTILIZATION_PERCENT)
_INDENTED = {Figure.MEMORY_UTILIZATION_PERCENT, Figure.MFU}  # Rows that belong to the one above
_SHARE_LABELS = {"memory": "memory budget", "power": "power of TDP"}

_SHARE_HELP = {
    "memory": "Memory that the run uses, and the share its mode allows. What the mode leaves free is for spikes and "
    "other programs.",
    "power": "Power that the run draws, as a share of its devices' limit (TDP). Where it is above what the mode "
    "allows, the mode says how far to lower the limit.",
}


def column(group: ModeGroup, catalog: Catalog, machine: Machine | None = None) -> Column:
    """Return what one mode makes of a plan, or several that make the same of it."""
    filled, estimate = group.shown, group.shown.annotated_estimate
    larger = larger_devices_note(EstimatedPlan.of(filled.plan, filled, machine))
    return Column(
        mode=filled.mode.title,
        verdict=estimate.verdict,
        reason=estimate.reason,
        verdict_words=verdict_words(estimate),
        verdict_brief=verdict_words(estimate, brief=True),
        rows=tuple(_explained(filled.plan, estimate)),
        chosen=_chosen(filled, catalog),
        brief=_BRIEF.get(filled.mode.title, ""),
        usage=usage(estimate),
        headlines=tuple(headlines(filled.plan, estimate)),
        missed=missed(estimate),
        notes=tuple(_note(note) for note in (larger, *estimate.warnings, *estimate.recommendations) if note),
        title=group.head,
        about=tuple(_about(group)),
        alike=group.modes,
    )


def _about(group: ModeGroup) -> Iterator[str]:
    """Yield what the modes of a column are, and how much of their shares the run uses."""
    choice = group.shown.annotated_estimate.basis.filled_by
    if choice is not None:
        yield from (plan.mode.line for plan in group.plans)
        yield from (share.words for share in choice.shares)


def setting_reason(filled: ModePlan, mode: str, key: str) -> ExplanationText | None:
    """Return why a mode chose a setting, and what of its shares it uses; None for a key that is a figure."""
    if key.startswith(_SHARE):
        share = _share(filled.annotated_estimate, key)
        title = f"share of {key.removeprefix(_SHARE)} ({mode})"
        return None if share is None else ExplanationText(key, title, filled.mode.line, share.words)
    if key.partition(".")[0] not in {"training", "parallelism", "inference", "model", "watch", "recovery"}:
        return None
    if key in ROOM:
        return _room_explained(filled, mode, key)
    given = "set in the plan"
    why = {**filled.running, **filled.reasons}.get(key, given)
    value = filled.plan.value(key)
    return ExplanationText(
        key=key,
        title=f"{key} ({mode})",
        formula=why,
        result="" if value is None else str(value),
        lever="" if why != given else "backspace on the field sets it back to auto, where that is possible",
    )


def _room_explained(filled: ModePlan, mode: str, key: str) -> ExplanationText:
    value = figure(filled.annotated_estimate, key)
    what = "prompt" if key == ROOM[1] else "batch"
    how = f"the largest {what} that fits a device beside weights and workspace, all else unchanged"
    return ExplanationText(key=key, title=f"{value.title} ({mode})", formula=how, result=value.text)


def _share(estimate: Estimate, key: str) -> UsedShare | None:
    choice = estimate.basis.filled_by
    shares = () if choice is None else choice.shares
    return next((share for share in shares if f"{_SHARE}{share.figure}" == key), None)


def warning_lines(estimate: Estimate) -> tuple[str, ...]:
    """Return what to know before relying on an estimate, one sentence or two each."""
    return tuple(f"{note.title}: {note.detail}" for note in estimate.warnings)


def _rows(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    """Yield what it comes to first, then what the modes chose, then the parts."""
    if Key.MODEL_NAME in estimate.basis.chosen:
        yield Row(Key.MODEL_NAME, "model", str(plan.model.name))
    figures = [_figure_row(estimate, key) for key in panel_figures(estimate)]
    yield from (row for row in figures if row.key in _MEMORY)
    yield from _limit_rows(estimate)
    if plan.is_inference and estimate.computation.infer is not None:
        sizes = (plan.inference.prompt_tokens, plan.inference.output_tokens)
        yield Row(Key.INFERENCE_PROMPT_TOKENS, "request", f"{' + '.join(map(plan_value_text, sizes))} tok")
    yield from figures
    yield Row(Figure.BOTTLENECK_ARITHMETIC_INTENSITY, "limited by", limit_label(estimate.bottleneck.kind))
    yield from _setting_rows(plan, estimate)
    yield from _share_rows(estimate)
    for part, size in estimate.memory.parts.items():
        if float(size) > 0:
            yield replace(_figure_row(estimate, f"{Parts.MEMORY}.{part}"), indent=1)


def _explained(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    """Yield every row once, with what its figure or its field of the plan means and whether it keeps its limit."""
    limits = {limit.figure: limit.holds for limit in estimate.constraints}
    rows: dict[str, Row] = {}
    for row in _rows(plan, estimate):
        rows.setdefault(row.key, row)
    for key, row in rows.items():
        role = _ROLES[limits[key]] if key in limits else ""
        yield replace(row, help=row.help or figure_text(key) or field_text(key).help, role=role)


def _limit_rows(estimate: Estimate) -> Iterator[Row]:
    """Yield the figures that are under a limit besides memory of the devices: of the host, latency, load."""
    for limit in estimate.constraints:
        if limit.figure in FIGURES and limit.figure != Figure.MEMORY_RESERVED_BYTES:
            yield replace(_figure_row(estimate, limit.figure), label=limit.name, brief=limit.label)


def _setting_rows(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    """What the modes decide, whether they did or the plan said so."""
    parallel, training = plan.parallelism, plan.training
    if plan.is_inference:
        if not plan.inference.is_load:
            yield Row(Key.INFERENCE_BATCH, "batch", plan_value_text(plan.inference.batch))
        yield Row(Key.INFERENCE_WEIGHTS, "weights as", plan_value_text(plan.inference.weights))
        if estimate.computation.infer is not None:
            yield Row(Key.INFERENCE_KV_CACHE, "KV cache as", plan_value_text(plan.inference.kv_cache))
        yield from _layout_rows(plan)
        return
    if plan.is_fit:
        for name, label in (("n_jobs", "cores"), ("precision", "precision")):
            if plan.model.spec.get(name) is not None:
                yield Row(f"{Key.MODEL_SPEC}.{name}", label, plan_value_text(plan.model.spec[name]))
        return
    replicas = int(parallel.dp or 1)
    accumulation = int(training.global_batch or 1) / (int(training.micro_batch) * replicas)
    if estimate.computation.unit == "token":
        yield Row(Key.TRAINING_SEQ_LEN, "sequence", plan_value_text(training.seq_len))
    yield Row(Key.TRAINING_MICRO_BATCH, "micro × accum", f"{training.micro_batch} × {accumulation:g}")
    yield Row(Key.TRAINING_CHECKPOINTING, "checkpointing", training.checkpointing)
    layout = tuple(_layout_rows(plan))
    yield from layout
    if layout:
        yield Row(Key.PARALLELISM_ZERO, "ZeRO", plan_value_text(parallel.zero))


def _layout_rows(plan: Plan) -> Iterator[Row]:
    """Yield how the devices share the work; nothing of one device."""
    parallel = plan.parallelism
    sizes = tuple(int(size or 1) for size in (parallel.dp, parallel.tp, parallel.pp))
    if max(*sizes, int(parallel.cp)) > 1:
        yield Row(Key.PARALLELISM_DP, "dp × tp × pp", " × ".join(map(str, sizes)))


def _share_rows(estimate: Estimate) -> Iterator[Row]:
    """Yield what the run uses of the shares of its mode; nothing where no mode chose anything."""
    for name in ("memory", "power"):
        share = _share(estimate, f"{_SHARE}{name}")
        if share is not None:
            yield Row(f"{_SHARE}{name}", _SHARE_LABELS[name], share.text, help=_SHARE_HELP[name])


def _figure_row(estimate: Estimate, key: str) -> Row:
    shown = figure(estimate, key)
    metric, value = shown.metric, shown.value
    low, high = (float(value.low), float(value.high)) if isinstance(value, Interval) else (None, None)
    is_share = key == Figure.MEMORY_UTILIZATION_PERCENT
    return Row(
        key=key,
        label=metric.label,
        text=shown.text,
        # Without its value no delta is shown: the row above has the same one.
        value=None if is_share else shown.number,
        low=low,
        high=high,
        interval=interval_text(value),
        better=metric.better,
        indent=int(key in _INDENTED),
        brief=metric.brief,
        share=usage(estimate).share if is_share else None,
    )


def _chosen(filled: ModePlan, catalog: Catalog) -> dict[str, Chosen]:
    """Return every field of the filled plan, with the reason where the mode chose it."""
    name = filled.plan.model.name
    kind = family_of(name, catalog).kind
    known = find_known_model(name, catalog) if name and kind == "network" else None
    sizes = {} if known is None else {f"{OWN_PARAMETERS}{parameter}": size for parameter, size in known.sizes.items()}
    why = {**filled.running, **filled.reasons}
    chosen = {}
    for path, given in plan_values(filled.plan, kind).items():
        value = sizes.get(path) if given is None else given
        if value in (None, AUTO):  # what only the machine can tell that runs it
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        number = float(str(value)) if is_number else None
        chosen[path] = Chosen(plan_value_text(value), why.get(path, ""), number)
    return chosen


def _note(note: EngineNote) -> Note:
    saved = (note.saves or {}).get(Figure.MEMORY_RESERVED_BYTES)
    return Note(note.title, note.detail, f"saves {format_bytes(-saved)}" if saved and saved < 0 else "")


@dataclass(frozen=True, slots=True)
class PinnedPlans:
    """Estimates of the plans beside a plan, each made once: they stay as they are while the plan is edited."""

    # plan, machine and estimate of each, by the plan's identity
    kept: dict[int, tuple[Plan, Machine | None, ModePlan]] = field(default_factory=dict)

    def filled(self, plan: Plan, machine: Machine | None, catalog: Catalog) -> ModePlan:
        known = self.kept.get(id(plan))
        if known is None or known[0] is not plan or known[1] is not machine:
            known = plan, machine, fill(plan, "balanced", machine, catalog)
            self.kept[id(plan)] = known
        return known[2]

    def column(self, name: str, plan: Plan, machine: Machine | None, catalog: Catalog) -> Column:
        """Return a plan as a column; one that cannot be estimated says why."""
        try:
            filled = self.filled(plan, machine, catalog)
        except CapacityError as error:
            return Column(name, Verdict.CANNOT_RUN, error.one_line(), (), is_pinned=True)
        made = column(single(filled), catalog, machine)
        about = f"{name}: {headline(filled.plan, filled.estimate)}"
        return replace(made, mode=name, brief="", title=name, alike=(), about=(about,), is_pinned=True)


_PAGES = {"markdown": ("Report in Markdown", ".md"), "html": ("Report as a web page", ".html")}


def exports_of(
    written: Plan, filled: Plan, name: str, what: str, machine: Machine | None, catalog: Catalog
) -> tuple[Export, ...]:
    """Return every form of a settled plan."""
    answered = answer(filled, machine, catalog)

    def keep(setting: str) -> str:
        return record_run(history_entry(answered), history_place(setting=setting))

    return tuple(replace(export, keep=keep) for export in _exports(written, answered, name, what, machine, catalog))


def _exports(
    written: Plan, answered: Answer, name: str, what: str, machine: Machine | None, catalog: Catalog
) -> Iterator[Export]:
    yield Export(
        "Plan as YAML", "all that will run, with its predictions", {f"{name}.yaml": exported_plan(answered, what)}
    )
    words = command_words(written, machine, catalog) or command_words(answered.plan, machine, catalog)
    if words is not None:
        yield Export("One-line command", "the same plan without a file", {f"{name}.sh": f"{command_text(words)}\n"})
    yield from _framework_folders(answered, name, machine, catalog)
    for target in targets_of(answered, catalog):
        if target in TOOLS:
            continue  # among the files of frameworks
        files = export_files(target, answered, catalog)
        yield Export(TARGETS[target], f"export {target}: {', '.join(files)}", files, f"{name}-{target}")
    for form, (title, suffix) in _PAGES.items():
        text = write_report(form, Report(answered, roofline))
        yield Export(title, "figures, ranges, advice and sources", {f"{name}{suffix}": text})
    for title, drawing in _drawn(answered):
        named = f"{name}-{title.casefold()}.svg"
        yield Export(f"Picture: {title}", "SVG; a name that ends in .png makes it PNG", {named: drawing})


def _drawn(answered: Answer) -> Iterator[tuple[str, str]]:
    """Yield what there is to draw of a plan: titles, and SVG files."""
    for group, title in PICTURES.items():
        picture = picture_of(group, answered)
        if picture is not None and (drawing := picture_file(picture)):
            yield title, drawing


def _framework_folders(answered: Answer, name: str, machine: Machine | None, catalog: Catalog) -> Iterator[Export]:
    """Yield the files of the plan's framework or engine, and those of other tools that fine-tune its adapters."""
    resolved = resolve_plan(answered.plan, catalog, machine)
    settings = settings_for_plan(answered.plan, machine, catalog)
    own = framework_files(resolved, catalog, settings)
    seen = set()
    for tool in (None, *adapter_tools(resolved, catalog)):
        files = own if tool is None else framework_files(resolved, catalog, settings, tool)
        choice = tuple(file for file in files if file != "environment.sh")
        if choice not in seen:
            seen.add(choice)
            title = f"Files for {tool}" if tool else "Framework files"
            folder = "-".join((name, tool.lower() if tool else "run"))
            yield Export(title, ", ".join(choice) or "environment.sh", files, folder)
