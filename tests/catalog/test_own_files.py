"""A user's own files add rows and replace fields; what is wrong in them is named and left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.models import family_of
from capacity_tui.engine.plan import refuse_unknown_names
from capacity_tui.engine.plan.files import plan_from_data

WithOwn = Callable[..., Catalog]


def test_a_field_is_replaced_and_the_others_stay(with_own: WithOwn) -> None:
    catalog = with_own(accelerators="rtx-4090:\n  tdp_w: 320\n")
    row = catalog.accelerators.find("4090")
    assert row.tdp_w == 320
    assert row.bf16_tflops == 165.2
    assert row.provenance == "user file"
    assert row.overrides == ("tdp_w",)
    assert catalog.accelerators["rtx-3090"].provenance == "catalogue"
    assert catalog.problems == ()


def test_a_block_is_merged_field_by_field(with_own: WithOwn) -> None:
    catalog = with_own(modes="balanced:\n  reserve:\n    system_gb: 8\n")
    assert catalog.modes["balanced"].reserve.system_gb == 8
    assert catalog.modes["balanced"].reserve.context_gb == 1.5


def test_a_row_is_added_with_defaults(with_own: WithOwn, shipped: Catalog) -> None:
    catalog = with_own(
        accelerators="my-gpu:\n  vendor: me\n  memory_mib: 24576\n  bf16_tflops: 100\n",
        aliases="accelerators:\n  mine: my-gpu\n",
    )
    row = catalog.accelerators.find("MINE")
    assert row.id == "my-gpu"
    assert row.source == "user file accelerators.yaml"
    assert len(catalog.accelerators) == len(shipped.accelerators) + 1
    assert "my-gpu" in list(catalog.accelerators)


def test_an_own_vendors_name_may_be_left_out_or_put_in_front(with_own: WithOwn) -> None:
    catalog = with_own(
        accelerators="acme-one:\n  vendor: Acme\n  name: Acme One\n  memory_mib: 1024\n\n"
        "two:\n  vendor: Acme\n  name: Two\n  memory_mib: 1024\n"
    )
    assert catalog.accelerators.find("one").id == "acme-one"
    assert catalog.accelerators.find("ACME Two").id == "two"


def test_a_bad_row_is_named_and_the_rest_loads(with_own: WithOwn) -> None:
    catalog = with_own(
        accelerators="good:\n  vendor: me\n  memory_mib: 1024\n\n"
        "bad:\n  vendor: me\n  memory_mib: lots\n\n"
        "rtx-4090:\n  tpd_w: 300\n"
    )
    assert "good" in catalog.accelerators
    assert "bad" not in catalog.accelerators
    assert catalog.accelerators["rtx-4090"].tdp_w == 450
    bad, misspelt = catalog.accelerators.problems
    assert (bad.place.line, bad.place.field) == (7, "bad.memory_mib")
    assert str(bad.place.file).endswith("accelerators.yaml")
    assert (misspelt.place.line, misspelt.place.field) == (10, "rtx-4090.tpd_w")
    assert "tdp_w" in misspelt.hint


def test_nested_fields_suggest_their_own_names(with_own: WithOwn) -> None:
    (problem,) = with_own(modes="extreme:\n  reserve:\n    spike: 0.2\n").modes.problems
    assert "spikes" in problem.hint
    assert problem.place.line == 3


def test_broken_files_are_problems_not_failures(with_own: WithOwn, shipped: Catalog) -> None:
    catalog = with_own(accelerators="a: {}\na: {}\n", links="- just\n- a list\n", modes="{", optimizers="adamw: fast\n")
    assert len(catalog.accelerators) == len(shipped.accelerators)
    assert [problem.place.line for problem in catalog.accelerators.problems] == [2]
    assert len(catalog.links.problems) == len(catalog.modes.problems) == len(catalog.optimizers.problems) == 1
    assert len(catalog.problems) == 4
    assert all("\n" not in problem.one_line() for problem in catalog.problems)


def test_reserved_fields_and_lost_aliases(with_own: WithOwn) -> None:
    catalog = with_own(links="nvlink-4:\n  provenance: catalogue\n", aliases="links:\n  fast: warp-drive\nwarp: 9\n")
    assert len(catalog.links.problems) == 2
    assert catalog.links.find_id("fast") is None
    assert len(catalog.problems) == 3


def test_a_folder_of_own_files(with_own: WithOwn, tmp_path) -> None:
    folder = tmp_path / "processors"
    folder.mkdir()
    (folder / "mine.yaml").write_text("my-cpu:\n  vendor: me\n  cores: 12\n")
    assert with_own().processors["my-cpu"].cores == 12


def test_a_name_in_an_own_file_that_is_not_a_file(with_own: WithOwn, tmp_path) -> None:
    (tmp_path / "links.yaml").mkdir()
    (problem,) = with_own().links.problems
    assert "not a file" in problem.title


LEFT_OUT = "what you have under that name cannot be used: .*"


@pytest.mark.parametrize(
    ("files", "name", "told"),
    [
        ({"accelerators": "zeta:\n  tdp_w: -7\n"}, "Zeta", "accelerators.yaml:1: zeta.vendor"),
        ({"clusters/lab": "groups: [[["}, "lab", "lab.yaml:2: not valid YAML"),
    ],
)
def test_hardware_that_was_left_out_is_told_with_the_reason(
    files: dict[str, str], name: str, told: str, with_own: WithOwn
) -> None:
    with pytest.raises(CapacityError, match=LEFT_OUT + told):
        with_own(**files).find_hardware(name)


def test_links_models_and_optimizers_that_were_left_out_are_told_with_the_reason(with_own: WithOwn) -> None:
    texts = {"links": "my-net:\n  gbs: fast\n", "architectures": "zeta:\n  layers: -3\n", "optimizers": "sofia: 7\n"}
    catalog = with_own(**texts)
    plan = plan_from_data({"model": {"name": "llama-3.1-8b"}, "training": {"optimizer": "sofia"}})
    for look in (
        lambda: catalog.links.find("my-net"),
        lambda: family_of("zeta", catalog),
        lambda: refuse_unknown_names(plan, catalog),
    ):
        with pytest.raises(CapacityError, match=LEFT_OUT):
            look()


def test_files_that_no_table_reads_are_told(with_own: WithOwn, tmp_path: Path) -> None:
    catalog = with_own(models="", links="", **{"model/mine": ""})
    (tmp_path / "optimizers.yml").write_text("")
    told = [problem.one_line().removeprefix(f"{tmp_path}/") for problem in catalog.problems]
    assert [line.partition(":")[0] for line in told] == ["model/mine.yaml", "models.yaml", "optimizers.yml"]
    assert "accelerators, algorithms, aliases, architectures" in told[1]
    assert told[2].endswith("call it optimizers.yaml")
