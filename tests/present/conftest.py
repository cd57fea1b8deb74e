"""Answers made by hand, to be exported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capacity_tui.engine.estimate import Bottleneck, CostEstimate, Estimate, MemoryEstimate, Note, Scaling, Work
from capacity_tui.engine.estimate.result import Basis, ComputationEstimate, EnergyEstimate, InferenceSpeed
from capacity_tui.engine.estimate.work import ModelFacts
from capacity_tui.engine.numeric import Labels
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.uncertainty import Interval

GIB = 2.0**30


@pytest.fixture
def plan() -> Plan:
    return Plan.model_validate(
        {
            "task": "train",
            "model": {"name": "llama-3-8b"},
            "training": {"tokens": 2e9},
            "hardware": {"name": "h100-sxm-80gb", "devices": 64},
        }
    )


@pytest.fixture
def training() -> Estimate:
    """One step of 10 s over 4 194 304 tokens on 64 devices; 100 steps."""
    return Estimate(
        work=Work(
            facts=ModelFacts(8.03e9, 8.03e9, 1.6e10, "token"),
            memory={"weights": 20 * GIB, "activations": 30 * GIB},
            host_bytes=0.0,
            places={"backward, stage 0": 50 * GIB},
            fragmentation=0.0,
            context_bytes=10 * GIB,
            phases=(),
            units_per_step=4_194_304.0,
            units_per_sample=8192.0,
            steps=100.0,
            model_flops_per_step=6.4e17,
            peak_flops=1e15,
            method="equations",
        ),
        memory=MemoryEstimate(
            per_device_bytes=Interval(50 * GIB, 45 * GIB, 56 * GIB),
            allocator_bytes=Interval(50 * GIB + 0.5, 45 * GIB, 57 * GIB),
            reserved_bytes=Interval(60 * GIB + 0.5, 54 * GIB, 67 * GIB),
            parts={"weights": 20 * GIB, "activations": 30 * GIB, "context": 10 * GIB, "kv_cache": 0.0},
            capacity_bytes=80 * GIB,
            host_bytes=0.0,
            places={"backward, stage 0": 50 * GIB},
        ),
        computation=ComputationEstimate(
            step_seconds=Interval(10.0, 9.0, 12.0),
            parts={"compute": 9.0, "data_parallel": 1.0},
            units_per_step=4_194_304.0,
            steps=100.0,
            devices=64.0,
            model_flops_per_step=6.4e17,
            mfu=0.42,
            units_per_sample=8192.0,
        ),
        bottleneck=Bottleneck(
            Labels(("compute",), np.asarray(0)), 400.0, 295.0, {"compute": 0.9, "data_parallel": 0.1}
        ),
        cost=CostEstimate(123.456, 0.0294, None, 444.4, "aws us-east-1, 2026-07"),
        energy=EnergyEstimate(None, 44_800.0, None),
        basis=Basis("equations", "hopper", "2026-11-21", ("8 devices in a node",)),
        recommendations=(Note("fp8", "Train in FP8", "faster | *much*", {"computation.step_seconds": -3.0}),),
        warnings=(Note("tight", "Memory is tight", ""),),
        scalability=(Scaling(1, 1, 10.0, 1.0, 1.0, 0.0), Scaling(2, 2, 5.2, 1.92, 0.96, 0.04)),
    )


@pytest.fixture
def inference(training: Estimate) -> Estimate:
    """A batch served, without a length."""
    speed = Interval(100.0, 90.0, 115.0)
    computation = replace(
        training.computation, steps=None, mfu=None, infer=InferenceSpeed(speed, speed, speed, speed, speed)
    )
    return replace(training, computation=computation, scalability=(), recommendations=(), warnings=())
