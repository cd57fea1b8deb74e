"""Networks of the catalogue against the counts their authors and libraries publish."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.models.networks import LayerList
from capacity_tui.engine.models.networks.blocks import Shape
from capacity_tui.engine.models.networks.reading import build_network
from capacity_tui.engine.models.networks.specs import network_spec_type


def network(name: str, image_size: int | None = None, *, trains: bool = True, **options: int) -> LayerList:
    catalog = load_catalog()
    family = catalog.networks.find_id(name)
    assert family is not None
    sizes = {**options, **({} if image_size is None else {"image_size": image_size})}
    return network_spec_type(family)(**sizes).network(catalog, family, trains=trains)


@pytest.mark.parametrize(
    ("name", "parameters", "giga_products"),
    [
        ("resnext50_32x4d", 25_028_904, 4.23),
        ("resnext101_64x4d", 83_455_272, 15.46),
        ("wide_resnet50_2", 68_883_240, 11.40),
        ("seresnext50_32x4d", 27_559_896, 4.23),
        ("regnety_032", 19_436_338, 3.18),
        ("regnetx_080", 39_572_648, 8.00),
        ("mobilenet_v2", 3_504_872, 0.30),
        # Of ten seconds; the FLOPs are what PyTorch counts of the classes of Transformers.
        ("wav2vec2-base", 94_396_320, 74.079),
        ("wav2vec2-large", 315_461_792, 191.943),
        ("hubert-base", 94_371_712, 74.067),
        ("hubert-large", 315_438_720, 191.927),
        ("deeplabv3_resnet50", 42_004_074, 178.722),
        ("deeplabv3_resnet101", 60_996_202, 258.743),
        ("segformer-b0", 3_752_694, 8.4),
        ("segformer-b1", 13_715_798, 15.9),
        ("segformer-b2", 27_461_974, 62.4),
        ("segformer-b3", 47_337_814, 79.0),
        ("segformer-b4", 64_108_374, 95.7),
        ("segformer-b5", 84_708_694, 111.5),
        ("mobilenetv3_large_100", 5_483_032, 0.22),
        ("efficientnet_b0", 5_288_548, 0.39),
        ("tf_efficientnet_b7", 66_347_960, 37.75),
        ("efficientnetv2_m", 54_139_356, 15.74),
        ("convnext_tiny", 28_589_128, 4.46),
        ("convnext_large", 197_767_336, 34.36),
        ("swin_t", 28_288_354, 4.49),
        ("swin_base_patch4_window7_224", 87_768_224, 15.43),
        ("alexnet", 61_100_840, 0.71),
        ("googlenet", 6_624_904, 1.498),
        ("squeezenet1_1", 1_235_496, 0.349),
        ("mnasnet1_0", 4_383_312, 0.314),
        ("mobilenetv1_100", 4_231_976, 0.5687),
        ("darknet53", 41_609_928, 7.109),
        ("xception", 22_855_952, 8.357),
        ("deeplabv3plus", 26_682_725, 36.645),
        ("deeplabv3plus_resnet101", 45_674_853, 56.04),
        ("fcn_resnet50", 35_322_218, 152.717),
        ("fcn_resnet101", 54_314_346, 232.738),
        ("vgg16", 138_357_544, 15.47),
        ("densenet161", 28_681_000, 7.73),
        ("inception_v3", 23_834_568, 5.71),
        ("dit-xl/2", 675_129_632, 118.62),
        ("stable-diffusion-v1-5", 859_520_964, 401.6),
        ("stable-diffusion-2-1", 865_910_724, 1074.6),
        ("sdxl", 2_567_463_684, 3380.6),
        ("flux dev", 11_901_408_320, 37_192.3),
        ("flux.1-schnell", 11_891_178_560, 34_733.3),
        # Counts of Diffusers, which stores the fixed table of positions, but has it not among parameters.
        ("sd3-medium", 2_028_328_000 + 192**2 * 1536, 4_452.2),
        ("sd3.5-medium", 2_243_171_520 + 384**2 * 1536, 5_624.8),
        ("stabilityai/stable-diffusion-3.5-large", 8_056_627_520 + 192**2 * 2432, 15_560.6),
        ("qwen-image", 20_430_401_088, 70_495.5),
        ("fasterrcnn_resnet50_fpn", 41_755_286, 134.38),
        ("maskrcnn_resnet50_fpn", 44_401_393, 187.6),
        ("retinanet_resnet50_fpn", 34_014_999, 151.54),
        ("ssd300_vgg16", 35_641_826, 34.86),
        ("yolov8n", 3_157_200, 8.7 / 2),
        ("yolov8s", 11_166_560, 28.6 / 2),
        ("yolov8m", 25_902_640, 78.9 / 2),
        ("yolov8l", 43_691_520, 165.2 / 2),
        ("yolov8x", 68_229_648, 257.8 / 2),
        ("yolov3", 61_949_149, 156.3 / 2),
        ("yolo11n", 2_624_080, 6.6 / 2),
        ("yolo11s", 9_458_752, 21.7 / 2),
        ("yolo11m", 20_114_688, 68.5 / 2),
        ("yolo11l", 25_372_160, 87.6 / 2),
        ("yolo11x", 56_966_176, 196.0 / 2),
        ("yolov5n", 1_872_157, 4.5 / 2),
        ("yolov5s", 7_235_389, 16.5 / 2),
        ("yolov5m", 21_190_557, 49.0 / 2),
        ("yolov5l", 46_563_709, 109.1 / 2),
        ("yolov5x", 86_749_405, 205.7 / 2),
    ],
)
def test_networks_have_the_published_counts(name: str, parameters: int, giga_products: float) -> None:
    found = network(name, trains=False)
    assert found.parameters == parameters
    assert found.flops / 2e9 == pytest.approx(giga_products, rel=0.02)


@pytest.mark.parametrize(
    ("name", "parameters", "giga_flops"),
    [
        ("yolo12n", 2_602_288, 6.7),
        ("yolo12s", 9_284_096, 21.7),
        ("yolo12m", 20_199_168, 68.1),
        ("yolo12l", 26_450_784, 89.7),
        ("yolo12x", 59_210_784, 200.3),
    ],
)
def test_attention_within_areas_is_counted_beside_what_is_published(
    name: str, parameters: int, giga_flops: float
) -> None:
    """The published FLOPs are of convolutions and norms alone."""
    found = network(name, trains=False)
    assert found.parameters == parameters
    products = sum(layer.flops for layer in found.layers if layer.kind == "product")
    assert products / 1e9 == pytest.approx(giga_flops, rel=0.04)
    assert found.flops > products


@pytest.mark.parametrize(
    ("name", "parameters", "giga_products"),
    [
        ("swinv2_t", 28_351_570, 5.94),
        ("swinv2_s", 49_737_442, 11.55),
        ("swinv2_b", 87_930_848, 20.32),
        ("convnextv2_tiny", 28_635_496, 4.47),
        ("convnextv2_base", 88_717_800, 15.38),
        ("convnextv2_large", 197_956_840, 34.4),
        ("convnextv2_huge", 660_289_640, 115.0),
    ],
)
def test_second_versions_are_counted_like_the_first_ones(name: str, parameters: int, giga_products: float) -> None:
    found = network(name, trains=False)
    assert found.parameters == pytest.approx(parameters, rel=0.005)
    assert found.flops / 2e9 == pytest.approx(giga_products, rel=0.02)


@pytest.mark.parametrize("name", sorted(load_catalog().networks))
def test_every_network_of_the_catalogue_can_be_built(name: str) -> None:
    found = network(name)
    assert found.parameters > 0
    assert found.kept_elements > 0
    assert all(layer.output.elements > 0 for layer in found.layers)


def test_the_outputs_of_its_convolutions_are_the_published_activations() -> None:
    """The count of activations that goes with published throughputs: 11.11 and 6.75 million."""
    for name, millions in (("resnet-50", 11.11), ("efficientnet-b0", 6.75)):
        outputs = sum(layer.output.elements for layer in network(name).layers if layer.kind == "product")
        assert outputs / 1e6 == pytest.approx(millions, abs=0.01)


def test_work_follows_the_size_of_the_image_and_parameters_do_not() -> None:
    small, large = network("convnext-base"), network("convnext-base", 448)
    assert large.parameters == small.parameters
    assert large.flops == pytest.approx(4 * small.flops, rel=0.01)


def test_masks_of_a_hundred_objects_come_on_top_of_their_boxes() -> None:
    """torchvision counts Mask R-CNN on noise, where it finds nothing to draw: four convolutions and a mask, by hand."""
    boxes, masks = (network(name, trains=False).flops / 2 for name in ("fasterrcnn_resnet50_fpn", "mask_rcnn"))
    each = 4 * 14 * 14 * 9 * 256 * 256 + 14 * 14 * 4 * 256 * 256 + 28 * 28 * 256 * 91
    assert masks - boxes == 100 * each


def test_a_detector_looks_at_fewer_regions_in_training() -> None:
    served, trained = (network("faster-rcnn", trains=trains) for trains in (False, True))
    assert served.parameters == trained.parameters
    assert served.flops - trained.flops == 2 * (1000 - 512) * (49 * 256 * 1024 + 1024 * 1024 + 5 * 91 * 1024)


def test_the_stride_of_a_block_moves_work_and_no_parameters() -> None:
    def block(*, early: bool) -> LayerList:
        return build_network([{"bottleneck": {"width": 16, "stride": 2, "early": early}}], Shape(64, 16, 16), 10)

    assert block(early=True).parameters == block(early=False).parameters
    assert block(early=False).flops - block(early=True).flops == 2 * (256 - 64) * 64 * 16


def test_heads_of_a_detector_follow_its_classes() -> None:
    few, many = (network("retinanet", num_classes=classes).parameters for classes in (80, 264))
    assert many - few == (264 - 80) * 9 * (9 * 256 + 1)


def test_the_loss_of_dense_boxes_is_kept_in_training_alone() -> None:
    served, trained = (network("retinanet", trains=trains) for trains in (False, True))
    positions = sum(side * side for side in (100, 50, 25, 13, 7))
    assert trained.kept_elements - served.kept_elements == 9 * 91 * 9 * positions


def test_weights_shared_by_several_tensors_count_once_and_work_for_each() -> None:
    head: list[object] = [{"conv": 8}]
    saved: list[object] = [{"save": "large"}, "pool", {"save": "small"}]
    both = build_network([*saved, {"shared": {"tensors": ["large", "small"], "layers": head}}], Shape(8, 16, 16), 10)
    assert both.parameters == 9 * 8 * 8 + 8
    assert both.flops == 2 * 9 * 8 * 8 * (256 + 64)


@pytest.mark.parametrize("side", [800, 1000, 333])
def test_a_pyramid_takes_images_of_any_size(side: int) -> None:
    assert network("mask-rcnn", side).parameters == 44_401_393


def test_a_part_that_is_not_trained_keeps_nothing_and_runs_forward_alone() -> None:
    layers: list[object] = [{"conv": 8}, {"norm": "group"}, {"conv": 8}]
    alone = build_network(layers, Shape(3, 8, 8), 10)
    behind = build_network([{"frozen": layers}], Shape(3, 8, 8), 10)
    assert alone.kept_elements > behind.kept_elements == 0
    assert behind.parameters == alone.parameters
    assert behind.trained_parameters == behind.trained_flops == 0


def test_fixed_normalization_multiplies_what_convolutions_put_out_and_needs_none_of_it() -> None:
    layers: list[object] = [{"conv": 8}, {"norm": "fixed"}, {"activation": "relu"}]
    trained = build_network(layers, Shape(3, 8, 8), 10)
    assert trained.factor_elements == 8 * 8 * 8
    assert trained.kept_elements == 3 * 8 * 8 + 8 * 8 * 8
    assert build_network([{"frozen": layers}], Shape(3, 8, 8), 10).factor_elements == 0


def test_windows_save_attention() -> None:
    qkv: list[object] = [{"project": 24}]
    whole = build_network([*qkv, {"attention": {"heads": 2}}], Shape(8, 28, 28), 10)
    windows = build_network([*qkv, {"attention": {"heads": 2, "window": 7}}], Shape(8, 28, 28), 10)
    attention = whole.layers[-1].flops
    assert attention == 4 * 784 * 784 * 8
    assert windows.layers[-1].flops == attention // 16


def test_a_compiler_leaves_no_kernel_between_a_norm_and_its_activation() -> None:
    found = build_network(["norm", "activation"], Shape(8, 4, 4), 10)
    assert found.layers[-1].moves.fused == (0, 0, 0)
    assert found.layers[-1].moves.forward == 2 * 8 * 16


def test_a_view_of_some_channels_keeps_the_whole_tensor() -> None:
    def kept(*view: dict[str, int]) -> int:
        layers = ["norm", *view, {"conv": {"out": 8, "kernel": 1}}]
        return build_network(layers, Shape(16, 4, 4), classes=2).kept_elements

    assert kept({"narrow": 4}) == kept()


def test_convolutions_over_a_wave_are_as_long_as_its_sound() -> None:
    """Fifty positions a second, and the convolutions before them take more than half as much as the blocks."""
    spec = network_spec_type("wav2vec2-base")
    short, long = (spec(seconds=seconds).network(load_catalog(), "wav2vec2-base") for seconds in (5.0, 10.0))
    assert (short.layers[-1].output.width, long.layers[-1].output.width) == (249, 499)
    convolutions = sum(layer.flops for layer in long.layers if layer.unfolded)
    assert 0.5 * (long.flops - convolutions) < convolutions < long.flops - convolutions
    assert long.parameters == short.parameters
    assert 1.9 * short.kept_elements < long.kept_elements < 2.1 * short.kept_elements


@pytest.mark.parametrize(
    ("name", "trained", "served", "giga_flops"),
    [
        ("yolov7", 37_620_125, 36_905_341, 104.7),
        ("yolov9e", 58_206_592, 57_438_080, 189.5),
        ("yolov9t", 2_128_720, 2_094_000, 8.2),
        ("yolov9s", 7_318_368, 7_198_048, 26.9),
        ("yolov9m", 20_216_160, 20_070_832, 76.8),
        ("yolov9c", 25_590_912, 25_380_928, 102.7),
        ("yolov10n", 2_775_520, 2_299_264, 6.7),
        ("yolov10s", 8_128_272, 7_248_960, 21.6),
        ("yolov10m", 16_576_768, 15_359_488, 59.1),
        ("yolov10b", 20_574_384, 19_065_792, 92.0),
        ("yolov10l", 25_888_688, 24_371_008, 120.3),
        ("yolov10x", 31_808_960, 29_473_568, 160.4),
    ],
)
def test_what_training_alone_has_is_not_served(name: str, trained: int, served: int, giga_flops: float) -> None:
    """Counts of Ultralytics before and after its convolutions are merged, which takes the norms as well."""
    assert network(name).parameters == trained
    found = network(name, trains=False)
    assert found.parameters == pytest.approx(served, rel=0.005)
    assert found.flops / 1e9 == pytest.approx(giga_flops, rel=0.01)
