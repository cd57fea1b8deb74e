"""No name of hardware or software stands in code: it is a row of the catalogue, or in its vendor's or tool's own file.

Number formats (fp32, bf16 ...) are left out: datasheets, instruction sets and libraries name their columns by them.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sources import ROOT, name_of, nodes_of, source_files

from capacity_tui.engine.catalog import load_catalog

# Each of these is about one maker's devices or one tool's files.
OWN_FILES = ("engine/machine", "engine/present/frameworks", "engine/plan/imports", "engine/plan/options")
# Words of plain English that are also ids of rows.
ENGLISH = {"machine", "other", "plain", "cpu", "generic", "none"}
TEXT = "a text for people names what it is about"
ALGORITHM = "part of a classical algorithm's id"
KIND = "transformers is the kind of model"
ALLOWED: dict[str, tuple[set[str], str]] = {
    "engine/runs/accuracy/published.py": ({"fsdp"}, "a column of the measurements has that name"),
    "engine/catalog/catalog.py": ({"unnamed-engine"}, "row of software that is not known"),
    "engine/catalog/rows/devices.py": ({"tpu", "nvidia", "amd"}, TEXT + "; tpu is a kind of device"),
    "engine/catalog/rows/models.py": ({"nvidia", "amd", "adamw"}, "names and texts of fields of one maker alone"),
    "engine/solve/advice/remedies.py": ({"fsdp"}, TEXT),
    "engine/solve/advice/warnings.py": ({"transformers"}, KIND),
    "engine/cluster/cluster.py": ({"tpu"}, "a kind of device"),
    "engine/estimate/classical/work.py": ({"sgd"}, ALGORITHM),
    "engine/estimate/classical/linear.py": ({"sgd"}, ALGORITHM),
    "engine/estimate/estimate.py": ({"transformers"}, KIND),
    "engine/estimate/serving/resolve.py": ({"cpu-8c-3.5ghz-baseline"}, "processor assumed where a plan names none"),
    "engine/estimate/transformer/auxiliary_kernels.py": ({"adamw"}, "source of an equation"),
    "engine/models/classical.py": ({"sgd"}, ALGORITHM),
    "engine/models/known_models.py": ({"sgd", "transformers"}, f"{KIND}; {ALGORITHM}"),
    "engine/nodes/jobs/proposal.py": ({"deepspeed"}, "commands that start processes by themselves"),
    "engine/nodes/jobs/kubernetes_pods.py": ({"nvidia"}, "devices that GPU feature discovery labels"),
    "engine/plan/files/loading.py": ({"adamw"}, "what the older form of plans meant without an optimizer"),
    "engine/plan/consequences.py": ({"transformers"}, KIND),
    "engine/plan/sections.py": ({"transformers", "adamw"}, "defaults of fields"),
    "engine/runs/sampling/kernels.py": ({"adamw"}, "the kernel that is measured"),
    "engine/runs/sampling/kernel_samples.py": ({"adamw"}, "the kernel that is measured"),
}


@cache
def names() -> frozenset[str]:
    """Return the ids of rows, makers, generations and engines, in small letters."""
    facts = load_catalog(Path("none"))
    makers = {row.vendor for row in (*facts.accelerators.values(), *facts.processors.values())}
    generations = {row.generation for row in facts.accelerators.values() if row.generation}
    tables = (
        facts.accelerators, facts.processors, facts.links, facts.fabrics, facts.instances, facts.engines,
        facts.frameworks, facts.optimizers, facts.efficiencies,
    )  # fmt: skip
    engines = {row.engine for row in facts.engines.values()}
    found = {*makers, *generations, *engines, *(row_id for table in tables for row_id in table)}
    return frozenset(name.lower() for name in found) - ENGLISH - frozenset(facts.precisions)


def texts(file: Path) -> Iterator[str]:
    """Yield identifiers as words, and texts that are not docstrings."""
    docstrings = {id(node.value) for node in nodes_of(file) if isinstance(node, ast.Expr)}
    for node in nodes_of(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        for field in ("id", "attr", "name", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")


@cache
def named(file: Path) -> set[str]:
    """Return the names of the catalogue that a file holds."""
    text = "\n".join(dict.fromkeys(texts(file))).lower()
    words = {*re.findall(r"[a-z0-9]+(?:[-._][a-z0-9]+)*", text), *re.findall(r"[a-z0-9]+", text)}
    return words & names()


@pytest.mark.parametrize("folder", ["engine", "tui"])
def test_names_of_hardware_and_software_stand_in_data(folder: str) -> None:
    strays = {
        name: sorted(left)
        for file in source_files(folder)
        if not (name := name_of(file)).startswith(OWN_FILES)
        and (left := named(file) - ALLOWED.get(name, (set(), ""))[0])
    }
    assert strays == {}, "make it a row or a field of a row in profiles/"


def test_what_is_allowed_is_still_there() -> None:
    gone = {file: allowed - named(ROOT / file) for file, (allowed, _) in ALLOWED.items()}
    assert {file: left for file, left in gone.items() if left} == {}
