"""From what a user writes for ``penalty`` to a model prior."""

from dbrm.errors import InvalidSettingError
from dbrm.priors.base import MODEL_PRIORS, Counts, ModelPrior
from dbrm.priors.structure import Complexity

__all__ = ["resolve_model_prior"]


def resolve_model_prior(
    penalty: str | float | ModelPrior, *, n: float, n_covariates: int, n_transforms: int = 0
) -> ModelPrior:
    r"""Turn ``penalty`` into a model prior.

    A name is that of a registered prior; a number is :math:`-\log a` of the paper's prior.
    """
    if isinstance(penalty, ModelPrior):
        return penalty
    if isinstance(penalty, str):
        return MODEL_PRIORS.find(penalty)(Counts(n, n_covariates, n_transforms))
    if isinstance(penalty, bool) or not isinstance(penalty, (int, float)):
        msg = (
            "penalty must be a number, a ModelPrior, or one of "
            f"{', '.join(MODEL_PRIORS)}; got {penalty!r}."
        )
        raise InvalidSettingError(msg)
    return Complexity(float(penalty))
