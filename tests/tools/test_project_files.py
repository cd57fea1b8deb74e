"""What contributors and scripts rely on: workflows, templates, and the page of names that stay."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_lines import parsed

from capacity_tui.engine.plan.files import read_source
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve import answer

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FORMS = sorted((ROOT / ".github").rglob("*.yml"))


def workflow(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")))


def test_a_release_uses_the_wheel_on_every_python_it_is_made_for() -> None:
    made_for = {line.rsplit(" ")[-1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    jobs = workflow("release")["jobs"]
    assert set(jobs["wheel"]["strategy"]["matrix"]["python"]) == made_for
    assert jobs["wheel"]["needs"] == "build"
    assert jobs["publish"]["needs"] == "wheel"
    assert min(made_for, key=lambda version: int(version.partition(".")[2])) == PROJECT["requires-python"].strip(">=")


def test_only_the_job_that_publishes_may_and_no_secret_is_stored() -> None:
    release = workflow("release")
    writing = [name for name, job in release["jobs"].items() if "write" in str(job.get("permissions", ""))]
    assert writing == ["publish"]
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert not [form.name for form in FORMS if "secrets." in form.read_text("utf-8")]


def commands(text: str) -> Iterator[str]:
    """Yield the command lines of a form or a workflow, up to what a shell makes of them."""
    for line in re.findall(r"(?m)^\s*(?:- run: |uv run )?(capacity-tui [^\n`|&$]+?)\s*(?:[|&].*)?$", text):
        yield str(line)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_commands_of_forms_and_workflows_are_some(form: Path) -> None:
    text = form.read_text("utf-8")
    assert yaml.safe_load(text)
    assert [(line, fault) for line in commands(text) if (fault := parsed(line))] == []


def test_the_names_that_stay_are_keys_of_an_answer() -> None:
    page = (ROOT / "docs" / "stability.md").read_text("utf-8").partition("## Results")[2]
    answered = answer(read_source("qlora_rtx_4090").plan())
    result = result_as_dict(answered.plan, answered.estimate)
    named = re.findall(r"(?m)^\| (.+?) \| (`.+) \|$", page)
    assert len(named) > 5
    for sections, keys in named:
        above = re.findall(r"`(\w+)`", sections)
        held = {name for section in above for name in dict(result[section])} if above else set(result)
        assert not set(re.findall(r"`(\w+)`", keys)) - held, sections


def test_every_public_page_of_the_project_is_there() -> None:
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", ".github/pull_request_template.md", "docs/stability.md"):
        assert (ROOT / name).read_text("utf-8").strip()


def test_the_changelog_goes_by_release_and_begins_with_this_one() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heads = re.findall(r"(?m)^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", text)
    versions = [version for version, _ in heads]
    assert versions[0] == PROJECT["version"]
    assert versions == sorted(set(versions), key=lambda version: tuple(map(int, version.split("."))), reverse=True)
    assert len(heads) == text.count("\n## ")
    assert [day for _, day in heads[1:]] == sorted((day for _, day in heads[1:]), reverse=True)
