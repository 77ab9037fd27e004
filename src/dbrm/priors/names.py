"""From what a user writes for ``penalty`` to a model prior."""

from math import log

from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.priors.base import ModelPrior
from dbrm.priors.structure import BetaBinomial, Complexity, LogicRegression, ScriptWeights, Uniform

__all__ = ["resolve_model_prior"]

_NAMES = (
    "aic",
    "bic",
    "beta-binomial",
    "logic-regression",
    "multiplicity",
    "script-weights",
    "uniform",
)


def resolve_model_prior(
    penalty: str | float | ModelPrior, *, n: float, n_covariates: int, n_transforms: int = 0
) -> ModelPrior:
    r"""Turn ``penalty`` into a model prior.

    ``"aic"`` is :math:`a = e^{-2}` and ``"bic"`` is :math:`a = e^{-2\log n}`, the
    paper's two choices (Sec. 4.1 and 4.2); a number is :math:`-\log a` itself.
    ``"multiplicity"`` is :math:`a = 1/(p + |\mathcal{G}|)` with :math:`p` covariates and
    :math:`|\mathcal{G}|` transforms. A unit of complexity is one more choice among so many, so that
    all features of one complexity together are expected in a model about once or less,
    however many there are.
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
        "multiplicity": lambda: Complexity(log(max(n_covariates + n_transforms, 1))),
        "script-weights": ScriptWeights,
        "uniform": Uniform,
    }
    name = penalty.lower().replace("_", "-")
    if name not in choices:
        msg = f"Unknown penalty {penalty!r}. Known: {', '.join(_NAMES)}, a number, a ModelPrior."
        raise UnknownNameError(msg)
    return choices[name]()
