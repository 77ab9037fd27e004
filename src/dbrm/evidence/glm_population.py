"""A population of columns with everything its GLM evaluations share."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from dbrm._kernels.glm import (
    NORMAL,
    NORMAL_LOG_GAMMA,
    TABLE,
    evaluate_many_glm,
    expect_at,
    linearise_in,
    maximise,
    place,
    place_firth,
)
from dbrm._kernels.glm_dispersion import Constants
from dbrm._kernels.glm_pointers import (
    evaluation_pointer,
    fit_pointer,
    gram_pointer,
    linearise_pointer,
)
from dbrm._kernels.glm_problem import (
    GlmContext,
    GlmProblem,
    GlmRows,
    GlmStart,
    new_work,
    opaque_problem,
)
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN
from dbrm._typing import FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractExpandable, AbstractPrepared
from dbrm.evidence.design import Design, independent_columns
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.glm_expansion import RIDGE, approximate_all, times, typical_precision
from dbrm.evidence.glm_prior import GlmPrior
from dbrm.evidence.links import Link
from dbrm.evidence.solvers import PlainIRLS, Solver
from dbrm.status import Status

__all__ = ["AbstractGlmPopulation", "GlmPopulation", "Solution", "compile_population"]

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
class GlmPopulation(AbstractGlmPopulation, AbstractExpandable):
    """Standardised columns, common starting points and scratch space; compiled.

    ``call`` is the address of the evaluation of one mask over ``problem``.
    Not to be shared between threads: evaluations write into the scratch space.
    """

    design: Design
    problem: GlmProblem
    call: Any
    expansion_limit = 18

    @property
    def context(self) -> GlmContext:
        return GlmContext(self.call, self._opaque)

    @cached_property
    def _opaque(self) -> Any:
        """The problem as loops carry it; making one takes longer than evaluating a model."""
        return opaque_problem(self.problem)

    @property
    def size(self) -> int:
        return int(self.design.flat.shape[0]) - int(self.problem.rows.n_fixed)

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        # A copy is always contiguous and writable: one compiled version is enough.
        values, statuses = evaluate_many_glm(
            self.context, np.array(masks, dtype=np.bool_, order="C")
        )
        return values, statuses

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        return approximate_all(self.design, self.problem, self._opaque, centre, max_size)

    def solve(self, mask: Mask, *, firth: bool) -> Solution:
        problem, work, opaque = self.problem, self.problem.work, self._opaque
        k, _ = place(opaque, np.array(mask, dtype=np.bool_), typical_precision(problem))
        _, likelihood, shape, status = maximise(opaque, k, np.nan, problem.start.shape)
        if firth and status == Status.SEPARATED:
            place_firth(opaque, k, shape)
        expect_at(opaque, shape)
        chosen = work.chosen[:k]
        information = self.design.gram(work.weight)[np.ix_(chosen, chosen)]
        if problem.rows.family in (GAUSSIAN, GAMMA):
            information = information * shape
        information = information + np.diag(work.penalty[:k])
        return Solution(
            float(likelihood),
            1.0 / float(shape),
            work.beta[:k].copy(),
            np.asarray(np.linalg.pinv(information, hermitian=True), dtype=np.float64),
            work.eta[: self.design.n_live].copy(),
            Status(int(status)),
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
        link.name in family.observed_links,
        np.nan if given is None else 1.0 / given,
        design.mean,
        design.total,
        design.offset,
        design.blocks,
        design.flat,
        n_fixed,
        constants,
        linearise_pointer(),
        gram_pointer(),
    )
    problem = _empty_problem(design, rows, prior, solver)
    if isinstance(solver, PlainIRLS):
        kind = "plain"
        problem = problem._replace(start=_plain_start(problem, design, family, link))
    else:
        kind = "wald" if prior.strict else "likelihood"
        kind = {NORMAL: "normal", NORMAL_LOG_GAMMA: "mixture"}.get(prior.kind, kind)
        problem = problem._replace(start=_null_start(problem, design, inner_eta))
        problem = problem._replace(start=_full_start(problem, design))
    return GlmPopulation(design, problem, evaluation_pointer(kind))


def _empty_problem(design: Design, rows: GlmRows, prior: GlmPrior, solver: Solver) -> GlmProblem:
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
    return GlmProblem(
        rows,
        start,
        design.unit_gram(),
        DEPENDENCE_TOLERANCE,
        prior.kind,
        prior.strict,
        prior.dispersion,
        _compact(prior.table.arguments),
        prior.units(design.scale),
        prior.shape,
        prior.rate,
        solver.max_iterations,
        fit_pointer(plain=isinstance(solver, PlainIRLS)),
        new_work(n_columns, n_blocks, block),
    )


def _compact(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies of all arrays: contiguous and writable, so that one compiled version is enough."""
    return tuple(
        np.array(a, order="C") if isinstance(a, np.ndarray) else float(a) for a in arguments
    )


def _null_start(problem: GlmProblem, design: Design, inner_eta: float) -> GlmStart:
    """Fit intercept and always-in columns, from a constant mean."""
    rows, work, start, opaque = problem.rows, problem.work, problem.start, opaque_problem(problem)
    nothing = np.zeros(len(design.flat) - rows.n_fixed, dtype=np.bool_)
    k, _ = place(opaque, nothing, typical_precision(problem))
    work.beta[:] = 0.0
    work.beta[0] = inner_eta - float(np.average(design.offset, weights=design.total))
    work.eta[:] = design.offset
    work.eta[: design.n_live] += work.beta[0]
    value = linearise_in(opaque, start.shape, work.eta)
    if not value > -np.inf:
        value = _step_from(problem, design, inner_eta, k)
    value, _, shape, _ = maximise(opaque, k, value, start.shape)
    value = linearise_in(opaque, shape, work.eta)
    return GlmStart(
        work.beta[:k].copy(),
        work.eta.copy(),
        value,
        shape,
        design.gram(work.weight),
        times(design, work.score),
        start.second_hessian,
        start.second_right,
    )


def _step_from(problem: GlmProblem, design: Design, constant: float, k: int) -> float:
    """One scoring step from a constant predictor, where adding it to the offset is impossible."""
    work, opaque = problem.work, opaque_problem(problem)
    linearise_in(opaque, problem.start.shape, np.full(work.eta.size, constant))
    right = times(design, work.weight * (constant - design.offset) + work.score)[:k]
    work.beta[:k] = np.linalg.lstsq(design.gram(work.weight)[:k, :k], right, rcond=None)[0]
    work.eta[:] = design.offset + work.beta[:k] @ design.flat[:k]
    return float(linearise_in(opaque, problem.start.shape, work.eta))


def _full_start(problem: GlmProblem, design: Design) -> GlmStart:
    """Fit all independent columns, with a little ridge so that there is a maximum."""
    rows, work, opaque = problem.rows, problem.work, opaque_problem(problem)
    start: GlmStart = problem.start
    kept = independent_columns(problem.unit_gram, 1e-6, max(design.n_live // 3, 1))
    mask = np.zeros(len(design.flat) - rows.n_fixed, dtype=np.bool_)
    mask[kept[kept >= rows.n_fixed] - rows.n_fixed] = True
    k, independent = place(opaque, mask, typical_precision(problem))
    if mask.sum() < 2 or not independent:
        return start
    if problem.prior == TABLE:
        work.penalty[rows.n_fixed : k] = RIDGE
    _, _, shape, status = maximise(opaque, k, np.nan, start.shape)
    if status != Status.OK:
        return start
    linearise_in(opaque, shape, work.eta)
    right = times(design, work.weight * (work.eta - design.offset) + work.score)
    return GlmStart(*start[:6], design.gram(work.weight), right)


def _plain_start(
    problem: GlmProblem, design: Design, family: CompiledFamily, link: Link
) -> GlmStart:
    """Start from R's initial means."""
    work = problem.work
    start: GlmStart = problem.start
    eta = link.eta(family.initial_mean(design.mean, design.total))
    value = linearise_in(opaque_problem(problem), start.shape, eta)
    right = times(design, work.weight * (eta - design.offset) + work.score)
    return GlmStart(*start[:2], value, *start[3:6], design.gram(work.weight), right)
