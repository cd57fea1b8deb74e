"""The wheel: what it holds, and that it runs where other projects use the same folder names."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    "docs/man",
    "docs/completions",
    "engine",
    "tui",
    "themes",
    "profiles",
)
MOST_BYTES = 3_100_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("uv") is None and subprocess.run([sys.executable, "-m", "uv", "--version"], check=False).returncode:
        pytest.skip("uv is not installed: the wheel cannot be built in isolation")
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, source / name)
    out = tmp_path_factory.mktemp("wheel")
    builder = ["uv"] if shutil.which("uv") else [sys.executable, "-m", "uv"]
    subprocess.run([*builder, "build", "--quiet", "--wheel", "--out-dir", out, source], check=True)
    return next(out.glob("*.whl"))


def test_wheel_keeps_generic_names_out_of_site_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name and ".data/" not in name} == {
        "capacity_tui"
    }


def test_wheel_holds_every_module_and_data_file(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("engine", "tui", "themes", "profiles"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in {".py", ".pyi", ".yaml", ".csv", ".tcss", ".html"} and "__pycache__" not in file.parts:
                assert f"capacity_tui/{file.relative_to(ROOT)}" in held


def test_wheel_holds_no_tool_that_makes_its_data(wheel: Path) -> None:
    """What fits the constants is part of the repository, and what it needs no part of the program."""
    archive = zipfile.ZipFile(wheel)
    assert not [name for name in archive.namelist() if "calibrate" in name]
    assert not [name for name in archive.namelist() if name.endswith(".py") and b"scipy" in archive.read(name)]
    metadata = next(name for name in archive.namelist() if name.endswith("METADATA"))
    assert b"scipy" not in archive.read(metadata)


def test_wheel_is_small_and_puts_manual_and_completions_where_they_are_looked_for(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
    data = {name.partition(".data/data/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    assert data > {
        "share/man/man1/capacity-tui.1",
        "share/bash-completion/completions/capacity-tui",
        "share/zsh/site-functions/_capacity-tui",
        "share/fish/vendor_completions.d/capacity-tui.fish",
    }


def test_installed_program_is_not_shadowed(wheel: Path, tmp_path: Path) -> None:
    """A bare environment, with a PYTHONPATH whose project has an engine.py and a tui.py of its own."""
    environment = tmp_path / "environment"
    venv.create(environment)
    site = next((environment / "lib").glob("python*")) / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    # Dependencies come from the environment that runs the tests; the wheel itself comes first.
    (site / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    shadow = tmp_path / "project"
    shadow.mkdir()
    for name in ("engine", "tui", "themes", "profiles"):
        (shadow / f"{name}.py").write_text("raise RuntimeError('the wrong module was imported')\n")
    python = environment / "bin" / "python"
    for command in (["--version"], ["examples", "--list"], ["models", "--filter", "gpt2"]):
        done = subprocess.run(
            [python, "-m", "capacity_tui.tui", *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(shadow)},
            cwd=shadow,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
