"""What a plan may say about a network: its layers in short, or the size of its images."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.networks.blocks import CELLS, LayerList, Shape
from capacity_tui.engine.models.networks.reading import build_network
from capacity_tui.engine.models.spec import LARGEST_SIZE, Size, Spec
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import Knob

# Deeper lists than this belong into a file of networks.
MOST_LAYERS = 1000
LARGEST_IMAGE = 16384
MOST_STEPS = 4096
LONGEST_SOUND = 600
MOST_RECURRENT_LAYERS = 16
MOST_GUIDANCE = 3
ImageSide = Annotated[int, Field(ge=1, le=LARGEST_IMAGE)]
Activation = Literal["relu", "gelu", "silu", "tanh", "sigmoid"]
ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Networks that run once for an answer, around the passes of the one that is planned."""

    readers: tuple[LayerList, ...] = ()  # of its text, before
    decoder: tuple[LayerList, ...] = ()  # of its picture, behind; one or none
    decoder_precision: str = ""  # number type of the decoder
    waits_on_host: bool = False  # whether what is not at work waits in host memory


class NetworkSpec(Spec, ABC):
    """What every network has: a list of layers that follows from its parameters."""

    complexity: ClassVar[str] = "O(Σ height · width · C_in · C_out · kernel²)"
    best_use: ClassVar[str] = "images and other data on a grid"

    @property
    def passes(self) -> tuple[int, int]:
        """Passes that an answer takes: how many one after the other, and how many of them at once."""
        return 1, 1

    def surroundings(self, catalog: Catalog, family: str) -> Surroundings:
        """Return the networks that run once for an answer, before and behind its passes."""
        del catalog, family
        return Surroundings()

    @abstractmethod
    def network(self, catalog: Catalog, family: str, *, trains: bool = True) -> LayerList:
        """Return the layers with their shapes, as they run in training or without; PlanError where they do not fit."""


class Perceptron(NetworkSpec):
    """Linear layers with an activation between them."""

    complexity = "O(Σ layer_i · layer_i+1)"
    best_use = "features without order, where trees and linear models leave accuracy unused"
    other_names: ClassVar[Mapping[str, str]] = {"hidden": "layers", "num_classes": "d_out", "classes": "d_out"}

    d_in: Annotated[Size, Knob("Inputs", "power-of-two", "model", "", 1, LARGEST_SIZE, help="features of a sample")] = (
        784
    )
    d_out: Annotated[Size, Knob("Outputs", "power-of-two", "model", "", 1, LARGEST_SIZE, help="classes or targets")] = (
        10
    )
    layers: Annotated[
        tuple[Size, ...], Field(max_length=MOST_LAYERS), Knob("Hidden layers", "list", "model", help="widths, in order")
    ] = (512, 256, 128)
    activation: Annotated[
        Activation, Knob("Activation", "choice", "model", choices=ACTIVATIONS, help="between layers")
    ] = "relu"
    dropout: Annotated[
        Annotated[float, Field(ge=0, lt=1)],
        Knob("Dropout", "number", "model", "", 0, 0.95, 0.05, help="share of activations dropped in training"),
    ] = 0.0

    def network(self, catalog: Catalog, family: str, *, trains: bool = True) -> LayerList:
        """Return linear layers, each but the last with its activation."""
        del catalog, family, trains
        layers: list[object] = []
        for width in self.layers:
            layers += [{"linear": width}, {"activation": self.activation}, *(["dropout"] if self.dropout else [])]
        return build_network([*layers, {"linear": self.d_out}], Shape(self.d_in), self.d_out)


class ConvolutionalNetwork(NetworkSpec):
    """Convolutions with an activation, then the mean over positions and a linear classifier."""

    best_use = "small images and few classes, or a network of your own to size"
    other_names: ClassVar[Mapping[str, str]] = {
        "filters": "channels",
        "kernel_size": "kernel",
        "in_channels": "c_in",
        "classes": "num_classes",
        "d_out": "num_classes",
    }

    image_h: Annotated[ImageSide, Knob("Height", "integer", "model", "px", 1, LARGEST_IMAGE, help="of the image")] = 224
    image_w: Annotated[ImageSide, Knob("Width", "integer", "model", "px", 1, LARGEST_IMAGE, help="of the image")] = 224
    c_in: Annotated[Size, Knob("Input channels", "integer", "model", "", 1, 10_000, help="3 for colours")] = 3
    channels: Annotated[
        tuple[Size, ...], Field(max_length=MOST_LAYERS), Knob("Channels", "list", "model", help="of each convolution")
    ] = (64, 128, 256)
    kernel: Annotated[Size, Knob("Kernel", "integer", "model", "", 1, 31, help="side of each convolution's window")] = 3
    stride: Annotated[Size, Knob("Stride", "integer", "model", "", 1, 16, help="of each convolution")] = 2
    padding: Annotated[
        Annotated[int, Field(ge=0, le=LARGEST_IMAGE)] | None,
        Knob("Padding", "integer", "model", "", 0, 31, help="half the kernel unless given"),
    ] = None
    batch_norm: Annotated[bool, Knob("Batch norm", "switch", "model", help="after each convolution")] = False
    dense: Annotated[
        tuple[Size, ...], Field(max_length=MOST_LAYERS), Knob("Dense layers", "list", "model", help="before the last")
    ] = ()
    num_classes: Annotated[
        Size, Knob("Classes", "power-of-two", "model", "", 1, LARGEST_SIZE, help="of the output")
    ] = 1000

    def network(self, catalog: Catalog, family: str, *, trains: bool = True) -> LayerList:
        """Return the convolutions and the classifier."""
        del catalog, family, trains
        layers: list[object] = []
        for out in self.channels:
            options = {"out": out, "kernel": self.kernel, "stride": self.stride, "padding": self.padding}
            layers += [{"conv": options}, *(["norm"] if self.batch_norm else []), "activation"]
        layers.append("global_pool")
        for width in self.dense:
            layers += [{"linear": width}, "activation"]
        source = Shape(self.c_in, self.image_h, self.image_w)
        return _placed([*layers, {"linear": self.num_classes}], source, self.num_classes)


class RecurrentNetwork(NetworkSpec):
    """Recurrent layers over a sequence, and a linear layer on the state after its last time step."""

    complexity = "O(steps · gates · state · (inputs + state)) a layer, one step after another"
    best_use = "short sequences and streams, where a state that stays small matters more than parallel training"
    other_names: ClassVar[Mapping[str, str]] = {
        "input_size": "d_in",
        "hidden_size": "state",
        "hidden": "state",
        "num_layers": "depth",
        "seq_len": "steps",
        "num_classes": "d_out",
        "classes": "d_out",
    }

    d_in: Annotated[
        Size, Knob("Inputs", "power-of-two", "model", "", 1, LARGEST_SIZE, help="features of a time step")
    ] = 256
    state: Annotated[
        Size, Knob("Hidden state", "power-of-two", "model", "", 1, LARGEST_SIZE, help="width of each layer's state")
    ] = 512
    depth: Annotated[
        Annotated[int, Field(ge=1, le=MOST_RECURRENT_LAYERS)],
        Knob("Depth", "integer", "model", "", 1, MOST_RECURRENT_LAYERS, help="recurrent layers on top of each other"),
    ] = 2
    steps: Annotated[
        Annotated[int, Field(ge=1, le=MOST_STEPS)],
        Knob("Time steps", "power-of-two", "model", "", 1, MOST_STEPS, help="of a sequence, which is one sample"),
    ] = 128
    d_out: Annotated[Size, Knob("Outputs", "power-of-two", "model", "", 1, LARGEST_SIZE, help="of a sequence")] = 10

    def network(self, catalog: Catalog, family: str, *, trains: bool = True) -> LayerList:
        """Return the recurrent layers and the linear layer behind the last step."""
        del catalog, trains
        layers: list[object] = [{"recurrent": {"kind": family, "width": self.state}}] * self.depth
        return build_network(
            [*layers, "last_position", {"linear": self.d_out}], Shape(self.d_in, self.steps), self.d_out
        )


class CatalogueNetwork(NetworkSpec):
    """A network whose layers a file of the catalogue lists."""

    other_names: ClassVar[Mapping[str, str]] = {"classes": "num_classes", "d_out": "num_classes", "channels": "c_in"}

    image_size: Annotated[
        ImageSide | None, Knob("Image", "integer", "model", "px", 1, LARGEST_IMAGE, help="height and width")
    ] = None
    image_h: Annotated[
        ImageSide | None, Knob("Height", "integer", "model", "px", 1, LARGEST_IMAGE, help="of the image")
    ] = None
    image_w: Annotated[
        ImageSide | None, Knob("Width", "integer", "model", "px", 1, LARGEST_IMAGE, help="of the image")
    ] = None
    c_in: Annotated[Size | None, Knob("Input channels", "integer", "model", "", 1, 10_000, help="3 for colours")] = None
    num_classes: Annotated[
        Size | None, Knob("Classes", "power-of-two", "model", "", 1, LARGEST_SIZE, help="of the output")
    ] = None

    def network(self, catalog: Catalog, family: str, *, trains: bool = True) -> LayerList:
        """Return the catalogue's layers on images of the plan's size."""
        row = catalog.networks[family]
        return _placed(row.layers, self._source(catalog, family), self.num_classes or row.classes, trains=trains)

    def _source(self, catalog: Catalog, family: str) -> Shape:
        row = catalog.networks[family]
        side = self.image_size or row.image_size
        return Shape(self.c_in or row.channels, self.image_h or side, self.image_w or side)


Seconds = Annotated[
    Annotated[float, Field(gt=0, le=LONGEST_SOUND)],
    Knob("Seconds", "number", "model", "s", 0.1, LONGEST_SOUND, 1, help="of sound in a sample"),
]


class WaveNetwork(NetworkSpec):
    """A network of the catalogue over a wave of sound."""

    complexity: ClassVar[str] = "O(Σ length · C_in · C_out · kernel)"
    best_use: ClassVar[str] = "sound"
    other_names: ClassVar[Mapping[str, str]] = {"classes": "num_classes", "d_out": "num_classes"}

    seconds: Seconds
    num_classes: Annotated[
        Size | None, Knob("Classes", "power-of-two", "model", "", 1, LARGEST_SIZE, help="of the output")
    ] = None

    def network(self, catalog: Catalog, family: str, *, trains: bool = True) -> LayerList:
        """Return the catalogue's layers on sound as long as the plan says."""
        row = catalog.networks[family]
        wave = Shape(row.channels, 1, round(self.seconds * row.sample_rate))
        return _placed(row.layers, wave, self.num_classes or row.classes, trains=trains)


class LatentNetwork(CatalogueNetwork):
    """A network of the catalogue over latents, whose channels are its own."""

    # Without a knob: they change nothing, and stand in plans that were saved before.
    c_in: Size | None = None
    num_classes: Size | None = None


SamplerSteps = Annotated[
    Annotated[int, Field(ge=1, le=MOST_STEPS)],
    Knob("Sampler steps", "integer", "model", "", 1, MOST_STEPS, help="passes of an image", tasks=("infer",)),
]
GuidancePasses = Annotated[
    Annotated[int, Field(ge=1, le=MOST_GUIDANCE)],
    Knob("Guidance passes", "integer", "model", "", 1, MOST_GUIDANCE, help="of a step", tasks=("infer",)),
]


class DiffusionNetwork(LatentNetwork):
    """A network of the catalogue that makes an image in many steps, each of which denoises it a little."""

    sampler_steps: SamplerSteps
    guidance: GuidancePasses
    idle_parts: Annotated[
        Literal["device", "host"],
        Knob("Idle parts", "choice", "model", choices=("device", "host"), help="where they wait", tasks=("infer",)),
    ] = "device"

    @property
    def passes(self) -> tuple[int, int]:
        """The sampler's steps, and the passes that guidance makes of each."""
        return self.sampler_steps, self.guidance

    def surroundings(self, catalog: Catalog, family: str) -> Surroundings:
        """Return the readers of the text and the decoder of the picture that the catalogue lists."""
        row, source = catalog.networks[family], self._source(catalog, family)
        decoder = (_placed(row.decoder, source, row.classes, trains=False),) if row.decoder else ()
        readers = tuple(_placed(layers, source, row.classes, trains=False) for layers in row.readers.values())
        return Surroundings(readers, decoder, row.decoder_precision, waits_on_host=self.idle_parts == "host")


SPECS: Mapping[str, type[NetworkSpec]] = {
    "mlp": Perceptron,
    "simple_cnn": ConvolutionalNetwork,
    **dict.fromkeys(CELLS, RecurrentNetwork),
}


def network_spec_type(family: str) -> type[NetworkSpec]:
    """Return the class of a family's parameters; networks of the catalogue share one, but for those over latents."""
    row = load_catalog().networks.get(family)
    if row is not None and row.is_sampled:
        return _sampled(row.sampler_steps, row.guidance)
    if row is not None and row.is_of_sound:
        return _heard(row.seconds)
    return LatentNetwork if row is not None and row.is_of_latents else SPECS.get(family, CatalogueNetwork)


@cache
def _heard(seconds: float) -> type[WaveNetwork]:
    """Return the class of networks over so many seconds of sound, unless a plan says how many."""
    given: dict[str, Any] = {"seconds": (Seconds, seconds)}
    return create_model(WaveNetwork.__name__, __base__=WaveNetwork, __doc__=WaveNetwork.__doc__, **given)


@cache
def _sampled(steps: int, guidance: int) -> type[DiffusionNetwork]:
    """Return the class of networks that take so many steps, and passes of each, unless a plan says how many."""
    name, text = DiffusionNetwork.__name__, DiffusionNetwork.__doc__
    given: dict[str, Any] = {"sampler_steps": (SamplerSteps, steps), "guidance": (GuidancePasses, guidance)}
    return create_model(name, __base__=DiffusionNetwork, __doc__=text, **given)


def _placed(
    layers: list[object] | list[str | dict[str, object]], source: Shape, classes: int, *, trains: bool = True
) -> LayerList:
    try:
        return _built(json.dumps(layers), source, classes, trains)
    except PlanError as error:
        raise PlanError(error.title, error.detail, error.hint, Place(field=Key.MODEL_SPEC)) from None


@lru_cache(maxsize=256)
def _built(layers: str, source: Shape, classes: int, trains: bool) -> LayerList:
    """Return the network of layers that are written as JSON: a search asks for the same one again and again."""
    return build_network(json.loads(layers), source, classes, trains=trains)
