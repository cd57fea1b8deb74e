"""A question about a plan as the screen has it, in the words of the engine that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.solve import command_text, command_words
from capacity_tui.engine.solve.need import solved_path
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.solve.search import Question as EngineQuestion
from capacity_tui.engine.solve.search import parse_axis, parse_goal, parse_limit, search
from capacity_tui.tui.screens.asking.plan_question import PlanQuestion
from capacity_tui.tui.screens.find.found_view import found_of, weighed_figures
from capacity_tui.tui.screens.find.needed_view import solved
from capacity_tui.tui.screens.find.question_parts import ALL, GOALS, axes_said, limits_said, names_said, parts_of
from capacity_tui.tui.shown.found import Found
from capacity_tui.tui.view import Field

if TYPE_CHECKING:
    from capacity_tui.engine.solve.search import Question

_TOP = 60
"""Rows: more than anyone reads, few enough to be estimated one by one several times a second."""


@dataclass(frozen=True)
class SearchQuestion(PlanQuestion):
    """What is searched for around a plan of the engine's."""

    def fields(self) -> tuple[Field, ...]:
        """Return its parts."""
        return parts_of(self.plan, self.said)

    def command(self) -> str:
        """Return the command that asks the same."""
        plan = command_words(self.plan, self.machine, self.catalog)
        texts = self._texts()
        command = "need" if texts["solve"] else "search"
        words = [plan[0], command, *plan[2:]] if plan else ["capacity-tui", command, "plan.yaml"]
        words += ["--solve", texts["solve"]] if texts["solve"] else []
        if not texts["solve"] or "goal" in self.said:
            words += ["--goal", GOALS[self._task][texts["goal"]]]
        words += [word for limit in limits_said(texts) for word in ("--limit", limit)]
        for flag, key in (("--hardware ", "hardware"), ("--devices ", "devices"), ("--vary model.name=", "models")):
            names = names_said(texts[key])
            words += f"{flag}{','.join(names)}".split(" ") if names else []
        words += [word for axis in axes_said(texts["vary"]) for word in ("--vary", axis)]
        each = self._each(texts["each"])
        if not texts["solve"]:
            words += ["--each", str(each)] if each else []
            words += ["--pareto", ",".join(self.asked().pareto), "--top", str(_TOP)]
        return command_text(tuple(words))

    def answer(self, told: Callable[[Found], object], stopped: Callable[[], bool]) -> Found:
        """Search; return the best there is, or was when it was stopped."""
        asked, solve = self.asked(), self._texts()["solve"]
        if solve:
            return solved(asked, solve, self.machine, self.catalog, told, stopped)

        def tell(answer: SearchAnswer) -> None:
            told(found_of(answer, asked))

        return found_of(search(asked, self.catalog, self.machine, tell, stopped), asked)

    def asked(self) -> Question:
        """Return the question of the engine.

        Raises:
            CapacityError: a part of it makes no sense.
        """
        texts = self._texts()
        goal = parse_goal(GOALS[self._task][texts["goal"]], self._task)
        if texts["solve"]:
            solved_path(texts["solve"])
        devices = names_said(texts["devices"])
        return EngineQuestion(
            self.plan,
            vary=tuple(parse_axis(axis, self.catalog) for axis in axes_said(texts["vary"])),
            hardware=names_said(texts["hardware"]),
            devices=tuple(map(int, map(str, self._numbers(devices)))),
            models=names_said(texts["models"]),
            limits=tuple(parse_limit(limit, self._task) for limit in limits_said(texts)),
            # What is solved for has a goal of its own, unless one is said.
            goal=None if texts["solve"] and "goal" not in self.said else goal,
            pareto=weighed_figures(self.plan, goal.figure),
            top=_TOP,
            per_kind=self._each(texts["each"]),
        )

    def _numbers(self, said: tuple[str, ...]) -> tuple[object, ...]:
        return parse_axis(f"hardware.devices={','.join(said)}", self.catalog).values if said else ()

    def _each(self, said: str) -> int | None:
        if said == ALL:
            return None
        if not said.isdecimal() or not int(said):
            raise PlanError("not a number of rows", repr(said)[:40], "give a number above 0, or all")
        return int(said)

    @property
    def _task(self) -> str:
        return "infer" if self.plan.task == "infer" else "train"

    def _texts(self) -> dict[str, str]:
        return {part.key: part.text for part in self.fields()}
