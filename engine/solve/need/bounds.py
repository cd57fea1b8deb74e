"""What a candidate reaches at best, from a few products: which candidates are worth an estimate, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Architecture, Catalog
from capacity_tui.engine.cluster import HOUR, SIXTEEN_BIT, Cluster, resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import REQUESTS
from capacity_tui.engine.estimate.data import data_units
from capacity_tui.engine.estimate.serving import released_format
from capacity_tui.engine.estimate.transformer import base_format
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.models import presumed_family, read_spec
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import ModelSection, Plan, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.candidate import MEMORY
from capacity_tui.engine.solve.search.question import Goal, Limit
from capacity_tui.engine.units import BITS_PER_BYTE, PERCENT

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

PARAMETERS, TIME = Figure.MODEL_PARAMETERS, Figure.ESTIMATED_TRAIN_TIME_SECONDS
USD, RATE, MILLION = Figure.COST_USD, Figure.COST_USD_PER_HOUR, Figure.COST_USD_PER_MILLION_TOKENS
PRICED = (USD, RATE, MILLION, Figure.COST_USD_SPOT)  # Figures that nothing without a price has
# Which bounds no figure is above, and which none is below; the others are the figures themselves.
_FROM_ABOVE, _FROM_BELOW = (REQUESTS,), (TIME, USD, MILLION, MEMORY)
NAME, _OF_HARDWARE = Key.MODEL_NAME, ("hardware.", "pricing.")
# FLOPs of one token a multiplied parameter at the least: with gradients of weights where all are trained.
_TRAINED, _TUNED, _FORWARD = 6.0, 4.0, 2.0
_STORED = 2.0  # Bytes of a stored weight at the least, where it is not quantized


@dataclass(slots=True)
class Bounds:
    """What candidates of a plan reach at best."""

    plan: Plan
    catalog: Catalog
    machine: Machine | None = None
    _clusters: dict[tuple[tuple[str, str], ...], Cluster | None] = field(default_factory=dict)
    _flops: float | None = None

    def at_best(self, change: Mapping[str, object]) -> Mapping[str, float]:
        """Return figures that a candidate cannot be better than, by result key; those of which something is known.

        The size of a model is its size; time is no less than its products at the peak of the devices, cost no less
        than that time at their price, and memory no less than the weights spread over all devices.
        """
        bounds: dict[str, float] = {}
        row, cluster = self._model(change), self._cluster(change)
        if row is not None and row.params_total:
            bounds[PARAMETERS] = float(row.params_total)
        if cluster is None:
            return bounds
        rate = cluster.price.rate
        if rate is not None:
            bounds[RATE] = rate
            served = self._served_tokens()
            if served:
                bounds[MILLION] = rate / HOUR / served * 1e6
        is_same = all(path == NAME or path.startswith(_OF_HARDWARE) for path in change)  # its work and its types
        seconds = (self._network_seconds(cluster) if row is None else self._seconds(row, cluster)) if is_same else None
        if seconds is not None:
            bounds[TIME] = seconds
            if rate is not None:
                bounds[USD] = seconds / HOUR * rate
        stored, room = self._stored_bytes(change), cluster.device.memory_bytes
        if PARAMETERS in bounds and room is not None:
            bounds[MEMORY] = PERCENT * bounds[PARAMETERS] * stored / (largest(cluster.devices) * largest(room))
        most = None if row is None else self._most_requests(row, cluster)
        return bounds if most is None else {**bounds, REQUESTS: most}

    def _model(self, change: Mapping[str, object]) -> Architecture | None:
        if self.plan.model.spec and NAME not in change:
            return None
        return self.catalog.architectures.known(str(change.get(NAME, self.plan.model.name or "")))

    def _cluster(self, change: Mapping[str, object]) -> Cluster | None:
        of_hardware = {path: value for path, value in change.items() if path.startswith(_OF_HARDWARE)}
        key = tuple((path, str(value)) for path, value in of_hardware.items())
        if key not in self._clusters:
            try:
                changed = edited(self.plan, of_hardware, self.catalog).plan if of_hardware else self.plan
                cluster = resolve_cluster(changed.hardware, changed.pricing, self.catalog, self.machine)
            except CapacityError:
                cluster = None
            self._clusters[key] = cluster
        return self._clusters[key]

    def _seconds(self, row: Architecture, cluster: Cluster) -> float | None:
        """Return the time of a training at the peak of its devices; None where its length is not known beforehand."""
        tokens, size = self.plan.training.tokens, float(row.params_total or 0)
        if not size or tokens is None or self.plan.task not in ("train", "finetune"):
            return None
        if tokens == AUTO:
            tokens = self.catalog.modes["balanced"].tokens_per_parameter * size
        flops = _TRAINED if self.plan.task == "train" else _TUNED
        work = flops * max(float(row.params_active or size) - self._embedding_parameters(row), 0.0) * float(tokens)
        return work / self._peak(cluster)

    def _network_seconds(self, cluster: Cluster) -> float | None:
        """Return the time of a network's training at the peak of its devices; None for others."""
        samples, passes = data_units(self.plan)
        if samples is None or self.plan.task not in ("train", "finetune") or not self._sample_flops():
            return None
        return self._sample_flops() * largest(samples) * largest(passes) / self._peak(cluster)

    def _sample_flops(self) -> float:
        """Return the FLOPs of a sample that a network learns from at the least; 0 for other models."""
        if self._flops is None:
            from capacity_tui.engine.models.networks import network_spec_type  # noqa: PLC0415 - of its kind alone

            self._flops, family = 0.0, presumed_family(self.plan.model.name, self.catalog)
            if family.is_network:
                spec = read_spec(network_spec_type(family.id), self.plan.model.spec)
                network = spec.network(self.catalog, family.id, trains=True)
                backward = _TRAINED / _FORWARD - 1.0 if self.plan.task == "train" else 0.0
                self._flops = network.flops + network.trained_flops * backward
        return self._flops

    def _peak(self, cluster: Cluster) -> float:
        device, precision = cluster.device, self.plan.training.precision
        # What is open becomes one of the types of 16 bits.
        types = SIXTEEN_BIT if precision == AUTO else (precision,)
        return largest(cluster.devices) * max(device.peak(name) for name in types) * max(device.efficiency.boost, 1.0)

    @staticmethod
    def _embedding_parameters(row: Architecture) -> float:
        """Return the parameters that are looked up, not multiplied: a table of embeddings of its own."""
        return 0.0 if row.tied_embeddings else float(row.vocab or 0) * row.hidden

    def _stored_bytes(self, change: Mapping[str, object]) -> float:
        """Return the bytes of a weight on the devices at the least; 0 where that is open."""
        if self.plan.is_inference:
            model = ModelSection(name=str(change[NAME])) if NAME in change else self.plan.model
            given = change.get(Key.INFERENCE_WEIGHTS, self.plan.inference.weights)
            weights = str(given or released_format(model, self.catalog)[0])
            known = weights != AUTO and not self.plan.is_split_with_host
            return self._quantized_bytes(weights) if known else 0.0
        if self.plan.parallelism.offload == "parameters":
            return 0.0
        packed = base_format(self.plan.training)
        return _STORED if packed is None else self._quantized_bytes(packed)

    def _quantized_bytes(self, name: str) -> float:
        row = self.catalog.quantizations.find(name)
        widths = (row.bits_per_weight, row.body_bits, row.embedding_bits)
        return min((bits for bits in widths if bits), default=0.0) / BITS_PER_BYTE

    def _served_tokens(self) -> float:
        """Return the tokens a second of the load, prompts among them; 0 without a rate of requests."""
        served = self.plan.inference
        rate = served.arrival_rate if self.plan.is_inference else None
        return (rate or 0.0) * float(served.prompt_tokens + served.output_tokens)

    def _most_requests(self, row: Architecture, cluster: Cluster) -> float | None:
        """Return the requests a second that the peak of the devices allows; None where nothing is served."""
        served, size = self.plan.inference, float(row.params_active or row.params_total or 0)
        if not self.plan.is_inference or not size or row.kind != "decoder":
            return None
        tokens = served.prompt_tokens * (1.0 - served.prefix_cache_hit_rate) + served.output_tokens
        # Of a prompt, only the last token asks for the next one.
        head = float(row.vocab or 0) * row.hidden
        flops = _FORWARD * max(size - self._embedding_parameters(row) - head, 1.0) * tokens
        return largest(cluster.devices) * max(cluster.device.peaks.values()) / flops


def missed_at_best(best: Mapping[str, float], limits: Iterable[Limit]) -> float:
    """Return by which share a candidate misses the worst of some limits even at best; 0 where it may keep them all."""
    shares = [0.0]
    for limit in limits:
        reached = best.get(limit.figure)
        if reached is None:
            continue
        if limit.most is not None and limit.figure not in _FROM_ABOVE:
            shares.append((reached - limit.most) / abs(limit.most or 1.0))
        if limit.least is not None and limit.figure not in _FROM_BELOW:
            shares.append((limit.least - reached) / abs(limit.least or 1.0))
    return max(shares)


def can_beat(best: float, reached: float | None, goal: Goal) -> bool:
    """Whether what reaches a goal so well at best can be better than what reaches it so well."""
    return reached is None or goal.sign * best < goal.sign * reached
