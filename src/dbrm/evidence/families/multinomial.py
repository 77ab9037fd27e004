"""Classes without order: multinomial logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.special

from dbrm._kernels.multinomial import climb
from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence.families.base import register
from dbrm.evidence.joint.classes import ClassFamily, ClassNumbers
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.joint.likelihood import JointLikelihood, RowPoint
from dbrm.evidence.observations import Observations

__all__ = ["Multinomial", "MultinomialLikelihood"]

# Compiled steps end where one more gains less than this, or after so many.
_NEAR, _ITERATIONS = 1e-7, 60


@register
@final
@dataclass(frozen=True, slots=True)
class Multinomial(ClassFamily):
    r"""Classes with :math:`P(y = k) \propto e^{\alpha_k + x'\beta_k}`, zero for the first class.

    A feature is in the model for all classes or for none, with :math:`K - 1` coefficients.
    """

    name = "multinomial"
    ordered = False

    def bind(self, observations: Observations) -> "MultinomialLikelihood":
        return MultinomialLikelihood(ClassNumbers.of(observations, self.name))

    def predictor_label(self, response: str, classes: Sequence[object] = ()) -> str:
        first, second = classes[:2] if len(classes) > 1 else ("first class", "second class")
        return f"log(P({response} = {second}) / P({response} = {first}))"

    def parameter_names(
        self, classes: tuple[str, ...], terms: tuple[str, ...]
    ) -> list[tuple[str, str]]:
        return [(term, label) for term in ("(intercept)", *terms) for label in classes[1:]]

    def n_classes(self, joint: JointFit) -> int:
        return int(joint.coefficients.shape[1]) + 1

    def probabilities(self, joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
        return _softmax(_predictors(joint, columns, offset))

    def mean_probabilities(self, joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
        r"""By :math:`2m + 1` points with the mean and covariance of the :math:`m` predictors.

        The weights are positive, so that the averages are probabilities.
        """
        if not joint.covariance.any():
            return self.probabilities(joint, columns, offset)
        eta = _predictors(joint, columns, offset)
        m = eta.shape[1]
        root = _root(_covariances(joint, columns))
        centre = max(3.0 - m, 0.5)
        reach = np.sqrt(m + centre)
        total = centre / (m + centre) * _softmax(eta)
        for k in range(m):
            for sign in (-reach, reach):
                total += 0.5 / (m + centre) * _softmax(eta + sign * root[:, :, k])
        return np.asarray(total / total.sum(axis=1, keepdims=True))


def _predictors(joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
    return joint.ancillary + columns @ joint.coefficients + offset[:, None]


def _softmax(eta: Matrix) -> Matrix:
    first = np.zeros((len(eta), 1))
    return np.asarray(scipy.special.softmax(np.hstack([first, eta]), axis=1))


def _covariances(joint: JointFit, columns: Matrix) -> FloatArray:
    """Covariance matrix of the predictors of each row."""
    design = np.column_stack([np.ones(len(columns)), columns])
    p, m = design.shape[1], joint.ancillary.size
    half = (design @ joint.covariance.reshape(p, -1)).reshape(len(design), m, p, m)
    return np.asarray(np.einsum("nkjl,nj->nkl", half, design))


def _root(covariances: FloatArray) -> FloatArray:
    """A square root of each matrix; rounding may have left small negative eigenvalues."""
    values, vectors = np.linalg.eigh(0.5 * (covariances + covariances.transpose(0, 2, 1)))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


@final
class MultinomialLikelihood(JointLikelihood):
    """Log likelihood of classes in the intercepts and predictors of all but the first; concave."""

    intercept = 0

    def __init__(self, classes: ClassNumbers) -> None:
        self.classes = classes
        self.n_rows = classes.number.size
        self.n = float(classes.weights.sum())
        self.n_predictors = classes.n_classes - 1
        self.shift = np.eye(self.n_predictors)
        levels = np.arange(1, classes.n_classes)[:, None]
        self._is_class = (classes.number == levels).astype(np.float64)

    @property
    def exchangeable_precision(self) -> Matrix:
        """Of effects relative to the first class, those of all classes being independent.

        With :math:`m = K - 1` it is :math:`I - 11'/K`, whichever class is the first.
        """
        m = self.n_predictors
        return np.asarray(np.eye(m) - 1.0 / (m + 1.0))

    def start(self) -> FloatArray:
        shares = self.classes.shares
        return np.asarray(np.log(shares[1:] / shares[0]))

    def approach(
        self, columns: Matrix, offset: Column, start: FloatArray, precision: Matrix
    ) -> FloatArray:
        number, weights = self.classes.number, self.classes.weights
        own, form = np.ascontiguousarray(columns), np.ascontiguousarray(precision)
        found = climb(own, number, weights, offset, start, form, _NEAR, _ITERATIONS)
        return np.asarray(found)

    def at(self, ancillary: FloatArray, eta: Matrix) -> RowPoint:
        weights = self.classes.weights
        moved = eta + ancillary[:, None]
        top = np.maximum(moved.max(axis=0), 0.0)
        powers = np.exp(moved - top)
        total = powers.sum(axis=0) + np.exp(-top)
        chance = powers / total
        value = float(weights @ ((self._is_class * moved).sum(axis=0) - top - np.log(total)))
        score = weights * (self._is_class - chance)
        weighted = weights * chance
        weight = -weighted[:, None] * chance
        place = np.arange(self.n_predictors)
        weight[place, place] = weighted * (1.0 - chance)
        return RowPoint(
            value=value if np.isfinite(value) else -np.inf,
            score=score,
            ancillary_score=score.sum(axis=1),
            weight=weight,
            cross=weight,
            ancillary_information=weight.sum(axis=2),
        )
