"""Plans of the last days: the lines that were typed and the files that were opened, kept for the next start."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import make_folder, set_aside, state_folder, write_atomically

MOST = 12
_LONGEST = 1000
_LARGEST_FILE = 1 << 20
_TURN = threading.Lock()


@dataclass(frozen=True, slots=True)
class RecentPlan:
    """Something that was planned.

    Attributes:
        text: the line that was typed, or the path of the file.
        is_file: which of both it is.
        words: what it was, in a few words.
    """

    text: str
    is_file: bool
    words: str = ""


def recent_file() -> Path:
    """Return where they are kept."""
    return state_folder() / "recent.json"


def recent_plans() -> tuple[RecentPlan, ...]:
    """Return them, the last first; a damaged file is set aside and holds none."""
    file = recent_file()
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise ValueError("larger than anything that is kept")
        return tuple(_plan(entry) for entry in json.loads(file.read_text(encoding="utf-8")))
    except OSError:
        return ()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        with suppress(StorageError):
            set_aside(file)
        return ()


def remember_plan(plan: RecentPlan) -> None:
    """Put a plan in front of the others.

    Raises:
        StorageError: it cannot be written.
    """
    if len(plan.text) > _LONGEST:
        return
    with _TURN:
        others = (other for other in recent_plans() if (other.text, other.is_file) != (plan.text, plan.is_file))
        kept = [plan, *others][:MOST]
        make_folder(recent_file().parent)
        write_atomically(recent_file(), json.dumps([asdict(entry) for entry in kept]), overwrite=True)


def _plan(entry: dict[str, object]) -> RecentPlan:
    text, is_file, words = entry["text"], entry["is_file"], entry["words"]
    if not isinstance(text, str) or not isinstance(is_file, bool) or not isinstance(words, str):
        raise ValueError("a recent plan is text")
    return RecentPlan(text, is_file, words)
