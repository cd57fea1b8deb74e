"""Adapters of low rank beside the attention of a network: how many parameters are trained."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.models.networks.blocks import Layer, LayerList


def adapter_parameters(network: LayerList, rank: int) -> int:
    """Return the parameters of adapters on queries, keys, values and outputs of every attention, none for no attention.

    A product makes as many of these as its columns are widths of the attention; each has two matrices of ``rank``
    (Hu et al. 2021), as Diffusers adds them to U-Nets and transformers of diffusion.
    """
    return sum(rank * matrices * (depth + width) for matrices, depth, width in _adapted(network.layers))


def _adapted(layers: tuple[Layer, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield the matrices that a product beside an attention makes, with the inputs and outputs of each."""
    for index, layer in enumerate(layers):
        if layer.kind != "attention":
            continue
        width = layer.columns * layer.groups
        first = index
        while first and layers[first - 1].kind == "product":
            first -= 1
        for product in (*layers[first:index], *layers[index + 1 : index + 2]):
            if product.kind == "product" and not product.unfolded:
                yield max(round(product.columns / width), 1), product.depth, width
