"""A machine with unlike accelerators: what of them a plan uses, and what it says of the rest."""

from dataclasses import replace
from pathlib import Path

import pytest
from recorded import replay

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import cluster_of_machine
from capacity_tui.engine.machine import Machine, detect, missing
from capacity_tui.engine.machine import detected as fact

CATALOG = load_catalog(Path("none"))


def machine(tmp_path: Path, *ids: str | None) -> Machine:
    """Return a machine with accelerators of some rows; None stands for one that the catalogue does not know."""
    found = detect(host=replay("arc_pro_b70_pair", tmp_path))
    one = found.accelerators[0]
    accelerators = []
    for row_id in ids:
        size = CATALOG.accelerators[row_id].memory_bytes if row_id else 2**34
        accelerators.append(
            replace(
                one,
                name=fact(row_id or "Mystery 9000", "a test"),
                catalogue_id=fact(row_id, "a test") if row_id else missing("a test", "unknown"),
                memory_total_bytes=fact(size, "a test"),
                memory_used_bytes=fact(0, "a test"),
                power_limit_watts=missing("a test", "not told"),
            )
        )
    return replace(found, accelerators=tuple(accelerators))


@pytest.mark.parametrize(
    ("ids", "devices", "name"),
    [
        (("rtx-3060-12gb", "rtx-4090", "rtx-4090"), 2, "rtx-4090"),
        (("rtx-4090", "rtx-3090", "rtx-3090", "rtx-3090"), 4, "rtx-3090"),
        (("l4", "l4"), 2, "l4"),
    ],
)
def test_the_devices_with_the_most_arithmetic_are_used(
    ids: tuple[str, ...], devices: int, name: str, tmp_path: Path
) -> None:
    found = cluster_of_machine(machine(tmp_path, *ids), CATALOG)
    assert (found.devices, found.per_node, found.device.id) == (devices, devices, name)
    assert bool(found.mix_reason) == (len(set(ids)) > 1)


def test_what_is_left_out_is_said_with_the_reason(tmp_path: Path) -> None:
    found = cluster_of_machine(machine(tmp_path, "rtx-3060-12gb", None, "rtx-4090", "rtx-4090"), CATALOG)
    assert "1 x rtx-3060-12gb left out: all 3 together would work at the pace of the slowest" in found.mix_reason
    assert "Mystery 9000 is not in the catalogue" in found.assumed


def test_the_plan_decides_where_it_wants_to(tmp_path: Path) -> None:
    here = machine(tmp_path, "rtx-3060-12gb", "rtx-4090", "rtx-4090")
    every, one = cluster_of_machine(here, CATALOG, "all"), cluster_of_machine(here, CATALOG, "one")
    assert (every.devices, one.devices) == (3, 2)
    assert every.device.memory_bytes == CATALOG.accelerators["rtx-3060-12gb"].memory_bytes
