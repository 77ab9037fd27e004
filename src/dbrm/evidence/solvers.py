"""How the coefficients of one model are found."""

from dataclasses import dataclass
from typing import Literal, final

from dbrm.errors import InvalidSettingError

__all__ = ["DampedNewton", "PlainIRLS", "Solver"]


@final
@dataclass(frozen=True, slots=True)
class DampedNewton:
    """Newton's method with expected information and step halving, to convergence.

    Log likelihoods are right to 1e-9. When the classes are separated the evidence uses
    the supremum of the likelihood, coefficients are Firth's.
    """

    max_iterations: int = 50

    def __post_init__(self) -> None:
        _check(self.max_iterations)


@final
@dataclass(frozen=True, slots=True)
class PlainIRLS:
    """Iteratively reweighted least squares as in R's ``glm``, which the published scripts ran.

    No damping, at most 25 iterations from R's initial means, stop at a relative change of
    the deviance of 1e-8. Under separation the coefficients are those of the last
    iteration; ``coefficients="firth"`` reports Firth's instead.
    """

    max_iterations: int = 25
    coefficients: Literal["mle", "firth"] = "mle"

    def __post_init__(self) -> None:
        _check(self.max_iterations)
        if self.coefficients not in ("mle", "firth"):
            msg = f"PlainIRLS needs coefficients 'mle' or 'firth'; got {self.coefficients!r}."
            raise InvalidSettingError(msg)


Solver = DampedNewton | PlainIRLS


def _check(max_iterations: int) -> None:
    if max_iterations < 1:
        msg = f"max_iterations must be at least 1; got {max_iterations!r}."
        raise InvalidSettingError(msg)
