"""scikit-learn estimators around `dbrm.fit`.

Their parameters are the settings: each initialiser takes the fields of `dbrm.Settings`,
with the same defaults unless the class names others, and `inspect.signature` shows them.
"""

import warnings
from collections.abc import Mapping
from dataclasses import fields
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    assert_all_finite,
    check_is_fitted,
    column_or_1d,
)

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix, TableLike
from dbrm.data import Recipe, check_weights, is_source, read_classes, refuse_other_order
from dbrm.errors import DBRMWarning, InvalidDataError, InvalidSettingError, suggest
from dbrm.evidence import ClassFamily, find_family
from dbrm.features import Feature, evaluate
from dbrm.fitting import fit
from dbrm.formula import FormulaRecipe
from dbrm.posterior import Posterior
from dbrm.posterior.rows import split_rows
from dbrm.run.settings import Settings, SettingsOptions

__all__ = ["DBRMClassifier", "DBRMFeatures", "DBRMRegressor", "SettingsEstimator"]


class EstimatorOptions(SettingsOptions, total=False):
    """The parameters of the estimators, for editors and type checkers."""

    warm_start: bool
    eta: float
    class_weight: str | Mapping[Any, float] | None
    threshold: float


class SettingsEstimator(BaseEstimator):
    """An estimator whose parameters are the settings, and what a class adds or changes."""

    if TYPE_CHECKING:

        def __init__(self, **settings: Unpack[EstimatorOptions]) -> None: ...

    def __init_subclass__(cls, defaults: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        values = {field.name: field.default for field in fields(Settings)}
        values |= {"warm_start": False, **(defaults or {})}

        def __init__(self: Any, **given: Any) -> None:  # noqa: N807
            for name in given:
                if name not in values:
                    near = suggest(name, values)
                    msg = f"{cls.__name__}() got an unexpected keyword argument {name!r}{near}"
                    raise TypeError(msg)
            for name, default in values.items():
                setattr(self, name, given.get(name, default))

        listed = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in values.items()
        ]
        itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
        __init__.__signature__ = Signature([itself, *listed])  # type: ignore[attr-defined]
        __init__.__doc__ = None
        cls.__init__ = __init__  # type: ignore[method-assign]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Only the paper's presets refuse missing values where nothing is said about them.
        tags.input_tags.allow_nan = (self.missing or self.preset or "indicator") == "indicator"
        return tags

    def _search(
        self,
        X: TableLike,
        y: Any,
        before: Posterior | None = None,
        family: Any = None,
        **rows: Any,
    ) -> Posterior:
        """Fit with this estimator's settings, and note what scikit-learn wants to know.

        `family` takes the place of the setting.
        """
        settings = {field.name: getattr(self, field.name) for field in fields(Settings)}
        settings |= {} if family is None else {"family": family}
        if before is not None:
            settings |= self._continued(before)
        posterior = fit(X, y, **rows, **settings)
        self._note_input(posterior.recipe)
        return posterior

    def _found(self) -> dict[str, Posterior]:
        """What a notebook shows after the fit: posteriors, each with its heading."""
        if not hasattr(self, "posterior_"):
            return {}
        return {f"{type(self).__name__}: {self.posterior_.record.response}": self.posterior_}

    @property
    def _repr_html_(self) -> Any:
        """scikit-learn's picture before the fit, what was found after it."""
        usual = super()._repr_html_
        return (lambda: self._found_html()) if self._found() else usual

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle and self._found():
            bundle["text/html"] = self._found_html()
        return bundle

    def _found_html(self) -> str:
        from dbrm.report import posterior_html

        return "".join(posterior_html(found, heading) for heading, found in self._found().items())

    @property
    def feature_importances_(self) -> Column:
        """Share of each input column in what the models explain; see `Posterior.covariates`."""
        check_is_fitted(self)
        names = self.posterior_.recipe.input_names
        shares = self.posterior_.covariates.set_index("covariate")["share"].reindex(names)
        return np.asarray(shares.fillna(0.0), dtype=np.float64)

    def _continued(self, before: Posterior) -> dict[str, Any]:
        """Settings of a search that begins with what the last one found, on new random numbers."""
        given = [self.start] if isinstance(self.start, str) else list(self.start)
        found = before.features_above(0.0)[len(before.always) :][: self.population_size]
        seed = self.random_state
        if isinstance(seed, (int, np.integer)):
            seed = np.random.SeedSequence([int(seed), before.record.n_evaluated])
        return {"start": [*found, *given], "random_state": seed}

    def _note_input(self, recipe: Recipe | FormulaRecipe) -> None:
        self.n_features_in_ = len(recipe.input_names)
        if recipe.named:
            self.feature_names_in_ = np.array(recipe.input_names, dtype=object)


class DBRMRegressor(RegressorMixin, SettingsEstimator):
    """Deep Bayesian regression of a numeric response, under any family.

    Every setting is a keyword argument with the meaning given in `dbrm.Settings`, and is
    checked in `fit`.

    Parameters
    ----------
    warm_start
        Whether `fit`, called again, begins with the features found before, and goes on with
        other random numbers, instead of starting afresh.

    Attributes
    ----------
    posterior_
        The `dbrm.Posterior`.
    feature_importances_
        Share of each column in what the models explain.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    posterior_: Posterior

    def fit(
        self,
        X: TableLike,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Search for models of `y`."""
        rows = {"sample_weight": sample_weight, "offset": offset}
        before = getattr(self, "posterior_", None) if self.warm_start else None
        found = self._search(X, y, before, trials=trials, exposure=exposure, **rows)
        self.posterior_ = found.prepare_predictions()
        return self

    def predict(
        self,
        X: TableLike,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        *,
        return_std: bool = False,
    ) -> Column | tuple[Column, Column]:
        """Posterior-averaged mean; with `return_std` also the predictive standard deviation."""
        check_is_fitted(self)
        rows = {"offset": offset, "trials": trials, "exposure": exposure}
        mean = self.posterior_.predict(X, **rows)
        if not return_std:
            return mean
        with warnings.catch_warnings():
            # The same warning came with the mean.
            warnings.simplefilter("ignore", DBRMWarning)
            return mean, self.posterior_.predict_sd(X, **rows)

    def predict_interval(
        self, X: TableLike, level: float = 0.95, *, of: Literal["response", "mean"] = "response"
    ) -> Matrix:
        """Equal-tailed interval of a new response or its mean: two columns, lower and upper."""
        check_is_fitted(self)
        return self.posterior_.predict_interval(X, level=level, of=of)

    def predict_quantiles(self, X: TableLike, q: float | list[float] | FloatArray) -> Matrix:
        """Predictive quantiles, one column per level."""
        check_is_fitted(self)
        return self.posterior_.predict_quantiles(X, q)

    def sample_predictive(
        self, X: TableLike, draws: int = 1000, random_state: int | None = None
    ) -> Matrix:
        """Draws from the predictive distribution, one row per draw."""
        check_is_fitted(self)
        return self.posterior_.sample_predictive(X, draws, random_state)


class DBRMClassifier(
    ClassifierMixin,
    SettingsEstimator,
    defaults={"family": "binomial", "eta": 0.5, "class_weight": None},
):
    r"""Deep Bayesian classification with probabilities averaged over models.

    Every setting is a keyword argument with the meaning given in `dbrm.Settings`; the family
    is binomial for two classes, and multinomial for more: features are selected for all classes
    together, and the probabilities add to one. Ordered classes are ``family="ordinal"``.

    Parameters
    ----------
    eta
        Two classes: the second one is predicted where its probability exceeds
        :math:`\eta`. Among more classes the most probable one is predicted.
    class_weight
        Weights of the classes by label, or ``"balanced"`` for the same total weight of each, as
        in scikit-learn; multiplied with `sample_weight`. Probabilities are then those of a
        population with these shares: to decide otherwise at costs of your own, change `eta`.
    warm_start
        As in `DBRMRegressor`.

    Attributes
    ----------
    classes_
        The labels, sorted; those of an ordered category in its order under ``family="ordinal"``.
    posterior_
        The `dbrm.Posterior`; of two classes that of the second.
    feature_importances_
        Share of each column in what the models explain.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    classes_: npt.NDArray[Any]
    posterior_: Posterior

    def _found(self) -> dict[str, Posterior]:
        if not hasattr(self, "classes_"):
            return {}
        two = len(self.classes_) == 2
        what = f"class {self.classes_[1]}" if two else self.posterior_.record.response
        return {f"DBRMClassifier: {what}": self.posterior_}

    def fit(self, X: TableLike, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Search for models of the classes."""
        if not 0.0 < self.eta < 1.0:
            msg = f"eta must be strictly between 0 and 1; got eta={self.eta!r}."
            raise InvalidSettingError(msg)
        rows = {"sample_weight": sample_weight, "offset": offset}
        if is_source(X):
            if self.class_weight is not None:
                msg = "class_weight= is for data in memory; name a column as sample_weight instead."
                raise InvalidSettingError(msg)
            # Rows out of memory: the family checks that they hold zeros and ones.
            self.posterior_ = self._search(X, y, **rows).prepare_predictions()
            self.classes_ = np.array([0, 1])
            return self
        refuse_other_order(X, y=y)
        classes, codes = _read_labels(y, sample_weight)
        if self.class_weight is not None:
            weights = compute_sample_weight(self.class_weight, classes[codes])
            rows["sample_weight"] = weights * check_weights(sample_weight, codes.size)
        several = classes.size > 2 and find_family(self.family).has_trials
        chosen = "multinomial" if several else self.family
        family = find_family(chosen)
        if isinstance(family, ClassFamily) and family.ordered:
            classes = np.array(read_classes(y, codes.size, ordered=True)[0])
            response = y
        elif isinstance(family, ClassFamily) and _are_plain(classes):
            response = classes[codes]
        else:
            response = codes.astype(np.float64)
        before = None
        if self.warm_start and np.array_equal(getattr(self, "classes_", ()), classes):
            before = self.posterior_
        found = self._search(X, response, before, family=chosen, **rows)
        self.posterior_ = found.prepare_predictions()
        self.classes_ = classes
        return self

    def predict_proba(self, X: TableLike, offset: Any = None) -> Matrix:
        """Probability of each class (columns), averaged over models."""
        check_is_fitted(self)
        if isinstance(self.posterior_.family, ClassFamily):
            return self.posterior_.predict_proba(X, offset=offset)
        second = self.posterior_.predict(X, offset=offset)
        return np.column_stack([1.0 - second, second])

    def predict(self, X: TableLike, offset: Any = None) -> npt.NDArray[Any]:
        """Labels, by the threshold `eta` or, among more than two, the highest probability."""
        probability = self.predict_proba(X, offset)
        if len(self.classes_) == 2:
            chosen = (probability[:, 1] > self.eta).astype(np.int64)
        else:
            chosen = np.argmax(probability, axis=1)
        return np.asarray(self.classes_[chosen])


class DBRMFeatures(TransformerMixin, SettingsEstimator, defaults={"threshold": 0.5}):
    """Engineered features for use before any other model.

    Searches as `DBRMRegressor` does and puts out the features whose posterior inclusion
    probability exceeds a threshold, those in `always` first. If there is none, the most
    probable feature is put out. A feature has no number (NaN) in rows where it is undefined.

    Every setting is a keyword argument with the meaning given in `dbrm.Settings`.

    Parameters
    ----------
    threshold
        Inclusion probability above which a feature is put out.
    warm_start
        As in `DBRMRegressor`.

    Attributes
    ----------
    posterior_
        The `dbrm.Posterior`.
    features_
        The `dbrm.Feature` objects put out.
    feature_importances_
        Share of each column in what the models explain.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    posterior_: Posterior
    features_: tuple[Feature, ...]

    def fit(self, X: TableLike, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Search for models of `y`."""
        if not 0.0 <= self.threshold < 1.0:
            msg = f"threshold must be at least 0 and below 1; got threshold={self.threshold!r}."
            raise InvalidSettingError(msg)
        before = getattr(self, "posterior_", None) if self.warm_start else None
        self.posterior_ = self._search(X, y, before, sample_weight=sample_weight, offset=offset)
        self.features_ = self.posterior_.features_above(self.threshold)
        if not self.features_:
            self.features_ = self.posterior_.features_above(0.0)[:1]
        return self

    def transform(self, X: TableLike) -> Matrix:
        """The features' values, one column each."""
        check_is_fitted(self)
        recipe = self.posterior_.recipe
        if is_source(X):
            pieces = split_rows(recipe, X, None, None, None)
            return np.concatenate([evaluate(self.features_, piece[0])[0] for piece in pieces])
        return evaluate(self.features_, recipe.apply(X, caller=type(self).__name__))[0]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """The features' formulas."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array([str(feature) for feature in self.features_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _are_plain(classes: npt.NDArray[Any]) -> bool:
    """Whether the posterior can know the classes by their own labels."""
    return classes.dtype.kind in "iuU" or all(isinstance(label, str) for label in classes)


def _read_labels(y: Any, sample_weight: Any) -> tuple[npt.NDArray[Any], IntArray]:
    """The different labels of rows that count, and the position of each row's label."""
    if y is None:
        msg = "dbrm requires y to be passed, but the target y is None."
        raise InvalidDataError(msg)
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    counted: Mask = np.ones(labels.size, dtype=np.bool_)
    if sample_weight is not None:
        counted = check_weights(sample_weight, labels.size) > 0
    if (n_classes := np.unique(labels[counted]).size) < 2:
        msg = f"y must hold at least two classes in rows that count; got {n_classes} class."
        raise InvalidDataError(msg)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes
