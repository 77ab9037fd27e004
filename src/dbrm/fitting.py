"""`dbrm.fit`, `dbrm.log_evidence`, `dbrm.enumerate_models`: the package in one call each."""

import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from dbrm._typing import TableLike
from dbrm._version import __version__
from dbrm.chains import Checkpoint
from dbrm.data import learn_recipe, refuse_other_order
from dbrm.errors import DBRMWarning
from dbrm.evidence import Latent, add_latent, build_engine, log_evidence_with, resolve_prior
from dbrm.posterior import Posterior
from dbrm.run.checkpoint import read_job
from dbrm.run.inputs import make_job, places_of_effects
from dbrm.run.problem import bind_effects, observe
from dbrm.run.runner import execute
from dbrm.run.settings import Settings

__all__ = ["enumerate_models", "fit", "log_evidence", "resume"]


def fit(
    X: TableLike,
    y: Any = None,
    *,
    data: TableLike | None = None,
    ignore: Sequence[str] = (),
    sample_weight: Any = None,
    offset: Any = None,
    trials: Any = None,
    exposure: Any = None,
    **settings: Any,
) -> Posterior:
    """Search for readable nonlinear models of a response and weigh them.

    Parameters
    ----------
    X
        Covariates: a NumPy array or a pandas, polars or pyarrow table; for data that need not
        fit into memory a Parquet file, a pyarrow data set, a Dask data frame or array. Or a
        formula such as ``"y ~ x1 + C(site) + offset(log(area))"``; predictions then take tables
        like `data`. A formula is code, evaluated as Python: take none from a stranger.
    y
        The response, or its column in `X`; nothing where a formula names it. In data on disk
        or on a cluster what belongs to the rows is named, too, as in ``offset="log_area"``.
    data
        The table of a formula's columns.
    ignore
        Columns of `X` that are no covariates.
    sample_weight
        Frequency weights; a weight of two is the row twice. Equal rows are merged, so that
        the search is the same as well.
    offset
        Known part of the linear predictor.
    trials
        Numbers of trials of a binomial response; k trials are k rows, in priors and penalties too.
    exposure
        Observation times or areas of counts.
    **settings
        See `dbrm.Settings`.

    Returns
    -------
    Posterior
        Features and models with their probabilities; predictions.

    Examples
    --------
    >>> import dbrm
    >>> planets = dbrm.datasets.simulate_planets(seed=1)
    >>> posterior = dbrm.fit(
    ...     planets.drop(columns="SemiMajorAxisAU"),
    ...     planets["SemiMajorAxisAU"],
    ...     transforms=["troot"],
    ...     random_state=1,
    ... )
    >>> round(posterior.inclusion("troot(PeriodDays*PeriodDays*HostStarMassSlrMass)"))
    1
    """
    chosen = Settings.from_options(settings)
    rows = {
        "sample_weight": sample_weight,
        "offset": offset,
        "trials": trials,
        "exposure": exposure,
    }
    return execute(make_job(X, y, data, ignore, rows, chosen))


def resume(checkpoint: str | PathLike[str], **settings: Any) -> Posterior:
    """Go on with a run that did not come to its end, as if nothing had happened.

    Parameters
    ----------
    checkpoint
        The folder that the run was given as ``checkpoint=``.
    **settings
        How, where and how long to work may change: ``n_jobs``, ``executor``, ``progress``,
        ``time_budget``. Objects of your own that the run was given, such as transforms, must
        be given again: files hold no code.

    Returns
    -------
    Posterior
        To the last bit what the run would have given without the interruption. A run that
        had come to its end is only merged again.

    Raises
    ------
    CheckpointError
        If there is no run, another process works on it, or another version of dbrm wrote it.
    InvalidFileError
        If the file that says what the run is, and its copy, are damaged.
    """
    with Checkpoint(checkpoint, __version__, make=False) as folder:
        job = read_job(folder, settings)
    return execute(job)


def log_evidence(
    X: TableLike,
    y: Any,
    *,
    family: Any = "gaussian",
    link: Any = None,
    prior: Any = "jeffreys",
    sample_weight: Any = None,
    offset: Any = None,
    trials: Any = None,
    exposure: Any = None,
    latent: Latent | Sequence[Latent] = (),
    **prior_options: Any,
) -> float:
    r"""Log evidence of the model with an intercept and exactly these columns.

    Parameters
    ----------
    family, link
        As for `fit`.
    latent
        Latent effects, all of them in the model; their columns are no covariates.
    prior, **prior_options
        The coefficient prior by name with its options, for example
        ``prior="jeffreys", constant="unit_information"``, or an object.

    Returns
    -------
    float
        :math:`\log p(y | M)`; ``-inf`` if the columns are linearly dependent or the prior
        is undefined for a model of this size.
    """
    chosen = Settings(latent=latent)
    rows = {
        "sample_weight": sample_weight,
        "offset": offset,
        "trials": trials,
        "exposure": exposure,
    }
    refuse_other_order(X, y=y, **rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DBRMWarning)
        recipe, table = learn_recipe(X, index_columns=places_of_effects(chosen))
    observations = observe(y, table.n_rows, **rows)
    resolved = resolve_prior(prior, **prior_options)
    engine = build_engine(observations, resolved, family=family, link=link)
    effects = bind_effects(chosen, table)
    if effects:
        engine = add_latent(
            engine, observations, resolved, effects, family=family, link=link, always=None
        )
    every = np.ones(len(effects), dtype=np.bool_)
    return -np.inf if recipe.dropped else log_evidence_with(engine, table.values, every)[0]


def enumerate_models(
    X: TableLike, y: Any = None, *, penalty: Any = "uniform", **options: Any
) -> Posterior:
    """Exact posterior over all subsets of the columns, without feature engineering.

    Parameters
    ----------
    penalty, **options
        As for `fit`, with a uniform prior over models and, as in `log_evidence`, Jeffreys'
        prior of the coefficients unless asked otherwise. The settings of the search have no
        meaning here; ``progress=True`` shows a bar.
    """
    if options.get("preset") is None:
        options.setdefault("prior", "jeffreys")
    return fit(X, y, penalty=penalty, algorithm="enumerate", **options)
