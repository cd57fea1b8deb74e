"""What a language model is expected to learn from its tokens, and which size the same work would teach most."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog.rows import ScalingLaw
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number

LOSS, LEAST_LOSS = Figure.TRAINING_EXPECTED_LOSS, Figure.TRAINING_LEAST_LOSS
BEST_SIZE, BEST_TOKENS = Figure.TRAINING_OPTIMAL_PARAMETERS, Figure.TRAINING_OPTIMAL_TOKENS
OVERTRAINING = Figure.TRAINING_OVERTRAINING
_SOURCE = "Hoffmann et al. 2022, approach 3; factors and powers by the row of scaling_laws.yaml"


@equation(
    "loss = irreducible + size_factor / parameters^size_power + data_factor / tokens^data_power",
    unit="nats",
    source=_SOURCE,
    part=LOSS,
    origins={
        "parameters": "optimal_parameters",
        "tokens": "optimal_tokens",
        "irreducible": "scaling_laws.irreducible",
        "size_factor": "scaling_laws.size_factor",
        "size_power": "scaling_laws.size_power",
        "data_factor": "scaling_laws.data_factor",
        "data_power": "scaling_laws.data_power",
    },
)
def expected_loss(
    parameters: Number,
    tokens: Number,
    irreducible: Number,
    size_factor: Number,
    size_power: Number,
    data_factor: Number,
    data_power: Number,
) -> Number:
    """Loss of a dense language model on text like that of the law, nats a token.

    Args:
        parameters: all of the model, embeddings among them.
        tokens: seen in training, hardly any of them twice.
        irreducible: loss of text itself, which no model goes below.
        size_factor: of what a model of finite size lacks.
        size_power: how fast that falls with the size.
        data_factor: of what finite data lack.
        data_power: how fast that falls with the tokens.
    """
    return irreducible + size_factor / parameters**size_power + data_factor / tokens**data_power


@equation(
    "optimum = (size_power · size_factor / (data_power · data_factor))^(1 / (size_power + data_power)) · "
    "(parameters · tokens)^(data_power / (size_power + data_power))",
    unit="parameters",
    source=f"{_SOURCE}: the least loss for the same product of size and tokens, to which work is proportional",
    part=BEST_SIZE,
    origins={
        "size_factor": "scaling_laws.size_factor",
        "size_power": "scaling_laws.size_power",
        "data_factor": "scaling_laws.data_factor",
        "data_power": "scaling_laws.data_power",
    },
)
def optimal_parameters(
    parameters: Number,
    tokens: Number,
    size_factor: Number,
    size_power: Number,
    data_factor: Number,
    data_power: Number,
) -> Number:
    """Parameters that learn most from the work of a training.

    Args:
        parameters: of the model that the training is for.
        tokens: seen in it.
        size_factor: of what a model of finite size lacks.
        size_power: how fast that falls with the size.
        data_factor: of what finite data lack.
        data_power: how fast that falls with the tokens.
    """
    powers = size_power + data_power
    balance = (size_power * size_factor / (data_power * data_factor)) ** (1.0 / powers)
    return balance * (parameters * tokens) ** (data_power / powers)


@equation(
    "optimum = parameters · tokens / best",
    unit="tokens",
    source="the same work",
    part=BEST_TOKENS,
    origins={"best": "optimal_parameters"},
)
def optimal_tokens(parameters: Number, tokens: Number, best: Number) -> Number:
    """Tokens that a model of the best size sees in the work of a training.

    Args:
        parameters: of the model that the training is for.
        tokens: seen in it.
        best: parameters of the best size.
    """
    return parameters * tokens / best


@equation(
    "overtraining = (tokens / parameters) / (best_tokens / best)",
    unit="",
    source="definition: 1 is compute-optimal; beyond it a smaller model saves work whenever it is used",
    part=OVERTRAINING,
    origins={"best": "optimal_parameters", "best_tokens": "optimal_tokens"},
)
def overtraining(parameters: Number, tokens: Number, best: Number, best_tokens: Number) -> Number:
    """Tokens a parameter, over those of the best size for the same work.

    Args:
        parameters: of the model.
        tokens: seen in training.
        best: parameters of the best size.
        best_tokens: tokens that it sees.
    """
    return (tokens / parameters) / (best_tokens / best)


def learned(law: ScalingLaw, parameters: Number, tokens: Number) -> Mapping[str, Number]:
    """Return what a training is expected to teach, and the best size for its work, by result key.

    Args:
        law: how loss falls.
        parameters: of the model.
        tokens: of the job.
    """
    size, data = (law.size_factor, law.size_power), (law.data_factor, law.data_power)
    best = optimal_parameters(parameters, tokens, *size, *data)
    best_tokens = optimal_tokens(parameters, tokens, best)
    return {
        LOSS: expected_loss(parameters, tokens, law.irreducible, *size, *data),
        BEST_SIZE: best,
        BEST_TOKENS: best_tokens,
        LEAST_LOSS: expected_loss.for_part(LEAST_LOSS)(best, best_tokens, law.irreducible, *size, *data),
        OVERTRAINING: overtraining(parameters, tokens, best, best_tokens),
    }
