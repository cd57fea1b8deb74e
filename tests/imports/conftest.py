"""Files of other tools as people have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from capacity_tui.engine.plan.imports import Imported, import_plan

SAMPLES = Path(__file__).parent / "samples"
GIVEN: dict[str, object] = {"model.name": "llama-3.1-8b", "hardware.name": "h100-sxm-80gb", "hardware.devices": 8}


@pytest.fixture
def read() -> Callable[..., Imported]:
    """Read samples by name, with what the command line adds."""

    def of(*names: str, **typed: object) -> Imported:
        given = {**GIVEN, **{path.replace("__", "."): value for path, value in typed.items()}}
        files = [str(SAMPLES / name) for name in names]
        return import_plan(files, {path: value for path, value in given.items() if value is not None})

    return of


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Imported]:
    """Read a text as a file of a name."""

    def of(name: str, text: str, **typed: object) -> Imported:
        (tmp_path / name).write_text(text)
        given = {**GIVEN, **{path.replace("__", "."): value for path, value in typed.items()}}
        return import_plan([str(tmp_path / name)], {path: value for path, value in given.items() if value is not None})

    return of


@pytest.fixture
def alone(tmp_path: Path):
    """Read a text as a file of a name, with hardware and nothing else typed."""

    def of(name: str, text: str, typed: Mapping[str, object] = MappingProxyType({})):
        (tmp_path / name).write_text(text)
        given = {"hardware.name": "h100-sxm-80gb", "hardware.devices": 8, **typed}
        return import_plan([str(tmp_path / name)], given, allow_fragment=True)

    return of
