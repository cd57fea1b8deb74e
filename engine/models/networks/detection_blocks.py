"""Parts that detectors share: a backbone, levels of several sizes, and heads over regions of the image.

Levels are saved tensors: ``c2`` to ``c5`` of the backbone, ``p2`` and on of a pyramid, each half as wide as the last.
"""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.models.networks.blocks import Block, Entries


def detection_backbone(before: int, depths: list[int], groups: int = 1, group_width: int = 64,
                       early: bool = False) -> Entries:  # fmt: skip
    """A residual network with fixed normalization, whose stem and first stage are not trained; saves ``c2`` and on.

    Args:
        before: channels of the image.
        depths: blocks of each stage.
        groups: of the 3x3 convolutions.
        group_width: channels of a group at 64 channels.
        early: whether the stride is in the first convolution of a block.
    """
    del before
    options = {"block": "bottleneck", "groups": groups, "group_width": group_width, "norm": "fixed", "early": early}
    stages: Entries = [
        {"stages": {"depths": [depth], "widths": [64 << place], "strides": [min(place + 1, 2)], **options}}
        for place, depth in enumerate(depths)
    ]
    entries: Entries = [{"frozen": [{"resnet_stem": {"norm": "fixed"}}, stages[0]]}, {"save": "c2"}]
    for place, stage in enumerate(stages[1:], 3):
        entries += [stage, {"save": f"c{place}"}]
    return entries


def feature_pyramid(before: int, levels: list[str], width: int = 256) -> Entries:
    """Levels of one width, to each of which the next smaller one is added; saves ``p`` levels (Lin et al. 2017).

    Args:
        before: channels of the last level.
        levels: saved levels of the backbone, from the largest.
        width: channels of the pyramid.
    """
    del before
    entries: Entries = []
    above = ""
    for level in reversed(levels):
        inner = f"inner {level}"
        entries += [{"resume": level}, {"conv": {"out": width, "kernel": 1}}, {"save": inner}]
        if above:
            entries += [{"resume": above}, {"upsample": {"to": inner}}, {"add": inner}, {"save": inner}]
        entries += [{"conv": {"out": width}}, {"save": level.replace("c", "p")}]
        above = inner
    return entries


def proposals(before: int, levels: list[str], width: int, anchors: int) -> Entries:
    """Score and shift boxes at every position of every level (Ren et al. 2015).

    Args:
        before: channels of the last level.
        levels: saved levels.
        width: channels of a level.
        anchors: boxes of a position.
    """
    del before
    head = [
        {"conv": {"out": width}},
        "activation",
        {"aside": [{"conv": {"out": anchors, "kernel": 1}}]},
        {"conv": {"out": 4 * anchors, "kernel": 1}},
    ]
    return [{"shared": {"tensors": levels, "layers": head}}]


def dense_boxes(before: int, levels: list[str], width: int, anchors: int, depth: int) -> Entries:
    """Classify and shift boxes at every position of every level without looking again (Lin et al. 2018).

    Args:
        before: channels of the last level.
        levels: saved levels.
        width: channels of a level.
        anchors: boxes of a position.
        depth: convolutions before each result.
    """
    del before
    tower = {"repeat": {"count": depth, "layers": [{"conv": {"out": width}}, "activation"]}}
    classes, boxes = ({"conv": {"out": out}} for out in (f"{anchors} classes", 4 * anchors))
    head = [{"aside": [tower, classes, "focal_loss"]}, tower, boxes]
    return [{"shared": {"tensors": levels, "layers": head}}]


def region_boxes(before: int, level: str, count: int, training: int, size: int = 7, width: int = 1024) -> Entries:
    """Classify and shift the boxes of regions, by two linear layers over each.

    Args:
        before: channels of the last level.
        level: saved level that regions are cut from.
        count: regions of an image.
        training: the same in training.
        size: points a side of a region.
        width: of the linear layers.
    """
    del before
    return [
        {"resume": level},
        {"regions": {"count": count, "training": training, "size": size}},
        {"flatten": size},
        {"project": width},
        "activation",
        {"project": width},
        "activation",
        *box_results(width),
    ]


def stage_boxes(before: int, level: str, count: int, training: int, depth: int, size: int = 14,
                width: int = 512, early: bool = False) -> Entries:  # fmt: skip
    """Classify and shift the boxes of regions, by the last stage of the backbone over each; saves it as ``boxes``.

    Args:
        before: channels of the last level.
        level: saved level that regions are cut from.
        count: regions of an image.
        training: the same in training.
        depth: blocks of the stage.
        size: points a side of a region.
        width: a quarter of the stage's channels.
        early: whether the stride is in the first convolution of a block.
    """
    del before
    options = {"block": "bottleneck", "depths": [depth], "widths": [width], "strides": [2], "norm": "fixed",
               "early": early}  # fmt: skip
    return [
        {"resume": level},
        {"regions": {"count": count, "training": training, "size": size}},
        {"stages": options},
        {"pool": {"kernel": size // 2, "kind": "mean"}},
        *box_results(4 * width),
    ]


def box_results(before: int) -> Entries:
    """Classes of each region, and a box for each of them."""
    del before
    return [{"aside": [{"project": "classes"}]}, {"project": "4 classes"}]


def region_masks(before: int, level: str, count: int, training: int, depth: int = 4, size: int = 14,
                 width: int = 256) -> Entries:  # fmt: skip
    """Draw a mask of each class inside regions (He et al. 2017).

    Args:
        before: channels of the last level.
        level: saved level that regions are cut from.
        count: regions of an image.
        training: the same in training.
        depth: convolutions before the mask.
        size: points a side of a region.
        width: channels inside.
    """
    del before
    return [
        {"resume": level},
        {"regions": {"count": count, "training": training, "size": size}},
        {"repeat": {"count": depth, "layers": [{"conv": {"out": width}}, "activation"]}},
        {"transposed": {"out": width}},
        "activation",
        {"conv": {"out": "classes", "kernel": 1}},
    ]


DETECTION_BLOCKS: Mapping[str, Block] = {
    "detection_backbone": detection_backbone,
    "feature_pyramid": feature_pyramid,
    "proposals": proposals,
    "dense_boxes": dense_boxes,
    "region_boxes": region_boxes,
    "stage_boxes": stage_boxes,
    "region_masks": region_masks,
}
