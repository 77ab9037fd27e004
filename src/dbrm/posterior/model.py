"""One model out of the posterior: its formula, its coefficients, its exports."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
import scipy.stats

from dbrm._typing import Column
from dbrm.evidence import ModelFit
from dbrm.features import Feature, evaluate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FittedModel"]


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
    """

    response: str
    terms: tuple[Feature, ...]
    fit: ModelFit
    probability: float

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
        return f"{self.response} = {' '.join(parts)}"

    def __str__(self) -> str:
        return self.formula

    def coefficients(self, level: float = 0.95) -> "pd.DataFrame":
        """Coefficients with equal-tailed credible intervals."""
        import pandas as pd

        spread = np.sqrt(np.maximum(np.diag(self.fit.covariance), 0.0) * self.fit.dispersion)
        half = scipy.stats.t.ppf(0.5 + level / 2, self.fit.degrees_of_freedom) * spread
        return pd.DataFrame(
            {
                "term": ["(intercept)", *self.features],
                "estimate": self.fit.coefficients,
                "lower": self.fit.coefficients - half,
                "upper": self.fit.coefficients + half,
            }
        )

    def to_callable(self) -> Callable[[Any], Column]:
        """A plain function of a table (mapping or data frame) to the linear predictor."""
        intercept, slopes = float(self.fit.coefficients[0]), self.fit.coefficients[1:]
        terms = self.terms

        def predict(table: Any) -> Column:
            return np.asarray(intercept + evaluate(terms, table)[0] @ slopes)

        return predict

    def to_sympy(self) -> Any:
        """The linear predictor as a sympy expression."""
        intercept, *slopes = self.fit.coefficients.tolist()
        terms = [slope * term.to_sympy() for slope, term in zip(slopes, self.terms, strict=True)]
        return sum(terms, start=intercept)

    def to_latex(self, digits: int = 4) -> str:
        """The linear predictor in LaTeX, coefficients rounded to `digits` significant digits."""
        parts = [_latex_number(self.fit.coefficients[0], digits)]
        for slope, term in zip(self.fit.coefficients[1:], self.terms, strict=True):
            sign = "-" if slope < 0 else "+"
            parts.append(f"{sign} {_latex_number(abs(slope), digits)}\\,{term.to_latex()}")
        return " ".join(parts)


def _latex_number(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}"
