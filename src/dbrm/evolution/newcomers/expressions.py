r"""Functions of one column with numbers inside, products of them, and their derivatives.

A `Chain` is :math:`g(\theta x + \varphi)`, or another such function of it; an `Expression` is a
product of chains and of a fixed column, fitted to a residual by Levenberg and Marquardt's method.
The coefficient in front of it is eliminated by a linear fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evolution.function_shapes import Kind, Shape
from dbrm.evolution.newcomers.rounding import shortest
from dbrm.evolution.newcomers.targets import Target
from dbrm.features import Feature, multiply, project

__all__ = ["Chain", "Expression", "Layer", "fit", "rounded", "without_shift"]

_MOST_STEPS, _TRIALS = 15, 5
# Steps after which a fit without a shift is as good as it gets.
_STEPS_WITHOUT = 5
# Damping of the first step; and the least, which keeps equations of equal derivatives regular.
_DAMPING, _LEAST_DAMPING = 1e-3, 1e-10
# A step that explains less of what is left ends the fit.
_SMALL_GAIN = 1e-5
# Range in which an exponential is written without a shift.
_SMALLEST, _LARGEST = 1e-100, 1e100


@final
@dataclass(frozen=True, slots=True)
class Layer:
    """One function and the numbers inside: ``shape(scale*argument + shift)``."""

    shape: Shape
    scale: float
    shift: float

    @property
    def numbers(self) -> list[float]:
        """The numbers that matter."""
        kind = self.shape.kind
        scale = [] if kind is Kind.SHIFT else [self.scale]
        return scale if kind is Kind.SCALE else [*scale, self.shift]

    def with_numbers(self, numbers: Sequence[float]) -> "Layer":
        match self.shape.kind:
            case Kind.SHIFT:
                return Layer(self.shape, self.scale, numbers[0])
            case Kind.SCALE:
                return Layer(self.shape, numbers[0], self.shift)
        return Layer(self.shape, numbers[0], numbers[1])

    def slopes(self, slope: Column, argument: Column) -> list[Column]:
        """Derivatives in the numbers that matter, from that of the function."""
        kind = self.shape.kind
        scale = [] if kind is Kind.SHIFT else [slope * argument]
        return scale if kind is Kind.SCALE else [*scale, slope]

    def of_plain(self, centre: float, spread: float) -> "Layer":
        """The same function of an argument that was standardised by these numbers."""
        scale = self.scale / spread
        return Layer(self.shape, scale, self.shift - scale * centre)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Functions of one column, the innermost first.

    The column is that of the base, less `centre` and divided by `spread`.
    """

    base: Feature
    column: Column
    layers: tuple[Layer, ...]
    centre: float = 0.0
    spread: float = 1.0

    @property
    def complexity(self) -> int:
        """That of its feature."""
        return self.base.complexity + 2 * len(self.layers)

    def value(self) -> Column:
        return self.values()[-1]

    def values(self) -> list[Column]:
        """The column, and the value after each function."""
        values = [self.column]
        for layer in self.layers:
            values.append(layer.shape.transform.apply(layer.scale * values[-1] + layer.shift))
        return values

    def linearize(self) -> tuple[Column, list[Column]]:
        """The value, and its derivatives in the numbers that matter."""
        value, found = self.column, list[Column]()
        for layer in self.layers:
            argument = layer.scale * value + layer.shift
            transform = layer.shape.transform
            slope = np.asarray(transform.derivative(argument), dtype=np.float64)
            found = [layer.scale * slope * inner for inner in found] + layer.slopes(slope, value)
            value = transform.apply(argument)
        return value, found

    def with_numbers(self, numbers: Sequence[float]) -> "Chain":
        given = iter(numbers)
        layers = [layer.with_numbers([next(given) for _ in layer.numbers]) for layer in self.layers]
        return replace(self, layers=tuple(layers))

    def of_plain_column(self) -> "Chain":
        """The same function of the base's own column."""
        column = self.spread * self.column + self.centre
        first, *others = self.layers
        plain = first.of_plain(self.centre, self.spread)
        if plain.shape.kind is Kind.SCALE:
            # The shift is only a factor.
            sizes = np.abs(plain.shape.transform.apply(plain.scale * column))
            if np.min(sizes) > _SMALLEST and np.max(sizes) < _LARGEST:
                plain = replace(plain, shift=0.0)
                others = _rescaled(others, first, self.centre, self.spread)
        return Chain(self.base, column, (plain, *others))

    def feature(self) -> Feature:
        """The projections with these numbers, which belong to their identity; also the number one.

        Without it ``sin(x)`` would be cheaper than ``sin{1.1*x}``, and prices depend on units.
        """
        feature = self.base
        for layer in self.layers:
            transform, scale, shift = layer.shape.transform, layer.scale, layer.shift
            if transform.parity is not None and scale < 0.0:
                scale, shift = -scale, -shift
            bias = None if shift == 0.0 else shift
            feature = project(transform, [feature], [scale], bias, weights_in_identity=True)
        return feature


def _rescaled(others: list[Layer], first: Layer, centre: float, spread: float) -> list[Layer]:
    """The layers after an exponential whose factor was dropped."""
    if not others:
        return others
    lost = first.shape.transform(np.array([first.shift - first.scale * centre / spread, 0.0]))
    return [replace(others[0], scale=others[0].scale * float(lost[0] / lost[1])), *others[1:]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A product of chains, and of a fixed column if there is one."""

    chains: tuple[Chain, ...]
    partner: Feature | None = None
    factor: Column | None = None

    @property
    def complexity(self) -> int:
        """That of its feature."""
        partner = 0 if self.partner is None else self.partner.complexity
        return partner + sum(chain.complexity for chain in self.chains)

    def value(self) -> Column:
        values = [chain.value() for chain in self.chains]
        return self._product(values)

    def _product(self, values: list[Column]) -> Column:
        factors = values if self.factor is None else [self.factor, *values]
        return factors[0] if len(factors) == 1 else np.asarray(np.multiply.reduce(factors))

    def linearize(self) -> Matrix:
        """The value, and its derivatives in the numbers that matter, as rows."""
        parts = [chain.linearize() for chain in self.chains]
        values = [value for value, _ in parts]
        rows = [self._product(values)]
        for j, (_, slopes) in enumerate(parts):
            rows += [self._product([*values[:j], slope, *values[j + 1 :]]) for slope in slopes]
        return np.array(rows)

    @property
    def numbers(self) -> FloatArray:
        """All numbers that matter."""
        layers = [layer for chain in self.chains for layer in chain.layers]
        return np.array([number for layer in layers for number in layer.numbers])

    def with_numbers(self, numbers: FloatArray) -> "Expression":
        given = iter(numbers.tolist())
        chains = []
        for chain in self.chains:
            count = sum(len(layer.numbers) for layer in chain.layers)
            chains.append(chain.with_numbers([next(given) for _ in range(count)]))
        return replace(self, chains=tuple(chains))

    def of_plain_columns(self) -> "Expression":
        """The same of the bases' own columns."""
        return replace(self, chains=tuple(chain.of_plain_column() for chain in self.chains))

    def feature(self) -> Feature:
        """The product of the chains and the partner as a feature."""
        factors = [chain.feature() for chain in self.chains]
        return multiply(*factors, *([] if self.partner is None else [self.partner]))


def fit(
    expression: Expression, target: Target, steps: int = _MOST_STEPS
) -> tuple[Expression, float]:
    """Maximise the share of the residual that an expression explains; return both."""
    share, damping = target.share(expression.value()), _DAMPING
    for _ in range(steps):
        system, before = _System.of(*target.normal_equations(expression.linearize())), share
        if not np.all(np.isfinite(system.gram)):
            break
        numbers = expression.numbers
        for _ in range(_TRIALS):
            trial = expression.with_numbers(numbers + system.step(damping))
            if (new := target.share(trial.value())) > share:
                expression, share = trial, new
                damping = max(damping / 8.0, _LEAST_DAMPING)
                break
            damping *= 8.0
        if share - before < _SMALL_GAIN * (1.0 - share):
            break
    return expression, share


@final
@dataclass(frozen=True, slots=True, eq=False)
class _System:
    """Normal equations of a residual on a value and its derivatives, scaled to length one."""

    gram: Matrix
    right: Column
    lengths: Column

    @classmethod
    def of(cls, gram: Matrix, right: Column) -> "_System":
        diagonal = np.diagonal(gram)
        lengths = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        return cls(gram / np.outer(lengths, lengths), right / lengths, lengths)

    def step(self, damping: float) -> FloatArray:
        """Levenberg and Marquardt's step of the numbers; the coefficient is not damped."""
        damped = self.gram.copy()
        index = np.arange(1, len(damped))
        damped[index, index] += damping
        # A value that is zero or constant has no coefficient: the step leads nowhere.
        damped[0, 0] += 1e-12
        weights = np.linalg.solve(damped, self.right) / self.lengths
        return np.asarray(weights[1:] / weights[0])


def without_shift(expression: Expression, target: Target, c: int) -> tuple[Expression, float]:
    """Fit an expression anew with the innermost shift of one chain zero."""
    chain = expression.chains[c]
    first, *others = chain.layers
    pinned = Layer(replace(first.shape, kind=Kind.SCALE), first.scale, 0.0)
    chains = list(expression.chains)
    chains[c] = replace(chain, layers=(pinned, *others))
    return fit(replace(expression, chains=tuple(chains)), target, _STEPS_WITHOUT)


def rounded(expression: Expression, target: Target) -> Expression:
    """The same expression with as few digits as keep the fit, number by number.

    A rounded scale is followed by a shift, where there is one, that keeps the argument's mean.
    """
    for c in range(len(expression.chains)):
        for j in range(len(expression.chains[c].layers)):
            expression = _rounded_layer(expression, target, c, j)
    return expression


def _rounded_layer(expression: Expression, target: Target, c: int, j: int) -> Expression:
    chain = expression.chains[c]
    layer, kind, n_rows = chain.layers[j], chain.layers[j].shape.kind, target.n_rows

    def with_layer(changed: Layer) -> Expression:
        layers = (*chain.layers[:j], changed, *chain.layers[j + 1 :])
        chains = (
            *expression.chains[:c],
            replace(chain, layers=layers),
            *expression.chains[c + 1 :],
        )
        return replace(expression, chains=chains)

    def share(changed: Layer) -> float:
        return target.share(with_layer(changed).value())

    if kind is not Kind.SHIFT:
        mean = 0.0 if kind is Kind.SCALE else float(np.mean(chain.values()[j]))
        before = layer

        def scaled(scale: float) -> Layer:
            return Layer(before.shape, scale, before.shift + (before.scale - scale) * mean)

        scale = shortest(layer.scale, lambda scale: share(scaled(scale)), n_rows, zero=False)
        layer = scaled(scale)
    if kind is not Kind.SCALE:
        layer = _within_a_turn(layer)
        fixed = layer
        shift = shortest(layer.shift, lambda shift: share(replace(fixed, shift=shift)), n_rows)
        layer = replace(layer, shift=shift)
    return with_layer(layer)


def _within_a_turn(layer: Layer) -> Layer:
    """A wave with its phase between minus half a turn and half a turn."""
    if layer.shape.kind is not Kind.WAVE:
        return layer
    turn = 2.0 * np.pi / layer.shape.frequency
    return replace(layer, shift=float((layer.shift + 0.5 * turn) % turn - 0.5 * turn))
