"""A form in which a plan can leave the program, as plain frozen data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Export:
    """A form in which a plan can leave the program.

    Attributes:
        title: what it is called.
        detail: what is in it.
        files: texts by the names of their files.
        folder: where several files go; empty for a single file.
        keep: keeps in the history what was exported, at the place that the settings name; returns what to tell of that.
    """

    title: str
    detail: str
    files: Mapping[str, str] = field(hash=False)
    folder: str = ""
    keep: Callable[[str], str] | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """All of it as one text; of several files each below its name."""
        if not self.folder:
            return "".join(self.files.values())
        return "\n".join(f"# {name}\n{text}" for name, text in self.files.items())

    @property
    def name(self) -> str:
        """What the file or folder is called."""
        return self.folder or next(iter(self.files))
