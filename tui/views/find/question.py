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
from capacity_tui.tui.shown.results import Field, Results
from capacity_tui.tui.views.find.present import results_of, solved, weighed_figures
from capacity_tui.tui.views.query_view.search import PlanQuestion, question_fields

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

_SOLVED = {
    "train": ("", "devices", "seq_len", "tokens", "global_batch", "parameters"),
    "infer": ("", "devices", "batch", "prompt_tokens", "request_rate", "parameters"),
}

LIMIT_PARTS = ("time", "usd", "ttft", "tpot")  # Parts that are the most a figure of their name may be
_LIMIT = re.compile(r"[\w.]+\s*[<>]=?\s*[^<>,;]+?(?=\s*[,;]|\s+[\w.]+\s*[<>]|\s*$)")


def parts_of(plan: Plan, given: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the parts of a question about a plan: what was said, and what makes sense at once for the rest."""
    task = "infer" if plan.is_inference else "train"
    goals = tuple(GOALS[task])
    known = question_fields("find")
    own = {
        "goal": replace(known["goal"], text=goals[0], choices=goals),
        "solve": replace(known["solve"], choices=_SOLVED[task]),
    }
    if task == "infer":
        own["usd"] = replace(known["usd_per_million"], key="usd")
    limits = ("ttft", "tpot", "usd") if task == "infer" else ("time", "usd")
    count = plan.hardware.devices
    usual = {"devices": f"1..{max(8, count)}" if isinstance(count, int) else "1..8", **_plan_limits(plan)}
    if given.get("solve"):
        usual |= {"hardware": OWN, "devices": OWN}
    names = ("goal", *limits, *("limits", "hardware", "devices", "models", "vary", "solve", "each"))
    parts = ((known | own)[name] for name in names)
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
