"""What a run works on, and what was told of it: two lists beside its curves."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.tui.shown.watched import RunDevice, RunEvent
from capacity_tui.tui.terminal.text import Line, Span, left, line, wrap
from capacity_tui.tui.widgets.gauge import gauge
from capacity_tui.tui.widgets.panel import Panel

_NAME = 6
_BAR = 10
_WIDE = 56
"""Cells from which a device has a bar."""
_LEVELS = {"note": ("·", "label"), "warning": ("!", "warn"), "error": ("✗", "bad")}
_TIME = 9


class Usage(Panel):
    """Devices as they are now, each above those who hold its memory."""

    NUMBER = 3
    TITLE = "Usage"

    def __init__(self) -> None:
        super().__init__()
        self._devices: tuple[RunDevice, ...] = ()

    def show_devices(self, devices: tuple[RunDevice, ...]) -> None:
        """Show how they are by now."""
        self._devices = devices
        self.repaint()

    def summary(self) -> Line:
        """Return the first of them."""
        return line(Span(" · ".join(f"{device.name} {device.text}" for device in self._devices[:1]), "value"))

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay them out, a line each with those who use it below."""
        if not self._devices:
            return [line(Span(" nothing is known of its devices", "dim"))], None
        return [each for device in self._devices for each in self._lines_of(device, width)], None

    def _lines_of(self, device: RunDevice, width: int) -> Iterator[Line]:
        role = "warn" if device.warning else "good"
        bar = f"{gauge(device.share, _BAR)} " if device.share is not None and width >= _WIDE else ""
        warning = Span(f"  ! {device.warning}", "warn") if device.warning else Span("")
        yield line(Span(f" {left(device.name, _NAME)}", "label"), Span(bar, role), Span(device.text, "value"), warning)
        for process in device.processes:
            yield line(Span(f"   {process}", "dim"))


class Events(Panel):
    """What was told of a run, the newest first."""

    NUMBER = 4
    TITLE = "Events"

    def __init__(self) -> None:
        super().__init__()
        self._events: tuple[RunEvent, ...] = ()
        self._remarks: tuple[str, ...] = ()

    def show_events(self, events: tuple[RunEvent, ...], remarks: tuple[str, ...]) -> None:
        """Show what was told by now, below what there is to know of the run."""
        self._events, self._remarks = events, remarks
        self.repaint()

    def summary(self) -> Line:
        """Return the newest."""
        newest = next(iter(self._events), None)
        return line(Span(newest.text if newest else next(iter(self._remarks), "nothing was told"), "value"))

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Break each at the width."""
        lines = [line(Span(f" {row}", "value")) for text in self._remarks for row in wrap(text, width - 2, "  ")]
        for event in self._events:
            mark, role = _LEVELS.get(event.level, _LEVELS["note"])
            first, *rest = wrap(event.text, width - _TIME - 3) or [""]
            lines.append(line(Span(f" {event.time:<{_TIME - 1}} ", "dim"), Span(f"{mark} {first}", role)))
            lines += [line(Span(" " * (_TIME + 3) + row, role)) for row in rest]
        return lines or [line(Span(" nothing was told", "dim"))], None
