"""Which screen shows each view, and going from one to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.app import App

from capacity_tui.tui.actions import VIEWS
from capacity_tui.tui.screens.view_screen import ViewScreen
from capacity_tui.tui.session import Session


def _machine(session: Session) -> ViewScreen:
    from capacity_tui.tui.screens.machine.screen import MachineScreen

    return MachineScreen(session)


def _find(session: Session) -> ViewScreen:
    from capacity_tui.tui.screens.find.screen import FindScreen

    return FindScreen(session)


def _cloud(session: Session) -> ViewScreen:
    from capacity_tui.tui.screens.cloud.screen import CloudScreen

    return CloudScreen(session)


def _run(session: Session) -> ViewScreen:
    from capacity_tui.tui.screens.run.screen import RunScreen

    return RunScreen(session)


def _scale(session: Session) -> ViewScreen:
    from capacity_tui.tui.screens.scale.screen import ScaleScreen

    return ScaleScreen(session)


def _cluster(session: Session) -> ViewScreen:
    from capacity_tui.tui.screens.cluster.screen import ClusterScreen

    return ClusterScreen(session)


SCREENS: Mapping[str, Callable[[Session], ViewScreen]] = {
    "find": _find,
    "cloud": _cloud,
    "run": _run,
    "scale": _scale,
    "cluster": _cluster,
    "machine": _machine,
}
"""What makes the screen of each view but the plan's own, which lies below all others."""


class Views:
    """Shows one view of the plan at a time; one that is left goes on, and is found as it was.

    Args:
        app: the program.
        session: what every screen works with.
    """

    def __init__(self, app: App[None], session: Session) -> None:
        self._app = app
        self._session = session

    @property
    def shown(self) -> str:
        """The view that is shown, also below a dialog."""
        return next(screen.VIEW for screen in reversed(self._app.screen_stack) if isinstance(screen, ViewScreen))

    def choose(self) -> None:
        """List the views, and take the key of one."""
        screen = self._app.screen
        if isinstance(screen, ViewScreen):
            screen.choose_view()

    def show_beside(self, offset: int) -> None:
        """Show the view that many places further, around the end."""
        names = tuple(VIEWS)
        self.show(names[(names.index(self.shown) + offset) % len(names)])

    def show(self, view: str) -> None:
        """Show a view, unless it is shown or a dialog lies over the one that is."""
        if view == self.shown or not isinstance(self._app.screen, ViewScreen):
            return
        if view == "plan":
            self._app.pop_screen()
            return
        if not self._app.is_screen_installed(view):
            self._app.install_screen(SCREENS[view](self._session), view)
        if self.shown == "plan":
            self._app.push_screen(view)
        else:
            self._app.switch_screen(view)
