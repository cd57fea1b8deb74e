"""Recurrent layers: a state that is carried from one time step of a sequence to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """What one kind of recurrent layer computes in a time step.

    Attributes:
        gates: vectors as wide as the state that a step computes from its input and from the state before it.
        states: vectors carried on to the next step: the hidden state, and the cell state where there is one.
        kept: vectors of a step besides the hidden state that the backward pass needs: gates that are not the state
            itself, the cell state, and what the reset gate of a GRU multiplies.
    """

    gates: int
    states: int
    kept: int


CELLS: Mapping[str, Cell] = {
    "rnn": Cell(gates=1, states=1, kept=0),
    "gru": Cell(gates=3, states=1, kept=4),
    "lstm": Cell(gates=4, states=2, kept=5),
}
"""Elman 1990; Cho et al. 2014; Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000."""
