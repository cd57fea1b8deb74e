"""A cluster that the catalogue knows is hardware of a plan; what the plan says itself goes over it."""

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.plan import HardwareSection, PricingSection

OWN = """
lab:
  name: Our lab
  groups:
    - {name: h100-sxm-80gb, devices: 32, per_node: 8}
    - {name: a100-sxm-80gb, devices: 16, per_node: 8}
  interconnect: ib-ndr
  host_memory_gib: 2000
  source: ours
  checked: 2026-11-01
  confidence: B
"""


def cluster_of(catalog=None, **hardware):
    return resolve_cluster(HardwareSection(**hardware), PricingSection(), catalog or load_catalog())


def test_a_cluster_is_the_hardware_it_is_made_of():
    named = cluster_of(name="perlmutter", devices=16)
    listed = cluster_of(
        name="a100-sxm-80gb",
        devices=16,
        per_node=4,
        interconnect="slingshot-11",
        ports_per_node=4,
        spec={"host_memory_gib": 64},
    )
    assert (named.device, named.levels, named.host_memory_bytes) == (
        listed.device, listed.levels, listed.host_memory_bytes
    )  # fmt: skip
    assert cluster_of(name="perlmutter").devices == 1024


def test_the_plan_goes_over_the_cluster():
    other = cluster_of(name="perlmutter", devices=16, per_node=8, interconnect="ib-ndr")
    assert other.per_node == 8
    assert other.levels[1].link == load_catalog().links["ib-ndr"].name


def test_a_cluster_of_ones_own_may_have_unlike_devices(tmp_path):
    (tmp_path / "clusters.yaml").write_text(OWN)
    catalog = Catalog(tmp_path)
    found = cluster_of(catalog, name="lab", mixed="all")
    assert found.devices == 48
    assert "pace of the slowest" in found.mix
    assert not catalog.problems
    (tmp_path / "clusters.yaml").write_text(OWN.replace("ib-ndr", "ib-nrd"))
    (problem,) = Catalog(tmp_path).problems
    assert "ib-nrd" in problem.one_line()
