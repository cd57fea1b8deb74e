from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import Catalog


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The catalogue without any file of a user's."""
    return Catalog(tmp_path_factory.mktemp("empty"))


@pytest.fixture
def with_own(tmp_path: Path) -> Callable[..., Catalog]:
    """Builds a catalogue with the user's files given as name=text."""

    def build(**texts: str) -> Catalog:
        for name, text in texts.items():
            file = tmp_path / f"{name}.yaml"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Catalog(tmp_path)

    return build
