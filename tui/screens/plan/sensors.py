"""Reading the sensors of this machine for the live panel: slower while nobody looks, not at all while paused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.dom import DOMNode

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import Failed, Sampled
from capacity_tui.tui.mistakes import reported
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.plan.live import Live
from capacity_tui.tui.session import Session
from capacity_tui.tui.settings import FASTEST_SECONDS, SLOWEST_SECONDS

RETRY_SECONDS = 5.0
"""How long sensors that failed are left alone."""
_UNFOCUSED_SLOWDOWN = 5.0
"""How much less often the sensors are read while nobody looks."""


class Sensors:
    """Has the sensors read again and again.

    Args:
        session: what every screen works with.
        screen: who the samples go to.
        panel: says how often the sensors are read.

    Attributes:
        seconds: time between two samples while somebody looks.
    """

    def __init__(self, session: Session, screen: DOMNode, panel: Live) -> None:
        self._session = session
        self._screen = screen
        self._panel = panel
        self._is_paused = False
        self.seconds = session.settings.live_seconds
        self.commands: Commands = {
            "live.pause": self.pause,
            "live.slower": partial(self.change_rate, 2.0),
            "live.faster": partial(self.change_rate, 0.5),
        }

    def pause(self) -> None:
        """Pause the graphs, or go on."""
        self._is_paused = not self._is_paused
        self.restart()

    def change_rate(self, factor: float) -> None:
        """Sample more or less often, within what is sensible."""
        self.seconds = min(max(self.seconds * factor, FASTEST_SECONDS), SLOWEST_SECONDS)
        self.restart()

    def restart(self) -> None:
        """Read the sensors as often as it is wanted now; a reading that fails is told once."""
        if self._is_paused:
            self._session.cancel(self._screen, "live")
            self._panel.show_state("paused")
            return
        self._panel.show_state(f"every {self.seconds:g} s")
        seconds = self.seconds * (1.0 if self._session.app.app_focus else _UNFOCUSED_SLOWDOWN)

        def work(request: Request) -> None:
            tell: Callable[[Failed], object] = request.answer
            while not request.cancelled.is_set():
                with reported(tell):
                    sampler = self._session.engine.sampler()
                    while not request.cancelled.is_set():
                        request.answer(Sampled(sampler.sample()))
                        request.cancelled.wait(seconds)
                tell = _keep_quiet
                request.cancelled.wait(max(seconds, RETRY_SECONDS))

        self._session.ask(self._screen, "live", work)


def _keep_quiet(_: Failed) -> None:
    """Say nothing of what was told already."""
