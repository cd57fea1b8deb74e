"""The view that searches: a question about the plan, the rows that answer it, and a picture of what they weigh."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rich.cells import cell_len

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import JOB_LIMITS, Figure, Key
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.line import Asked
from capacity_tui.engine.present.pictures import Axis, Plane, is_logarithmic, plane_file
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import duration_text
from capacity_tui.engine.solve import command_text, command_words
from capacity_tui.engine.solve.need import question_of_line, solved_path
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.solve.search import Question, Rejected, parse_axis, parse_goal, parse_limit, search
from capacity_tui.engine.units import format_number, format_quantity
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import Field, Results
from capacity_tui.tui.text import Glyphs, Line, Span, clip, line, to_ascii, wrap
from capacity_tui.tui.views.find.present import results_of, solved, weighed_figures
from capacity_tui.tui.views.query_view.results import ResultTable
from capacity_tui.tui.views.query_view.screen import QueryScreen
from capacity_tui.tui.views.query_view.search import PlanQuestion, goals_of, question_fields
from capacity_tui.tui.widgets.lines import DrawnLines
from capacity_tui.tui.widgets.plots import scatter


class FindScreen(QueryScreen):
    """Finds plans around the current one."""

    VIEW = "find"

    def __init__(self, session: Session) -> None:
        front = Front(session.glyphs)
        super().__init__(session, ResultTable(), front, lambda document, given: document.question(given))
        self._front = front
        self.commands = {**self.commands, "found.rules": self._show_rules}

    def why_nothing(self, results: Results) -> str:
        return why_nothing(results)

    def show_row(self) -> None:
        shown, row = self.table.shown, self.table.row
        results = self.table.results
        self.set_class(results is not None and results.weighed is None, "-unweighed")
        self._front.show_results(results, shown, shown[self.table.cursor] if row is not None else None)

    def drawings(self) -> Iterator[tuple[str, str]]:
        yield from self._front.drawings()

    def _show_rules(self) -> None:
        results = self.table.results
        self.show_text("What was excluded, and why", lambda width: rule_lines(results, width))


_LEAST_POINTS = 2
_NOTHING_WEIGHED = " no trade-off to draw"
_UNITS = {"time": "s", "cost": "USD"}  # Of columns whose numbers are not read as they stand


class Front(DrawnLines):
    """A picture of the rows in the two figures that are weighed against each other."""

    TITLE = "Front"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="front", classes="aside")
        self._glyphs = glyphs
        self._results: Results | None = None
        self._shown: Sequence[int] = ()
        self._here: int | None = None

    def show_results(self, results: Results | None, shown: Sequence[int], here: int | None) -> None:
        """Draw the rows that the table shows, and the one under its cursor."""
        self._results, self._shown, self._here = results, shown, here
        self.repaint()

    def repaint(self) -> None:
        super().repaint()
        title = to_ascii(self._title()) if self._glyphs is Glyphs.ASCII else self._title()
        if self.is_mounted and self.size and title != str(self.border_title or ""):
            self.border_title = title

    def _title(self) -> str:
        if self._results is None or self._results.weighed is None:
            return self.TITLE
        across, up = (self._results.columns[position].title for position in self._results.weighed)
        return f"{up} over {across}, ● best"

    def drawings(self) -> Iterator[tuple[str, str]]:
        """Yield the same as an SVG file, where there is anything to weigh."""
        results = self._results
        if results is None or results.weighed is None:
            return
        rows = [index for index in self._shown if None not in _numbers(results, index)]
        positions = {index: (x or 0.0, y or 0.0) for index in rows for x, y in (_numbers(results, index),)}
        titles = [results.columns[position].title for position in results.weighed]
        across, up = (Axis(title, partial(format_quantity, unit=_UNITS.get(title, ""))) for title in titles)
        best = frozenset(position for position, index in enumerate(rows) if index in results.front)
        points = tuple((results.rows[index].cells[0].text, positions[index]) for index in rows)
        here = positions.get(self._here) if self._here is not None else None
        title = f"{up.title} over {across.title}"
        yield title, plane_file(Plane(title, across, up, points=points, best=best, here=here))

    def draw(self, width: int) -> list[Line]:
        results = self._results
        if results is None:
            return []
        if results.weighed is None:
            return [line(Span(_NOTHING_WEIGHED, "dim"))]
        across, up = results.weighed
        rows = [index for index in self._shown if None not in _numbers(results, index)]
        points = [(x, y) for x, y in (_numbers(results, index) for index in rows) if x is not None and y is not None]
        if len(points) < _LEAST_POINTS or self.size.height < _LEAST_POINTS:
            return [line(Span(_NOTHING_WEIGHED, "dim"))]
        front = {position for position, index in enumerate(rows) if index in results.front}
        here = rows.index(self._here) if self._here in rows else None
        drawn = scatter(points, front, here, width, self.size.height - 1, self._glyphs)
        right, left, high, low = (
            results.rows[rows[_most(points, axis, sign)]].cells[(across, up)[axis]].text
            for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1))
        )
        drawn[0], drawn[-1] = _over(drawn[0], high), _over(drawn[-1], low)
        return [*drawn, _axis(left, right, is_logarithmic([x for x, _ in points]), width)]


def _numbers(results: Results, index: int) -> tuple[float | None, ...]:
    return tuple(results.rows[index].cells[position].number for position in results.weighed or ())


def _most(points: list[tuple[float, float]], axis: int, sign: int) -> int:
    """Return the index of the point that is most on an axis, or least."""
    return max(range(len(points)), key=lambda position: sign * points[position][axis])


def _over(row: Line, text: str) -> Line:
    """Return a row with a text at its left or its right end, the one that is free."""
    size = cell_len(text)
    for cells in (slice(0, size + 1), slice(len(row.spans) - size - 1, len(row.spans))):
        if not "".join(span.text for span in row.spans[cells]).strip():
            spans = list(row.spans)
            first = 0 if cells.start == 0 else len(spans) - size
            spans[first : first + size] = [Span(letter, "dim") for letter in text]
            return Line(tuple(spans))
    return row


def _axis(low: str, high: str, logarithmic: bool, width: int) -> Line:
    middle = " log " if logarithmic else ""
    gap = width - cell_len(low) - cell_len(high) - len(middle)
    if gap < 1:
        return line(Span(clip(f"{low} – {high}", width), "dim"))
    return line(Span(low + "─" * (gap // 2) + middle + "─" * (gap - gap // 2) + high, "dim"))


def rule_lines(results: Results | None, width: int) -> list[Line]:
    """Return every rule and limit that excluded something, with how much and an example."""
    if results is None or not (results.excluded or results.missed):
        return [line(Span("Nothing was excluded.", "value"))]
    headed = (
        ("Excluded by rules of layouts and software", results.excluded),
        ("Excluded by memory and limits", results.missed),
    )
    lines: list[Line] = []
    for heading, excluded in headed:
        if excluded:
            lines += [*([line()] if lines else []), line(Span(heading, "heading")), *_lines(excluded, width)]
    return lines


def why_nothing(results: Results) -> str:
    """Return why there are no rows: what excluded most."""
    most = next(iter((*results.missed, *results.excluded)), None)
    why = f": {format_number(most.count)} excluded, {most.rule}" if most else ""
    return f"nothing found{why}; {{found.rules}} shows why"


def _lines(excluded: Sequence[Rejected], width: int) -> Iterator[Line]:
    size = max(len(format_number(one.count)) for one in excluded)
    room, indent = max(width - size - 2, 1), " " * (size + 2)
    for one in excluded:
        first, *rest = wrap(one.rule, room) or [""]
        yield line(Span(f"{format_number(one.count):>{size}}  ", "best"), Span(first, "value"))
        yield from (line(Span(indent + text, "value")) for text in rest)
        yield from (line(Span(indent + text, "dim")) for text in wrap(f"such as {one.example}", room) if one.example)


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
            words += ["--goal", goals_of(self._task)[texts["goal"]]]
        words += [word for limit in limits_of(texts) for word in ("--limit", limit)]
        for flag, key in (
            ("--hardware ", "hardware"),
            ("--devices ", "devices"),
            (f"--vary {Key.MODEL_NAME}=", "models"),
        ):
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
        goal = parse_goal(goals_of(self._task)[texts["goal"]], self._task)
        if texts["solve"]:
            solved_path(texts["solve"])
        devices = names_of(texts["devices"])
        return Question(
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
        return parse_axis(f"{Key.HARDWARE_DEVICES}={','.join(given)}", self.catalog).values if given else ()

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

LIMIT_PARTS = ("time", "usd", "ttft", "tpot")  # Parts that are the most a figure of their name may be
_LIMIT = re.compile(r"[\w.]+\s*[<>]=?\s*[^<>,;]+?(?=\s*[,;]|\s+[\w.]+\s*[<>]|\s*$)")


def parts_of(plan: Plan, given: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the parts of a question about a plan: what was said, and what makes sense at once for the rest."""
    task = "infer" if plan.is_inference else "train"
    known = question_fields(f"find {task}")
    count = plan.hardware.devices
    usual = {"devices": f"1..{max(8, count)}" if isinstance(count, int) else "1..8", **_plan_limits(plan)}
    if given.get("solve"):
        usual |= {"hardware": OWN, "devices": OWN}
    return tuple(replace(part, text=given.get(key, usual.get(key, part.text))) for key, part in known.items())


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
    goals = goals_of("infer" if plan.is_inference else "train")
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
