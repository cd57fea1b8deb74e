"""Hardware of one's own from a script, kept as a file of the user's catalogue for plans and commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from capacity_tui.engine.catalog.catalog import Catalog
from capacity_tui.engine.catalog.loading import kept_catalog, load_catalog
from capacity_tui.engine.catalog.rows.devices import Accelerator, Processor
from capacity_tui.engine.errors import CatalogError, Place
from capacity_tui.engine.files import config_folder, make_folder, write_atomically

_A_NAME = re.compile(r"\w[\w .+-]{0,79}")


def register_hardware(name: str, fields: Mapping[str, object]) -> Accelerator | Processor:
    """Keep a device under a name that plans can give from then on; one of that name before is replaced.

    Args:
        name: what it is called, as in ``my_custom_gpu``.
        fields: those of a row of accelerators or processors, or of the ML Capacity Planner: ``type`` (gpu, tpu or
            cpu), ``peak_flops``, ``peak_flops_fp16``, ``mem_gb``, ``vram_gb``, ``bandwidth_gbps``, ``cost_per_hour``.

    Raises:
        CatalogError: a field is missing, unknown or out of range.
        StorageError: the file cannot be written.
    """
    if not _A_NAME.fullmatch(name):
        raise CatalogError("not a name of hardware", repr(name)[:100], "use letters, digits, - _ . and + only")
    table = "processors" if fields.get("type") == "cpu" or "cores" in fields else "accelerators"
    file = f"{name.replace(' ', '-')}.yaml"
    text = yaml.safe_dump({name: dict(fields)}, allow_unicode=True, sort_keys=False)
    with TemporaryDirectory() as trial:
        _write(Path(trial), table, file, text)
        tried = Catalog(Path(trial))
        for problem in (*tried.accelerators.problems, *tried.processors.problems):
            raise CatalogError(problem.title, problem.detail, problem.hint, Place(field=problem.place.field))
    _write(config_folder() / "catalog", table, file, text)
    kept_catalog.cache_clear()
    catalog = load_catalog()
    return catalog.processors[name] if table == "processors" else catalog.accelerators[name]


def _write(folder: Path, table: str, file: str, text: str) -> None:
    make_folder(folder / table)
    write_atomically(folder / table / file, text, overwrite=True)
