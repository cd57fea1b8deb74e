"""A real training run for tests: a network of layers in NumPy; prints the seconds of processor time of a step."""

import sys
import time
from itertools import pairwise

import numpy as np

STEPS = 8
# Each batch is gone over again and again, which no plan says: the first prediction is far off on any machine.
PASSES = 3


def main(batch: int, sizes: list[int]) -> None:
    random = np.random.default_rng(0)
    weights = [random.standard_normal(shape, dtype=np.float32) * 0.05 for shape in pairwise(sizes)]
    inputs, labels = random.standard_normal((batch, sizes[0]), dtype=np.float32), random.integers(0, sizes[-1], batch)
    # Of one thread, so that other work on the machine does not count.
    seconds = []
    for _ in range(STEPS):
        start = time.process_time()
        for _ in range(PASSES):
            step(weights, inputs, labels)
        seconds.append(time.process_time() - start)
    sys.stdout.write(f"{min(seconds)}\n")


def step(weights: list[np.ndarray], inputs: np.ndarray, labels: np.ndarray) -> None:
    """Forward, backward and plain gradient descent."""
    layers = [inputs]
    for weight in weights[:-1]:
        layers.append(np.maximum(layers[-1] @ weight, 0))
    scores = layers[-1] @ weights[-1]
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    gradient = shares / len(labels)
    for index in reversed(range(len(weights))):
        change = layers[index].T @ gradient
        if index:
            gradient = (gradient @ weights[index].T) * (layers[index] > 0)
        weights[index] -= 0.01 * change


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])
