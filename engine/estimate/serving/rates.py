"""Speeds of serving, from the times of prefill and decode."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.result import InferenceSpeed
from capacity_tui.engine.estimate.work import Served
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.uncertainty.intervals import Interval, Ranges


@equation(
    "rate = batch · prompt / seconds",
    unit="tokens/s",
    source="forward passes over the prompts of one batch, on one replica",
    part="computation.infer.prefill_tokens_per_second",
)
def prefill_rate(batch: Number, prompt: Number, seconds: Number) -> Number:
    """Prompt tokens a second.

    Args:
        batch: sequences of the batch.
        prompt: tokens of a prompt.
        seconds: seconds until all prompts are read.
    """
    return batch * prompt / seconds


@equation(
    "rate = batch / seconds",
    unit="tokens/s",
    source="one forward pass for the next token of every sequence, at the mean context, on one replica",
    part="computation.infer.decode_tokens_per_second",
)
def decode_rate(batch: Number, seconds: Number) -> Number:
    """Output tokens a second.

    Args:
        batch: sequences of the batch.
        seconds: seconds of one step of decode.
    """
    return batch / seconds


@equation(
    "time = seconds",
    unit="s",
    source="one decode step gives every sequence of the batch its next token",
    part="computation.infer.time_per_output_token_seconds",
)
def output_token_seconds(seconds: Number) -> Number:
    """Seconds between two output tokens of a sequence.

    Args:
        seconds: seconds of one step of decode.
    """
    return seconds


@equation(
    "rate = replicas · batch / seconds",
    unit="requests/s",
    source="every replica answers one batch after another",
    part="computation.infer.requests_per_second",
)
def request_rate(replicas: Number, batch: Number, seconds: Number) -> Number:
    """Requests answered a second.

    Args:
        replicas: copies of the model that serve side by side.
        batch: sequences of a batch.
        seconds: seconds from a batch's prompts to its last token.
    """
    return replicas * batch / seconds


def inference_speed(served: Served, phases: Mapping[str, Number], seconds: Number, ranges: Ranges) -> InferenceSpeed:
    """Return the speeds of serving.

    Args:
        served: the requests.
        phases: seconds of prefill, and of one decode step where any output is generated.
        seconds: seconds of a whole batch.
        ranges: of measured over predicted.
    """

    def ranged(name: str, value: Number) -> Interval:
        return ranges.of(f"computation.infer.{name}").around(value)

    first, each = phases["prefill"], phases.get("decode")
    output = between = None
    if each is not None:
        output = ranged("decode_tokens_per_second", decode_rate(served.batch, each))
        between = ranged("time_per_output_token_seconds", output_token_seconds(each))
    return InferenceSpeed(
        prefill_tokens_per_second=ranged("prefill_tokens_per_second", prefill_rate(served.batch, served.prompt, first)),
        decode_tokens_per_second=output,
        time_to_first_token_seconds=ranged("time_to_first_token_seconds", first),
        time_per_output_token_seconds=between,
        requests_per_second=ranged("requests_per_second", request_rate(served.replicas, served.batch, seconds)),
    )
