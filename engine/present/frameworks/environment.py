"""Environment variables that suit the hardware, as a script to be sourced."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from capacity_tui.engine.machine import Setting
from capacity_tui.engine.present.frameworks.text import comment, limits

_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def environment_script(settings: Sequence[Setting], remarks: Sequence[str], power_limit: str | None = None) -> str:
    """Return the settings as exports; those that are no variables as comments.

    Args:
        settings: what suits the hardware.
        remarks: what the other files of the folder do not say, such as why there are none.
        power_limit: the command that keeps devices inside the plan's share of their power limit, if any does.
    """
    parts = [comment(["Source this before the run: . ./environment.sh"]), limits(remarks)]
    for setting in settings:
        if _VARIABLE.fullmatch(setting.name):
            parts.append(f"\n{comment([setting.reason])}export {setting.name}={shlex.quote(setting.value)}\n")
        else:
            parts.append(f"\n{comment([f'{setting.name}: {setting.value} ({setting.reason})'])}")
    if power_limit is not None:
        why = "An administrator keeps devices inside the plan's share of their power (watch.power_share), slower, by:"
        parts.append(f"\n{comment([why, power_limit])}")
    if not settings:
        parts.append(comment(["No variable is proposed for this hardware."]))
    return "".join(parts)
