"""Newton's method over rows in blocks: the work on one block, and the step that follows.

Several models go on together, in the same passes over the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, final

import numpy as np

from dbrm._kernels.glm_sums import model_sums
from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.data import AbstractRows, Block
from dbrm.evidence.design import in_blocks, independent_columns
from dbrm.evidence.device import DeviceRows, HeldPopulation, Part, Reader
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.least_squares import DEPENDENCE_TOLERANCE
from dbrm.evidence.out_of_core.base import AbstractColumns, add_up

__all__ = ["CountRows", "Newton", "Passes", "information_unit"]

# Shares of a step that are tried together after it led down.
_SHORTER = (0.25, 0.06, 0.015)
_MOST_PASSES = 25


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Standardised:
    """Ones and standardised columns of a block, and its response; columns not finite are zero."""

    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray
    dtype: type[np.floating[Any]] = np.float64

    def __call__(self, block: Block) -> tuple[FloatArray, FloatArray, Mask]:
        """Columns and response by block of rows, and which columns are not finite."""
        with np.errstate(all="ignore"):
            columns = in_blocks(self.columns.make(block), block.n_rows, self.location, self.scale)
            columns = columns.astype(self.dtype, copy=False)
        sound = np.asarray(np.isfinite(columns).all(axis=(1, 2)))
        columns[~sound] = 0.0
        return columns, in_blocks(_response(block), block.n_rows)[1:], ~sound[1:]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Log likelihood, score and information of several models at their coefficients.

    Family and link are the numbers of `dbrm._kernels.glm_rows`.
    """

    family: int
    link: int
    points: tuple[tuple[IntArray, FloatArray], ...]
    standardised: _Standardised | None

    def __call__(self, block: Block) -> tuple[Matrix, ...]:
        """Which columns are not finite, and `of` each model."""
        assert self.standardised is not None
        columns, rows, bad = self.standardised(block)
        return bad.astype(np.float64), *self.of(columns, rows)

    def of(self, columns: FloatArray, rows: FloatArray) -> tuple[Matrix, ...]:
        """Each model's information, bordered by the score, with the value in the corner."""
        out: list[Matrix] = []
        for members, coefficients in self.points:
            k = members.size
            chosen, sums = np.zeros(k + 4, dtype=np.int64), np.empty((k + 4, k + 4))
            chosen[:k] = members
            value = model_sums(self.family, self.link, rows, columns, chosen, coefficients, sums)
            sums[k, k] = value if value == value else -inf
            lower = np.tril(sums[: k + 1, : k + 1])
            out.append(lower + np.tril(lower, -1).T)
        return tuple(out)


def _response(block: Block) -> list[Column]:
    """Mean response, number of observations and offset of each row."""
    y, extras = block.extras["response"], block.extras
    trials, total = extras.get("trials"), extras.get("weights", np.ones(y.size))
    mean, offset = y, extras.get("offset", np.zeros(y.size))
    if trials is not None:
        mean, total = y / np.maximum(trials, 1.0), total * trials
    if "exposure" in extras:
        offset = offset + np.log(extras["exposure"])
    return [mean, total, offset]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CountRows:
    """Number of observations, and terms of the log likelihood that never change."""

    family: CompiledFamily

    def __call__(self, block: Block) -> FloatArray:
        y, extras = block.extras["response"], block.extras
        self.family.check_response(y, extras.get("trials"))
        ones = np.ones(y.size)
        weights, trials = extras.get("weights", ones), extras.get("trials", ones)
        found = self.family.constants(y, weights, trials, y / np.maximum(trials, 1.0))
        return np.array([found.n, found.rest])


@final
class Newton:
    """Newton's method for one model.

    A pass over the rows looks at the `trials`, of which the best is kept. Steps that lead down are
    tried again, shorter.

    Parameters
    ----------
    members
        The columns of the model, the intercept being column 0.
    start
        Coefficients to begin with.
    tolerance
        The method has converged once another step is expected to gain fewer nats; they are added.
    ridge
        Precision of the slopes.
    behind
        Other coefficients and their log likelihood: where the start is worse, steps towards it
        begin there.
    """

    def __init__(
        self,
        members: IntArray,
        start: FloatArray,
        *,
        tolerance: float,
        ridge: float = 0.0,
        behind: tuple[FloatArray, float] | None = None,
    ) -> None:
        self.members = members
        self.trials = [start]
        self.coefficients, self.value = (start, -inf) if behind is None else behind
        self.information: Matrix = np.eye(members.size)
        self.score: FloatArray = np.zeros(members.size)
        self.step: FloatArray = start - self.coefficients
        self.gain = inf
        self.done = False
        self._tolerance = tolerance
        self._penalty = np.where(members == 0, 0.0, ridge)
        self._objective, self._length = self.value - self._penalty_of(self.coefficients), 1.0

    def _penalty_of(self, coefficients: FloatArray) -> float:
        return 0.5 * float(self._penalty @ coefficients**2)

    def take(self, sums: Sequence[Matrix]) -> None:
        """Go on with the sums over all rows at the trials."""
        objectives = [
            float(part[-1, -1]) - self._penalty_of(trial)
            for part, trial in zip(sums, self.trials, strict=True)
        ]
        top = int(np.argmax(objectives))
        if not objectives[top] >= self._objective - 1e-9 * abs(self._objective):
            self._length *= _SHORTER[-1] if len(self.trials) > 1 else 1.0
            lengths = [self._length * share for share in _SHORTER]
            self.trials = [self.coefficients + length * self.step for length in lengths]
            return
        self._objective, self._length = objectives[top], 1.0
        self.coefficients, self.value = self.trials[top], float(sums[top][-1, -1])
        self.information, self.score = sums[top][:-1, :-1], sums[top][:-1, -1]
        gradient = self.score - self._penalty * self.coefficients
        self.step, self.gain = _step(self.information + np.diag(self._penalty), gradient)
        self.done = self.gain < self._tolerance
        self.trials = [self.coefficients + self.step]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Passes over the rows for models over the same columns, standardised by a sample.

    ``scale`` is infinite for columns that count as zero. Columns that are ``held``, in memory or
    on a device, are not computed again.
    """

    rows: AbstractRows
    family: int
    link: int
    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray
    held: tuple[tuple[FloatArray, FloatArray], ...] = ()
    on_device: HeldPopulation | None = None

    def hold(self) -> "Passes":
        r"""The same with the columns in memory, in single precision.

        That changes a log likelihood by some :math:`10^{-8} \sqrt n`.
        """
        work = _Standardised(self.columns, self.location, self.scale, np.float32)
        held, bad = [], np.zeros(self.scale.size, dtype=np.bool_)
        for columns, rows, found in self.rows.map(work, self.columns.needs):
            held.append((columns, rows))
            bad |= found
        for columns, _ in held:
            columns[1:][bad] = 0.0
        return replace(self, scale=np.where(bad, inf, self.scale), held=tuple(held))

    def hold_on(self, device: DeviceRows) -> "Passes":
        """The same with the columns on a device."""

        def read(positions: IntArray) -> Reader:
            some = self.columns.take(positions)
            work = _Standardised(some, self.location[positions], self.scale[positions])

            def make(block: Block) -> Part:
                columns, rows, bad = work(block)
                return columns.reshape(len(columns), -1), rows.reshape(len(rows), -1), bad

            return self.rows.map(_unchanged, some.needs), make

        held = device.hold(self.columns.sources, read)
        return replace(self, scale=np.where(held.bad, inf, self.scale), on_device=held)

    def fit(self, models: Sequence[Newton], most: int = _MOST_PASSES) -> Mask:
        """Fit models; returns which columns are not finite in some row."""
        bad = np.zeros(self.scale.size, dtype=np.bool_)
        for _ in range(most):
            active = [model for model in models if not model.done]
            if not active:
                break
            points = [(model.members, trial) for model in active for trial in model.trials]
            found, sums = self.sums(points)
            bad |= found
            for model in active:
                n_trials = len(model.trials)
                model.take(sums[:n_trials])
                sums = sums[n_trials:]
        return bad

    def sums(self, points: Sequence[tuple[IntArray, FloatArray]]) -> tuple[Mask, list[Matrix]]:
        """Sums of models at coefficients; only the columns they contain are computed."""
        bad = np.zeros(self.scale.size, dtype=np.bool_)
        if self.on_device is not None:
            return bad, self.on_device.sums(points)
        if self.held:
            work = _Sums(self.family, self.link, tuple(points), None)
            return bad, list(add_up(work.of(*block) for block in self.held))
        used = np.unique(np.concatenate([members for members, _ in points]))
        used = used[used > 0] - 1
        position = np.zeros(self.scale.size + 1, dtype=np.int64)
        position[used + 1] = np.arange(used.size) + 1
        columns = self.columns.take(used)
        work = _Sums(
            self.family,
            self.link,
            tuple((position[members], coefficients) for members, coefficients in points),
            _Standardised(columns, self.location[used], self.scale[used]),
        )
        found, *sums = add_up(self.rows.map(work, columns.needs))
        bad[used] = (found > 0) & np.isfinite(self.scale[used])
        return bad, sums


def _unchanged(block: Block) -> Block:
    return block


def information_unit(information: Matrix) -> FloatArray:
    """Square roots of the diagonal; infinite for columns without information."""
    diagonal = np.diag(information)
    return np.where(diagonal > 0, np.sqrt(np.maximum(diagonal, 0.0)), inf)


def _step(information: Matrix, score: FloatArray) -> tuple[FloatArray, float]:
    """The step in independent columns, and the log likelihood it is expected to gain."""
    unit = information_unit(information)
    gram = information / np.outer(unit, unit)
    kept = independent_columns(gram, DEPENDENCE_TOLERANCE, score.size)
    step = np.zeros(score.size)
    step[kept] = np.linalg.solve(information[np.ix_(kept, kept)], score[kept])
    return step, 0.5 * float(score @ step)
