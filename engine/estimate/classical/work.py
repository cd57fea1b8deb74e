"""A plan that fits a classical model, settled and as neutral work."""

from __future__ import annotations

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Cluster, Device
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate.classical.algorithms import COMMON, fit_of, fit_rates
from capacity_tui.engine.estimate.classical.limits import fit_warnings
from capacity_tui.engine.estimate.memory_estimate import context_bytes
from capacity_tui.engine.estimate.work import ModelFacts, Operator, Phase, Work
from capacity_tui.engine.models import read_spec
from capacity_tui.engine.models.classical import SPECS, ClassicalSpec
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.schema import AUTO

METHOD = "kernels of the usual library by roofline, loops by measured time of one step; memory term by term"
GPU_LOOPS = "speed of a GPU in loops of its own: by analogy with gradient boosting"


def settle_classical(plan: Plan, family: str, device: Device) -> ClassicalSpec:
    """Return the parameters of a classical plan with every default filled in.

    Raises:
        PlanError: an unknown key, a value that is not allowed, or one that is still ``auto``.
    """
    spec = read_spec(SPECS[family], plan.model.spec)
    for name in ("precision", "n_jobs"):
        if getattr(spec, name) == AUTO:
            raise PlanError("still auto", hint="choose a mode, or give a value", place=_place(name))
    on_cpu, cores = device.kind == "cpu", int(device.units)
    precision = spec.precision or ("fp64" if on_cpu else "fp32")
    if precision not in device.peaks:
        hint = "use fp32, or give hardware.spec.fp64_tflops"
        raise PlanError(f"no {precision} rate is published", device.name, hint, _place("precision"))
    if on_cpu and int(spec.n_jobs or 1) > cores:
        raise PlanError("more cores than the machine has", f"{spec.n_jobs}", f"allowed: 1 to {cores}", _place("n_jobs"))
    return spec.model_copy(update={"precision": precision, "n_jobs": spec.n_jobs or (cores if on_cpu else None)})


def classical_work(
    spec: ClassicalSpec, family: str, cluster: Cluster, catalog: Catalog, efficiency: float | None = None
) -> Work:
    """Return one fit of a settled plan as neutral work; the fit is one step.

    Args:
        spec: parameters, settled.
        family: name of the algorithm.
        cluster: what it runs on.
        catalog: facts.
        efficiency: share of the peak that matrix products reach, where the plan says so.
    """
    device, on_cpu = cluster.device, cluster.device.kind == "cpu"
    rates = fit_rates(spec, family, device, catalog, efficiency)
    fit = fit_of(spec, rates)
    operators = fit.operators if on_cpu else (*fit.operators, _transfer(fit.memory["data"], device))
    process = catalog.algorithms[COMMON].bytes["process"] if on_cpu else device.efficiency.context_bytes
    return Work(
        facts=ModelFacts(fit.parameters, fit.parameters, fit.inference_flops, "sample", rates.row.complexity, "rows"),
        memory=fit.memory,
        host_bytes=0.0 if on_cpu else fit.memory["data"],
        places={fit.peak: sum(fit.memory.values(), start=0.0)},
        fragmentation=0.0,
        context_bytes=context_bytes(process, 0.0, 0.0),
        phases=(Phase("step", operators, fixed_seconds=rates.row.seconds),),
        units_per_step=float(spec.n),
        units_per_sample=1.0,
        steps=1.0,
        model_flops_per_step=sum((each.flops * each.count for each in fit.operators), start=0.0),
        peak_flops=device.peak(str(spec.precision)),
        method=METHOD,
        assumed=(*cluster.assumed, *spec.defaulted, *(() if on_cpu else (GPU_LOOPS,))),
        warnings=fit_warnings(spec, rates, cluster),
    )


def _transfer(data: Number, device: Device) -> Operator:
    """Return the copy of the data from the host."""
    return Operator("copy to the device", "compute", "step", "layer", 0.0, data, 1.0, device.host_bandwidth)


def _place(name: str) -> Place:
    return Place(field=f"model.spec.{name}")
