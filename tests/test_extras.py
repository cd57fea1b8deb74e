"""The command that installs an optional part, in whatever way the program was installed."""

import shlex
import tomllib
from pathlib import Path

import pytest

from capacity_tui.engine.extras import command_for, install_command, packages_of

EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("extra", sorted(extra for extra, packages in EXTRAS.items() if packages))
def test_the_command_names_the_packages_of_an_extra_and_not_the_program(extra: str) -> None:
    words = shlex.split(install_command(extra))
    wanted = [package.partition(";")[0].strip() for package in EXTRAS[extra]]
    assert [_name(word) for word in words[-len(wanted) :]] == [_name(package) for package in wanted]
    assert not [word for word in words if word.startswith("capacity-tui[")]


def test_only_packages_of_the_extra_are_named() -> None:
    requirements = [
        "numpy<3,>=2.0",
        'torch>=2.4; extra == "torch"',
        "ray<3; extra == 'ray' and python_version < '3.14'",
    ]
    assert packages_of("torch", requirements) == ("torch>=2.4",)
    assert packages_of("ray", requirements) == ("ray<3",)


def test_the_command_suits_what_made_the_environment(tmp_path: Path) -> None:
    python = str(tmp_path / "bin" / "python")
    assert command_for(["torch>=2.4"], tmp_path, python, has_pip=True) == f"{python} -m pip install 'torch>=2.4'"
    assert command_for(["a"], tmp_path, python, has_pip=False) == f"uv pip install --python {python} a"
    (tmp_path / "pipx_metadata.json").touch()
    assert command_for(["a"], tmp_path, python) == "pipx inject capacity-tui a"


def _name(requirement: str) -> str:
    return requirement.partition(">")[0].partition("<")[0].partition("=")[0]
