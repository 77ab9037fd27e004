"""scikit-learn estimators around `dbrm.fit`."""

from dataclasses import fields
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dbrm._typing import Column, FloatArray, Matrix, TableLike
from dbrm.fitting import fit
from dbrm.posterior import Posterior
from dbrm.settings import Settings

__all__ = ["DBRMRegressor"]


class DBRMRegressor(RegressorMixin, BaseEstimator):
    """Deep Bayesian regression of a real response.

    Every setting is a keyword argument with the meaning given in `dbrm.Settings`, and is
    checked in `fit`.

    Attributes
    ----------
    posterior_
        The `dbrm.Posterior`.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    posterior_: Posterior

    def __init__(
        self,
        *,
        family: Any = "gaussian",
        link: Any = None,
        prior: Any = None,
        penalty: Any = None,
        transforms: Any = None,
        operators: Any = None,
        adaptive_operators: bool = False,
        max_depth: int = 5,
        max_complexity: int = 10,
        max_model_size: int | None = None,
        projection: Any = "optimize-then-transform",
        max_projection: int = 4,
        sweep: int = 4,
        population_size: int = 15,
        n_populations: int = 60,
        algorithm: str = "gmjmcmc",
        n_init: int | None = None,
        n_iter: int | None = None,
        n_final: int | None = None,
        mjmcmc: Any = None,
        filtration: Any = None,
        keep: Any = (),
        max_unique: int | None = None,
        max_evaluations: int | None = None,
        time_budget: float | None = None,
        n_chains: int = 4,
        merge: str = "union",
        always: Any = (),
        exclude: Any = (),
        start: Any = (),
        costs: Any = None,
        units: Any = None,
        heredity: str | None = None,
        scale: str | None = None,
        missing: str = "error",
        preset: str | None = None,
        uncertainty: str | None = None,
        evidence: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.family = family
        self.link = link
        self.prior = prior
        self.penalty = penalty
        self.transforms = transforms
        self.operators = operators
        self.adaptive_operators = adaptive_operators
        self.max_depth = max_depth
        self.max_complexity = max_complexity
        self.max_model_size = max_model_size
        self.projection = projection
        self.max_projection = max_projection
        self.sweep = sweep
        self.population_size = population_size
        self.n_populations = n_populations
        self.algorithm = algorithm
        self.n_init = n_init
        self.n_iter = n_iter
        self.n_final = n_final
        self.mjmcmc = mjmcmc
        self.filtration = filtration
        self.keep = keep
        self.max_unique = max_unique
        self.max_evaluations = max_evaluations
        self.time_budget = time_budget
        self.n_chains = n_chains
        self.merge = merge
        self.always = always
        self.exclude = exclude
        self.start = start
        self.costs = costs
        self.units = units
        self.heredity = heredity
        self.scale = scale
        self.missing = missing
        self.preset = preset
        self.uncertainty = uncertainty
        self.evidence = evidence
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: TableLike, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Search for models of `y`."""
        settings = {field.name: getattr(self, field.name) for field in fields(Settings)}
        self.posterior_ = fit(X, y, sample_weight=sample_weight, offset=offset, **settings)
        recipe = self.posterior_.recipe
        self.n_features_in_ = len(recipe.input_names)
        if recipe.named:
            self.feature_names_in_ = np.array(recipe.input_names, dtype=object)
        return self

    def predict(self, X: TableLike) -> Column:
        """Posterior-averaged mean."""
        check_is_fitted(self)
        return self.posterior_.predict(X)

    def predict_interval(self, X: TableLike, level: float = 0.95) -> Matrix:
        """Equal-tailed predictive interval, lower and upper limits in two columns."""
        check_is_fitted(self)
        return self.posterior_.predict_interval(X, level=level)

    def predict_quantiles(self, X: TableLike, q: float | list[float] | FloatArray) -> Matrix:
        """Predictive quantiles, one column per level."""
        check_is_fitted(self)
        return self.posterior_.predict_quantiles(X, q)

    def sample_predictive(
        self, X: TableLike, draws: int = 1000, random_state: int | None = None
    ) -> Matrix:
        """Draws from the predictive law, one row per draw."""
        check_is_fitted(self)
        return self.posterior_.sample_predictive(X, draws, random_state)
