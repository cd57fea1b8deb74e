"""The upper incomplete gamma function, for orders down to where the tails of power laws need it."""

from __future__ import annotations

import math

import numpy as np

from capacity_tui.engine.numeric import Number

_SERIES_TERMS, _FRACTION_TERMS = 40, 120
_POLE_GAP = 1e-7
"""How far an order is kept from 0, -1, -2 ...: there the terms of the series cancel only in the limit."""

_gamma = np.vectorize(math.gamma, otypes=[float])


def upper_incomplete_gamma(order: Number, start: Number) -> Number:
    """Return the integral of t^(order - 1) e^-t from ``start`` to infinity, to about six digits.

    Source: Abramowitz and Stegun 1964, 6.5.29 (series) and 6.5.31 (continued fraction).

    Args:
        order: at most 1.
        start: above 0.
    """
    s, x = np.broadcast_arrays(np.asarray(order, dtype=float), np.asarray(start, dtype=float))
    nearest = np.round(s)
    s = np.where((nearest <= 0) & (np.abs(s - nearest) < _POLE_GAP), nearest + _POLE_GAP, s)
    small = x < 1.0
    return np.where(small, _by_series(s, np.where(small, x, 1.0)), _by_fraction(s, np.where(small, 1.0, x)))


def _by_series(s: Number, x: Number) -> Number:
    term, below = np.ones_like(x), np.zeros_like(x)
    for k in range(_SERIES_TERMS):
        below = below + term / (s + k)
        term = -term * x / (k + 1)
    return np.asarray(_gamma(s) - x**s * below)


def _by_fraction(s: Number, x: Number) -> Number:
    fraction = np.zeros_like(x)
    for k in range(_FRACTION_TERMS, 0, -1):
        fraction = k * (k - s) / (x + 2.0 * k + 1.0 - s - fraction)
    return np.asarray(np.exp(-x) * x**s / (x + 1.0 - s - fraction))
