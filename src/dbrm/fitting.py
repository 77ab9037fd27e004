"""`dbrm.fit`, `dbrm.log_evidence`, `dbrm.enumerate_models`: the package in one call each."""

import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, Unpack

import numpy as np

from dbrm._typing import TableLike
from dbrm._version import __version__
from dbrm.chains import Checkpoint
from dbrm.data import refuse_other_order
from dbrm.errors import DBRMWarning
from dbrm.evidence import Latent, log_evidence_with, resolve_prior
from dbrm.posterior import Posterior
from dbrm.run.checkpoint import read_run
from dbrm.run.inputs import read_in_memory, read_inputs, split_times
from dbrm.run.problem import build_problem
from dbrm.run.runner import run
from dbrm.run.settings import Settings, SettingsOptions

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
    event: Any = None,
    entry: Any = None,
    strata: Any = None,
    **settings: Unpack[SettingsOptions],
) -> Posterior:
    """Search for readable nonlinear models of a response and weigh them.

    Parameters
    ----------
    X
        Covariates: a NumPy array or a pandas, polars or pyarrow table; for data that need not
        fit into memory a Parquet file, a pyarrow data set, a Dask data frame or array. Or a
        formula such as ``"y ~ x1 + C(site) + offset(log(area))"``; predictions then take tables
        like `data`. A formula is code, evaluated as Python: take none from a stranger. Survival
        times are ``"Surv(time, event) ~ ..."`` or ``"Surv(entry, time, event) ~ ..."``.
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
    event
        For ``family="cox"`` and ``"weibull"``, whose response is a time: 1 where the event was
        seen, 0 where the time is censored; without it every time is an event. A column of `X`,
        too, or a structured array `y` as scikit-survival uses instead.
    entry
        Times at which rows came under observation (left truncation); a column of `X`, too.
    strata
        Groups with a baseline hazard of their own under ``family="cox"``; a column of `X`, too.
    **settings
        See `dbrm.Settings`. Often wanted: `family`, `transforms`, ``n_jobs=-1`` for all cores,
        `time_budget` in seconds, `random_state`.

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
    inputs = read_inputs(
        X,
        y,
        Settings.from_options(settings),
        extras={
            "sample_weight": sample_weight,
            "offset": offset,
            "trials": trials,
            "exposure": exposure,
            "event": event,
            "entry": entry,
            "strata": strata,
        },
        data=data,
        ignore=ignore,
    )
    return run(inputs)


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
        inputs = read_run(folder, settings)
    return run(inputs)


def log_evidence(
    X: TableLike | None,
    y: Any,
    *,
    family: Any = "gaussian",
    link: Any = None,
    prior: Any = "jeffreys",
    sample_weight: Any = None,
    offset: Any = None,
    trials: Any = None,
    exposure: Any = None,
    event: Any = None,
    entry: Any = None,
    strata: Any = None,
    latent: str | Latent | Sequence[str | Latent] = (),
    intercept: bool = True,
    **prior_options: Any,
) -> float:
    r"""Log evidence of the model with an intercept, or none, and exactly these columns.

    Parameters
    ----------
    X
        The columns of the model: a table in memory as for `fit`. ``None``, or a table without
        columns, is the model with nothing but the intercept.
    family, link
        As for `fit`.
    latent
        Latent effects, all of them in the model; their columns are not covariates.
    intercept
        Whether the model has an intercept.
    prior, **prior_options
        The coefficient prior by name with its options, for example
        ``prior="jeffreys", constant="unit_information"``, or an object.

    Returns
    -------
    float
        :math:`\log p(y | M)`; ``-inf`` if the columns are linearly dependent or the prior
        is undefined for a model of this size.
    """
    settings = Settings(
        family=family,
        link=link,
        prior=resolve_prior(prior, **prior_options),
        latent=latent,
        intercept=intercept,
        algorithm="enumerate",
        # All columns are in the model: a factor has one fewer than levels.
        groups="factors",
        missing="error",
    )
    extras = {
        "sample_weight": sample_weight,
        "offset": offset,
        "trials": trials,
        "exposure": exposure,
        "event": event,
        "entry": entry,
        "strata": strata,
    }
    y, extras = split_times(y, extras)
    refuse_other_order(X, y=y, **extras)
    if X is None:
        X = np.empty((np.shape(y)[0], 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DBRMWarning)
        inputs = read_in_memory(X, y, settings, extras=extras, allow_no_columns=True)
    if inputs.recipe.dropped:
        return -np.inf
    problem = build_problem(inputs)
    every_effect = np.ones(len(problem.latent), dtype=np.bool_)
    return log_evidence_with(problem.engine, problem.table.values, every_effect)[0]


class FitOptions(SettingsOptions, total=False):
    """The keyword arguments of `fit`."""

    data: TableLike | None
    ignore: Sequence[str]
    sample_weight: Any
    offset: Any
    trials: Any
    exposure: Any
    event: Any
    entry: Any
    strata: Any


def enumerate_models(X: TableLike, y: Any = None, **options: Unpack[FitOptions]) -> Posterior:
    """Exact posterior over all subsets of the columns, without feature engineering.

    Parameters
    ----------
    **options
        As for `fit`. By default `penalty` is ``"uniform"`` over the models and `prior` is
        ``"jeffreys"`` as in `log_evidence`. Settings of the search have no meaning here;
        ``progress=True`` shows a bar.
    """
    if options.get("preset") is None:
        options.setdefault("prior", "jeffreys")
    options.setdefault("penalty", "uniform")
    options["algorithm"] = "enumerate"
    return fit(X, y, **options)
