"""Figures that follow from time, work and memory: rates, the length of the job, utilization."""

from __future__ import annotations

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import HOUR_SECONDS, MEGA, PERCENT, TERA

STEP = "definition: work of a step over its time"


@equation(
    "rate = units / step_seconds", unit="1/s", source=STEP, part=Figure.TOKENS_PER_SECOND, units={"step_seconds": "s"}
)
def units_per_second(units: Number, step_seconds: Number) -> Number:
    """Tokens or samples a second, over all devices.

    Args:
        units: tokens or samples of a step.
        step_seconds: seconds of a step.
    """
    return units / step_seconds


@equation(
    "rate = units / step_seconds / devices",
    unit="1/s",
    source=STEP,
    part=Figure.TOKENS_PER_SECOND_PER_DEVICE,
    units={"step_seconds": "s"},
)
def units_per_device_second(units: Number, step_seconds: Number, devices: Number) -> Number:
    """Tokens or samples a second and device.

    Args:
        units: tokens or samples of a step.
        step_seconds: seconds of a step.
        devices: devices that share the work.
    """
    return units / step_seconds / devices


@equation(
    "rate = units / units_per_sample / step_seconds",
    unit="1/s",
    source=STEP,
    part=Figure.SAMPLES_PER_SECOND,
    units={"step_seconds": "s"},
)
def samples_per_second(units: Number, units_per_sample: Number, step_seconds: Number) -> Number:
    """Samples a second, over all devices.

    Args:
        units: tokens or samples of a step.
        units_per_sample: tokens of a sample; 1 where samples are counted.
        step_seconds: seconds of a step.
    """
    return units / units_per_sample / step_seconds


@equation(
    "time = steps · step_seconds",
    unit="s",
    source="steps of the plan, one after another",
    part=Figure.ESTIMATED_TRAIN_TIME_SECONDS,
    units={"step_seconds": "s"},
)
def job_seconds(steps: Number, step_seconds: Number) -> Number:
    """Seconds of a job.

    Args:
        steps: optimizer steps; a fit is one.
        step_seconds: seconds of a step.
    """
    return steps * step_seconds


@equation(
    "hours = seconds / 3600 · devices",
    unit="h",
    source="hours of the job, times devices",
    part=Figure.COST_GPU_HOURS,
    units={"seconds": "s"},
    origins={"seconds": "job_seconds"},
)
def device_hours(seconds: Number, devices: Number) -> Number:
    """Hours of a job over all devices, as clusters bill them.

    Args:
        seconds: seconds of the job.
        devices: devices that share the work.
    """
    return seconds / HOUR_SECONDS * devices


@equation(
    "usd = million / 10^6 · units",
    unit="USD",
    source="price of a million tokens, for those of a request",
    part=Figure.COST_USD_PER_REQUEST,
    units={"million": "USD"},
    origins={"million": "job_usd"},
)
def usd_per_request(million: Number, units: Number) -> Number:
    """Price of a request.

    Args:
        million: price of a million tokens or samples, USD.
        units: tokens of a request, prompt and answer; 1 where samples are counted.
    """
    return million / MEGA * units


@equation(
    "flops = steps · model_flops",
    unit="FLOP",
    source="FLOPs of the model itself, none of recomputation",
    part=Figure.TOTAL_FLOPS,
    units={"model_flops": "FLOP"},
    origins={"model_flops": "step_flops"},
)
def job_flops(steps: Number, model_flops: Number) -> Number:
    """FLOPs of a job, over all devices.

    Args:
        steps: optimizer steps; a fit is one.
        model_flops: FLOPs of the model in a step, over all devices.
    """
    return steps * model_flops


@equation(
    "tflops = model_flops / step_seconds / devices / 10^12",
    unit="TFLOP/s",
    source="FLOPs of the model itself, none of recomputation",
    part=Figure.MODEL_TFLOPS_PER_DEVICE,
    units={"model_flops": "FLOP", "step_seconds": "s"},
    origins={"model_flops": "step_flops"},
)
def model_tflops(model_flops: Number, step_seconds: Number, devices: Number) -> Number:
    """TFLOP/s of the model itself on each device.

    Args:
        model_flops: FLOPs of the model in a step, over all devices.
        step_seconds: seconds of a step.
        devices: devices that share the work.
    """
    return model_flops / step_seconds / devices / TERA


@equation(
    "used = 100 · reserved / capacity",
    unit="%",
    source="what the driver shows over what a device has",
    part=Figure.MEMORY_UTILIZATION_PERCENT,
    units={"reserved": "B"},
    origins={"capacity": "hardware.memory_bytes"},
)
def memory_used(reserved: Number, capacity: Number) -> Number:
    """Percent of the memory of the fullest device.

    Args:
        reserved: bytes the driver shows.
        capacity: usable bytes of the device.
    """
    return PERCENT * reserved / capacity
