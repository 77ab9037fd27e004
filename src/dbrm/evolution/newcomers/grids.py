r"""Screens grids of numbers inside functions, :math:`g(\theta F + \varphi)`, against a residual.

Rows are summed within narrow bins of :math:`F`, so that a grid costs the same for any number of
rows, and a few matrix products serve all functions. A sine and a cosine of one frequency are
fitted together, which gives the phase.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evolution.function_shapes import Kind, Shape, grid
from dbrm.evolution.newcomers.expressions import Chain, Expression, Layer
from dbrm.evolution.newcomers.targets import Target
from dbrm.features import Feature, moments

__all__ = ["Scored", "Source"]

# Bins for waves, and for other functions.
_FINE, _COARSE = 200, 50
# Least share of a column's squares outside the model that it is to be added to.
_IN_SPAN = 1e-4
# What numbers inside must gain over the argument itself (nats).
_LEAST_GAIN = 2.0
# Below one, so that the logarithm of what is left is finite.
_MOST = 1.0 - 1e-12


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    r"""An expression, the share of a residual that it explains, and its score.

    The score is the gain in log likelihood, less :math:`\tfrac12 \log n` for each unit of
    complexity and each number.
    """

    expression: Expression
    share: float
    score: float

    @classmethod
    def of(cls, expression: Expression, share: float, n_rows: int) -> Self:
        price = 0.5 * np.log(n_rows) * (expression.complexity + expression.numbers.size)
        return cls(expression, share, float(-0.5 * n_rows * np.log1p(-share) - price))

    def is_only(self, kind: Kind) -> bool:
        """Whether this is one function of this kind, without a partner."""
        first, *others = self.expression.chains
        alone = self.expression.partner is None and not others
        return alone and first.layers[-1].shape.kind is kind


@final
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A base, or what a chain makes of it, as an argument of functions."""

    base: Feature
    column: Column
    centre: float
    spread: float
    inner: Chain | None
    order: IntArray
    grids: tuple["_Grid", ...]

    @classmethod
    def of_chain(cls, chain: Chain, shapes: Sequence[Shape]) -> Self:
        """A chain as an argument."""
        return cls.of(chain.base, chain.value(), shapes, chain)

    @classmethod
    def of(
        cls, base: Feature, column: Column, shapes: Sequence[Shape], inner: Chain | None = None
    ) -> Self:
        """A base as an argument, or what a chain makes of it."""
        centre, spread = moments(column)
        standard = (column - centre) / spread
        order = np.argsort(standard, kind="stable")
        ordered = standard[order]
        waves = [shape for shape in shapes if shape.kind is Kind.WAVE]
        others = [shape for shape in shapes if shape.kind is not Kind.WAVE]
        parts = ((waves, _FINE), (others, _COARSE))
        grids = tuple(_Grid.of(part, ordered, n_bins) for part, n_bins in parts if part)
        return cls(base, standard, centre, spread, inner, order, grids)

    def screen(self, start: Expression, target: Target) -> list[Scored]:
        """Multiply an expression by each function of this source, with its best numbers.

        Those that explain little more than the argument itself are left out, unless that is a
        chain: it moves when both are fitted.
        """
        factor = start.value() if start.chains or start.factor is not None else None
        weight = target.root if factor is None else target.root * factor
        rows = np.column_stack([weight, target.residual, target.span])
        rows[:, 1:] *= weight[:, None]
        rows = rows[self.order]
        argument = self.column if factor is None else self.column * factor
        baseline = target.share(argument)
        if start.chains and factor is not None:
            baseline = max(baseline, target.share(factor))
        n_rows, found = target.n_rows, []
        for part in self.grids:
            for shape, share, scale, shift in part.best(rows, target):
                gain = 0.5 * n_rows * (np.log1p(-baseline) - np.log1p(-share))
                if gain > _LEAST_GAIN or self.inner is not None:
                    chain = self._chain(Layer(shape, scale, shift))
                    grown = replace(start, chains=(*start.chains, chain))
                    found.append(Scored.of(grown, share, n_rows))
        return found

    def _chain(self, layer: Layer) -> Chain:
        if layer.shape.kind is Kind.SHIFT:
            # Then the base itself has the weight one.
            layer = Layer(layer.shape, layer.scale * self.spread, layer.shift * self.spread)
        if self.inner is None:
            return Chain(self.base, self.column, (layer,), self.centre, self.spread)
        layer = layer.of_plain(self.centre, self.spread)
        if layer.shape.kind is Kind.SCALE:
            layer = replace(layer, shift=0.0)
        return replace(self.inner, layers=(*self.inner.layers, layer))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Values of functions at the bins of an argument.

    ``values`` has one column per point of the grid, ``slices`` says which belong to which
    function; of waves the sines come first and then the cosines.
    """

    starts: IntArray
    shapes: Sequence[Shape]
    slices: list[slice]
    numbers: list[tuple[FloatArray, FloatArray]]
    values: Matrix
    squares: Matrix

    @classmethod
    def of(cls, shapes: Sequence[Shape], ordered: Column, n_bins: int) -> Self:
        """Of an argument's standardised values in ascending order."""
        n_bins = min(n_bins, ordered.size)
        starts = np.arange(n_bins) * ordered.size // n_bins
        points = np.add.reduceat(ordered, starts) / np.diff(np.append(starts, ordered.size))
        numbers = [grid(shape, points) for shape in shapes]
        blocks = []
        for shape, (scale, shift) in zip(shapes, numbers, strict=True):
            arguments = points[:, None] * scale + shift
            if shape.kind is Kind.WAVE:
                blocks += [np.sin(arguments), np.cos(arguments)]
            else:
                blocks.append(shape.transform(arguments))
        values = np.hstack(blocks)
        values[:, ~np.isfinite(np.sum(values, axis=0))] = 0.0
        sizes = [
            scale.size * (2 if shape.kind is Kind.WAVE else 1)
            for shape, (scale, _) in zip(shapes, numbers, strict=True)
        ]
        stops = np.cumsum(sizes).tolist()
        slices = [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
        return cls(starts, shapes, slices, numbers, values, values**2)

    def best(self, rows: Matrix, target: Target) -> list[tuple[Shape, float, float, float]]:
        """Of each function the best share, and the scale and the shift that have it.

        `rows` are the factor with the root of the weights, and the residual and the columns of the
        model times it, in the order of the argument.
        """
        scores = _GridScores(self, rows, float(target.residual @ target.residual))
        shares, found = scores.shares(), []
        for shape, part, numbers in zip(self.shapes, self.slices, self.numbers, strict=True):
            if shape.kind is Kind.WAVE:
                share, scale, shift = scores.best_wave(shape, part, numbers[0])
            else:
                best = int(np.argmax(shares[part]))
                share = float(shares[part][best])
                scale, shift = float(numbers[0][best]), float(numbers[1][best])
            found.append((shape, share, scale, shift))
        return found


@final
class _GridScores:
    """What each point of a grid, times a factor, explains of a residual."""

    def __init__(self, part: _Grid, rows: Matrix, norm: float) -> None:
        products = np.add.reduceat(rows[:, 1:], part.starts, axis=0).T @ part.values
        self._part, self._norm = part, norm
        self._in_bins = np.add.reduceat(rows[:, 0] ** 2, part.starts)
        self._residual, self._span = products[0], products[1:]
        # Squares of the centred columns, and of what is outside the model.
        squares = self._in_bins @ part.squares
        self._whole = squares - self._span[0] ** 2
        self._left = squares - np.einsum("qc,qc->c", self._span, self._span)

    def shares(self) -> FloatArray:
        """The share that each column explains; zero where it is inside the model."""
        sound = self._left > _IN_SPAN * self._whole
        share = self._residual**2 / (np.where(sound, self._left, 1.0) * self._norm)
        return np.where(sound, np.minimum(share, _MOST), 0.0)

    def best_wave(self, shape: Shape, part: slice, omega: FloatArray) -> tuple[float, float, float]:
        """The best frequency: what sine and cosine explain; scale and shift that give the phase."""
        middle = (part.start + part.stop) // 2
        sines, cosines = slice(part.start, middle), slice(middle, part.stop)
        ss, cc = self._left[sines], self._left[cosines]
        values = self._part.values
        sc = self._in_bins @ (values[:, sines] * values[:, cosines])
        sc = sc - np.einsum("qc,qc->c", self._span[:, sines], self._span[:, cosines])
        rs, rc = self._residual[sines], self._residual[cosines]
        determinant = ss * cc - sc * sc
        sound = determinant > _IN_SPAN * self._whole[sines] * self._whole[cosines]
        determinant = np.where(sound, determinant, 1.0)
        sine, cosine = (cc * rs - sc * rc) / determinant, (ss * rc - sc * rs) / determinant
        shares = np.where(sound, (sine * rs + cosine * rc) / self._norm, 0.0)
        best = int(np.argmax(shares))
        phase = float(np.arctan2(cosine[best], sine[best])) - shape.phase
        share = min(float(shares[best]), _MOST)
        return share, float(omega[best]) / shape.frequency, phase / shape.frequency
