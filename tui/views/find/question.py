"""The question that the search view asks, and the parts it is edited by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import JOB_LIMITS, Figure
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import duration_text
from capacity_tui.engine.solve import command_text, command_words
from capacity_tui.engine.solve.need import question_of_line, solved_path
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.solve.search import Question as EngineQuestion
from capacity_tui.engine.solve.search import parse_axis, parse_goal, parse_limit, search
from capacity_tui.tui.shown.results import Field, Kind, Results
from capacity_tui.tui.views.find.present import results_of, solved, weighed_figures
from capacity_tui.tui.views.query_view.search import PlanQuestion

if TYPE_CHECKING:
    from capacity_tui.engine.plan.line import Asked
    from capacity_tui.engine.solve.search import Question

_TOP = 60  # Rows: more than anyone reads, few enough to be estimated one by one several times a second


@dataclass(frozen=True)
class SearchQuestion(PlanQuestion):
    """What is searched for around a plan of the engine's."""

    def fields(self) -> tuple[Field, ...]:
        return parts_of(self.plan, self.given)

    def command(self) -> str:
        texts = self._texts()
        plan = command_words(self._without(limits_of(texts)), self.machine, self.catalog)
        command = "need" if texts["solve"] else "search"
        words = [plan[0], command, *plan[2:]] if plan else ["capacity-tui", command, "plan.yaml"]
        words += ["--solve", texts["solve"]] if texts["solve"] else []
        if not texts["solve"] or "goal" in self.given:
            words += ["--goal", GOALS[self._task][texts["goal"]]]
        words += [word for limit in limits_of(texts) for word in ("--limit", limit)]
        for flag, key in (("--hardware ", "hardware"), ("--devices ", "devices"), ("--vary model.name=", "models")):
            names = names_of(texts[key])
            words += f"{flag}{','.join(names)}".split(" ") if names else []
        words += [word for axis in axes_of(texts["vary"]) for word in ("--vary", axis)]
        per_kind = self._per_kind(texts["each"])
        if not texts["solve"]:
            words += ["--each", str(per_kind)] if per_kind else []
            words += ["--pareto", ",".join(self.stated().pareto), "--top", str(_TOP)]
        return command_text(tuple(words))

    def _without(self, given: tuple[str, ...]) -> Plan:
        """Return the plan without those of its limits that the question has itself, and keeps more surely."""
        own = {limit.partition("<=")[0] for limit in limits_of(_plan_limits(self.plan)) if limit in given}
        fields = [JOB_LIMITS[figure].field for figure in own & JOB_LIMITS.keys()]
        return edited(self.plan, dict.fromkeys(fields), self.catalog).plan if fields else self.plan

    def answer(self, report: Callable[[Results], object], stopped: Callable[[], bool]) -> Results:
        query, solve = self.stated(), self._texts()["solve"]
        if solve:
            return solved(query, solve, self.machine, self.catalog, report, stopped)

        def tell(answer: SearchAnswer) -> None:
            report(results_of(answer, query))

        return results_of(search(query, self.catalog, self.machine, tell, stopped), query)

    def stated(self) -> Question:
        """Return the question of the engine; raises CapacityError where a part of it makes no sense."""
        texts = self._texts()
        goal = parse_goal(GOALS[self._task][texts["goal"]], self._task)
        if texts["solve"]:
            solved_path(texts["solve"])
        devices = names_of(texts["devices"])
        return EngineQuestion(
            self.plan,
            vary=tuple(parse_axis(axis, self.catalog) for axis in axes_of(texts["vary"])),
            hardware=names_of(texts["hardware"]),
            devices=tuple(map(int, map(str, self._numbers(devices)))),
            models=names_of(texts["models"]),
            limits=tuple(parse_limit(limit, self._task) for limit in limits_of(texts)),
            # What is solved for has a goal of its own, unless one is said.
            goal=None if texts["solve"] and "goal" not in self.given else goal,
            pareto=weighed_figures(self.plan, goal.figure),
            top=_TOP,
            per_kind=self._per_kind(texts["each"]),
        )

    def _numbers(self, given: tuple[str, ...]) -> tuple[object, ...]:
        return parse_axis(f"hardware.devices={','.join(given)}", self.catalog).values if given else ()

    def _per_kind(self, given: str) -> int | None:
        if given == ALL:
            return None
        if not given.isdecimal() or not int(given):
            raise PlanError("not a number of rows", repr(given)[:40], "give a number above 0, or all")
        return int(given)

    @property
    def _task(self) -> str:
        return "infer" if self.plan.is_inference else "train"

    def _texts(self) -> dict[str, str]:
        return {part.key: part.text for part in self.fields()}


ANY, OWN, ALL, NONE = "any", "the plan's", "all", "none"
"""What stands for all there is, for what the plan has, for as many as there are, and for no limit."""

GOALS: Mapping[str, Mapping[str, str]] = {
    "train": {
        "cheapest": "usd",
        "fastest": "time",
        "highest throughput": "throughput",
        "lowest energy": "energy",
        "lowest memory": "memory",
        "largest model": "parameters",
    },
    "infer": {
        "cheapest token": "usd",
        "lowest TTFT": "ttft",
        "lowest TPOT": "tpot",
        "highest throughput": "throughput",
        "lowest energy": "energy",
        "largest model": "parameters",
    },
}
"""Goals by task, and the words of a command for them."""

_GOAL_WORDS = {
    "cheapest": "cost of the whole job",
    "fastest": "time until the whole job is done",
    "highest throughput": "tokens per second of all devices",
    "lowest energy": "electricity of the whole job",
    "lowest memory": "peak memory of the fullest device",
    "largest model": "parameters of the model, if models vary",
    "cheapest token": "cost of a million tokens",
    "lowest TTFT": "time to first token (TTFT)",
    "lowest TPOT": "time per output token (TPOT)",
}

_TIMES = ("", "1h", "4h", "12h", "24h", "3d", "7d", "30d")
_SUMS = ("", "10", "50", "200", "1k", "5k", "20k", "100k")

_HELP = {
    "Deadline": "The longest the whole job may take, at the upper end of its range.",
    "Budget": "The most the whole job may cost, at the upper end of its range.",
    "First token": "The longest a request may wait for its first token, at the upper end of the range.",
    "Each token": "The longest each further token may take, at the upper end of the range.",
    "$/M tokens": "The most a million tokens may cost, at the upper end of the range.",
    "Limits": "Other limits on any figure, FIGURE<=VALUE or FIGURE>=VALUE separated by spaces, at the unfavourable "
    "end of the range: memory<=100% leaves out what may run out of memory.",
    "Hardware": "Devices and instances to try: names separated by commas, a maker or cloud for all of theirs, "
    "instances for all that are rented, any for every accelerator, or the plan's own.",
    "Devices": "How many devices to try: a number, a list, or a range, which doubles.",
    "Models": "Models to try: names separated by commas, any for all in the catalogue that are like the plan's, or "
    "the plan's own. Suits the goal largest model.",
    "Also vary": "More fields with values to try, KEY=V1,V2 or KEY=LO..HI separated by spaces. Layout, micro-batch, "
    "checkpointing and ZeRO vary where the plan leaves them to the modes, and all of them if nothing is given.",
    "Solve for": "The field to solve for: its value that just keeps the limits, all else unchanged: the longest "
    "sequence, the fewest devices, the largest model. The next value is shown with the limit that it breaks.",
    "Per GPU type": "How many rows for each model, device type and number of devices: 1 compares devices, all "
    "compares layouts.",
}


def _part(
    key: str, label: str, group: str, text: str, unit: str, choices: tuple[str, ...] = (), catalogue: str = ""
) -> Field:
    return Field(key, label, group, text, unit=unit, choices=choices, catalogue=catalogue, help=_HELP[label])


_TRAIN_LIMITS = (
    _part("time", "Deadline", "limits", "", "such as 24h or 3d", _TIMES),
    _part("usd", "Budget", "limits", "", "dollars, such as 200", _SUMS),
)
_INFER_LIMITS = (
    _part("ttft", "First token", "limits", "", "such as 2s", ("", "200ms", "500ms", "1s", "2s", "5s")),
    _part("tpot", "Each token", "limits", "", "such as 50ms", ("", "10ms", "20ms", "50ms", "100ms")),
    _part("usd", "$/M tokens", "limits", "", "dollars, such as 2", ("", "0.1", "0.5", "1", "2", "5")),
)
_LIMITS = (NONE, "memory<=100%", "memory<=90%", "memory<=75%", "memory<=50%")
_HARDWARE = {
    ANY: "every accelerator in the catalogue",
    "instances": "everything that clouds rent out",
    OWN: "only the plan's hardware",
}
_MODELS = {OWN: "only the plan's model", ANY: "all like the plan's, largest first"}
_NAMES = "names separated by commas, a maker or cloud, instances, or any"
_FREE = (
    _part("limits", "Limits", "limits", "memory<=100%", "such as memory<=90% throughput>=10k, or none", _LIMITS),
    replace(_part("hardware", "Hardware", "free", ANY, _NAMES, tuple(_HARDWARE), "accelerator"), words=_HARDWARE),
    _part("devices", "Devices", "free", "", "such as 8, 1..64 or 4,8,16", (OWN, "1..8", "1..16", "1..64", "1..256")),
    replace(_part("models", "Models", "free", OWN, "names separated by commas", (*_MODELS,), "model"), words=_MODELS),
    _part("vary", "Also vary", "free", "", "such as seq_len=4k..32k precision=bf16,fp8"),
)
_SOLVED = {
    "train": ("", "devices", "seq_len", "tokens", "global_batch", "parameters"),
    "infer": ("", "devices", "batch", "prompt_tokens", "request_rate", "parameters"),
}

_SOLVE = _part("solve", "Solve for", "free", "", "a field, such as seq_len, devices or parameters; empty to search")
_PER_KIND = _part("each", "Per GPU type", "free", "1", "a number, or all", ("1", "3", "10", ALL))
LIMIT_PARTS = ("time", "usd", "ttft", "tpot")  # Parts that are the most a figure of their name may be
_LIMIT = re.compile(r"[\w.]+\s*[<>]=?\s*[^<>,;]+?(?=\s*[,;]|\s+[\w.]+\s*[<>]|\s*$)")


def parts_of(plan: Plan, given: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the parts of a question about a plan: what was said, and what makes sense at once for the rest."""
    task = "infer" if plan.is_inference else "train"
    goals = tuple(GOALS[task])
    goal = Field(
        *("goal", "Goal", "goal", goals[0]),
        kind=Kind.CHOICE,
        choices=goals,
        help="What the best plans are chosen by.",
        words=_GOAL_WORDS,
    )
    limits = _INFER_LIMITS if task == "infer" else _TRAIN_LIMITS
    count = plan.hardware.devices
    usual = {"devices": f"1..{max(8, count)}" if isinstance(count, int) else "1..8", **_plan_limits(plan)}
    if given.get("solve"):
        usual |= {"hardware": OWN, "devices": OWN}
    parts = (goal, *limits, *_FREE, replace(_SOLVE, choices=_SOLVED[task]), _PER_KIND)
    return tuple(replace(part, text=given.get(part.key, usual.get(part.key, part.text))) for part in parts)


def _plan_limits(plan: Plan) -> Mapping[str, str]:
    """Return the limits that the plan itself has, of those that a question about it has a part for."""
    if plan.is_inference:
        own = {"ttft": plan.inference.ttft_seconds, "tpot": plan.inference.tpot_seconds}
        shown = {key: f"{1000 * value:g}ms" for key, value in own.items() if value is not None}
        if (seconds := plan.inference.request_seconds) is not None:
            whole = Figure.REQUEST_SECONDS if plan.inference.is_load else Figure.STEP_SECONDS
            shown["limits"] = f"memory<=100% {whole}<={seconds:g}s"
        return shown
    limits = plan.limits
    texts = {
        "time": limits.seconds and duration_text(limits.seconds),
        "usd": limits.usd and f"{limits.usd:g}",
        "limits": limits.usd_per_hour and f"memory<=100% {Figure.COST_USD_PER_HOUR}<={limits.usd_per_hour:g}",
    }
    return {key: text for key, text in texts.items() if text}


def parts_asked(asked: Asked, plan: Plan) -> Mapping[str, str]:
    """Return the parts of the question that a line asks of its plan, whose own limits are kept as they are."""
    question = question_of_line(plan, asked, load_catalog())
    goals = GOALS["infer" if plan.is_inference else "train"]
    goal = next((name for name, word in goals.items() if word == asked.goal), "")
    parts = {"solve": asked.solve, "ttft": "", "tpot": "", "limits": NONE}
    parts |= {"goal": goal} if goal else {}
    parts |= {"hardware": ",".join(question.hardware)} if question.hardware else {}
    parts |= {"devices": ",".join(map(str, question.devices))} if question.devices else {}
    parts |= {"models": ",".join(asked.models)} if asked.models else {}
    return {**parts, **parts_limited(asked.limits)}


def parts_limited(limits: Iterable[str]) -> Mapping[str, str]:
    """Return the parts of a question that limits are, as ``time<=30d``."""
    parts: dict[str, str] = {}
    for limit in limits:
        figure, _, value = limit.partition("<=")
        if figure in LIMIT_PARTS:
            parts[figure] = value
        else:
            parts["limits"] = f"{parts['limits']} {limit}" if "limits" in parts else limit
    return parts


def limits_of(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the limits of a question as a command has them."""
    limits = [f"{key}<={texts[key]}" for key in LIMIT_PARTS if texts.get(key, "") not in ("", NONE)]
    others = "" if texts.get("limits") == NONE else texts.get("limits", "")
    read = [match.group().replace(" ", "") for match in _LIMIT.finditer(others)]
    rest = _LIMIT.sub("", others).strip(" ,;")
    if rest:
        raise PlanError("not a limit", repr(rest)[:60], "write FIGURE<=VALUE, such as memory<=90%")
    return (*limits, *read)


def names_of(text: str) -> tuple[str, ...]:
    """Return the names in a list; none where it is the plan's own."""
    return () if text in ("", OWN) else tuple(name for name in re.split(r"[,;\s]+", text) if name)


def axes_of(text: str) -> tuple[str, ...]:
    """Return the axes in a list with spaces or semicolons between."""
    return tuple(part for part in re.split(r"[;\s]+", text) if part)
