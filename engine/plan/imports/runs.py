"""Commands and calls of one script: which of them are one run, and which of several runs counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from capacity_tui.engine.errors import Place
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.scripts import LAUNCHER, Script, tool_commands
from capacity_tui.engine.plan.imports.setting import ImportedSetting, Reading, Remark
from capacity_tui.engine.plan.options.tools import Tool, tool
from capacity_tui.engine.record import dataclass

_VISIBLE, _DEVICES = "CUDA_VISIBLE_DEVICES", re.compile(r"\d+(?:,\d+)*")
_ALONE = "model"  # The option that a word without one is
_LISTED = 4  # Of the values that one may have, those that a remark names
_GIVEN, _NAMED = re.compile(r"(?<![\w-])([A-Za-z_]\w*)\+?=([^;]*)"), re.compile(r"[A-Za-z_]\w*")
_ON_DEVICE = re.compile(r"(?:VISIBLE_DEVICES|device)=[\"']*\$\{?(\w+)")  # What names the device of a command


@dataclass(frozen=True, slots=True)
class Run:
    """A command of a tool, and the launchers before it."""

    reading: Reading
    program: str  # the words before its options
    serves: bool  # whether that generates or evaluates
    launchers: tuple[Reading, ...] = ()
    called: tuple[Reading, ...] = ()  # what the script calls that is its program

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Everything that is read of it; what a script calls goes before its options."""
        return (*self.launchers, *self.called, self.reading)

    @property
    def answers(self) -> bool:
        """Whether it serves or generates, as its program, its tool or what its script calls says."""
        settings = (setting for reading in (*self.called, self.reading) for setting in reading.settings)
        return self.serves or any(one.field == Key.TASK and one.value == "infer" for one in settings)

    @property
    def names_model(self) -> bool:
        """Whether its options, or what its script calls, name a model."""
        return any(_models(one) for one in (*self.called, self.reading))

    def is_joined_to(self, other: Run) -> bool:
        """Whether two commands of a tool are of one run, as one that builds an engine and one that serves it."""
        names, others = _models(self.reading), _models(other.reading)
        is_other_model = (bool(names and others) and names != others) or self.reading.tool is not other.reading.tool
        programs = {self.reading.tool.started(self.program), other.reading.tool.started(other.program)}
        return not is_other_model and len(programs - {None}) > 1


def of_training(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs that train where some do, with a remark on those beside them that answer."""
    training = [run for run in runs if not run.answers]
    for run in runs if training else ():
        if run.answers:
            remark = Remark(
                Place(run.reading.file, field=run.program), "answers beside training: give it in a file of its own"
            )
            training[0].reading.unmodelled.append(remark)
    return training or runs


def join(runs: list[Run], run: Run) -> None:
    """Add a command to those of a script; of several runs of one tool, or servers, the first that trains counts."""
    at = next((index for index, before in enumerate(runs) if _are_alike(before.reading.tool, run.reading.tool)), None)
    if at is None:
        runs.append(run)
        return
    first = runs[at]
    if run.serves == first.serves and run.is_joined_to(first):
        runs.append(run)
        return
    if first.answers and not run.answers:
        runs[at], run = run, first
    if runs[at].reading.given != run.reading.given:
        models = _models(run.reading)
        is_other = bool(models) and models != _models(runs[at].reading)
        of_model = f", of another model ({', '.join(models)})" if is_other else ""
        why = f"a second command{of_model}: give it in a file of its own"
        runs[at].reading.unmodelled.append(Remark(Place(run.reading.file, field=run.program), why))
    elif run.answers:
        _add_copy(runs[at].reading, run.reading)


def _add_copy(reading: Reading, other: Reading) -> None:
    """Count a server that is started as another one is, on devices of its own, as a copy of that."""
    seen, others = (next((one for one in one_of.settings if one.field == "seen"), None) for one_of in (reading, other))
    before = next((one for one in reading.settings if one.field == "copies"), seen)
    if before is None or others is None or others.text in before.text.split(";"):
        return
    devices = f"{before.text};{others.text}"
    copies = ImportedSetting("copies", devices.count(";") + 1, before.place, devices, LAUNCHER, "default")
    reading.settings = [one for one in reading.settings if one.field != "copies"] + [copies]


def _are_alike(one: Tool, other: Tool) -> bool:
    """Whether two tools are one, or both serve."""
    return one is other or all(Key.INFERENCE_ENGINE in either.sets for either in (one, other))


def first_calls(readings: Sequence[Reading]) -> Iterator[Reading]:
    """Yield what calls say, of several of what serves the first, with a remark where another says otherwise."""
    firsts: dict[str, Reading] = {}
    for reading in readings:
        first = firsts.setdefault(reading.tool.id, reading)
        if first is reading or not {Key.INFERENCE_ENGINE, "sampled"} & reading.tool.sets.keys():
            yield reading
        elif first.given != reading.given:
            first.unmodelled.append(
                Remark(Place(reading.file), "a second call, which says otherwise: the first counts")
            )


def note_choices(readings: Sequence[Reading], script: Script, lines: Sequence[str]) -> None:
    """Remark on values and runs that arguments, the machine or a loop decide; servers on a device each are copies."""
    for reading in readings:
        _note_choices(reading, script, lines)
    for reading in readings[:1]:
        for command in tool_commands(replace(script, commands=script.untaken), reading.file):
            if command.owner is not None and command.owner.id != LAUNCHER:
                place = Place(reading.file, next(iter(command.document.lines.values()), None), command.program)
                reading.unmodelled.append(Remark(place, "started instead where arguments say so: not read"))


def _note_choices(reading: Reading, script: Script, lines: Sequence[str]) -> None:
    answers = reading.tool.sets.get(Key.TASK) == "infer"
    decided = script.choices | script.loops
    for setting in [one for one in reading.settings if one.level == "said" and one.place.file == reading.file]:
        at = setting.place.line or 0
        # A model may stand alone: vllm serve $model.
        written = "" if setting.place.field == _ALONE else rf"{re.escape(setting.place.field or '')}[ =]+"
        option = re.compile(rf"(?<!\S){written}[\"']?[^\s${'' if written else '='}]*\$\{{?(\w+)")
        nearest = [decided.get(match[1], ()) for line in lines[at - 1 : at] for match in option.finditer(line) if at]
        # Else where a variable holds the options of the command, of which a number may stand in a name by chance.
        others = (decided.get(match[1], ()) for line in lines for match in option.finditer(line))
        words = (values for values in others if setting.text in values or not any(map(str.isdigit, values)))
        chosen = (values for values in (*nearest, *words) if any(value in setting.text for value in values))
        several = next(chosen, ())
        if len(several) > 1 and not any(one.place == setting.place for one in reading.unmodelled):
            listed = ", ".join((*several[:_LISTED], *(["..."] if several[_LISTED:] else [])))
            why = f"one of {listed}, as arguments, the machine or a loop decide: {setting.value} counted"
            reading.unmodelled.append(Remark(setting.place, why))
    at = max((one.place.line or 0 for one in reading.settings if one.field == "model"), default=0)
    turns = ((name, count, [lines[at - 1] for at in there]) for name, count, there in script.turns if at in there)
    copies = prod(count for name, count, inside in turns if _seen_by(name, inside))
    if answers and copies > 1:
        place = Place(reading.file, field=_VISIBLE)
        reading.settings.append(ImportedSetting("copies", copies, place, f"a loop over {copies} devices", LAUNCHER))


def _seen_by(name: str, lines: Sequence[str]) -> bool:
    """Whether the devices that a command in a loop sees are those of its turn, as what is made of its variable says."""
    made = {name}
    for given in (match for line in lines for match in _GIVEN.finditer(line)):
        made |= {given[1]} if made & {*_NAMED.findall(given[2])} else set()
    return any(device in made for line in lines for device in _ON_DEVICE.findall(line))


def _models(reading: Reading) -> list[str]:
    """Return the models that a command names."""
    return [str(setting.value) for setting in reading.settings if setting.field in ("model", "model_file")]


def from_shell(environment: Mapping[str, str], readings: Sequence[Reading], place: Place) -> Iterator[ImportedSetting]:
    """Yield what variables of the shell tell a tool, and a process for each device seen where nothing else does."""
    given = {setting.field for one in readings for setting in one.settings if setting.value is not None}
    answers = readings[-1].tool.sets.get(Key.TASK) == "infer"
    devices = environment.get(_VISIBLE, "")
    seen = str(devices.count(",") + 1) if _DEVICES.fullmatch(devices) else ""
    is_open = not {"processes", "per_process", "replicas"} & given
    of_job = tool(LAUNCHER).variables if is_open and not answers and not seen else {}
    for variable, field in (*readings[-1].tool.variables.items(), *of_job.items()):
        if (value := environment.get(variable, "")).isdigit() and field not in given:
            yield ImportedSetting(field, int(value), replace(place, field=variable), value, LAUNCHER)
            given.add(field)
    visible = ImportedSetting("visible", int(seen or 0), replace(place, field=_VISIBLE), devices, LAUNCHER)
    if seen and not answers:
        yield visible
    if seen and not {"processes", "per_process"} & given:
        yield replace(visible, field="seen" if answers else "per_process")
