"""A plan imported from configurations of other tools, with the command line on top."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath

from capacity_tui.engine.catalog import Catalog, gguf_type, load_catalog
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.files import typed_path
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.consequences import is_model_file
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.imports.batches import target
from capacity_tui.engine.plan.imports.derived import DEVICES, plan_values, settled
from capacity_tui.engine.plan.imports.setting import Clash, ImportedSetting, Reading, Settings
from capacity_tui.engine.plan.imports.shapes import (
    assumed_load,
    assumed_samples,
    assumed_sizes,
    flavored_model,
    known_layers,
    known_row,
    loaded_as_published,
    loaded_by_release,
    model_of_sizes,
    recomputation,
    requests,
    stages,
    towers,
)
from capacity_tui.engine.plan.imports.sources import read_files
from capacity_tui.engine.plan.line.lexicon.hardware_words import named_hardware
from capacity_tui.engine.plan.line.lexicon.model_words import MODEL, is_size, named_model, sized_model
from capacity_tui.engine.plan.line.lexicon.words import FINETUNE
from capacity_tui.engine.plan.plan import DETECTED, Plan
from capacity_tui.engine.plan.sections import FULL
from capacity_tui.engine.plan.validation import checked_plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO

_HARDWARE, _FILE = Key.HARDWARE_NAME, Key.MODEL_CONFIG
_SECTIONS = ("model", "hardware", "training", "inference", "parallelism")
_CONFIG = "config.json"
# Networks of layers have no sequence, the first of these.
_ASSUMED = (Key.TRAINING_SEQ_LEN, Key.TRAINING_MICRO_BATCH, Key.TRAINING_PRECISION)
_RANK = Key.TRAINING_ADAPTER_RANK
_WHOLE = 16  # Bits of a weight that is not quantized
_SERVED, _TRAINING = "infer", "training."
_WEIGHTS = re.compile(r"(.+)\.(?:safetensors|ckpt|pt|pth)", re.IGNORECASE)  # A file of weights, by its name
_OF_ANY_MODEL = re.compile(
    r"(?:\w*model|consolidated|checkpoint|weights|last|best|final|latest)?[-_.\d]*(?:of[-_.\d]*)?", re.IGNORECASE
)
_ROOTS = ("/", "~", ".")  # What paths of this machine begin with
_MAKER = re.compile(r"^(NVIDIA|AMD)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Imported:
    """A plan imported from files of other tools."""

    plan: Plan
    readings: tuple[Reading, ...]  # what was read from each file
    settings: Mapping[str, ImportedSetting]  # origin of each value of the plan, by field
    clashes: tuple[Clash, ...]  # settings that contradict each other
    guesses: tuple[str, ...]  # assumptions, in words

    @property
    def places(self) -> Mapping[str, Place]:
        """Where fields of the plan stand in the files."""
        return {path: setting.place for path, setting in self.settings.items() if setting.place.file is not None}

    @property
    def is_fragment(self) -> bool:
        """Whether no file names a model, so that nothing can be estimated."""
        return _names_no_model(self.settings)

    @property
    def not_understood(self) -> Iterator[str]:
        """Options that their tools are not known to have, or that plans have no word for."""
        for reading in self.readings:
            yield from (str(remark.place) for remark in (*reading.unmodelled, *reading.unknown))

    def notes(self) -> Iterator[str]:
        """Yield what to know of the files, a line each."""
        files = " and ".join(dict.fromkeys(f"{reading.file} ({reading.tool.name})" for reading in self.readings))
        options = (setting.place for setting in self.settings.values() if setting.level == "said")
        counted = len({(place.file, place.field) for place in options})
        ignored = sum(len(reading.ignored) for reading in self.readings)
        yield f"imported {files}: {counted} options used, {ignored} have no effect on an estimate"
        yield from (f"contradiction: {clash.title}: {clash.detail}" for clash in self.clashes)
        for reading in self.readings:
            yield from (f"{remark.place}: not modelled: {remark.why}" for remark in reading.unmodelled)
            for remark in reading.unknown:
                yield f"{remark.place}: {reading.words_of_unknown(remark)}"
        if self.guesses:
            yield f"assumed: {'; '.join(self.guesses)}"


def import_plan(
    names: Sequence[str],
    typed: Mapping[str, object] | None = None,
    base: Plan | None = None,
    catalog: Catalog | None = None,
    *,
    allow_stand_in: bool = False,
    allow_fragment: bool = False,
) -> Imported:
    """Return the plan of configurations that were written for other tools.

    Precedence: typed values, options in files, the plan they are laid over, defaults of the tools.

    Args:
        names: files, or folders of them.
        typed: values by path from the command line.
        base: a plan to lay them over.
        allow_stand_in: whether a usual model of the same size may stand in for one that is not known.
        allow_fragment: whether files that name no model are read for what they say; the plan has none then.

    Raises:
        CapacityError: a file cannot be read or is of no known tool, or the plan lacks its model or hardware.
    """
    facts = catalog or load_catalog()
    readings = read_files(names, (typed or {}).get(DEVICES))
    imported = [setting for reading in readings for setting in reading.settings]
    given = [*imported, *_base_settings(base), *_typed_settings(typed or {})]
    settings = settled([*loaded_as_published(given, facts), *_devices_of_machines(given, facts)])
    model_of_sizes(settings, facts)
    flavored_model(settings, facts)
    if allow_fragment and not any(name in settings.chosen for name in (MODEL, _FILE, "model", "built_model")):
        settings.derive(MODEL, AUTO, "no file names a model")
    stands_open = allow_fragment and not allow_stand_in
    guesses = [
        *_model(settings, readings, facts, may_be_open=stands_open, allow_stand_in=allow_stand_in),
        *_task(settings),
    ]
    layers = known_layers(settings, facts)
    stages(settings, layers)
    recomputation(settings, layers)
    requests(settings, facts)
    _kept_as_released(settings, facts)
    towers(settings, facts)
    target(settings, known_row(settings, facts))
    guesses += loaded_by_release(settings)
    _hardware(settings, readings, facts)
    for remark in settings.remarks:
        next((one for one in readings if one.file == remark.place.file), readings[0]).unmodelled.append(remark)
    origins = {path: setting for path, setting in plan_values(settings) if setting.level != "base"}
    values = {path: setting.value for path, setting in origins.items()}
    try:
        plan = checked_plan(_sections(values)) if base is None else edited(base, values, facts).plan
    except PlanError as error:
        setting = origins.get(error.place.field or "")
        if setting is None or setting.place.file is None:
            raise
        raise PlanError(error.title, error.detail, error.hint, setting.place) from None
    if plan.is_inference:
        # What a tool does by itself where it trains says nothing of what it serves.
        origins = {path: one for path, one in origins.items() if not path.startswith(_TRAINING) or one.level == "typed"}
    guesses += _assumed(settings, plan, facts)
    return Imported(plan, tuple(readings), origins, tuple(settings.clashes), tuple(guesses))


def _devices_of_machines(given: Sequence[ImportedSetting], catalog: Catalog) -> Iterator[ImportedSetting]:
    """Yield the processes on a node where a job asks for so many machines of a cloud by their name."""
    asks = {one.field for one in given}
    for one in given:
        if one.field == "device" and "nodes" in asks and not asks & {_HARDWARE, "per_process", "processes"}:
            row = catalog.instances.get(catalog.instances.find_id(str(one.value)) or "")
            if row is not None and row.accelerator_count >= 1:
                yield replace(one, field="per_process", value=int(row.accelerator_count))


def _kept_as_released(settings: Settings, catalog: Catalog) -> None:
    """Take the format that a model is released in for that of a GGUF in 16 bits of it, where such files keep that."""
    named, row = settings.chosen.get(Key.INFERENCE_WEIGHTS), known_row(settings, catalog)
    if named is None or row is None or row.weights is None or gguf_type(named.text) is None:
        return
    released, stored = catalog.quantizations.find(row.weights), catalog.quantizations.find(str(named.value))
    if settings.value(Key.INFERENCE_ENGINE) in released.engines and (stored.body_bits or 0) >= _WHOLE:
        settings.derive(named.field, row.weights, f"{named.words}, which keeps what is released in {row.weights}")


def _names_no_model(settings: Mapping[str, ImportedSetting]) -> bool:
    model = settings.get(MODEL)
    return model is not None and (model.value, model.level) == (AUTO, "derived")


def _assumed(settings: Settings, plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Yield what is assumed of the load, or of the training of a model, that no file gives."""
    if plan.is_inference:
        yield from assumed_load(settings, plan)
    if plan.is_inference or _names_no_model(settings.chosen):
        return
    is_network = catalog.networks.find_id(str(plan.model.name)) is not None
    assumed = (*_ASSUMED[is_network:], *((_RANK,) if plan.training.adapter is not None else ()))
    yield from (f"{path} {plan.value(path)}: given by no file" for path in assumed if path not in settings.chosen)
    yield from assumed_sizes(settings)
    yield from assumed_samples(settings)


def _typed_settings(typed: Mapping[str, object]) -> Iterator[ImportedSetting]:
    """Yield the settings of the command line."""
    for path, value in typed.items():
        yield ImportedSetting(path, value, Place(field="the command line"), str(value), level="typed")


def _base_settings(base: Plan | None) -> Iterator[ImportedSetting]:
    """Yield the settings that a plan gives explicitly."""
    for section in () if base is None else _SECTIONS:
        part = getattr(base, section)
        for name in sorted(part.model_fields_set):
            value = getattr(part, name)
            if value not in (None, AUTO):
                yield ImportedSetting(f"{section}.{name}", value, Place(field="the plan"), str(value), level="base")


def _model(
    settings: Settings, readings: Sequence[Reading], catalog: Catalog, *, may_be_open: bool, allow_stand_in: bool
) -> Iterator[str]:
    """Settle the model: as typed, else as a file names it, which may be open where asked; yield assumptions."""
    built = settings.chosen.get("built_model")
    given = _of_known_model(settings, catalog) or built
    if any(path in settings.chosen for path in (MODEL, _FILE)):
        return
    if given is None:
        hint = "add --model, such as --model llama-3.1-8b"
        raise PlanError("no model is named", _files(readings), hint)
    # ModelScope's folders have ___ for a dot, and those of Windows other slashes.
    name = str(given.value).replace("\\", "/").replace("___", ".")
    path = _model_file(name, given)
    if path is not None:
        settings.chosen[_FILE] = replace(given, field=_FILE, value=str(path))
        return
    last = name.rstrip("/").rpartition("/")[2]
    last = named[1] if (named := _WEIGHTS.fullmatch(last)) is not None else last
    of_hub = (row.hf_id for row in catalog.architectures.values() if row.hf_id and row.hf_id.endswith(f"/{last}"))
    served, is_path = settings.value("served_as"), is_model_file(name, catalog)
    # A folder is called as its repository, whatever people mean by Qwen-7B; then parts (Qwen_Qwen3.6-35B-A3B has its
    # maker before it), and names that are served.
    tried = (
        *(*of_hub, *((last,) if name.startswith(_ROOTS) else ()), *(() if is_path else (name,))),
        *(
            last,
            "/".join(name.rstrip("/").split("/")[-2:]),
            last.partition("_")[2],
            *([str(built.value)] if built is not None else ()),
            *_folders(name),
        ),
        *(served if isinstance(served, tuple) and is_path else ()),
    )
    match = next(filter(None, (named_model(one, catalog) for one in tried if not is_model_file(one, catalog))), None)
    if match is None and allow_stand_in:
        size = next(filter(is_size, re.split(r"[\s_/-]+", last)), None)
        match = sized_model(size, catalog) if size is not None else None
    if match is None and may_be_open and is_path:
        settings.derive(MODEL, AUTO, f"{given.words}: not on this machine")
        yield f"no model: {name} is not on this machine, and its name is of none that is known"
        return
    if match is None:
        near = ", ".join(catalog.architectures.nearest(name))
        says = "--model says what is meant, --stand-in takes a usual model of its size"
        hint = f"nearest: {near}; {says}" if near else says
        raise PlanError("no model is known as", repr(name)[:80], hint, given.place)
    for field, value in match.values.items():
        settings.chosen[field] = replace(given, field=field, value=value)
    if match.why:
        yield match.why


def _of_known_model(settings: Settings, catalog: Catalog) -> ImportedSetting | None:
    """Return the option that names the model: of several, as of a reward and a policy, the first that is known."""
    given = settings.chosen.get("model")
    alike = [one for one in settings.all.get("model", ()) if given is not None and one.level == given.level]
    if len({str(one.value) for one in alike}) < 2 or _model_file(str(alike[0].value), alike[0]) is not None:
        return given
    names = ((one, str(one.value), str(one.value).rstrip("/").rpartition("/")[2]) for one in alike)
    known = (one for one, *tried in names if any(named_model(name, catalog) is not None for name in tried))
    return next(known, given)


def _folders(name: str) -> tuple[str, ...]:
    """Return the folders of a path of this machine: ``saves/qwen3-4b/full/sft`` is of a model that one is called by.

    A file of weights has a name of its own, unless that is the one of all of them.
    """
    folders = name.strip("/").split("/")
    if (named := _WEIGHTS.fullmatch(folders[-1])) is not None and _OF_ANY_MODEL.fullmatch(named[1]) is None:
        return ()
    # A folder of the hub's cache is called models--Qwen--Qwen3-8B.
    names = (folder.removeprefix("models--").replace("--", "/") for folder in folders[:-1])
    return tuple(names) if len(folders) > 2 else ()


def _model_file(name: str, given: ImportedSetting) -> Path | None:
    """Return the configuration of a model that lies on this machine, where the file names its folder."""
    folder = Path(given.place.file or "").parent
    with suppress(OSError, ValueError):
        for tried in (typed_path(name), folder / name):
            if (tried / _CONFIG).is_file():
                return tried / _CONFIG
            if tried.is_file():
                return tried
    return None


def _task(settings: Settings) -> Iterator[str]:
    """Settle the task: adapters are fine-tuned; yields nothing, since that is no assumption."""
    if Key.TASK not in settings.chosen and settings.value(Key.TRAINING_METHOD) not in (None, FULL):
        settings.derive(Key.TASK, FINETUNE, settings.chosen[Key.TRAINING_METHOD].words)
    yield from ()


def _hardware(settings: Settings, readings: Sequence[Reading], catalog: Catalog) -> None:
    """Settle the hardware."""
    if _HARDWARE in settings.chosen:
        return
    device = settings.chosen.get("device")
    if device is not None:
        match = named_hardware(_spaced(str(device.value)), catalog)
        if match is not None:
            hardware = replace(device, field=_HARDWARE, value=match.values[_HARDWARE])
            settings.chosen[_HARDWARE] = _cluster_of(settings, str(hardware.value), catalog) or hardware
            return
    if settings.value("on_cpu"):
        settings.chosen[_HARDWARE] = replace(settings.chosen["on_cpu"], field=_HARDWARE, value=DETECTED)
        return
    if device is not None:
        near = catalog.accelerators.nearest(_spaced(str(device.value)))
        nearest_known = f"nearest known: {', '.join(near)}; " if near else ""
        title = f"no hardware is called {str(device.value)!r:.80}"
        raise PlanError(title, hint=f"{nearest_known}--gpu says what is meant", place=device.place)
    count = settings.count(DEVICES)
    example = "h100-sxm" if count and count > 1 else "8xh100-sxm"
    hint = f"add --gpu, such as --gpu {example}" + (" (detected: this machine)")
    raise PlanError("no hardware is named", _files(readings), hint)


def _cluster_of(settings: Settings, device: str, catalog: Catalog) -> ImportedSetting | None:
    """Return the cluster of a device after which a folder of measurements of its network is named."""
    folder = settings.chosen.get("cluster_folder")
    names = PurePath(str(folder.value)).parts if folder is not None else ()
    for row in filter(None, (catalog.clusters.get(name.casefold()) for name in names)):
        if folder is not None and any(group.name == device for group in row.groups):
            return replace(folder, field=_HARDWARE, value=row.id)
    return None


def _spaced(name: str) -> str:
    """Return a device's name without its maker, in front of which some tools take out the space."""
    return _MAKER.sub("", name)


def _files(readings: Sequence[Reading]) -> str:
    names = ", ".join(dict.fromkeys(reading.file for reading in readings))
    return f"{names} {'names' if len(readings) == 1 else 'name'} none"


def _sections(values: Mapping[str, object]) -> dict[str, object]:
    """Return values by path as the sections of a plan."""
    data: dict[str, object] = {}
    for path, value in values.items():
        *above, name = path.split(".")
        section = data
        for part in above:
            inner = section.setdefault(part, {})
            section = inner if isinstance(inner, dict) else {}
        section[name] = value
    return data
