"""A random generator that takes every path: exact transition probabilities of a sampler.

`outcomes` runs a function once for every sequence of random decisions it can make and
yields each result with its exact probability. The function may use its generator only as
``rng.random()``, and the number only by comparing it (``u < p``, ``bisect``) or by scaling
and truncating it (``int(u * n)``), which is how the samplers of this package draw.

With it a test can compute the whole transition matrix of a Markov kernel from the very
source that runs in production, and check that it leaves its target alone to rounding.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import floor
from typing import TypeVar

import numpy as np

from dbrm._typing import FloatArray, Matrix

__all__ = ["ExhaustiveGenerator", "invariance_error", "outcomes", "transition_matrix"]

Result = TypeVar("Result")


class ExhaustiveGenerator:
    """Stands in for `numpy.random.Generator`; follows a script of decisions, then the first."""

    def __init__(self, script: list[int]) -> None:
        self._script = script
        self.path: list[tuple[int, int]] = []
        self.probability = 1.0

    def random(self) -> "_LazyUniform":
        """A uniform number that is decided only as far as it is looked at."""
        return _LazyUniform(self)

    def decide(self, probabilities: list[float]) -> int:
        """Choose one of several outcomes, all of positive probability."""
        position = len(self.path)
        choice = self._script[position] if position < len(self._script) else 0
        self.path.append((choice, len(probabilities)))
        self.probability *= probabilities[choice]
        return choice


class _LazyUniform:
    """Uniform on ``[low, high)``, times a scale; every look narrows the interval."""

    def __init__(self, generator: ExhaustiveGenerator) -> None:
        self._generator = generator
        self._low = 0.0
        self._high = 1.0
        self._scale = 1.0

    def __mul__(self, scale: float) -> "_LazyUniform":
        self._scale *= float(scale)
        return self

    __rmul__ = __mul__

    def __lt__(self, value: float) -> bool:
        cut = float(value) / self._scale
        if cut <= self._low:
            return False
        if cut >= self._high:
            return True
        share = (cut - self._low) / (self._high - self._low)
        if self._generator.decide([share, 1.0 - share]) == 0:
            self._high = cut
            return True
        self._low = cut
        return False

    def __int__(self) -> int:
        width = self._high - self._low
        first = floor(self._low * self._scale)
        last = int(np.ceil(self._high * self._scale - 1e-12)) - 1
        edges = [max(self._low, min(self._high, k / self._scale)) for k in range(first, last + 2)]
        shares = [(b - a) / width for a, b in pairwise(edges)]
        choice = self._generator.decide(shares) if len(shares) > 1 else 0
        self._low, self._high = edges[choice], edges[choice + 1]
        return first + choice


def outcomes(run: Callable[[ExhaustiveGenerator], Result]) -> Iterator[tuple[float, Result]]:
    """Every result of ``run(rng)`` that can happen, with the probability of its path.

    The same result may come several times, by different paths.
    """
    script: list[int] = []
    while True:
        generator = ExhaustiveGenerator(script)
        result = run(generator)
        yield generator.probability, result
        path = generator.path
        while path and path[-1][0] == path[-1][1] - 1:
            path.pop()
        if not path:
            return
        script = [choice for choice, _ in path]
        script[-1] += 1


def transition_matrix(step: Callable[[ExhaustiveGenerator, int], int], n_states: int) -> Matrix:
    """Exact transition matrix of ``step(rng, state) -> state`` over states ``0 .. n - 1``."""
    matrix = np.zeros((n_states, n_states))
    for state in range(n_states):

        def run(generator: ExhaustiveGenerator, state: int = state) -> int:
            return step(generator, state)

        for probability, destination in outcomes(run):
            matrix[state, destination] += probability
    return matrix


def invariance_error(matrix: Matrix, target: FloatArray) -> float:
    r"""Largest component of :math:`|\pi P - \pi|`."""
    return float(np.max(np.abs(target @ matrix - target)))
