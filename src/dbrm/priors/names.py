"""From what a user writes for ``penalty`` to a model prior."""

from math import log

from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.priors.base import ModelPrior
from dbrm.priors.structure import BetaBinomial, Complexity, LogicRegression, ScriptWeights, Uniform

__all__ = ["resolve_model_prior"]

_NAMES = ("aic", "bic", "beta-binomial", "logic-regression", "script-weights", "uniform")


def resolve_model_prior(
    penalty: str | float | ModelPrior, *, n: float, n_covariates: int
) -> ModelPrior:
    r"""Turn ``penalty`` into a model prior.

    ``"aic"`` is :math:`a = e^{-2}` and ``"bic"`` is :math:`a = e^{-2\log n}`, the
    paper's two choices (Sec. 4.1 and 4.2); a number is :math:`-\log a` itself.
    """
    if isinstance(penalty, ModelPrior):
        return penalty
    if isinstance(penalty, bool) or not isinstance(penalty, (str, int, float)):
        msg = (
            "penalty must be a number, a ModelPrior, or one of "
            f"{', '.join(_NAMES)}; got {penalty!r}."
        )
        raise InvalidSettingError(msg)
    if not isinstance(penalty, str):
        return Complexity(float(penalty))
    choices = {
        "aic": lambda: Complexity(2.0),
        "bic": lambda: Complexity(2.0 * log(max(n, 1.0))),
        "beta-binomial": lambda: BetaBinomial(max(n_covariates, 1)),
        "logic-regression": lambda: LogicRegression(max(n_covariates, 1)),
        "script-weights": ScriptWeights,
        "uniform": Uniform,
    }
    name = penalty.lower().replace("_", "-")
    if name not in choices:
        msg = f"Unknown penalty {penalty!r}. Known: {', '.join(_NAMES)}, a number, a ModelPrior."
        raise UnknownNameError(msg)
    return choices[name]()
