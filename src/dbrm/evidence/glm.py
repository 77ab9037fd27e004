r"""Generalised linear models by Laplace's method.

One engine for all families, links and coefficient priors. With Jeffreys' prior the
determinants cancel and

.. math:: \log p(y \mid M) = \hat\ell + \tfrac{p_+}{2} \log 2\pi

for any design (the paper, Sec. 4.1); other tabulated priors add a function of the Wald
statistic, normal priors use the penalised mode. An unknown dispersion is profiled and
counts as one more parameter in every model. Families and links known to the kernels are
compiled; others take the Python path of `dbrm.evidence.glm_python`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import final

import numpy as np

from dbrm._kernels.glm import TABLE
from dbrm._kernels.glm_dispersion import Constants
from dbrm._kernels.glm_problem import GlmStart
from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence.base import AbstractEngine, ModelFit, ScoreTest
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.coefficient_priors.classical import Jeffreys
from dbrm.evidence.design import build_design, independent_columns, share_columns
from dbrm.evidence.device import DevicePopulation, can_use_device
from dbrm.evidence.families import CompiledFamily, Family, find_density
from dbrm.evidence.glm_population import (
    DEPENDENCE_TOLERANCE,
    AbstractGlmPopulation,
    GlmPopulation,
    Solution,
    compile_population,
)
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.glm_python import PythonPopulation
from dbrm.evidence.links import Link, find_link
from dbrm.evidence.predictor import AbstractPredictorLikelihood, predictor_likelihood
from dbrm.evidence.separation import Separation, classify_separation
from dbrm.evidence.solvers import DampedNewton, PlainIRLS, Solver
from dbrm.status import Status

__all__ = ["GlmEngine"]

# Rows beyond which separation is not certified by linear programming.
_LARGEST_PROGRAM = 20_000


@final
@dataclass(frozen=True, eq=False)
class _LiveRows:
    """The response and what belongs to it, of the rows that count; `rows` is ``None`` for all."""

    rows: Mask | None
    response: Column
    weights: Column
    trials: Column
    offset: Column

    @cached_property
    def mean(self) -> Column:
        """Response of one trial."""
        return self.response / self.trials

    @cached_property
    def totals(self) -> Column:
        """Number of observations behind each row."""
        return self.weights * self.trials

    def constants(self, family: CompiledFamily, group_mean: FloatArray) -> Constants:
        """Terms of the likelihood that never change."""
        return family.constants(self.response, self.weights, self.trials, group_mean)


@final
@dataclass(frozen=True, eq=False)
class GlmEngine(AbstractEngine):
    """Laplace log evidence for one response, family, link and coefficient prior.

    Parameters
    ----------
    response
        The response, one value per row; for binomial counts the number of successes.
    prior
        The prior of the coefficients.
    family, link
        Names or objects; the link defaults to the family's own.
    weights
        Frequency weights: a weight of two is the row twice. ``None`` for ones.
    always
        Columns that every model contains besides the intercept.
    offset
        Known part of the linear predictor.
    trials
        Numbers of trials of a binomial response; ``None`` for zeros and ones.
    exposure
        Observation times or areas; under the log link an offset of their logarithm.
    solver
        `DampedNewton`, or `PlainIRLS` to repeat the published scripts.
    platform
        Platform of JAX that evaluates populations, ``"gpu"`` or ``"cpu"``; ``None`` for compiled
        code.

    Notes
    -----
    Values are pure functions of data and mask: every model starts from the same place, so
    that neither the order of evaluations nor a restart changes a bit.
    """

    response: Column
    prior: CoefficientPrior
    family: Family | str = "binomial"
    link: Link | str | None = None
    weights: Column | None = None
    always: Matrix | None = None
    offset: Column | None = None
    trials: Column | None = None
    exposure: Column | None = None
    solver: Solver = field(default_factory=DampedNewton)
    platform: str | None = None
    refines = True

    def __post_init__(self) -> None:
        family = find_density(self.family)
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "link", find_link(self.link or family.default_link))
        _check_columns(self)
        family.check_response(self.response, self.trials)
        if not np.any(self._totals > 0):
            msg = "No row counts: all weights (or all trials) are zero."
            raise InvalidDataError(msg)

    @property
    def n_rows(self) -> int:
        return int(self.response.size)

    @cached_property
    def _offset(self) -> Column:
        offset = np.zeros(self.n_rows) if self.offset is None else np.asarray(self.offset, float)
        return offset if self.exposure is None else offset + np.log(self.exposure)

    @cached_property
    def _weights(self) -> Column:
        return np.ones(self.n_rows) if self.weights is None else np.asarray(self.weights, float)

    @cached_property
    def _trials(self) -> Column:
        return np.ones(self.n_rows) if self.trials is None else np.asarray(self.trials, float)

    @cached_property
    def _totals(self) -> Column:
        return self._weights * self._trials

    @property
    def n(self) -> float:
        """Number of observations, weights and trials counted."""
        return float(self._totals.sum())

    @cached_property
    def _always(self) -> Matrix:
        """Always-in columns, those that depend on others before them removed."""
        if self.always is None or self.always.shape[1] == 0:
            return np.zeros((self.n_rows, 0))
        design, _ = build_design(
            np.asarray(self.always, float),
            self.response,
            self._totals,
            self._offset,
            filler=0.0,
            merge=False,
        )
        kept = independent_columns(design.unit_gram(), DEPENDENCE_TOLERANCE, self.n_rows)
        return np.asarray(self.always, float)[:, kept[1:] - 1]

    @property
    def n_always(self) -> int:
        """Number of linearly independent always-in columns besides the intercept."""
        return int(self._always.shape[1])

    @cached_property
    def _live(self) -> _LiveRows:
        """What does not depend on columns, of the rows that count."""
        live = self._totals > 0
        every = bool(live.all())
        y, weights, trials, offset = (
            values if every else values[live]
            for values in (
                np.asarray(self.response, float),
                self._weights,
                self._trials,
                self._offset,
            )
        )
        return _LiveRows(None if every else live, y, weights, trials, offset)

    @cached_property
    def _null(self) -> GlmStart | None:
        """Where populations start whose equal rows are not merged."""
        population = self._prepare(np.zeros((self.n_rows, 0)), expand=False, merge=False)
        return population.problem.start if isinstance(population, GlmPopulation) else None

    def take(self, rows: IntArray) -> "GlmEngine | None":
        per_row = ("weights", "always", "offset", "trials", "exposure")
        taken = {name: v[rows] for name in per_row if (v := getattr(self, name)) is not None}
        if not np.any(self._totals[rows] > 0):
            return None
        return replace(self, response=self.response[rows], **taken)

    def prepare(self, columns: Matrix) -> AbstractGlmPopulation:
        return self._on_platform(self._prepare(columns, expand=True))

    @property
    def settling_limit(self) -> int:  # type: ignore[override]
        settles = (
            isinstance(self.family, CompiledFamily)
            and isinstance(self.link, Link)
            and self.link.code is not None
            and isinstance(self.solver, DampedNewton)
        )
        return GlmPopulation.expansion_limit if settles else 0

    def prepare_beside(self, columns: Matrix, n_settled: int) -> AbstractGlmPopulation:
        population = self._prepare(columns, expand=True)
        assert isinstance(population, GlmPopulation)
        return self._on_platform(replace(population, n_settled=n_settled))

    def _on_platform(self, population: AbstractGlmPopulation) -> AbstractGlmPopulation:
        if self.platform is None or not can_use_device(population):
            return population
        return DevicePopulation(population, self.platform)

    def _prepare(
        self, columns: Matrix, *, expand: bool, merge: bool = True
    ) -> AbstractGlmPopulation:
        family, link, live = self.family, self.link, self._live
        assert isinstance(family, Family)
        assert isinstance(link, Link)
        raw = np.asarray(columns, float)
        if self.n_always:
            raw = np.hstack([self._always, raw])
        if live.rows is not None:
            raw = raw[live.rows]
        compiled = isinstance(family, CompiledFamily) and link.code is not None
        inner = _inner_eta(family, link, live.mean, live.totals)
        merge = merge and compiled and isinstance(self.solver, DampedNewton)
        design, group_mean = build_design(
            raw, live.mean, live.totals, live.offset, filler=inner, merge=merge
        )
        sizes = np.arange(self.n_always, raw.shape[1] + 1)
        prior = glm_prior(self.prior, sizes, self.n, dispersed=family.estimates_dispersion)
        n_fixed = self.n_always + 1
        if isinstance(family, CompiledFamily) and compiled:
            whole = group_mean is live.mean
            return compile_population(
                design,
                family,
                link,
                self._constants if whole else live.constants(family, group_mean),
                prior=prior,
                n_fixed=n_fixed,
                solver=self.solver,
                inner_eta=inner,
                null=self._null if whole and merge else None,
                expand=expand,
            )
        return PythonPopulation(
            design,
            family,
            link,
            prior,
            n_fixed,
            live.response,
            live.weights,
            live.trials,
            inner,
            self.solver.max_iterations,
        )

    @cached_property
    def _constants(self) -> Constants:
        assert isinstance(self.family, CompiledFamily)
        return self._live.constants(self.family, self._live.mean)

    def log_evidence(self, columns: Matrix) -> tuple[float, Status]:
        population = self._prepare(columns, expand=False)
        values, statuses = population.log_evidence(np.ones((1, columns.shape[1]), dtype=np.bool_))
        return float(values[0]), Status(int(statuses[0]))

    def log_evidence_of(self, columns: Matrix, masks: Masks) -> tuple[FloatArray, StatusArray]:
        """Log evidence of several models: those with columns in common share a population."""
        values, statuses = np.empty(len(masks)), np.empty(len(masks), dtype=np.uint8)
        for rows, used in share_columns(masks):
            population = self.prepare(columns[:, used])
            values[rows], statuses[rows] = population.log_evidence(masks[np.ix_(rows, used)])
        return values, statuses

    def fit(self, columns: Matrix) -> ModelFit:
        """Fit one model: its mode (Firth's coefficients when separated) and inverse information.

        The covariance times the dispersion is the inverse information, for every family.
        """
        population = self._prepare(columns, expand=False)
        mask = np.ones(columns.shape[1], dtype=np.bool_)
        fit = self._fit_masks(population, mask[None])[0]
        if fit.status not in (Status.SEPARATED, Status.NOT_CONVERGED):
            return fit
        return replace(fit, status=self._certify(population, mask, fit.status))

    def fit_many(self, columns: Matrix, masks: Masks) -> list[ModelFit]:
        """Fit many models: those with columns in common share a population."""
        fits: dict[int, ModelFit] = {}
        for rows, used in share_columns(masks):
            population = self.prepare(columns[:, used])
            found = self._fit_masks(population, masks[np.ix_(rows, used)])
            fits.update(zip(rows, found, strict=True))
        return [fits[row] for row in range(len(masks))]

    def _fit_masks(self, population: AbstractGlmPopulation, masks: Masks) -> list[ModelFit]:
        values, statuses = population.log_evidence(masks)
        firth = not (isinstance(self.solver, PlainIRLS) and self.solver.coefficients == "mle")
        kept = masks.copy()
        for row in np.flatnonzero(statuses == Status.RANK_DEFICIENT):
            kept[row] = _independent_mask(population, masks[row])
        solutions = population.solve_many(kept, firth=firth)
        raw = self._in_raw_units(population, kept, masks, solutions)
        return [
            ModelFit(
                log_evidence=float(values[row]),
                log_likelihood=solution.log_likelihood,
                coefficients=raw[row][0],
                covariance=raw[row][1],
                dispersion=solution.dispersion,
                degrees_of_freedom=np.inf,
                status=Status(int(statuses[row])),
            )
            for row, solution in enumerate(solutions)
        ]

    def _in_raw_units(
        self,
        population: AbstractGlmPopulation,
        masks: Masks,
        wanted: Masks,
        solutions: Sequence[Solution],
    ) -> list[tuple[FloatArray, Matrix]]:
        """Coefficients of the raw columns, and their covariance without the dispersion.

        Those of columns that are wanted but not in the model are zero and certain. Models of the
        same size are worked out together.
        """
        design = population.design
        found: dict[int, tuple[FloatArray, Matrix]] = {}
        sizes, fixed = masks.sum(axis=1), np.arange(self.n_always + 1)
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            columns = fixed.size + np.nonzero(masks[rows])[1].reshape(rows.size, size)
            columns = np.hstack([np.broadcast_to(fixed, (rows.size, fixed.size)), columns])
            some = [solutions[row] for row in rows.tolist()]
            scaled = np.array([solution.coefficients for solution in some])
            covariance = np.array([solution.covariance for solution in some])
            dispersion = np.array([solution.dispersion for solution in some])
            coefficients = design.raw_coefficients(scaled, columns)
            with np.errstate(over="ignore"):
                covariance = design.raw_covariance(covariance, columns)
                covariance = np.nan_to_num(covariance / dispersion[:, None, None])
            found.update(
                zip(rows.tolist(), zip(coefficients, covariance, strict=True), strict=True)
            )
        for row in np.flatnonzero(np.any(masks != wanted, axis=1)).tolist():
            inside = np.concatenate([fixed >= 0, masks[row][wanted[row]]])
            found[row] = _widen(*found[row], inside)
        return [found[row] for row in range(len(masks))]

    def _certify(self, population: AbstractGlmPopulation, mask: Mask, status: Status) -> Status:
        """Prove separation by linear programming, where Newton's method only suspects it."""
        assert isinstance(self.family, Family)
        design = population.design
        small = design.n_live <= _LARGEST_PROGRAM
        if not self.family.has_trials or not small:
            return status
        kept = np.concatenate([np.ones(self.n_always + 1, dtype=np.bool_), mask])
        answer = classify_separation(
            design.flat[kept, : design.n_live].T, design.mean[: design.n_live]
        )
        if answer is None:
            return status
        if answer is not Separation.OVERLAP:
            return Status.SEPARATED
        return Status.OK if status is Status.SEPARATED else status

    @cached_property
    def _projection(self) -> "GlmEngine":
        """The engine of plain fits of the family's own model."""
        return replace(self, prior=Jeffreys(), always=None, solver=DampedNewton())

    def project(self, columns: Matrix) -> FloatArray:
        return self._projection._fit_independent(columns)[0]

    def _fit_independent(self, columns: Matrix) -> tuple[FloatArray, float, int]:
        """Fit the columns without those that depend on others before them.

        Returns the raw coefficients of all columns, the dispersion, and how many were fitted.
        """
        population = self._prepare(columns, expand=False)
        every = np.ones((1, columns.shape[1]), dtype=np.bool_)
        mask = _independent_mask(population, every[0])
        solution = population.solve(mask, firth=True)
        (coefficients, _), *_ = self._in_raw_units(population, mask[None], every, [solution])
        return coefficients, solution.dispersion, int(mask.sum())

    def likelihood(self) -> AbstractPredictorLikelihood:
        assert isinstance(self.family, Family)
        assert isinstance(self.link, Link)
        return predictor_likelihood(
            self.family,
            self.link,
            self.response,
            weights=self.weights,
            trials=self.trials,
            offset=self._offset,
        )

    def score_test(self, columns: Matrix) -> ScoreTest:
        r"""Prepare the score test: a candidate that explains a share :math:`r` of the score
        residual :math:`s` gains about :math:`\frac12 r\,s's/\bar w`, less its price in the prior.
        """
        family, link = self.family, self.link
        assert isinstance(family, Family)
        assert isinstance(link, Link)
        raw, dispersion, size = self._fit_independent(columns)
        eta = raw[0] + np.hstack([self._always, columns]) @ raw[1:]
        score, information = family.derivatives(
            link, self._offset + eta, self.response, dispersion, self._trials
        )
        finite = np.isfinite(score) & np.isfinite(information)
        residual = np.where(finite, self._weights * score, 0.0)
        weights = np.where(finite, self._weights * information, 0.0)
        strength = float(residual @ residual) / max(float(weights.mean()), 1e-12)
        price = self._price(self.n_always + size)

        def change(left: FloatArray, extra: int) -> FloatArray:
            return np.asarray(0.5 * strength * (1.0 - left) - price * extra)

        return ScoreTest(residual, change, strength, eta, weights)

    def _price(self, size: int) -> float:
        """About what one more column costs under the prior, beside `size` others."""
        prior = glm_prior(self.prior, np.array([size, size + 1]), self.n, dispersed=False)
        constant = prior.table.constant
        if prior.kind != TABLE or prior.table.needs_wald or not np.all(np.isfinite(constant)):
            return 0.5 * float(np.log(max(self.n, 1.0)))
        return float(constant[0] - constant[1])


def _inner_eta(family: Family, link: Link, mean: Column, total: Column) -> float:
    """A linear predictor inside the domain, near that of the mean response."""
    low, high = family.mean_interval
    centre = float(np.average(mean, weights=total))
    n = float(total.sum())
    if np.isfinite(low) and np.isfinite(high):
        centre = low + (high - low) * ((centre - low) / (high - low) * n + 0.5) / (n + 1.0)
    elif np.isfinite(low) and not centre > low:
        centre = low + 0.5 / n
    eta = float(link.eta(np.array([centre]))[0])
    return eta if np.isfinite(eta) else 0.0


def _independent_mask(population: AbstractGlmPopulation, mask: Mask) -> Mask:
    """The mask's columns in order, without those that depend on others before them."""
    fixed = len(population.design.flat) - mask.size
    wanted = np.concatenate([np.arange(fixed), fixed + np.flatnonzero(mask)])
    gram = population.unit_gram[np.ix_(wanted, wanted)]
    kept = wanted[independent_columns(gram, DEPENDENCE_TOLERANCE, population.design.n_live)]
    found = np.zeros(mask.size, dtype=np.bool_)
    found[kept[kept >= fixed] - fixed] = True
    return found


def _widen(coefficients: FloatArray, covariance: Matrix, places: Mask) -> tuple[FloatArray, Matrix]:
    """The same among further columns, whose coefficients are zero and certain."""
    wide, wide_covariance = np.zeros(places.size), np.zeros((places.size, places.size))
    wide[places] = coefficients
    wide_covariance[np.ix_(places, places)] = covariance
    return wide, wide_covariance


def _check_columns(engine: GlmEngine) -> None:
    n = engine.response.size
    for label in ("weights", "offset", "trials", "exposure"):
        values = getattr(engine, label)
        if values is None:
            continue
        if np.shape(values) != (n,):
            msg = f"{label} must have one value for each of the {n} rows; got {np.shape(values)}."
            raise InvalidDataError(msg)
        lowest = {"weights": 0.0, "trials": 0.0, "exposure": np.nextafter(0, 1)}.get(label, -np.inf)
        if not np.all(np.isfinite(values)) or np.any(np.asarray(values) < lowest):
            what = {"exposure": "positive", "offset": "finite"}.get(
                label, "finite and not negative"
            )
            msg = f"{label} must be {what} in every row."
            raise InvalidDataError(msg)
    if engine.exposure is not None and getattr(engine.link, "name", "") != "log":
        msg = "exposure needs the log link: it multiplies the mean. Use offset= with other links."
        raise InvalidSettingError(msg)
