"""The door of a package: the names that others use, each written once, in the ``__init__.pyi`` beside its ``__init__``.

Type checkers read that file directly. At run time a name is loaded from its module when it is first asked for, so
that importing a package costs nothing.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

_ENTRY = re.compile(r"^from \.([\w.]+) import (\w+) as (\w+)$", re.MULTILINE)


class Door(ModuleType):
    """A package that loads its public names when they are first used."""

    homes: dict[str, tuple[str, str]]  # the module and the name in it of each public name

    def __getattr__(self, name: str) -> object:
        home = self.__dict__.get("homes", {}).get(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, original = home
        return getattr(import_module(f"{self.__name__}.{module}"), original)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a name; a loaded submodule does not hide the public name that is spelled like it."""
        if not (isinstance(value, ModuleType) and name in self.homes):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.homes})


def public_names(stub: Path) -> dict[str, tuple[str, str]]:
    """Return the module and the name in it of each name that a package's ``__init__.pyi`` offers."""
    return {public: (home, name) for home, name, public in _ENTRY.findall(stub.read_text(encoding="utf-8"))}


def open_door(package: str, file: str) -> None:
    """Let a package offer the names of the ``.pyi`` file beside its ``__init__``."""
    module = sys.modules[package]
    module.__dict__["homes"] = public_names(Path(file).with_suffix(".pyi"))
    module.__class__ = Door
