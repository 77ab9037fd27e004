"""What families of classes have in common: the classes of the rows, and their probabilities."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.errors import InvalidDataError
from dbrm.evidence.families.base import JointFamily, require
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.observations import Observations

__all__ = ["ClassFamily", "ClassNumbers"]


class ClassFamily(JointFamily):
    """A family whose responses are the numbers of classes, 0 to K - 1."""

    default_link = "logit"
    mean_interval = (0.0, 1.0)
    support = (0.0, np.inf)
    discrete = True
    #: Whether the classes have an order.
    ordered: ClassVar[bool]

    @property
    def has_classes(self) -> bool:
        return True

    @abstractmethod
    def n_classes(self, joint: JointFit) -> int:
        """Number of classes of a fit."""

    @abstractmethod
    def probabilities(self, joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
        """Probability of each class (columns) at the mode of one model, for rows of `columns`."""

    @abstractmethod
    def mean_probabilities(self, joint: JointFit, columns: Matrix, offset: Column) -> Matrix:
        """The same, averaged over the normal posterior of the parameters."""

    @abstractmethod
    def parameter_names(
        self, classes: tuple[str, ...], terms: tuple[str, ...]
    ) -> list[tuple[str, str]]:
        """Term and class (or empty) of each parameter of a fit, in the order of its covariance."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassNumbers:
    """Checked classes of the rows, with their weights."""

    number: IntArray
    weights: Column
    n_classes: int

    @classmethod
    def of(cls, observations: Observations, family: str) -> "ClassNumbers":
        """Read the classes; raise `InvalidDataError` where they are none."""
        y = np.asarray(observations.response, dtype=np.float64)
        whole = np.isfinite(y) & (y >= 0) & (y == np.floor(y))
        require(whole, family, "the number of a class, 0, 1, 2, ...", y)
        weights = np.ones(y.size) if observations.weights is None else observations.weights
        number = y.astype(np.int64)
        counts = np.bincount(number, weights=weights)
        empty = np.flatnonzero(counts == 0)
        if empty.size or counts.size < 2:
            msg = f"family={family!r} needs at least two classes, and rows that count in each; " + (
                f"class {empty[0]} has none." if empty.size else "y has one class."
            )
            raise InvalidDataError(msg)
        return cls(number, np.asarray(weights, dtype=np.float64), int(counts.size))

    @property
    def shares(self) -> FloatArray:
        """Share of each class among the rows."""
        counts = np.bincount(self.number, weights=self.weights)
        return np.asarray(counts / counts.sum())
