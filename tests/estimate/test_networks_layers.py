"""Networks: exact sizes, shapes that flow, memory and time of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Answer, estimate_plan
from capacity_tui.engine.models.networks import LayerList
from capacity_tui.engine.models.networks.blocks import Shape
from capacity_tui.engine.models.networks.reading import build_network
from capacity_tui.engine.plan import plan_fields
from capacity_tui.engine.plan.files import example_text, plan_from_data, plan_from_text

GPU = "A100_80GB_fp16"


def run(name: str, spec: dict[str, object] | None = None, **sections: object) -> Answer:
    hardware = sections.pop("hardware", {"name": GPU})
    return estimate_plan(
        plan_from_data({"model": {"name": name, "spec": spec or {}}, "hardware": hardware, **sections})
    )


def trained(name: str, spec: dict[str, object] | None = None, **training: object) -> Answer:
    return run(name, spec, training=training)


def seconds(answer: Answer) -> float:
    return float(answer.estimate.computation.step_seconds.value)


@pytest.mark.parametrize(
    ("name", "parameters", "giga_products"),
    [
        ("resnet-18", 11_689_512, 1.81),
        ("resnet34", 21_797_672, 3.66),
        ("ResNet-50", 25_557_032, 4.09),
        ("resnet50", 25_557_032, 4.09),
        ("resnet101", 44_549_160, 7.80),
        ("resnet152", 60_192_808, 11.51),
    ],
)
def test_residual_networks_are_exact(name: str, parameters: int, giga_products: float) -> None:
    model = run(name).estimate.model
    assert model.parameters == parameters
    assert model.forward_flops / 2e9 == pytest.approx(giga_products, abs=0.006)
    assert model.unit == "sample"


@pytest.mark.parametrize("name", ["resnet-18", "resnet-34", "resnet-50", "resnet-101", "resnet-152"])
def test_layer_lists_agree_with_the_catalogue_of_models(name: str) -> None:
    assert run(name).estimate.model.parameters == load_catalog().architectures[name].params_total


def test_vision_transformers_see_their_patches() -> None:
    answer = run("vit-b-16")
    assert answer.estimate.model.parameters == 86_567_656
    assert answer.plan.training.seq_len == 197
    assert float(answer.estimate.model.forward_flops) * 197 / 2e9 == pytest.approx(17.56, abs=0.05)


def test_unet_by_hand() -> None:
    def double(before: int, after: int) -> int:
        return 9 * before * after + 9 * after * after + 4 * after

    widths = (64, 128, 256, 512, 1024)
    down = sum(double(before, after) for before, after in zip((3, *widths), widths, strict=False))
    up = sum(4 * 2 * out * out + out + double(2 * out, out) for out in (512, 256, 128, 64))
    assert run("unet").estimate.model.parameters == down + up + 64 * 2 + 2


def test_perceptron_by_hand() -> None:
    model = run("mlp", {"d_in": 784, "d_out": 10, "layers": [512, 256, 128]}).estimate.model
    assert model.parameters == 785 * 512 + 513 * 256 + 257 * 128 + 129 * 10
    assert model.forward_flops == 2 * (784 * 512 + 512 * 256 + 256 * 128 + 128 * 10)


def test_simple_network_by_hand() -> None:
    spec = {"image_h": 32, "image_w": 32, "c_in": 3, "channels": [16, 32], "stride": 2, "num_classes": 10}
    model = run("simple_cnn", spec).estimate.model
    assert model.parameters == (27 + 1) * 16 + (144 + 1) * 32 + 33 * 10
    assert model.forward_flops == 2 * (16 * 16 * 16 * 27 + 8 * 8 * 32 * 144 + 32 * 10)


def built(*layers: object, shape: Shape | None = None) -> LayerList:
    return build_network(layers, shape or Shape(3, 8, 8), 10)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        ({"conv": {"out": 4, "stride": 2}}, Shape(4, 4, 4)),
        ({"conv": {"out": 4, "kernel": 3, "padding": 0}}, Shape(4, 6, 6)),
        ({"transposed": {"out": 4}}, Shape(4, 16, 16)),
        ({"pool": {"kernel": 2}}, Shape(3, 4, 4)),
        ({"upsample": 2}, Shape(3, 16, 16)),
        ("global_pool", Shape(3)),
        ({"linear": "classes"}, Shape(10)),
    ],
)
def test_shapes_flow(layer: object, shape: Shape) -> None:
    assert built(layer).layers[-1].output == shape


def test_concatenated_channels_add_up() -> None:
    network = built({"save": "early"}, {"conv": {"out": 5}}, {"concat": "early"})
    assert network.layers[-1].output.channels == 8


def test_a_tensor_that_two_layers_keep_counts_once() -> None:
    convolution: dict[str, object] = {"conv": {"out": 3}}
    alone = built(convolution, convolution)
    with_relu = built(convolution, "activation", convolution)
    assert alone.kept_elements == with_relu.kept_elements == 2 * 3 * 64


@pytest.mark.parametrize(
    "layers",
    [
        ["convolve"],
        [{"conv": {"outputs": 4}}],
        [{"concat": "nowhere"}],
        [{"conv": {"out": 4, "kernel": 20, "padding": 0}}],
        [[1]],
    ],
)
def test_layers_that_make_no_sense_are_refused(layers: list[object]) -> None:
    with pytest.raises(PlanError):
        built(*layers)


def test_a_network_of_ones_own(tmp_path: Path) -> None:
    from capacity_tui.engine.catalog import Catalog

    text = "tiny: {image_size: 8, classes: 4, layers: [conv: {out: 8}, global_pool, linear: classes], "
    text += "source: own, checked: 2026-11-21, confidence: B, name: Tiny}\n"
    (tmp_path / "networks.yaml").write_text(text)
    plan = plan_from_data({"model": {"name": "tiny"}, "hardware": {"name": GPU}})
    assert estimate_plan(plan, catalog=Catalog(tmp_path)).estimate.model.parameters == 28 * 8 + 9 * 4


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"image_sise": 64}, "model.spec.image_sise"),
        ({"image_size": 0}, "model.spec.image_size"),
        ({"num_classes": "ten"}, "model.spec.num_classes"),
    ],
)
def test_a_wrong_parameter_is_named(spec: dict[str, object], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        run("resnet50", spec)
    assert caught.value.place.field == field


def test_networks_run_data_parallel_only() -> None:
    with pytest.raises(PlanError) as caught:
        run("resnet50", parallelism={"tp": 2}, hardware={"name": GPU, "devices": 2})
    assert caught.value.place.field == "parallelism.tp"


def test_memory_follows_batch_optimizer_and_sharding() -> None:
    def parts(**training: object) -> dict[str, float]:
        return {name: float(size) for name, size in trained("resnet50", **training).estimate.memory.parts.items()}

    small, large = parts(micro_batch=32), parts(micro_batch=64)
    assert large["activations"] == pytest.approx(2 * small["activations"])
    assert parts(optimizer="sgd")["optimizer"] < parts(optimizer="sgd_momentum")["optimizer"] < small["optimizer"]
    assert parts(micro_batch=32, checkpointing="full")["activations"] < small["activations"]
    assert parts(precision="fp32")["weights"] == 4 * 25_557_032


def test_known_activation_memory_of_resnet_50() -> None:
    """Some 22 million elements an image in 16 bits, as batches of 256 show on 40 GB cards."""
    activations = float(trained("resnet50", micro_batch=256).estimate.memory.parts["activations"])
    assert 10e9 < activations < 14e9


@pytest.mark.parametrize(
    ("hardware", "precision", "low", "high"),
    [("A100_80GB_fp16", "bf16", 1700, 3000), ("v100-sxm2-16gb", "fp32", 280, 450)],
)
def test_known_speeds_of_resnet_50(hardware: str, precision: str, low: float, high: float) -> None:
    """Images a second as vendors and frameworks publish them, from plain loops to tuned ones."""
    training = {
        "micro_batch": 128,
        "precision": precision,
        "optimizer": "sgd_momentum",
        "memory_format": "channels_last",
    }
    answer = run("resnet50", training=training, hardware={"name": hardware})
    assert low < 128 / seconds(answer) < high


def test_more_devices_share_the_batch_and_pay_for_it() -> None:
    one = run("resnet50", training={"micro_batch": 64})
    eight = run("resnet50", training={"micro_batch": 64}, hardware={"name": GPU, "devices": 8})
    assert eight.plan.training.global_batch == 512
    assert seconds(eight) >= seconds(one)
    assert float(eight.estimate.computation.parts["data_parallel"]) > 0


def test_small_perceptrons_wait_for_launches() -> None:
    parts = trained("mlp", micro_batch=64).estimate.computation.parts
    assert float(parts["overhead"]) > float(parts["compute"])


def test_the_length_of_the_job_follows_from_samples_and_epochs() -> None:
    estimate = estimate_plan(plan_from_text(example_text("deep_learning"), "deep_learning")).estimate
    assert estimate.computation.steps == 15_625


def test_inference_needs_no_gradients() -> None:
    answer = run("resnet50", task="infer", inference={"batch": 64})
    parts = answer.estimate.memory.parts
    assert parts["gradients"] == parts["optimizer"] == 0
    assert float(parts["weights"]) == 2 * 25_557_032
    assert float(answer.estimate.computation.units_per_step) / seconds(answer) > 1000


def test_convolutions_outside_the_matrix_units_are_transformed_in_memory() -> None:
    """Around a 3x3 convolution of 8 channels to 64 its images, and 36/16 of them transformed."""

    def activations(precision: str) -> float:
        spec = {"image_h": 32, "image_w": 32, "c_in": 8, "channels": [64], "stride": 1}
        answer = run("simple_cnn", spec, training={"micro_batch": 4, "precision": precision})
        return float(answer.estimate.memory.parts["activations"])

    assert activations("fp32") - 2 * activations("bf16") == 4 * 4 * 36 / 16 * (8 + 64) * 32 * 32


def test_transformed_images_give_way_where_memory_is_short() -> None:
    """The convolutions of the decoder take another algorithm where cuDNN's workspace finds no room."""

    def memory(gpu: str):
        return run("sdxl", {"image_size": 1024}, task="infer", hardware={"name": gpu}).estimate.memory

    large, middle, small = (memory(name) for name in ("v100-sxm2-32gb", "v100-sxm2-16gb", "rtx-2080-ti"))
    assert middle.reserved_bytes.high <= middle.capacity_bytes < large.reserved_bytes.high
    assert small.fits
    assert float(small.parts["activations"]) < float(middle.parts["activations"])


def test_boxes_are_selected_while_the_device_waits() -> None:
    """Batches of two take far less than twice as long as one: the host's share is the same."""

    def served(batch: int) -> float:
        return seconds(run("faster-rcnn", task="infer", inference={"batch": batch}))

    assert 1.1 * served(1) < served(2) < 1.9 * served(1)


def test_early_releases_of_pytorch_keep_what_fixed_normalization_multiplies_and_convolve_more_slowly() -> None:
    spec = {"image_h": 800, "image_w": 1216}
    old, current = (
        trained("mask-rcnn-resnet-50-fpn", spec, precision="fp32", micro_batch=2, framework=framework)
        for framework in ("ddp==1.0", "ddp==1.3")
    )
    parts, fewer = (answer.estimate.memory.parts["activations"] for answer in (old, current))
    assert 1.2 * float(fewer) < float(parts) < 2.0 * float(fewer)
    assert 1.3 * seconds(current) < seconds(old) < 2.5 * seconds(current)


def test_images_whose_channels_are_apart_cost_copies_on_matrix_units_alone() -> None:
    def taken(**training: object) -> float:
        return seconds(trained("resnet50", micro_batch=64, **training))

    last, unsaid = taken(memory_format="channels_last"), taken()
    assert last < unsaid < taken(memory_format="channels_first")
    assert taken(memory_format="channels_last", precision="fp32") == taken(
        memory_format="channels_first", precision="fp32"
    )


def test_a_compiler_writes_fewer_tensors_to_memory() -> None:
    assert seconds(trained("resnet50", micro_batch=64, compile=True)) < seconds(trained("resnet50", micro_batch=64))


def test_depthwise_convolutions_take_longer_than_their_arithmetic() -> None:
    """A tenth of the multiply-adds of ResNet-50, but far from a tenth of the time."""
    small, large = (seconds(trained(name, micro_batch=128)) for name in ("efficientnet-b0", "resnet50"))
    assert 0.3 * large < small < large


@pytest.mark.parametrize(("side", "tokens"), [(224, 197), (384, 577)])
def test_a_served_vision_transformer_reads_its_patches(side: int, tokens: int) -> None:
    answer = run("vit-b-16", {"image_size": side}, task="infer", inference={"batch": 8})
    assert answer.plan.inference.prompt_tokens == tokens


def test_only_models_of_images_have_an_image_size() -> None:
    with pytest.raises(PlanError):
        run("bert-base", {"image_size": 224})


def test_fields_show_the_parameters_of_the_network() -> None:
    plan = plan_from_data({"model": {"name": "mlp", "spec": {"layers": [8]}}})
    fields = {field.path: field.value for field in plan_fields(plan, "network")}
    assert fields["model.spec.layers"] == [8]
    assert fields["model.spec.d_in"] == 784
    assert "training.micro_batch" in fields
    assert "training.seq_len" not in fields


def test_an_encoder_pays_for_the_tokens_it_predicts() -> None:
    def step(task: str, **training: object) -> tuple[float, float]:
        estimate = run("bert-large", task=task, training={"seq_len": 512, "micro_batch": 16, **training}).estimate
        return float(estimate.computation.step_seconds.value), float(estimate.memory.parts["logits"])

    whole, some, none = step("train"), step("train", predicted_tokens=76), step("train", predicted_tokens=0)
    assert whole[0] > some[0] > none[0]
    assert some[1] < 0.2 * whole[1]
    assert step("finetune")[1] == none[1] == 0
