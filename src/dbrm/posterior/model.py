"""One model out of the posterior: its formula, its coefficients, its exports."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import scipy.stats

from dbrm._typing import Column, TableLike
from dbrm.data import Label, Recipe
from dbrm.errors import InvalidSettingError
from dbrm.evidence import ClassFamily, Link, ModelFit, ShortCoefficients
from dbrm.features import NUMPY, PYTHON, SQL, Dialect, Feature, evaluate
from dbrm.features.export import latex_number
from dbrm.features.numbers import numbers_of_a_decade, spell_short_number
from dbrm.formula import FormulaRecipe
from dbrm.posterior.backends import Backend, model_function
from dbrm.posterior.exports import (
    Exporter,
    column_symbol,
    python_function,
    sympy_inverse,
)
from dbrm.posterior.prediction import shift_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FittedModel"]

Scale = Literal["response", "link"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A model with its fitted coefficients.

    Parameters
    ----------
    response
        Left side of the formula: the response, or its mean under the link.
    terms
        Always-in covariates first, then the selected features.
    fit
        Posterior of the coefficients, intercept first.
    probability
        Posterior probability of this very set of features.
    recipe
        Makes the terms' columns out of the user's.
    link
        Between mean and linear predictor; ``None`` for the identity.
    latent
        Names of the latent effects in the model.
    family, classes
        Of a response of classes, and their labels; else ``None`` and empty.

    Notes
    -----
    Exports are of the right side of `formula` (``scale="link"``) or of the mean response,
    its inverse under the link (``scale="response"``), at the posterior location of the
    coefficients, without offset, for one trial, and without latent effects.
    """

    response: str
    terms: tuple[Feature, ...]
    fit: ModelFit
    probability: float
    recipe: Recipe | FormulaRecipe
    link: Link | None = None
    latent: tuple[str, ...] = ()
    family: ClassFamily | None = None
    classes: tuple[Label, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Text of each term."""
        return tuple(str(term) for term in self.terms)

    @property
    def formula(self) -> str:
        """``y = b0 + b1*F1 + ...`` with coefficients to six digits; see `to_callable` for all."""
        parts = [f"{self.fit.coefficients[0]:.6g}"]
        for coefficient, term in zip(self.fit.coefficients[1:], self.terms, strict=True):
            sign = "-" if coefficient < 0 else "+"
            parts.append(f"{sign} {abs(coefficient):.6g}*{term}")
        parts.extend(f"+ {name}" for name in self.latent)
        return f"{self.response} = {self._join(parts)}"

    def _join(self, parts: list[str]) -> str:
        """The intercept and signed terms as one text; without an intercept that there is none."""
        if self.fit.has_intercept or len(parts) == 1:
            return " ".join(parts)
        sign, first = parts[1].split(" ", maxsplit=1)
        return " ".join([f"-{first}" if sign == "-" else first, *parts[2:]])

    def __str__(self) -> str:
        return self.formula

    def coefficients(self, level: float = 0.95) -> "pd.DataFrame":
        """Coefficients with equal-tailed credible intervals.

        Of ordered classes with the thresholds between them; of classes without order one row for
        each class but the first, with which the others are compared.
        """
        import pandas as pd

        if self.family is not None:
            return self._class_coefficients(level)
        spread = np.sqrt(np.maximum(np.diag(self.fit.covariance), 0.0) * self.fit.dispersion)
        half = scipy.stats.t.ppf(0.5 + level / 2, self.fit.degrees_of_freedom) * spread
        table = pd.DataFrame(
            {
                "term": ["(intercept)", *self.features],
                "estimate": self.fit.coefficients,
                "lower": self.fit.coefficients - half,
                "upper": self.fit.coefficients + half,
            }
        )
        return table if self.fit.has_intercept else table[1:].reset_index(drop=True)

    @property
    def may_have_short_numbers(self) -> bool:
        """Whether `short_numbers` can say something: of a Gaussian response of unknown variance."""
        gaussian = self.link is None and self.family is None and self.fit.latent is None
        return gaussian and bool(np.isfinite(self.fit.degrees_of_freedom))

    def short_numbers(self, probability: float = 0.5) -> "pd.DataFrame":
        """Which coefficients may be short numbers, 2, 1/2 or pi, and how probable that is.

        One row for each: the estimate, the most probable short number as text, its value, and
        the probability that the coefficient is that or another short number. Coefficients are
        judged one after the other, the surest first: where one is rather short than not, the
        others are what they are beside this number. Of a coefficient whose error is more than .3
        of it nothing is known: it has its estimate as the number, and the prior probability.

        Parameters
        ----------
        probability
            Prior probability of a short number, for each coefficient.
        """
        import pandas as pd

        if not self.may_have_short_numbers:
            msg = (
                "short_numbers() needs a Gaussian response with the identity link, an unknown "
                f"variance and no latent effects; this formula is of {self.response!r}. "
                "coefficients() has the estimates and their intervals."
            )
            raise InvalidSettingError(msg)
        if not 0.0 < probability < 1.0:
            msg = f"probability must be above 0 and below 1; got {probability=!r}. Try 0.5."
            raise InvalidSettingError(msg)
        first = 0 if self.fit.has_intercept else 1
        estimates = self.fit.coefficients[first:]
        with np.errstate(all="ignore"):
            log_sizes = np.log10(np.abs(estimates))
            relative = self.fit.covariance[first:, first:] * self.fit.dispersion
            relative = relative / np.outer(estimates, estimates)
        prior = ShortCoefficients(probability, *numbers_of_a_decade())
        degrees = self.fit.degrees_of_freedom
        multiples, probabilities = prior.short_ones(log_sizes, relative, degrees)
        values = multiples * estimates
        return pd.DataFrame(
            {
                "term": ["(intercept)", *self.features][first:],
                "estimate": estimates,
                "number": [spell_short_number(value) for value in values.tolist()],
                "value": values,
                "probability": probabilities,
            }
        )

    def _class_coefficients(self, level: float) -> "pd.DataFrame":
        import pandas as pd

        joint = self.fit.joint
        assert joint is not None
        assert self.family is not None
        labels = tuple(map(str, self.classes))
        names = self.family.parameter_names(labels, self.features)
        mode = np.concatenate([joint.ancillary, joint.coefficients.ravel()])
        spread = np.sqrt(np.maximum(np.diag(joint.covariance), 0.0))
        half = scipy.stats.norm.ppf(0.5 + level / 2) * spread
        table = pd.DataFrame(names, columns=["term", "class"])
        table = table.assign(estimate=mode, lower=mode - half, upper=mode + half)
        return table.drop(columns="class") if self.family.ordered else table

    def _refuse_classes(self, what: str) -> None:
        if self.family is not None:
            msg = (
                f"{what} is of one number for each row, and classes have a probability each: use "
                "predict_proba of the posterior, or scale='link' for the linear predictor."
            )
            raise InvalidSettingError(msg)

    def predict(self, X: TableLike, *, offset: Any = None, exposure: Any = None) -> Column:
        """Mean response of new rows by this model alone, per trial for a binomial one."""
        self._refuse_classes("predict of one model")
        if isinstance(self.recipe, FormulaRecipe):
            offset = self.recipe.offset_of(X, offset)
        table = self.recipe.apply(X)
        eta = self.to_callable()(table) + shift_of(table.n_rows, offset, exposure)
        return eta if self.link is None else self.link.mean(eta)

    def to_callable(
        self, backend: Backend = "numpy", *, scale: Scale = "link"
    ) -> Callable[[Any], Any]:
        """A plain function of a table (mapping or data frame) to the linear predictor.

        The table holds the columns of the features as they were in the fit; `predict` takes
        raw rows.

        Parameters
        ----------
        backend
            ``"numpy"``; or ``"jax"`` or ``"torch"``, for a mapping from names to their arrays,
            to be differentiated, compiled or built into a network.
        scale
            ``"response"`` for the mean of the response.
        """
        link = self.link if _is_response(scale) else None
        coefficients = self.fit.coefficients
        if backend != "numpy":
            return model_function(self.terms, coefficients.tolist(), link, backend)
        intercept, slopes, terms = float(coefficients[0]), coefficients[1:], self.terms

        def predict(table: Any) -> Column:
            eta = np.asarray(intercept + evaluate(terms, table)[0] @ slopes)
            return eta if link is None else link.mean(eta)

        return predict

    def to_text(self) -> str:
        """The right side of `formula` with all digits, in the language of `dbrm.parse_feature`."""
        parts = [repr(float(self.fit.coefficients[0]))]
        for slope, term in zip(self.fit.coefficients[1:].tolist(), self.terms, strict=True):
            sign = "-" if slope < 0 else "+"
            parts.append(f"{sign} {abs(slope)!r}*{term}")
        return self._join(parts)

    def to_python(self, name: str = "predict", *, scale: Scale = "response") -> str:
        """Source text of a Python function of one row (a mapping), with nothing but `math`.

        Write it to a file of your program; columns are looked up by name, ``row["a b"]``.
        """
        if not name.isidentifier():
            msg = f"name must be a Python identifier; got name={name!r}."
            raise InvalidSettingError(msg)
        return python_function(name, self.formula, self._write(PYTHON, scale, "row"))

    def to_numpy(self, table: str = "table", *, scale: Scale = "response") -> str:
        """A NumPy expression in the columns of a table of this name.

        It needs ``import numpy as np``, and ``import scipy.special`` if erf occurs.
        """
        return self._write(NUMPY, scale, table)

    def to_sql(self, *, scale: Scale = "response") -> str:
        """An SQL expression in the columns of a table: ``SELECT <expression> FROM data``.

        Written with EXP, LN, SQRT, POWER, ABS, SIN, COS, ATAN and CASE, which nearly every
        database knows (SQLite since 3.35, if built with its mathematical functions). There
        is no erf in SQL: models with erf, gelu or the probit link are refused.
        """
        return self._write(SQL, scale)

    def _write(self, dialect: Dialect, scale: Scale, argument: str = "") -> str:
        if _is_response(scale):
            self._refuse_classes("An export of the response")
        link = self.link if _is_response(scale) else None
        exporter = Exporter(self.recipe, dialect, argument)
        return exporter.write(self.terms, self.fit.coefficients.tolist(), link)

    def to_sympy(self, *, scale: Scale = "link") -> Any:
        """A sympy expression; a factor's level is the symbol ``factor[level]``, zero or one."""
        intercept, *slopes = self.fit.coefficients.tolist()
        symbols = self._symbols()
        terms = [
            slope * term.to_sympy(symbols) for slope, term in zip(slopes, self.terms, strict=True)
        ]
        total = sum(terms, start=intercept)
        if not _is_response(scale) or self.link is None:
            return total
        self._refuse_classes("An export of the response")
        return sympy_inverse(self.link, total)

    def _symbols(self) -> dict[str, Any]:
        """Columns of the table in terms of the user's."""
        recipe = self.recipe.inner if isinstance(self.recipe, FormulaRecipe) else self.recipe
        used = {name for term in self.terms for name in term.covariates}
        return {name: column_symbol(recipe, name) for name in used}

    def to_latex(self, digits: int = 4) -> str:
        """The right side of `formula` in LaTeX, numbers to `digits` significant digits.

        Of scaled data it is in terms of the scaled columns.
        """
        parts = [latex_number(self.fit.coefficients[0], digits)]
        for slope, term in zip(self.fit.coefficients[1:], self.terms, strict=True):
            sign = "-" if slope < 0 else "+"
            latex = term.to_latex(digits=digits)
            parts.append(f"{sign} {latex_number(abs(slope), digits)}\\,{latex}")
        return self._join(parts)


def _is_response(scale: Scale) -> bool:
    if scale not in ("response", "link"):
        msg = f"scale must be 'response' or 'link'; got scale={scale!r}."
        raise InvalidSettingError(msg)
    return scale == "response"
