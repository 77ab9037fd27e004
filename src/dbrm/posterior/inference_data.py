"""Draws for ArviZ, and its leave-one-out cross-validation of single models.

ArviZ is imported here alone, when asked for. Both of its interfaces are known: before
version 1 groups are arguments and results are called ``elpd_loo``; since then groups are a
mapping, results are called ``elpd``, and there is no WAIC, which is computed here.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from dbrm._typing import Mask, Masks, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.posterior.draws import CoefficientDraws, draw_models
from dbrm.posterior.prediction import AveragedModels
from dbrm.posterior.rows import Rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare_models", "to_inference_data"]

# Independent draws are divided into this number of chains.
_CHAINS = 4

Groups = dict[str, dict[str, Any]]


def to_inference_data(
    rng: np.random.Generator, averaged: AveragedModels, rows: Rows, draws: int
) -> Any:
    """See `Posterior.to_arviz`."""
    _refuse_latent(averaged)
    if draws < _CHAINS**2:
        msg = f"draws must be at least {_CHAINS**2}; got draws={draws!r}."
        raise InvalidSettingError(msg)
    drawn = draw_models(rng, averaged, draws - draws % _CHAINS)
    order = rng.permutation(drawn.models.size)

    def deal(values: Any) -> Any:
        return values[order].reshape(_CHAINS, -1, *values.shape[1:])

    coefficients, included, of_root = _coefficients(drawn)
    groups: Groups = {
        "posterior": {
            "intercept": deal(coefficients[:, 0]),
            "coefficient": deal(coefficients[:, 1:]),
            "included": deal(included[:, 1:].astype(np.int64)),
            "dispersion": deal(np.where(of_root, np.nan, drawn.dispersion)),
            "model": deal(drawn.models + 1),
        },
        "log_likelihood": {"y": deal(drawn.log_density(rows))},
        "posterior_predictive": {"y": deal(drawn.respond(rng, rows))},
        "observed_data": {"y": rows.response},
    }
    terms = [str(term) for term in (*averaged.always, *averaged.features)]
    dims = {"coefficient": ["term"], "included": ["term"], "y": ["row"]}
    return _wrap(groups, {"term": terms, "row": np.arange(rows.response.size)}, dims)


def _coefficients(drawn: CoefficientDraws) -> tuple[Matrix, Masks, Mask]:
    """All coefficients of each draw (rows), which terms it has, and whether it is of a root.

    Coefficients of models of the root of the response are of another unit: not a number.
    """
    averaged = drawn.averaged
    fixed = 1 + len(averaged.always)
    shape = (drawn.models.size, fixed + len(averaged.features))
    out, included = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    for model, values in drawn.coefficients.items():
        positions = np.concatenate([np.arange(fixed), fixed + averaged.models[model]])
        places = np.ix_(drawn.models == model, positions)
        out[places], included[places] = values, True
    out[drawn.of_root] = np.nan
    return out, included, drawn.of_root


def compare_models(
    rng: np.random.Generator, averaged: AveragedModels, rows: Rows, top: int, draws: int
) -> "pd.DataFrame":
    """See `Checks.loo`."""
    import pandas as pd

    _refuse_latent(averaged)
    table = []
    for model in range(min(top, len(averaged.models))):
        log_density = draw_models(rng, averaged.alone(model), draws).log_density(rows)
        names = tuple(str(averaged.features[j]) for j in averaged.models[model])
        table.append(
            {
                "features": names,
                "probability": float(averaged.probability[model]),
                **_leave_one_out(log_density),
                **_waic(log_density),
            }
        )
    return pd.DataFrame(table)


def _leave_one_out(log_density: Matrix) -> dict[str, float]:
    n_draws, n_rows = log_density.shape
    groups: Groups = {
        # ArviZ wants a posterior beside the likelihood; draws are independent.
        "posterior": {"draw_number": np.arange(float(n_draws))[None]},
        "log_likelihood": {"y": log_density[None]},
    }
    data = _wrap(groups, {"row": np.arange(n_rows)}, {"y": ["row"]})
    with warnings.catch_warnings():
        # Large Pareto k are in the table.
        warnings.simplefilter("ignore", UserWarning)
        found = _arviz().loo(data, pointwise=True, reff=1.0)
    new = hasattr(found, "elpd")
    return {
        "elpd_loo": float(found.elpd if new else found.elpd_loo),
        "se": float(found.se),
        "p_loo": float(found.p if new else found.p_loo),
        "pareto_k": float(np.max(np.asarray(found.pareto_k))),
    }


def _waic(log_density: Matrix) -> dict[str, float]:
    lpd = logsumexp(log_density, axis=0) - np.log(len(log_density))
    penalty = float(np.var(log_density, axis=0, ddof=1).sum())
    return {"elpd_waic": float(lpd.sum()) - penalty, "p_waic": penalty}


def _wrap(groups: Groups, coords: dict[str, Any], dims: dict[str, list[str]]) -> Any:
    arviz = _arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(**groups, coords=coords, dims=dims)


def _refuse_latent(averaged: AveragedModels) -> None:
    """Draws are of coefficients alone: beside latent effects their likelihood would be wrong."""
    if averaged.effects:
        msg = "Draws for ArviZ do not hold latent effects yet: fit without latent= for these."
        raise InvalidSettingError(msg)


def _arviz() -> Any:
    with warnings.catch_warnings():
        # ArviZ before 1 announces its successor at import.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return import_module("arviz")
        except ImportError as error:
            msg = 'This needs the arviz package: pip install "dbrm[arviz]".'
            raise ImportError(msg) from error
