"""A row of the user's own is used by a plan at once, whatever kind it is: no code knows the names of rows."""

import pytest

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.plan import known_names
from capacity_tui.engine.plan.files import plan_from_data

FILES = {
    "precisions.yaml": """
fp6:
  weight_bytes: 2
  compute_bytes: 0.75
  activation_bytes: 2
  gradient_bytes: 2
  master_bytes: 4
  peak_field: fp8_tflops
  trains: true
  gradients: true
  casts: true
  runs_as: fp8
""",
    "quantizations.yaml": """
my-3:
  family: mine
  bits_per_weight: 3.25
  body_bits: 3.25
  embedding_bits: 16
  output_bits: 16
  compute: bf16
  engines: [my-engine, vllm]
  kv_cache: true
  offered: true
""",
    "checkpointing.yaml": """
my-selection:
  full_layers: 0.25
  modules: [attention, norm]
""",
    "optimizers.yaml": """
sophia:
  states: 2
  state_bytes: 8
  state_traffic_bytes: 16
  flops_per_parameter: 14
""",
    "engines.yaml": """
my-engine:
  engine: my-engine
  kernels: {plain: my-kernels, packed: my-kernels}
  kernels_per_layer: 8
  kernel_gap: 0
  host_us: 0
  step_us: 100
  cache_bandwidth: 0.8
  attention_prefill: 0.9
  elementwise_passes: 0.7
  stage_us: 10
  activation_bytes: 2
  block_tokens: 16
  memory_policy: needed
  workspace_mib: 300
  fragmentation: 0.02
""",
    "weight_kernels.yaml": """
my-kernels:
  bandwidth: 0.95
  matrix: 0.95
""",
    "links.yaml": """
my-fabric:
  kind: inter-node
  per: port
  per_direction_gbs: 400
  latency_us: 1
my-backplane:
  kind: intra-node
  per: device
  direct: true
  per_direction_gbs: 2000
""",
    "fabrics.yaml": """
my-racks:
  generations: [Zeta]
  node_devices: 16
  unit: sled
  network: my-fabric
  levels:
    - {name: rack, devices: 128, link: my-backplane}
    - {name: hall, oversubscription: 2}
""",
    "accelerators.yaml": """
zeta-1:
  vendor: Zeta Corporation
  generation: Zeta
  memory_mib: 200000
  bandwidth_gbs: 9000
  fp32_tflops: 100
  fp16_tflops: 3000
  bf16_tflops: 3000
  fp8_tflops: 6000
  tdp_w: 900
  link: my-backplane
  link_gbs: 2000
  units: 200
""",
}
HARDWARE = {"name": "h100-sxm-80gb", "devices": 8}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("catalog")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    shipped = Catalog(folder / "none")
    (folder / "frameworks.yaml").write_text("my-trainer:\n  like: plain\n  source: a test\n  tp_overlap: 0.9\n")
    generation = shipped.efficiencies["other"].model_dump(
        exclude={"id", "provenance", "overrides", "name", "notes", "checked", "generations"}
    )
    lines = [f"  {key}: {value}" for key, value in {**generation, "source": "'a test'", "network_share": 0.5}.items()]
    (folder / "efficiency.yaml").write_text("zeta:\n  generations: [Zeta]\n" + "\n".join(lines) + "\n")
    found = Catalog(folder)
    assert found.problems == ()
    return found


def trained(catalog: Catalog, hardware: object = None, **training: object) -> Estimate:
    data = {
        "model": {"name": "llama-3-8b"},
        "training": {"micro_batch": 1, "global_batch": 1024, **training},
        "hardware": hardware or HARDWARE,
    }
    return estimate_plan(plan_from_data(data), None, catalog).estimate


def served(catalog: Catalog, **inference: object) -> Estimate:
    data = {"task": "infer", "model": {"name": "llama-3-8b"}, "inference": inference, "hardware": HARDWARE}
    return estimate_plan(plan_from_data(data), None, catalog).estimate


def step(found: Estimate) -> float:
    return float(found.computation.step_seconds.value)


def test_precision(catalog: Catalog) -> None:
    assert "fp6" in known_names("training.precision", catalog)
    assert step(trained(catalog, precision="fp6")) < step(trained(catalog, precision="bf16"))
    kept = trained(catalog, gradients="fp6").memory.parts["gradients"]
    assert float(kept) == float(trained(catalog, gradients="bf16").memory.parts["gradients"])


def test_a_device_without_a_precision_computes_in_what_its_row_says(catalog: Catalog) -> None:
    own, other = (trained(catalog, {"name": "a100-sxm-80gb"}, precision=name) for name in ("fp6", "fp8"))
    assert step(own) == pytest.approx(step(other))


def test_quantization(catalog: Catalog) -> None:
    own, usual = served(catalog, weights="my-3", engine="vllm"), served(catalog, weights="bf16", engine="vllm")
    assert float(own.memory.parts["weights"]) < float(usual.memory.parts["weights"]) / 2
    assert "my-3" in known_names("inference.weights", catalog)
    cache = served(catalog, kv_cache="my-3").memory.parts["kv_cache"]
    assert float(cache) < float(served(catalog).memory.parts["kv_cache"]) / 3


def test_checkpointing(catalog: Catalog) -> None:
    own, none, full = (
        float(trained(catalog, micro_batch=8, checkpointing=name).memory.places["at the start of the backward pass"])
        for name in ("my-selection", "none", "full")
    )
    assert full < own < none


def test_optimizer(catalog: Catalog) -> None:
    assert trained(catalog, optimizer="sophia").memory.parts["optimizer"] > 0


def test_engine(catalog: Catalog) -> None:
    found = served(catalog, engine="my-engine", weights="my-3")
    assert found.fits
    assert found.computation.infer is not None


def test_framework(catalog: Catalog) -> None:
    assert step(trained(catalog, framework="my-trainer")) > 0
    assert not any("without a name" in line for line in trained(catalog, framework="my-trainer").basis.assumed)


def test_link(catalog: Catalog) -> None:
    far = {"name": "h100-sxm-80gb", "devices": 64}
    own, usual = (trained(catalog, {**far, "interconnect": link}) for link in ("my-fabric", "ib-hdr"))
    assert step(own) < step(usual)


def test_an_accelerator_of_a_new_generation_with_its_racks_network_and_efficiency(catalog: Catalog) -> None:
    found = trained(catalog, {"name": "zeta-1", "devices": 1024})
    assert [level.name for level in found.basis.levels] == ["sled", "rack", "hall"]
    assert [float(level.devices) for level in found.basis.levels] == [16, 128, 1024]
    assert float(found.basis.levels[-1].bandwidth) == 200e9
    assert found.basis.calibration.startswith("zeta: a test")


@pytest.mark.parametrize(("field", "name"), [("precision", "fp5"), ("optimizer", "sofia"), ("checkpointing", "mine")])
def test_what_no_row_says_is_refused(field: str, name: str, catalog: Catalog) -> None:
    with pytest.raises(CapacityError, match="is called"):
        trained(catalog, **{field: name})
