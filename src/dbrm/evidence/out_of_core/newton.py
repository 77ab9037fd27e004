"""Newton's method over rows in blocks: the work on one block, and the step that follows.

Several models go on together, in the same pass over the rows.
"""

from dataclasses import dataclass
from math import inf
from typing import final

import numpy as np

from dbrm._kernels.glm_rows import linearise
from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.data import Block
from dbrm.evidence.design import independent_columns
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.gaussian import DEPENDENCE_TOLERANCE
from dbrm.evidence.out_of_core.base import AbstractColumns, standardised

__all__ = ["CountRows", "Newton", "RowLikelihood", "Step", "information_unit", "newton_step"]

# A model has converged once another step is expected to gain fewer nats; they are added.
_AT_MAXIMUM = 1e-6


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowLikelihood:
    """Family and link as the kernels know them."""

    family: int
    link: int

    def linearise(self, block: Block, eta: Column) -> tuple[float, Column, Column]:
        """Moving log likelihood, score and information by row."""
        y, extras = block.extras["response"], block.extras
        trials = extras.get("trials")
        total = extras.get("weights", np.ones(y.size))
        mean = np.array(y, dtype=np.float64)
        if trials is not None:
            total = total * trials
            mean /= np.maximum(trials, 1.0)
        if "offset" in extras:
            eta = eta + extras["offset"]
        if "exposure" in extras:
            eta = eta + np.log(extras["exposure"])
        score, weight = np.empty_like(eta), np.empty_like(eta)
        total = np.array(total, dtype=np.float64)
        value = linearise(self.family, self.link, 1.0, mean, total, eta, score, weight)
        return float(value), score, weight


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Log likelihood, score and information of several models at their coefficients."""

    likelihood: RowLikelihood
    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray
    members: tuple[IntArray, ...]
    coefficients: tuple[FloatArray, ...]

    def __call__(self, block: Block) -> tuple[Matrix, ...]:
        """For each model its information, bordered by the score, with the value in the corner.

        Before them, which columns are not finite; they count as zero.
        """
        made = self.columns.make(block)
        rows = standardised(block.n_rows, made, self.location, self.scale)
        sound = np.isfinite(rows).all(axis=0)
        rows[:, ~sound] = 0.0
        out: list[Matrix] = [np.asarray(~sound, dtype=np.float64)]
        for members, beta in zip(self.members, self.coefficients, strict=True):
            inside = rows if members.size == rows.shape[1] else rows[:, members]
            with np.errstate(all="ignore"):
                value, score, weight = self.likelihood.linearise(block, inside @ beta)
                sums = np.empty((members.size + 1, members.size + 1))
                sums[:-1, -1] = sums[-1, :-1] = inside.T @ score
                sums[-1, -1] = value
                inside = inside * np.sqrt(weight)[:, None]
                sums[:-1, :-1] = inside.T @ inside
            out.append(sums)
        return tuple(out)


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
    """Newton's method for one model; it halves steps that lead down."""

    def __init__(self, members: IntArray, start: FloatArray) -> None:
        self.members = members
        self.coefficients = start
        self.best = start
        self.value = -inf
        self.information: Matrix = np.eye(members.size)
        self.done = False

    def take(self, sums: Matrix) -> None:
        """Go on with the sums over all rows at the coefficients asked for."""
        value = float(sums[-1, -1])
        if not value >= self.value - 1e-9 * abs(value):
            self.coefficients = 0.5 * (self.coefficients + self.best)
            return
        self.information = sums[:-1, :-1]
        step, gain = newton_step(self.information, sums[:-1, -1])
        self.best, self.value = self.coefficients, value
        if gain < _AT_MAXIMUM:
            self.best, self.value, self.done = self.coefficients + step, value + gain, True
        else:
            self.coefficients = self.coefficients + step


def information_unit(information: Matrix) -> FloatArray:
    """Square roots of the diagonal; infinite for columns without information."""
    diagonal = np.diag(information)
    return np.where(diagonal > 0, np.sqrt(np.maximum(diagonal, 0.0)), inf)


def newton_step(information: Matrix, score: FloatArray) -> tuple[FloatArray, float]:
    """The step in independent columns, and the log likelihood it is expected to gain."""
    unit = information_unit(information)
    gram = information / np.outer(unit, unit)
    kept = independent_columns(gram, DEPENDENCE_TOLERANCE, score.size)
    step = np.zeros(score.size)
    step[kept] = np.linalg.solve(information[np.ix_(kept, kept)], score[kept])
    return step, 0.5 * float(score @ step)
