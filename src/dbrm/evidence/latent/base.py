r"""What a latent Gaussian effect :math:`\delta_k` is (paper, Sec. 2.4 and Appendix C.2).

An effect has one variable for each node: each different position along a line, or each
group; a random slope may have two for each group. It knows its precision matrix, a band, as a
function of its hyperparameters :math:`\psi`, and their prior. It sees neither rows nor responses.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from dbrm._choices import Choices
from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.errors import InvalidSettingError

__all__ = ["LATENT_EFFECTS", "Bridge", "Latent", "bridge_by_precision"]

_AT_ONCE = 400


@dataclass(frozen=True, slots=True, eq=False)
class Bridge:
    r"""An effect at new positions, given its values at the known ones.

    :math:`\delta^*_i \sim N(\sum_j w_{ij} \delta_{s_{ij}}, v_i)`.

    Parameters
    ----------
    sources
        Known nodes that a new one depends on, one row for each new position.
    weights
        Their weights; zero where fewer are needed.
    variance
        What stays unknown when they are known.
    """

    sources: IntArray
    weights: Matrix
    variance: FloatArray


class Latent(ABC):
    r"""A latent Gaussian effect over the different values of a column.

    Subclass it as a frozen dataclass with a field ``column`` for an effect of your own;
    `dbrm.testing.check_latent` tells whether it is right.

    Attributes
    ----------
    hyperparameters
        Names of the components of :math:`\psi`; their number is the paper's
        :math:`v(\delta_k)`.
    start
        Where the search for the mode of :math:`\psi` begins; the first component, by
        convention a log precision, is also tried elsewhere.
    bandwidth
        Half-bandwidth of the precision matrix, the nodes in order.
    nullity
        0 for a proper effect. 1: adding a constant changes nothing, the effect is
        constrained to sum to zero. 2: adding a straight line changes nothing.
    kind
        ``"ordered"``: nodes are numbers along a line. ``"grouped"``: nodes are groups without
        an order, exchangeable and independent. ``"slopes"``: groups, whose rows are multiplied
        by a covariate. ``"knots"``: numbers along a line, rows between two nodes take part in
        both.
    n_knots
        Most nodes of an effect over knots.
    columns
        The columns it reads.
    """

    column: str | None
    hyperparameters: tuple[str, ...]
    start: tuple[float, ...]
    bandwidth: int = 1
    nullity: ClassVar[int] = 0
    n_knots: int = 0
    kind: ClassVar[Literal["ordered", "grouped", "slopes", "knots"]] = "ordered"

    @abstractmethod
    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        """The band of the precision matrix: ``band[i, d]`` is its entry (i, i - d)."""

    @abstractmethod
    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        """Log determinant of the precision; of its non-zero eigenvalues where it is singular."""

    @abstractmethod
    def log_hyperprior(self, psi: FloatArray) -> float:
        r"""Log density :math:`\pi_k(\psi)` of the hyperparameters."""

    def natural(self, psi: FloatArray) -> dict[str, float]:
        """The hyperparameters on their natural scale; by default unchanged."""
        return dict(zip(self.hyperparameters, psi.tolist(), strict=True))

    def bridge(self, psi: FloatArray, positions: FloatArray, new: FloatArray) -> Bridge:
        """Describe the effect at sorted new positions that are not among the known ones.

        By default from the precision matrix over known and new positions together, which is
        right for processes that do not change when positions are added.
        """
        return bridge_by_precision(partial(self.precision, psi), positions, new)

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def name(self) -> str:
        """Name of the effect in tables: ``RW1(pos)``."""
        return f"{type(self).__name__}({self.column or ''})"

    def to_dict(self) -> dict[str, Any]:
        """The effect as JSON types, for files."""
        content: dict[str, Any] = {"kind": type(self).__name__}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if hasattr(value, "log_density"):
                value = {"prior": type(value).__name__} | {
                    part.name: getattr(value, part.name) for part in fields(value)
                }
            content[item.name] = value
        return content


#: The effects of this package, by the name of their class: files and commands name them so.
LATENT_EFFECTS: Choices[type[Any]] = Choices("latent effect")


def bridge_by_precision(
    precision: Callable[[FloatArray], Matrix], positions: FloatArray, new: FloatArray
) -> Bridge:
    """The distribution at new positions given the known ones, from the precision over all of them.

    Some hundred new positions at a time: their joint covariance is dense.
    """
    starts = range(0, new.size, _AT_ONCE)
    parts = [_bridge(precision, positions, new[start : start + _AT_ONCE]) for start in starts]
    return Bridge(
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.variance for part in parts]),
    )


def _bridge(
    precision: Callable[[FloatArray], Matrix], positions: FloatArray, new: FloatArray
) -> Bridge:
    union = np.concatenate([positions, new])
    order = np.argsort(union, kind="stable")
    band = precision(union[order])
    diagonals = [band[d:, d] for d in range(band.shape[1])]
    lower = scipy.sparse.diags(diagonals, [-d for d in range(band.shape[1])], format="csc")
    full = lower + scipy.sparse.tril(lower, -1).T
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    known, unknown = place[: positions.size], place[positions.size :]
    rows = full[unknown].tocsc()
    inner, cross = rows[:, unknown].tocsc(), rows[:, known]
    touched = np.unique(cross.nonzero()[1])
    inverse = scipy.sparse.linalg.splu(inner).solve(np.eye(new.size))
    weights = -inverse @ cross[:, touched].toarray()
    width = max(2 * band.shape[1] - 2, 1)
    wanted = np.sort(np.argsort(-np.abs(weights), axis=1)[:, :width], axis=1)
    sources = np.zeros((new.size, width), dtype=np.int64)
    kept = np.zeros((new.size, width))
    sources[:, : wanted.shape[1]] = touched[wanted]
    kept[:, : wanted.shape[1]] = np.take_along_axis(weights, wanted, axis=1)
    return Bridge(sources, kept, np.diag(inverse).copy())


def check_column(owner: str, column: object) -> None:
    """Raise unless the column has a name."""
    if not isinstance(column, str) or not column:
        msg = (
            f"{owner} needs the name of the column that holds its positions or groups, "
            f"as in {owner}('time'); got {column!r}."
        )
        raise InvalidSettingError(msg)
