"""Do the models fit? Residuals, calibration and predictive checks against data.

Everything compares a response with the predictive distribution averaged over models. The rows are
those given, or the training rows of a posterior that still has them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import scipy.special
import scipy.stats

from dbrm._typing import Column, Matrix, TableLike
from dbrm.errors import InvalidSettingError
from dbrm.evidence import ClassFamily
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.posterior.class_mixture import ClassMixture
from dbrm.posterior.prediction import Mixture
from dbrm.posterior.rows import Rows
from dbrm.posterior.scores import score_table
from dbrm.posterior.survival_mixture import SurvivalMixture

if TYPE_CHECKING:
    import pandas as pd

    from dbrm.posterior.posterior import Posterior

__all__ = ["Checks"]

# Most rows times models whose predictive distributions are kept.
_MOST_KEPT = 1_000_000


@final
class Checks:
    """Checks of one posterior: ``posterior.checks``.

    Every method takes ``X``, ``y`` and, by keyword, ``offset``, ``trials``, ``exposure``; none
    of them for the training rows. Survival times have `scores` only, which takes ``event``, too.
    """

    def __init__(self, posterior: "Posterior") -> None:
        self._posterior = posterior
        self._kept: list[tuple[Rows, list[Mixture]]] = []

    def residuals(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        random_state: int | None = 0,
        **extras: Any,
    ) -> Column:
        r"""Quantile residuals: standard normal if the predictive distribution is right.

        .. math:: r_i = \Phi^{-1}(u_i), \qquad u_i \sim U\{F_i(y_i^-), F_i(y_i)\}

        For a continuous response :math:`u_i = F_i(y_i)`; for a discrete one the uniform draw
        fills the steps (Dunn and Smyth 1996).
        """
        return self.normal_scores(self._posterior.rows(X, y, **extras), random_state)

    def normal_scores(self, rows: Rows, random_state: int | None = 0) -> Column:
        """Quantile residuals of rows."""
        return _normal(self.probability_transform(rows, random_state))

    def probability_transform(self, rows: Rows, random_state: int | None = 0) -> Column:
        """Predictive probability of a response below each observed one."""
        upper = self.cdf(rows, rows.response)
        glm = self._posterior._source.glm
        if glm is None or not glm.family.discrete:
            return upper
        lower = self.cdf(rows, rows.response - 1.0)
        rng = np.random.default_rng(random_state)
        return lower + rng.random(lower.size) * (upper - lower)

    def cdf(self, rows: Rows, values: Column) -> Column:
        """Predictive probability of a response of at most each row's value."""
        parts, start = [], 0
        for block in self._blocks(rows):
            stop = start + block.weights.shape[1]
            parts.append(block.cdf(values[start:stop]))
            start = stop
        return np.concatenate(parts)

    def calibration(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        bins: int = 10,
        random_state: int | None = 0,
        **extras: Any,
    ) -> "pd.DataFrame":
        """Predicted probabilities against observed frequencies.

        Returns
        -------
        DataFrame
            For zeros and ones, rows are put into `bins` groups of nearly equal size by their
            predicted probability: ``predicted`` (mean), ``observed`` (share of ones),
            ``lower`` and ``upper`` (95 % Jeffreys interval of the share), ``count``. For other
            responses: ``predicted`` (nominal level) and ``observed`` share of responses
            inside central predictive intervals, with the same limits.
        """
        return self.calibrate(self._posterior.rows(X, y, **extras), bins, random_state)

    def calibrate(self, rows: Rows, bins: int, random_state: int | None = 0) -> "pd.DataFrame":
        """Calibration of rows."""
        import pandas as pd

        if bins < 1:
            msg = f"bins must be at least 1; got bins={bins!r}."
            raise InvalidSettingError(msg)
        if self.is_binary(rows):
            groups = _groups(self.mean(rows), rows.response, bins)
        else:
            depth = 2.0 * np.abs(self.probability_transform(rows, random_state) - 0.5)
            levels = np.arange(1, bins + 1) / (bins + 1)
            groups = [(level, int((depth <= level).sum()), depth.size) for level in levels]
        predicted, hits, counts = (
            np.array(part, dtype=float) for part in zip(*groups, strict=True)
        )
        lower, upper = (
            scipy.stats.beta.ppf(end, hits + 0.5, counts - hits + 0.5) for end in (0.025, 0.975)
        )
        columns = {"predicted": predicted, "observed": hits / counts}
        return pd.DataFrame(columns | {"lower": lower, "upper": upper, "count": counts.astype(int)})

    def scores(self, X: TableLike | None = None, y: Any = None, **extras: Any) -> "pd.DataFrame":
        r"""How well averaged predictions meet the responses.

        On training rows the numbers are optimistic: pass rows that took no part in the fit.

        Returns
        -------
        DataFrame
            ``measure``, ``value``, ``lower``, ``upper``. Of zeros and ones the AUC (area under
            the ROC curve), the Brier score (mean of :math:`(y - \hat p)^2`), the log score
            (mean of :math:`-\log \hat p(y)`) and the share that is right at a threshold of
            one half. Of other classes the share whose class is the most probable one, the log
            score, the Brier score :math:`\sum_k (\hat p_k - 1(y = k))^2`, and of ordered ones
            the ranked probability score. Of survival times, with ``event=``, the concordance.
            Of other responses :math:`R^2 = 1 - \sum (y - \hat y)^2 /
            \sum (y - \bar y)^2`, the root mean squared and mean absolute error, and the share
            of responses inside their 95 % predictive intervals. Limits are 95 % intervals from
            400 resamples of the rows, the same every time; of the share inside, Jeffreys
            intervals; of the concordance, from the spread of its pairs. Of more than 10,000 rows
            an even sample is used.
        """
        return self.score(self._posterior.scored_rows(X, y, **extras))

    def score(self, rows: Rows) -> "pd.DataFrame":
        """Scores of rows."""
        return score_table(self, rows)

    def predictive(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        draws: int = 1000,
        random_state: int | None = 0,
        **extras: Any,
    ) -> "pd.DataFrame":
        """Posterior predictive checks of simple statistics.

        Returns
        -------
        DataFrame
            ``statistic``, its value ``observed``, ``replicated`` (mean), ``lower`` and
            ``upper`` (95 % of the replications), and ``probability``, the share of
            replications at least as large as observed (half of ties): near 0 or 1 the models
            miss this side of the data.
        """
        import pandas as pd

        rows = self._posterior.rows(X, y, **extras)
        sample = self.replicate(rows, draws, random_state)
        table = []
        for name, statistic in _STATISTICS.items():
            observed, replicated = float(statistic(rows.response[None])[0]), statistic(sample)
            lower, upper = np.quantile(replicated, [0.025, 0.975])
            larger = np.mean(replicated > observed) + 0.5 * np.mean(replicated == observed)
            table.append((name, observed, replicated.mean(), lower, upper, larger))
        names = ["statistic", "observed", "replicated", "lower", "upper", "probability"]
        return pd.DataFrame(table, columns=names)

    def loo(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        top: int = 5,
        draws: int = 1000,
        random_state: int | None = 0,
        **extras: Any,
    ) -> "pd.DataFrame":
        r"""Leave-one-out and WAIC of the most probable models, through ArviZ.

        The expected log density of a new response, estimated from draws of each model's
        coefficients, by Pareto-smoothed importance sampling and by

        .. math:: \sum_i \log \overline{p(y_i|\theta)} - \sum_i \mathrm{var} \log p(y_i|\theta).

        It asks how well a model predicts, the posterior probability whether it is true; the
        features count as given, although the same data chose them. Needs ``dbrm[arviz]``.

        Parameters
        ----------
        top
            How many models.
        draws
            From each model's coefficients.

        Returns
        -------
        DataFrame
            ``features``, ``probability``, ``elpd_loo`` and its standard error ``se``,
            ``p_loo``, ``pareto_k`` (the largest; above 0.7 the estimate is unsure),
            ``elpd_waic``, ``p_waic``.
        """
        from dbrm.posterior.inference_data import compare_models

        rows = self._posterior.rows(X, y, **extras)
        rng = np.random.default_rng(random_state)
        return compare_models(rng, self._posterior._averaged, rows, top, draws)

    def replicate(self, rows: Rows, draws: int, random_state: int | None) -> Matrix:
        """Responses from the predictive distribution, one row per draw."""
        rng = np.random.default_rng(random_state)
        return np.concatenate([block.sample(rng, draws) for block in self._blocks(rows)], axis=1)

    def mean(self, rows: Rows) -> Column:
        """Averaged predictions of the rows."""
        return np.concatenate([block.mean() for block in self._blocks(rows)])

    def interval(self, rows: Rows, level: float) -> tuple[Column, Column]:
        """Predictive interval of the rows, lower and upper limits."""
        ends = (0.5 - level / 2, 0.5 + level / 2)
        blocks = [[block.quantile(end) for end in ends] for block in self._blocks(rows)]
        lower, upper = np.concatenate(blocks, axis=1)
        return lower, upper

    def probabilities(self, rows: Rows) -> Matrix:
        """Probability of each class (columns) for the rows."""
        blocks = self._blocks(rows)
        return np.concatenate([b.probabilities for b in blocks if isinstance(b, ClassMixture)])

    def risk(self, rows: Rows) -> Column:
        """Averaged linear predictor of survival times, signed so that higher is earlier."""
        blocks = self._blocks(rows)
        return np.concatenate([b.risk() for b in blocks if isinstance(b, SurvivalMixture)])

    def is_binary(self, rows: Rows) -> bool:
        """Whether responses are single zeros and ones."""
        return self.kind_of(rows) == "binary"

    def kind_of(self, rows: Rows) -> Literal["numbers", "binary", "classes", "survival"]:
        """What kind of response the rows have."""
        family = self._posterior.family
        if isinstance(family, SurvivalFamily):
            return "survival"
        if isinstance(family, ClassFamily):
            return "classes"
        single = rows.trials is None or bool(np.all(rows.trials == 1.0))
        glm = self._posterior._source.glm
        is_binary = glm is not None and glm.family.has_trials and single
        return "binary" if is_binary else "numbers"

    @property
    def has_order(self) -> bool:
        """Whether the responses are ordered classes."""
        family = self._posterior.family
        return isinstance(family, ClassFamily) and family.ordered

    def _blocks(self, rows: Rows) -> list[Mixture]:
        """The predictive distributions of rows; of few rows those of the last two are kept."""
        for known, blocks in self._kept:
            if known is rows:
                return blocks
        averaged = self._posterior._predictive
        blocks = list(averaged.blocks(rows.table, rows.offset, rows.trials))
        if rows.response.size * len(averaged.models) <= _MOST_KEPT:
            self._kept = [*self._kept[-1:], (rows, blocks)]
        return blocks


# Statistics of each row of responses.
_STATISTICS: dict[str, Callable[[Matrix], Column]] = {
    "mean": lambda y: y.mean(axis=1),
    "standard deviation": lambda y: y.std(axis=1),
    "smallest": lambda y: y.min(axis=1),
    "largest": lambda y: y.max(axis=1),
    "share of zeros": lambda y: (y == 0.0).mean(axis=1),
}


def _normal(probability: Column) -> Column:
    """Normal scores, finite also where a probability rounds to zero or one."""
    smallest = np.finfo(float).tiny
    return np.asarray(scipy.special.ndtri(np.clip(probability, smallest, 1.0 - 1e-16)))


def _groups(predicted: Column, response: Column, bins: int) -> list[tuple[float, int, int]]:
    order = np.argsort(predicted, kind="stable")
    parts = np.array_split(order, min(bins, order.size))
    return [(float(predicted[p].mean()), int(response[p].sum()), p.size) for p in parts]
