"""This machine's sensors, in the words of the screen."""

from __future__ import annotations

from capacity_tui.engine.machine import Sampler
from capacity_tui.tui.screens.plan.hardware_view import reading_of
from capacity_tui.tui.shown.measured import Sample


class LiveSampler:
    """The engine's sampler, in the words of the screen."""

    def __init__(self) -> None:
        self._sampler = Sampler()
        # Rates need a sample before the first one that is shown.
        self._sampler.sample()

    def sample(self) -> Sample:
        """Return the present readings."""
        return reading_of(self._sampler.sample())
