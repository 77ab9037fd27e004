"""The result of a run: a posterior over models, and what follows from it.

`Posterior` holds the merged models and where their fits come from. What takes more than a few
lines is elsewhere in this package: predictions in `new_data`, averaged coefficients in
`coefficients`, curves of covariates in `effects`, checks against data in `checks`, latent effects
in `latent`, other spellings of a feature in `spelling`, files in `storage`.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, TableLike
from dbrm.data import Recipe, check_response, check_vector, refuse_other_order
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import (
    AbstractFamily,
    ClassFamily,
    Gaussian,
    JointFamily,
    Link,
    ModelFit,
    find_link,
)
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.evolution import Problem
from dbrm.features import Feature
from dbrm.formula import FormulaRecipe
from dbrm.posterior.checks import Checks
from dbrm.posterior.coefficients import averaged_coefficients
from dbrm.posterior.covariates import covariate_table, groups_of, interaction_table
from dbrm.posterior.diagnostics import Diagnostics
from dbrm.posterior.effects import Effects
from dbrm.posterior.flexibility import may_approximate
from dbrm.posterior.lack_of_fit import find_lack_of_fit
from dbrm.posterior.latent import LatentEffects
from dbrm.posterior.merge import Merged
from dbrm.posterior.model import FittedModel
from dbrm.posterior.new_data import PredictionMethods, survival_times
from dbrm.posterior.path import PathStep, find_path, path_table
from dbrm.posterior.portable import Formula, portable_predictor
from dbrm.posterior.prediction import AveragedModels, shift_of
from dbrm.posterior.record import RunRecord
from dbrm.posterior.remainder import RemainderModels, find_remainder, with_remainder
from dbrm.posterior.rows import Rows
from dbrm.posterior.source import LiveSource, Source, StoredSource
from dbrm.posterior.spelling import Spellings, read_feature
from dbrm.search import effects_of
from dbrm.status import Status

if TYPE_CHECKING:
    import os

    import pandas as pd

    from dbrm.report import Plots

__all__ = ["Posterior"]

# A difference in log evidence that does not matter much (Kass and Raftery 1995).
_LITTLE_EVIDENCE = 3.0
# Probability that a formula is right which only one of several chains found, if it fits.
_FOUND_BY_ONE, _FLEXIBLE, _CONTESTED = 0.2, 0.2, 0.2
# Probability of formulas of another form above which the best one is contested.
_RIVALS = 0.1

Positions = np.typing.NDArray[np.integer[Any]]


@final
class Posterior(PredictionMethods):
    """Posterior over models whose features the program built itself.

    `dbrm.fit` and the estimators return it.

    Attributes
    ----------
    record
        How the run was made: algorithm, settings, seed, time, counts.
    recipe
        How columns of the user's table become covariates; replayed on new rows.
    diagnostics
        How far the chains agree.
    """

    def __init__(
        self,
        merged: Merged,
        source: Source,
        recipe: Recipe | FormulaRecipe,
        record: RunRecord,
        diagnostics: Diagnostics,
    ) -> None:
        self._merged = merged
        self.diagnostics = diagnostics
        self._source = source
        self.recipe = recipe
        self.record = record

    @property
    def _problem(self) -> Problem:
        """What the chains worked on; a posterior from a file has none."""
        assert isinstance(self._source, LiveSource)
        return self._source.problem

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.record.n_rows or self._source.n_rows

    @property
    def family(self) -> AbstractFamily:
        """Distribution of the response."""
        return Gaussian() if self._source.glm is None else self._source.glm.family

    @property
    def link(self) -> Link:
        """Function that maps the mean of the response to the linear predictor."""
        return find_link("identity") if self._source.glm is None else self._source.glm.link

    @property
    def always(self) -> tuple[Feature, ...]:
        """Features that every model contains."""
        return self._source.always

    @cached_property
    def _inclusion(self) -> FloatArray:
        totals = self._merged.models.add_up(self._merged.probability, len(self._merged.features))
        return np.minimum(totals, 1.0)

    @property
    def _order(self) -> Positions:
        """Positions of the features, highest inclusion first."""
        return np.argsort(-self._inclusion, kind="stable")

    @cached_property
    def features(self) -> "pd.DataFrame":
        """Features with posterior inclusion probability, highest first.

        For chains that sample from the posterior ``frequency`` is the share of their steps
        with the feature in the model, the paper's second estimate (eq. map2).
        """
        import pandas as pd

        ordered = [self._merged.features[j] for j in self._order]
        columns = {
            "feature": [str(feature) for feature in ordered],
            "inclusion": self._inclusion[self._order],
            "complexity": [feature.complexity for feature in ordered],
            "depth": [feature.depth for feature in ordered],
            "width": [feature.width for feature in ordered],
        }
        if self._merged.frequency is not None:
            columns["frequency"] = self._merged.frequency[self._order]
        return pd.DataFrame(columns)

    @cached_property
    def models(self) -> "pd.DataFrame":
        """Models with log evidence, log prior and posterior probability, highest first."""
        import pandas as pd

        table = self._merged.models
        names = [str(feature) for feature in self._merged.features]
        columns = {
            "features": [
                tuple(names[j] for j in table.features_of(row)) for row in range(len(table))
            ],
            "size": table.sizes,
            "log_evidence": table.log_evidence,
            "log_prior": table.log_prior,
            "probability": self._merged.probability,
        }
        if self._source.effects:
            columns["latent"] = [self._effect_names(mask) for mask in self._effect_masks]
        return pd.DataFrame(columns)

    @cached_property
    def chain_inclusion(self) -> "pd.DataFrame":
        """Inclusion probabilities by each chain alone.

        One row per feature, in the order of `features`, and one column per chain.
        """
        import pandas as pd

        by_chain = self.diagnostics.chain_inclusion.T[self._order]
        names = [str(self._merged.features[j]) for j in self._order]
        return pd.DataFrame(by_chain, index=pd.Index(names, name="feature"))

    @property
    def disagreements(self) -> list[str]:
        """Features and latent effects whose inclusion differs between chains by more than 0.2."""
        effects, diagnostics = self._source.effects, self.diagnostics
        names = [str(self._merged.features[j]) for j in diagnostics.disagreements]
        return names + [effects[k].effect.name for k in diagnostics.latent_disagreements]

    @property
    def _effect_masks(self) -> Masks:
        """Which latent effects each model contains."""
        return effects_of(self._merged.models.latent, len(self._source.effects))

    def _effect_names(self, mask: Mask) -> tuple[str, ...]:
        return tuple(self._source.effects[k].effect.name for k in np.flatnonzero(mask))

    @cached_property
    def _latent(self) -> LatentEffects:
        inclusion = np.minimum(self._merged.probability @ self._effect_masks, 1.0)
        return LatentEffects(self._averaged, inclusion)

    @cached_property
    def latent(self) -> "pd.DataFrame":
        """Latent effects with inclusion probability, highest first.

        ``hyperparameters`` (precision, correlation, rate) are taken at the posterior mean of
        the logarithms and logits they are estimated on, given that the effect is in the model.
        """
        if not self._source.effects:
            import pandas as pd

            return pd.DataFrame(columns=["effect", "inclusion", "nodes", "hyperparameters"])
        return self._latent.table()

    def latent_effect(self, name: str, level: float = 0.95) -> "pd.DataFrame":
        """A latent effect along its positions or groups, given that it is in the model.

        Parameters
        ----------
        name
            As in `latent`, such as ``"RW1(time)"``.
        level
            Posterior probability inside the band.

        Returns
        -------
        DataFrame
            The position or group, ``mean``, ``sd``, ``lower``, ``upper``, on the scale of the
            linear predictor.
        """
        return self._latent.curve(name, level)

    @property
    def lost_mass(self) -> float:
        """Upper bound of the posterior share of models evaluated but not kept."""
        return float(np.exp(min(0.0, self._merged.log_lost - self._merged.log_mass)))

    @property
    def unvisited(self) -> float:
        """Estimated probability of all formulas that no chain visited.

        By random walks among the features found and their relatives
        (`dbrm.posterior.unvisited`). Where it is not zero, some of those that the walks
        met stand for all in `models`, each with the share of the steps that were spent there: their
        probabilities are not in proportion to their own evidence. Probabilities of features and
        predictions count them in. Zero where the best formula has nearly all of the probability,
        and with ``estimate_unvisited=False``.
        """
        return self._merged.unvisited

    def inclusion(self, feature: str | Feature) -> float:
        """Posterior probability that a feature is in the model, under any equivalent spelling.

        Zero for a feature that no kept model contains, one for a covariate that every model
        contains (`always`). Latent effects go by their names, as in `latent`. Where the weights
        of projections are drawn at random, ``"tanh(1 + a + b)"`` with any weights stands for
        all draws: the probability that one or more of them are in the model.
        """
        names = [bound.effect.name for bound in self._source.effects]
        if feature in names:
            share = self._merged.probability @ self._effect_masks[:, names.index(str(feature))]
            return min(float(share), 1.0)
        feature = self.parse_feature(feature)
        position = self._spellings.find(feature)
        if position is not None:
            return float(self._inclusion[position])
        draws = self._spellings.draws_of(feature)
        if draws:
            return self._probability_of_any(draws)
        return float(feature in self.always)

    def _probability_of_any(self, positions: list[int]) -> float:
        """Probability of the models with at least one of these features."""
        wanted = np.zeros(len(self._merged.features))
        wanted[positions] = 1.0
        hit = self._merged.models.sum_terms(wanted) > 0.0
        return min(float(self._merged.probability[hit].sum()), 1.0)

    def parse_feature(self, feature: str | Feature) -> Feature:
        """A feature from its text, with the transforms and the knots of this run.

        As in ``posterior.parse_feature(posterior.features["feature"][0]).to_latex()``.
        """
        return read_feature(feature, self._source)

    def aliases(self, feature: str | Feature) -> list[str]:
        """Other spellings of the same feature that the chains visited."""
        position = self._spellings.find(self.parse_feature(feature))
        spellings = [] if position is None else self._merged.aliases.get(position, [])
        return sorted(str(spelling) for spelling in spellings)

    def features_above(self, threshold: float) -> tuple[Feature, ...]:
        """Features with inclusion above a threshold, those of every model (`always`) first."""
        above = [j for j in self._order if self._inclusion[j] > threshold]
        return (*self.always, *(self._merged.features[j] for j in above))

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._merged, self._source)

    @property
    def best_model(self) -> FittedModel:
        """The most probable model."""
        members, effects = self._best
        return self._fit(members, effects, float(self._merged.probability[0]))

    @cached_property
    def median_probability_model(self) -> FittedModel:
        """The model of all features with inclusion above one half (Barbieri and Berger 2004)."""
        members, effects = self._median
        models = self._merged.models
        for row in np.flatnonzero(models.sizes == members.size):
            same = np.array_equal(models.features_of(int(row)), members)
            if same and np.array_equal(self._effect_masks[row], effects):
                return self._fit(members, effects, float(self._merged.probability[row]))
        return self._fit(members, effects, 0.0)

    def model(self, rank: int) -> FittedModel:
        """The model of this rank in `models`, counted from 0, with its coefficients.

        There are fits of the first `n_averaged` models.
        """
        if not 0 <= rank < self.n_averaged:
            msg = (
                f"rank must be between 0 and {self.n_averaged - 1}, a row of models that "
                f"predictions average over; got rank={rank!r}."
            )
            raise InvalidSettingError(msg)
        features = [self._merged.features[j] for j in self._merged.models.features_of(rank)]
        probability = float(self._merged.probability[rank])
        return self._describe(
            features, self._effect_masks[rank], self._averaged.fits[rank], probability
        )

    @cached_property
    def path_steps(self) -> list[PathStep]:
        """The rows of `path`; of a file of an older version none."""
        return self._source.path if isinstance(self._source, StoredSource) else find_path(self)

    @cached_property
    def path(self) -> "pd.DataFrame":
        r"""The path of formulas: the most probable one of every complexity, simplest first.

        Complexities at which nothing has a larger evidence than a simpler formula are left
        out, unless it is the most probable of all. Compared are the models that the search
        kept, the submodels of the best one, and single covariates.

        Returns
        -------
        DataFrame
            ``complexity``, summed over the features, and their number, ``size``. ``formula``
            with fitted coefficients, and ``features``, their texts. ``r2``, the explained share
            of the variation, :math:`1 - \exp\{2(\ell_0 - \ell)/n\}` with the log likelihood
            :math:`\ell_0` of the model without features (for a Gaussian response the usual
            :math:`R^2`). ``log_evidence``, and ``step``, what it gains over the row before.
            ``probability`` of this very set of features.
        """
        if not self.path_steps:
            msg = "The file was written before there was a path of formulas: fit again for it."
            raise InvalidDataError(msg)
        return path_table(self.path_steps)

    def simplify(self, tolerance: float = 0.01) -> FittedModel:
        """The simplest formula that fits nearly as well as the most probable one.

        Along `path`, the formula of least complexity whose ``r2`` is at most `tolerance` below
        that of the most probable formula; itself if no simpler one is as good. Where a model has
        no likelihood the evidence decides: a log evidence that is at most three lower.

        Parameters
        ----------
        tolerance
            Share of the variation that may be left unexplained in addition.
        """
        if not 0.0 <= tolerance < 1.0:
            msg = (
                "tolerance is the share of the variation that may be lost, at least 0 and below "
                f"1; got tolerance={tolerance!r}. Try 0.01."
            )
            raise InvalidSettingError(msg)
        table = self.path
        best = table.iloc[int(table["probability"].argmax())]
        enough = table["r2"] >= best["r2"] - tolerance
        if not np.isfinite(best["r2"]):
            enough = table["log_evidence"] >= best["log_evidence"] - _LITTLE_EVIDENCE
        return self.path_model(int(enough.to_numpy().argmax()))

    def path_model(self, step: int) -> FittedModel:
        """The formula in this row of `path`, counted from 0, with its coefficients."""
        found = self.path_steps[step]
        for rank in range(self.n_averaged):
            if self.models["features"][rank] == found.features:
                return self.model(rank)
        if isinstance(self._source, StoredSource):
            msg = (
                f"The file has no coefficients of the formula of complexity {found.complexity}: "
                "simplify before saving, or choose another tolerance."
            )
            raise InvalidDataError(msg)
        position = {str(feature): j for j, feature in enumerate(self._merged.features)}
        members = np.array([position[text] for text in found.features], dtype=np.int64)
        none = np.zeros(len(self._source.effects), dtype=np.bool_)
        return self._fit(members, none, found.probability)

    @cached_property
    def lack_of_fit(self) -> float:
        r"""Probability that something smooth is left that the best formula does not have.

        The probabilities in `models` add up to one over formulas of the features that the search
        met, right or wrong. Here the alternative is that none of them is complete: the best one,
        and beside it a Gaussian process :math:`f` over the covariates, used or not, and over its
        features,

        .. math:: y = \hat y + f + \epsilon, \qquad
            P(f \ne 0 \mid y) = \frac{\mathrm{BF}}{1 + \mathrm{BF}},

        with a prior probability of one half, and the Bayes factor averaged over kernels, length
        scales and signal-to-noise ratios (`dbrm.posterior.lack_of_fit`). Where nothing is left it
        is mostly below 0.1. Errors in numbers inside functions do not count, nor does what is
        smaller than :math:`10^{-8}` standard deviations of the response. At most 1,000 rows and
        30 covariates take part.

        Raises
        ------
        InvalidSettingError
            If the response is not Gaussian or there are latent effects.
        InvalidDataError
            If the posterior is from a file that was written before there was this number.
        """
        source = self._source
        if not isinstance(source, StoredSource) or source.glm is not None:
            return find_lack_of_fit(self)
        if source.lack_of_fit is None:
            msg = (
                "The file has no lack_of_fit, which is computed from the training response of a "
                "Gaussian family when the posterior is saved: fit again for it."
            )
            raise InvalidDataError(msg)
        return source.lack_of_fit

    @property
    def claim(self) -> float:
        r"""Probability that the best formula is right, one that nobody has tried being possible.

        .. math:: P(\mathrm{best}) \times (1 - \mathrm{lack\ of\ fit})
            \times c

        The factor :math:`c` is 0.2 where only one of several chains found the best formula, and
        its fit is not perfect, so that others may fit better (`unconfirmed`); 0.2 where it has too
        many fitted numbers for the digits of its fit, so that it may approximate another
        (`may_approximate`); 0.2 where formulas of another form fit nearly as well (`contested`);
        their product where more than one is so, otherwise 1. In a benchmark of known laws hardly
        any formula of the first kind was right, and few of the second; of the third more were, but
        wrong ones are often of this kind.
        """
        found = _FOUND_BY_ONE if self.unconfirmed else 1.0
        found *= _FLEXIBLE if self.may_approximate else 1.0
        found *= _CONTESTED if self.contested else 1.0
        return self.best_model.probability * (1.0 - self.lack_of_fit) * found

    @property
    def contested(self) -> bool:
        """Whether formulas that lack a feature of the best one have more than a tenth in all.

        A formula with all of its features and some more is an extension, which a weak term or
        chance may favour; others are of another form. Where the data do not decide between those
        that were visited, others that nobody tried may fit as well. Not so with perfect fits, which
        are the same function in another spelling.
        """
        members, models = self._best[0], self._merged.models
        inside = np.isin(models.members, members).astype(np.float64)
        n_common = np.bincount(models.owners, inside, minlength=len(models))
        rivals = float(self._merged.probability[n_common < members.size].sum())
        return rivals > _RIVALS and self.best_model.fit.status != Status.PERFECT_FIT

    @property
    def may_approximate(self) -> bool:
        """Whether the best formula has too many fitted numbers for the digits of its fit.

        Each coefficient, an intercept that is not zero and each number inside a function counts,
        but not a coefficient that is a short number to its error. Digits are those of the standard
        deviation of the response in units of its error; half a digit must be left. One without
        features counts as such.
        """
        return may_approximate(self)

    @property
    def unconfirmed(self) -> bool:
        """Whether at most one of several chains found the best model, and others may fit better."""
        visited = self._merged.visited
        alone = len(visited) > 1 and sum(0 in rows for rows in visited) <= 1
        return alone and self.best_model.fit.status != Status.PERFECT_FIT

    @property
    def _best(self) -> tuple[Positions, Mask]:
        """Positions of the features of the most probable model, and its latent effects."""
        return self._merged.models.features_of(0), self._effect_masks[0]

    @property
    def _median(self) -> tuple[Positions, Mask]:
        """Positions of the features with inclusion above one half; latent effects likewise."""
        effects: Mask = np.asarray(self._merged.probability @ self._effect_masks > 0.5)
        return np.flatnonzero(self._inclusion > 0.5), effects

    def _fit(self, members: Positions, effects: Mask, probability: float) -> FittedModel:
        features = [self._merged.features[j] for j in members]
        return self._describe(features, effects, self._source.fit(features, effects), probability)

    def _describe(
        self, features: list[Feature], effects: Mask, fit: ModelFit, probability: float
    ) -> FittedModel:
        response, link, family = self.record.response, self.link, self.family
        identity = link.name == "identity"
        label = response if identity else f"{link.name}(E[{response}])"
        label = self.predictor_label or label
        return FittedModel(
            response=label,
            terms=(*self.always, *features),
            fit=fit,
            probability=probability,
            recipe=self.recipe,
            link=None if identity else link,
            latent=self._effect_names(effects),
            family=family if isinstance(family, ClassFamily) else None,
            classes=self.classes,
        )

    @property
    def predictor_label(self) -> str:
        """What the linear predictor of classes and survival times is; empty for other families."""
        if not isinstance(self.family, JointFamily):
            return ""
        return self.family.predictor_label(self.record.response, self.classes)

    @cached_property
    def n_averaged(self) -> int:
        """Number of models, the most probable ones, that predictions average over."""
        models = self._merged.models
        return self._source.count_averaged(self._merged.probability, models.sizes)

    @property
    def averaged_share(self) -> float:
        """Share of the posterior probability that these models hold."""
        return min(1.0, float(self._merged.probability[: self.n_averaged].sum()))

    @cached_property
    def _averaged(self) -> AveragedModels:
        table = self._merged.models
        rows = [table.features_of(row).astype(np.int64) for row in range(self.n_averaged)]
        used: IntArray = np.unique(np.concatenate(rows))
        features = tuple(self._merged.features[j] for j in used)
        models = [np.searchsorted(used, row) for row in rows]
        found = self._source.fit_averaged(features, models, self._effect_masks[: len(models)])
        return AveragedModels(
            features=features,
            models=models,
            probability=self._merged.probability[: self.n_averaged],
            fits=found.fits,
            shifts=found.shifts,
            dispersions=found.dispersions,
            always=self.always,
            glm=self._source.glm,
            integrate=self.record.uncertainty == "laplace",
            effects=self._source.effects,
            ranges=found.ranges,
            fitted=found.fitted,
            hazards=found.hazards,
            hold=self.record.extrapolate == "hold",
        )

    @cached_property
    def _remainder(self) -> RemainderModels | None:
        if isinstance(self._source, StoredSource):
            return self._source.remainder
        return find_remainder(self._problem, self._merged, self._inclusion, self._inner_recipe)

    @property
    def remainder(self) -> float:
        """Probability that all covariates add a little to what the formulas say.

        Predictions average over models with and without such a remainder; formulas and
        probabilities of features are those without. Zero where it is hardly probable, or was not
        looked for.
        """
        return 0.0 if self._remainder is None else float(self._remainder.probability.sum())

    @property
    def root_scale(self) -> float:
        r"""Probability of the models with a remainder that are of the root of the response.

        A Gaussian response without negative values may have errors that grow with it, and effects
        that are in proportion to it. Models with a remainder are then also of
        :math:`\sqrt{y + c}`, where :math:`c` is zero unless the response has zeros; predictions
        and their intervals are those of :math:`y`. Zero for other responses.
        """
        found = self._remainder
        if found is None or found.squares is None:
            return 0.0
        return float(found.probability[found.squares].sum())

    @cached_property
    def _predictive(self) -> AveragedModels:
        """The models that predictions average over, those with a remainder among them."""
        found = self._remainder
        return self._averaged if found is None else with_remainder(self._averaged, found)

    def prepare_predictions(self) -> "Posterior":
        """Fit the models that predictions average over now, not at the first prediction."""
        self._predictive  # noqa: B018
        return self

    def coefficients(
        self, level: float = 0.95, *, conditional: bool = False, standardized: bool = False
    ) -> "pd.DataFrame":
        """Coefficients averaged over models, with equal-tailed credible intervals.

        Parameters
        ----------
        level
            Posterior probability inside an interval.
        conditional
            Whether to describe each coefficient given that its feature is in the model. By
            default it counts as zero in the models without the feature, so that an interval
            of a doubtful feature reaches to zero.
        standardized
            Whether to give the change per standard deviation of the feature in training,
            instead of the change per unit.

        Returns
        -------
        DataFrame
            ``term``, ``inclusion``, ``estimate``, ``sd``, ``lower``, ``upper``; the intercept
            and what is in every model first, then by inclusion.
        """
        training = self._source.table if standardized else None
        return averaged_coefficients(self._averaged, level, conditional, training)

    @property
    def _inner_recipe(self) -> Recipe:
        return self.recipe.inner if isinstance(self.recipe, FormulaRecipe) else self.recipe

    @cached_property
    def covariates(self) -> "pd.DataFrame":
        r"""Covariates: how probable, how important, in which direction; largest share first.

        One row per column of the user's table: a factor is one covariate, whatever its levels.

        Returns
        -------
        DataFrame
            ``covariate``. ``probability`` that it takes part in any way: summed over the
            models with at least one feature that uses it. ``share`` of the variation of the
            averaged linear predictor, see below; the shares add up to one. ``direction`` of
            the mean response as the covariate grows: ``"increasing"``, ``"decreasing"``,
            ``"mixed"``; ``"by level"`` of a factor without order; ``"none"`` if no averaged
            model uses it.

        Notes
        -----
        With :math:`\hat\eta = \sum_M p_M \hat\eta_M`, averaged over models, let
        :math:`h_S(x) = \frac1n \sum_i \hat\eta(x_S, x_{i,-S})` be what is known of it from the
        covariates in :math:`S` alone, the others averaged over training rows. The contribution
        of covariate :math:`j` to a row is its Shapley value, and its share is the share of
        their variance over the rows,

        .. math:: \phi_j(x) = \sum_{S \not\ni j} \frac{|S|!\,(k - |S| - 1)!}{k!}
            \{h_{S \cup j}(x) - h_S(x)\}, \qquad
            \mathrm{share}_j = \frac{\mathrm{var}(\phi_j)}{\sum_l \mathrm{var}(\phi_l)} .

        Of an additive model in uncorrelated covariates this is the share of the explained
        variance. Shapley values of a sum are sums of Shapley values, so that they are computed
        feature by feature, exactly for features of up to four covariates; of larger ones what
        single covariates do not explain is shared equally. At most 128 training rows are used,
        evenly spaced; nothing is random. Latent effects and offsets do not take part.

        A covariate is increasing if at least 95 % of all movement of the linear predictor is
        upward while the covariate goes through its training values, the others being as in
        each of the rows.
        """
        averaged, recipe = self._predictive, self._inner_recipe
        groups = groups_of(self._merged.features, recipe)
        always = frozenset[str]().union(*groups_of(self.always, recipe))

        def probability(name: str) -> float:
            if name in always:
                return 1.0
            return self._probability_of_any([j for j, g in enumerate(groups) if name in g])

        return covariate_table(averaged, recipe, self._source.table, self.link, probability)

    @cached_property
    def interactions(self) -> "pd.DataFrame":
        """Pairs of covariates that act together, in one feature, most probable first.

        Returns
        -------
        DataFrame
            ``first``, ``second``, ``probability`` that at least one feature in the model
            uses both.
        """
        recipe = self._inner_recipe
        groups = groups_of(self._merged.features, recipe)
        always = groups_of(self.always, recipe)

        def probability(first: str, second: str) -> float:
            pair = {first, second}
            if any(pair <= group for group in always):
                return 1.0
            return self._probability_of_any([j for j, g in enumerate(groups) if pair <= g])

        return interaction_table([*always, *groups], probability)

    @cached_property
    def effects(self) -> Effects:
        """Effects of covariates, as in ``posterior.effects.partial_dependence("x")``."""
        return Effects(self._predictive, self.recipe, self._inner_recipe, self._source.table)

    def portable(
        self, most_bytes: int = 1_500_000, formulas: Sequence[Formula] = ()
    ) -> dict[str, Any]:
        """The averaged models as plain data, for predictions by a program in another language.

        The report's page predicts from it. It holds the most probable models that fit into
        about `most_bytes` (``n_models`` of ``n_averaged``, with the ``share`` of their
        probability), and single `formulas` if asked for; the format may change between versions.

        Raises
        ------
        ExportError
            If there are latent effects, a transform without an expression, or a family or link
            that the format does not know.
        """
        return portable_predictor(
            self._predictive, self._inner_recipe, self._source.table, most_bytes, formulas
        )

    @cached_property
    def checks(self) -> Checks:
        """Checks of the models against data, as in ``posterior.checks.residuals(X, y)``."""
        return Checks(self)

    def to_arviz(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        draws: int = 2000,
        random_state: int | None = 0,
        **extras: Any,
    ) -> Any:
        """Draws from the averaged posterior as ArviZ's data structure.

        Independent draws of a model and its coefficients in four chains: ``coefficient``
        (zero where a feature is not in the model), ``included``, ``intercept``,
        ``dispersion``, ``model`` (rank); the log likelihood and replications of the rows, the
        training rows by default. Models of the root of the response (`root_scale`) have
        coefficients in other units: these are not a number. Needs ``dbrm[arviz]``.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Whichever the installed ArviZ makes.
        """
        from dbrm.posterior.inference_data import to_inference_data

        rows = self.rows(X, y, **extras)
        rng = np.random.default_rng(random_state)
        return to_inference_data(rng, self._predictive, rows, draws)

    def rows(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
    ) -> Rows:
        """Rows with their response, for checks; the training rows without arguments."""
        if isinstance(self.family, SurvivalFamily):
            msg = (
                "This check compares predictions with responses, and survival times may be "
                "censored. Use posterior.checks.scores, posterior.concordance or "
                "posterior.predict_survival."
            )
            raise InvalidSettingError(msg)
        return self.scored_rows(X, y, offset=offset, trials=trials, exposure=exposure)

    def scored_rows(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        event: Any = None,
    ) -> Rows:
        """As `rows`, and of survival times with their events."""
        if (X is None) != (y is None):
            msg = "Pass X and y, or neither for the training rows."
            raise InvalidDataError(msg)
        if X is None:
            rows = self._source.training()
            if rows is None:
                msg = "A posterior from a file does not have the training response: pass X and y."
                raise InvalidDataError(msg)
            return rows
        refuse_other_order(X, y=y, offset=offset, trials=trials, exposure=exposure)
        if isinstance(self.recipe, FormulaRecipe):
            offset = self.recipe.offset_of(X, offset)
        table = self.recipe.apply(X)
        n = table.n_rows
        counts = None if trials is None else check_vector(trials, n, name="trials")
        shift = shift_of(n, offset, exposure)
        if isinstance(self.family, SurvivalFamily):
            times, seen = survival_times(y, event, n)
            return Rows(table, times, shift, event=seen)
        response = self.number_classes(y, n) if self.classes else check_response(y, n)
        return Rows(table, response, shift, counts)

    def took_part(self, rows: Rows) -> bool:
        """Whether these rows are the training rows."""
        return np.array_equal(rows.table.values, self._source.table.values)

    @property
    def plot(self) -> "Plots":
        """Plots, as in ``posterior.plot.inclusion()`` or ``posterior.plot.fitted(X, y)``."""
        from dbrm.report import Plots

        return Plots(self)

    def summary(self, top: int = 10) -> str:
        """The results as text that fits a terminal."""
        from dbrm.report import summarise

        return summarise(self, top)

    def report(
        self,
        path: "str | os.PathLike[str]",
        X: TableLike | None = None,
        y: Any = None,
        *,
        title: str | None = None,
        test: Sequence[Any] | None = None,
        **extras: Any,
    ) -> None:
        """Write the results as one HTML page that needs no network and can be mailed.

        Parameters
        ----------
        path
            The file, such as ``"run.html"``.
        X, y, **extras
            Rows to plot predictions against, with their ``offset``, ``trials``, ``exposure``,
            ``event``. Without them the training rows; a posterior from a file has none, and the
            plots of rows are then left out.
        title
            The question that the page answers; made from the name of the response if omitted.
        test
            Rows that took no part in the fit, ``(X, y)``, or ``(X, y, extras)`` with a
            dictionary of their ``offset``, ``trials``, ``exposure``, ``event``: the page shows how
            well they are predicted, beside the rows above.
        """
        from dbrm.report import write_report

        held_out = None
        if test is not None:
            if len(test) not in (2, 3):
                msg = f"test must be (X, y) or (X, y, extras); got {len(test)} parts."
                raise InvalidDataError(msg)
            held_out = self.scored_rows(test[0], test[1], **(test[2] if len(test) == 3 else {}))
        known = X is not None or self._source.training() is not None
        rows = self.scored_rows(X, y, **extras) if known else None
        write_report(self, path, rows, title, held_out)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write everything to one file of arrays and JSON with a checksum; no code, no pickle.

        `dbrm.load` reads it back: the same tables, formulas, summaries and predictions, to
        the last bit. The file holds training columns, by which equivalent spellings of a
        feature are recognised: all rows, or a sample where they are more than a million
        numbers; never the response. It is written whole or not at all.
        """
        from dbrm.posterior.storage import save

        save(self, path)

    def __repr__(self) -> str:
        best = self.best_model
        return f"<Posterior: {len(self._merged.models)} models; best {best.formula}>"

    def _repr_html_(self) -> str:
        from dbrm.report import posterior_html

        return posterior_html(self, f"Posterior of models for {self.record.response}")
