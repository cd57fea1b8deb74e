"""What a guard runs and how far it has come, written down so that another guard can continue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.files import write_atomically
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data

_FILE = "guard.json"


@dataclass(frozen=True)
class Order:
    """What is run under guard.

    Attributes:
        words: the command with its placeholders.
        plan: every default filled in, as changed so far.
        files: of which the command gets copies with values in the place of placeholders, as its words name them.
        checkpoints: folder of its checkpoints; None where nothing is known of them.
        log: where it writes its log besides its output; empty for nowhere.
        attempt: how often it was started, this time included.
        steps: what was changed after each end, as plain data.
    """

    words: tuple[str, ...]
    plan: Plan
    files: tuple[str, ...]
    checkpoints: Path | None
    log: str
    work: Path
    attempt: int = 1
    steps: tuple[Mapping[str, object], ...] = ()

    def next(self, plan: Plan, step: Mapping[str, object]) -> Order:
        """Return the order of the next attempt, with a changed plan."""
        return replace(self, plan=plan, attempt=self.attempt + 1, steps=(*self.steps, step))

    def write(self, folder: Path) -> None:
        """Write it into the folder of the run.

        Raises:
            StorageError: it cannot be written.
        """
        data = {
            "words": self.words,
            "plan": self.plan.plain_data(),
            "files": self.files,
            "checkpoints": None if self.checkpoints is None else str(self.checkpoints),
            "log": self.log,
            "work": str(self.work),
            "attempt": self.attempt,
            "steps": self.steps,
        }
        write_atomically(folder / _FILE, json.dumps(data) + "\n", overwrite=True)


def read_order(folder: Path) -> Order:
    """Return what is run in the folder of a run.

    Raises:
        StorageError: it is not guarded, or what was written cannot be read.
    """
    try:
        data = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return Order(
            words=tuple(map(str, data["words"])),
            plan=plan_from_data(data["plan"], str(folder / _FILE)),
            files=tuple(map(str, data["files"])),
            checkpoints=None if data["checkpoints"] is None else Path(data["checkpoints"]),
            log=str(data["log"]),
            work=Path(data["work"]),
            attempt=int(data["attempt"]),
            steps=tuple(cast("list[dict[str, object]]", data["steps"])),
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StorageError("no guarded run can be read there", str(error), place=Place(str(folder))) from None
