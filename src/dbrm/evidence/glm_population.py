"""A population of columns with everything its GLM evaluations share."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm._kernels.glm import (
    choose,
    evaluate_glm,
    evaluate_many_glm,
    fit_chosen,
    fit_firth,
    fit_from,
    independent,
    set_penalty,
)
from dbrm._kernels.glm_dispersion import Constants, log_likelihood
from dbrm._kernels.glm_linalg import cross_products
from dbrm._kernels.glm_newton import GlmContext, GlmRows, GlmStart, linearise_at, new_work
from dbrm._kernels.glm_rows import expect
from dbrm._typing import FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractPrepared, Kernel
from dbrm.evidence.design import Design, independent_columns
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.glm_prior import GlmPrior
from dbrm.evidence.links import Link
from dbrm.evidence.solvers import PlainIRLS, Solver
from dbrm.status import Status

__all__ = ["AbstractGlmPopulation", "GlmPopulation", "Solution", "compile_population"]

# Non-canonical links under which the kernels use the observed information.
_CONCAVE = {"gamma": ("log",), "negative_binomial": ("log",)}
# A column keeps less than this share of its length beside the others: it is one of them.
DEPENDENCE_TOLERANCE = 1e-9


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Maximum of one model in standardised columns; covariance with penalty and dispersion."""

    log_likelihood: float
    dispersion: float
    coefficients: FloatArray
    covariance: Matrix
    eta: FloatArray
    status: Status


class AbstractGlmPopulation(AbstractPrepared):
    """What `GlmEngine` needs of a population beyond its log evidence."""

    design: Design
    enumeration_limit = 10

    @abstractmethod
    def solve(self, mask: Mask, *, firth: bool) -> Solution:
        """Maximise one model; with ``firth``, coefficients are Firth's when separated."""


@final
@dataclass(frozen=True, eq=False)
class GlmPopulation(AbstractGlmPopulation):
    """Standardised columns, common starting points and scratch space; compiled.

    Not to be shared between threads: evaluations write into the scratch space.
    """

    design: Design
    context: GlmContext

    @property
    def size(self) -> int:
        return int(self.design.flat.shape[0]) - int(self.context.rows.n_fixed)

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        # A copy is always contiguous and writable: one compiled version is enough.
        values, statuses = evaluate_many_glm(
            self.context, np.array(masks, dtype=np.bool_, order="C")
        )
        return values, statuses

    def kernel(self) -> Kernel:
        return Kernel(evaluate_glm, self.context)

    def solve(self, mask: Mask, *, firth: bool) -> Solution:
        # Evidence can stop near the maximum; coefficients want to be at it.
        context = self.context._replace(strict=True)
        rows, work = context.rows, context.work
        k = choose(context, mask)
        set_penalty(context, k, _precision(context))
        value, shape, status = fit_chosen(context, k)
        status = Status(int(status))
        likelihood = float(log_likelihood(rows.family, rows.constants, value, shape))
        if status is Status.SEPARATED and firth:
            fit_firth(context, k, shape)
        linearise_at(rows, shape, work.eta, work)
        expect(rows.family, rows.link, shape, rows.total, work.eta, work.weight)
        chosen = work.chosen[:k]
        information = self.design.gram(work.weight)[np.ix_(chosen, chosen)]
        if rows.family in (0, 3):
            information = information * shape
        information = information + np.diag(work.penalty[:k])
        return Solution(
            likelihood,
            1.0 / float(shape),
            work.beta[:k].copy(),
            np.asarray(np.linalg.pinv(information, hermitian=True), dtype=np.float64),
            work.eta[: self.design.n_live].copy(),
            status,
        )


def compile_population(
    design: Design,
    family: CompiledFamily,
    link: Link,
    constants: Constants,
    *,
    prior: GlmPrior,
    n_fixed: int,
    solver: Solver,
    inner_eta: float,
) -> GlmPopulation:
    """Fit the null and the full model; every evaluation starts from them."""
    given = family.given_dispersion
    rows = GlmRows(
        int(family.code),
        int(link.code if link.code is not None else -1),
        link.name == family.canonical_link or link.name in _CONCAVE.get(family.name, ()),
        np.nan if given is None else 1.0 / given,
        design.mean,
        design.total,
        design.offset,
        design.blocks,
        design.flat,
        n_fixed,
        constants,
    )
    context = _empty_context(design, rows, prior, solver)
    if isinstance(solver, PlainIRLS):
        return GlmPopulation(design, context._replace(start=_plain_start(context, design, link)))
    context = context._replace(start=_null_start(context, design, inner_eta))
    return GlmPopulation(design, context._replace(start=_full_start(context, design)))


def _empty_context(design: Design, rows: GlmRows, prior: GlmPrior, solver: Solver) -> GlmContext:
    n_columns, n_blocks, block = design.blocks.shape
    square = np.zeros((n_columns, n_columns))
    none = np.zeros((0, 0)), np.zeros(0)
    given = rows.shape if np.isfinite(rows.shape) else 1.0
    start = GlmStart(
        np.zeros(rows.n_fixed),
        np.zeros(n_blocks * block),
        -np.inf,
        given,
        square,
        np.zeros(n_columns),
        *none,
    )
    return GlmContext(
        rows,
        start,
        design.unit_gram(),
        DEPENDENCE_TOLERANCE,
        prior.kind,
        prior.strict,
        prior.dispersion,
        _compact(prior.table.arguments),
        design.scale,
        prior.shape,
        prior.rate,
        solver.max_iterations,
        isinstance(solver, PlainIRLS),
        new_work(n_columns, n_blocks, block),
    )


def _compact(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies of all arrays: contiguous and writable, so that one compiled version is enough."""
    return tuple(
        np.array(a, order="C") if isinstance(a, np.ndarray) else float(a) for a in arguments
    )


def _precision(context: GlmContext) -> float:
    """Prior precision of the slopes, its prior mean where it is unknown."""
    if context.prior == 2:
        return float(context.prior_shape / context.prior_rate)
    return float(context.prior_rate)


def _null_start(context: GlmContext, design: Design, inner_eta: float) -> GlmStart:
    """Fit intercept and always-in columns, from a constant mean."""
    rows, work, start = context.rows, context.work, context.start
    k = choose(context, np.zeros(len(design.flat) - rows.n_fixed, dtype=np.bool_))
    set_penalty(context, k, _precision(context))
    work.beta[:] = 0.0
    work.beta[0] = inner_eta - float(np.average(design.offset, weights=design.total))
    work.eta[:] = design.offset
    work.eta[: design.n_live] += work.beta[0]
    value = linearise_at(rows, start.shape, work.eta, work)
    if not value > -np.inf:
        value = _step_from(context, design, inner_eta, k)
    value, shape, _ = fit_from(context, k, value, start.shape)
    value = linearise_at(rows, shape, work.eta, work)
    return GlmStart(
        work.beta[:k].copy(),
        work.eta.copy(),
        value,
        shape,
        design.gram(work.weight),
        _times(design, work.score),
        start.second_hessian,
        start.second_right,
    )


def _step_from(context: GlmContext, design: Design, constant: float, k: int) -> float:
    """One scoring step from a constant predictor, where adding it to the offset is impossible."""
    rows, work = context.rows, context.work
    linearise_at(rows, context.start.shape, np.full(work.eta.size, constant), work)
    right = _times(design, work.weight * (constant - design.offset) + work.score)[:k]
    work.beta[:k] = np.linalg.lstsq(design.gram(work.weight)[:k, :k], right, rcond=None)[0]
    work.eta[:] = design.offset + work.beta[:k] @ design.flat[:k]
    return float(linearise_at(rows, context.start.shape, work.eta, work))


def _full_start(context: GlmContext, design: Design) -> GlmStart:
    """Fit all independent columns; without a second start where they have no maximum."""
    rows, work = context.rows, context.work
    start: GlmStart = context.start
    kept = independent_columns(context.unit_gram, 1e-6, max(design.n_live // 3, 1))
    mask = np.zeros(len(design.flat) - rows.n_fixed, dtype=np.bool_)
    mask[kept[kept >= rows.n_fixed] - rows.n_fixed] = True
    k = choose(context, mask)
    if mask.sum() < 2 or not independent(context, k):
        return start
    set_penalty(context, k, _precision(context))
    _, shape, status = fit_chosen(context, k)
    if status != Status.OK:
        return start
    linearise_at(rows, shape, work.eta, work)
    right = _times(design, work.weight * (work.eta - design.offset) + work.score)
    return GlmStart(*start[:6], design.gram(work.weight), right)


def _plain_start(context: GlmContext, design: Design, link: Link) -> GlmStart:
    """R's initial means: each response, moved a little into the interior."""
    rows, work = context.rows, context.work
    start: GlmStart = context.start
    n, y = design.total, design.mean
    mean = {
        1: (n * y + 0.5) / (n + 1.0),
        2: y + 0.1,
        4: np.where(y > 0, y, 1.0 / 6.0),
    }.get(rows.family, y)
    eta = link.eta(mean)
    value = linearise_at(rows, start.shape, eta, work)
    right = _times(design, work.weight * (eta - design.offset) + work.score)
    return GlmStart(*start[:2], value, *start[3:6], design.gram(work.weight), right)


def _times(design: Design, vector: FloatArray) -> FloatArray:
    """Inner products of all columns with a vector; compiled sums, as in `Design.gram`."""
    out = np.zeros(len(design.flat))
    cross_products(design.flat, np.arange(len(design.flat)), len(design.flat), vector, out)
    return out
