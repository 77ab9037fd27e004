"""A smooth curve of a covariate."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import final

from dbrm._typing import FloatArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.latent.base import LATENT_EFFECTS, Bridge, Latent, check_column
from dbrm.evidence.latent.effects.rw2 import RW2
from dbrm.evidence.latent.hyperpriors import LogGamma, PrecisionPrior

__all__ = ["Smooth"]


@final
@LATENT_EFFECTS.register("Smooth")
@dataclass(frozen=True)
class Smooth(Latent):
    r"""A smooth curve of a covariate: a linear spline whose changes of slope are penalised.

    The curve is linear between knots, which lie at quantiles of the covariate's different
    values, and its values at the knots are those of `RW2`, a random walk of order two. Straight
    lines are no part of it: the covariate, which stays one, has a coefficient for these.

    Parameters
    ----------
    column
        The covariate, at least four different numbers.
    n_knots
        Most knots.
    precision_prior
        Prior of :math:`\psi = \log\tau`.
    """

    column: str
    n_knots: int = 30
    precision_prior: PrecisionPrior = field(default_factory=LogGamma)
    hyperparameters = ("log_precision",)
    start = (1.0,)
    bandwidth = 2
    nullity = 2
    kind = "knots"

    def __post_init__(self) -> None:
        check_column("Smooth", self.column)
        if not isinstance(self.n_knots, int) or self.n_knots < 4:
            msg = f"Smooth needs at least 4 knots; got n_knots={self.n_knots!r}."
            raise InvalidSettingError(msg)

    @cached_property
    def _walk(self) -> RW2:
        return RW2(self.column, self.precision_prior)

    def precision(self, psi: FloatArray, positions: FloatArray) -> Matrix:
        return self._walk.precision(psi, positions)

    def log_determinant(self, psi: FloatArray, positions: FloatArray) -> float:
        return self._walk.log_determinant(psi, positions)

    def log_hyperprior(self, psi: FloatArray) -> float:
        return self._walk.log_hyperprior(psi)

    def natural(self, psi: FloatArray) -> dict[str, float]:
        return self._walk.natural(psi)

    def bridge(self, psi: FloatArray, positions: FloatArray, new: FloatArray) -> Bridge:
        return self._walk.bridge(psi, positions, new)
