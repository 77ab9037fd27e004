"""A population of columns with everything its GLM evaluations share."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm._kernels.glm import (
    NORMAL,
    NORMAL_LOG_GAMMA,
    TABLE,
    linearise_in,
    maximise,
    place,
    solve_many,
)
from dbrm._kernels.glm_dispersion import Constants
from dbrm._kernels.glm_pointers import (
    evaluation_of_many,
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
from dbrm._typing import Column, FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractExpandable, AbstractPrepared
from dbrm.evidence.design import Design
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.glm_expansion import RIDGE, Expansion, columns_to_expand
from dbrm.evidence.glm_prior import GlmPrior
from dbrm.evidence.links import Link
from dbrm.evidence.solvers import PlainIRLS, Solver
from dbrm.status import Status

__all__ = ["AbstractGlmPopulation", "GlmPopulation", "Solution", "compact", "compile_population"]

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


class AbstractGlmPopulation(AbstractPrepared):
    """What `GlmEngine` needs of a population beyond its log evidence."""

    design: Design
    enumeration_limit = 10

    @property
    @abstractmethod
    def unit_gram(self) -> Matrix:
        """Cross products of the columns scaled to unit length; zero for constant columns."""

    @abstractmethod
    def solve_many(self, masks: Masks, *, firth: bool) -> list[Solution]:
        """Maximise models; with ``firth``, coefficients are Firth's when separated."""

    def solve(self, mask: Mask, *, firth: bool) -> Solution:
        """Maximise one model."""
        return self.solve_many(mask[None], firth=firth)[0]


@final
@dataclass(frozen=True, eq=False)
class GlmPopulation(AbstractGlmPopulation, AbstractExpandable):
    """Standardised columns, common starting points and scratch space; compiled.

    ``call`` is the address of the evaluation of one mask over ``problem``, which ``opaque`` is as
    loops carry it. ``full`` is the expansion at the fit of all columns, if that was asked for.
    The first ``n_settled`` columns that are not fixed are in every model, and not in the masks.
    Not to be shared between threads: evaluations write into the scratch space.
    """

    design: Design
    problem: GlmProblem
    opaque: Any
    call: Any
    full: Expansion | None
    n_settled: int = 0
    expansion_limit = 18

    @property
    def context(self) -> GlmContext:
        return GlmContext(self.call, self.opaque)

    @property
    def size(self) -> int:
        return int(self.design.flat.shape[0]) - int(self.problem.rows.n_fixed) - self.n_settled

    @property
    def unit_gram(self) -> Matrix:
        return np.asarray(self.problem.unit_gram)

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        masks = np.pad(masks, ((0, 0), (self.n_settled, 0)), constant_values=True)
        # A copy is always contiguous and writable: one compiled version is enough.
        evaluate = evaluation_of_many()
        values, statuses = evaluate(self.context, np.array(masks, dtype=np.bool_, order="C"))
        return values, statuses

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        expansion = self.full if centre.all() else None
        if expansion is None:
            centre = np.pad(centre, (self.n_settled, 0), constant_values=True)
            expansion, _ = _expand(self.design, self.problem, self.opaque, centre)
        return expansion.approximate_all(max_size, self.n_settled)

    def solve_many(self, masks: Masks, *, firth: bool) -> list[Solution]:
        most = int(self.problem.rows.n_fixed) + int(masks.sum(axis=1).max(initial=0))
        coefficients = np.empty((len(masks), most))
        information = np.empty((len(masks), most, most))
        sizes, likelihoods, shapes = solve_many(
            self.opaque,
            np.array(masks, dtype=np.bool_, order="C"),
            _typical_precision(self.problem),
            firth,
            coefficients,
            information,
        )
        covariances: dict[int, Matrix] = {}
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            found = np.linalg.pinv(information[rows, :size, :size], hermitian=True)
            covariances.update(zip(rows.tolist(), found, strict=True))
        return [
            Solution(
                float(likelihoods[row]),
                1.0 / float(shapes[row]),
                coefficients[row, : sizes[row]],
                covariances[row],
            )
            for row in range(len(masks))
        ]


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
    null: GlmStart | None,
    expand: bool,
) -> GlmPopulation:
    """Fit the null and the full model; every evaluation starts from them.

    Parameters
    ----------
    null
        Where another population over the same rows starts: it has the same null model.
    expand
        Whether to fit the full model, which pays if many models are to be evaluated.
    """
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
    opaque = opaque_problem(problem)
    if isinstance(solver, PlainIRLS):
        _start_plainly(
            problem, opaque, design, link.eta(family.initial_mean(design.mean, design.total))
        )
        return GlmPopulation(design, problem, opaque, evaluation_pointer("plain"), None)
    kind = "wald" if prior.strict else "likelihood"
    kind = {NORMAL: "normal", NORMAL_LOG_GAMMA: "mixture"}.get(prior.kind, kind)
    _start_at_null(problem, opaque, design, inner_eta, null)
    full = _start_at_full(problem, opaque, design) if expand else None
    return GlmPopulation(design, problem, opaque, evaluation_pointer(kind), full)


def _empty_problem(design: Design, rows: GlmRows, prior: GlmPrior, solver: Solver) -> GlmProblem:
    n_columns, n_blocks, block = design.blocks.shape
    start = GlmStart(
        np.zeros(rows.n_fixed),
        np.zeros(n_blocks * block),
        np.array([-np.inf, rows.shape if np.isfinite(rows.shape) else 1.0, 0.0]),
        np.zeros((n_columns, n_columns)),
        np.zeros(n_columns),
        np.zeros((n_columns, n_columns)),
        np.zeros(n_columns),
    )
    return GlmProblem(
        rows,
        start,
        design.unit_gram(),
        DEPENDENCE_TOLERANCE,
        prior.kind,
        prior.strict,
        prior.dispersion,
        compact(prior.table.arguments),
        prior.units(design.scale),
        prior.shape,
        prior.rate,
        solver.max_iterations,
        fit_pointer(plain=isinstance(solver, PlainIRLS)),
        new_work(n_columns, n_blocks, block),
    )


def compact(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies of all arrays: contiguous and writable, so that one compiled version is enough."""
    return tuple(
        np.array(a, order="C") if isinstance(a, np.ndarray) else float(a) for a in arguments
    )


def _start_at_null(
    problem: GlmProblem, opaque: Any, design: Design, inner_eta: float, null: GlmStart | None
) -> None:
    """Fit intercept and always-in columns, from a constant mean unless the fit is known."""
    work, start = problem.work, problem.start
    if null is not None and null.eta.size == start.eta.size:
        start.beta[:], start.eta[:], start.numbers[:] = null.beta, null.eta, null.numbers
        start.numbers[2] = 0.0
        linearise_in(opaque, start.numbers[1], start.eta)
    else:
        nothing = np.zeros(len(design.flat) - problem.rows.n_fixed, dtype=np.bool_)
        k, _ = place(opaque, nothing, _typical_precision(problem))
        work.beta[:] = 0.0
        work.beta[0] = inner_eta - float(np.average(design.offset, weights=design.total))
        work.eta[:] = design.offset
        work.eta[: design.n_live] += work.beta[0]
        value = linearise_in(opaque, start.numbers[1], work.eta)
        if not value > -np.inf:
            value = _step_from(problem, opaque, design, inner_eta, k)
        _, _, shape, _ = maximise(opaque, k, value, start.numbers[1])
        start.beta[:], start.eta[:] = work.beta[:k], work.eta
        start.numbers[:2] = linearise_in(opaque, shape, work.eta), shape
    start.hessian[:] = design.gram(work.weight)
    start.gradient[:] = design.times(work.score)


def _step_from(problem: GlmProblem, opaque: Any, design: Design, constant: float, k: int) -> float:
    """One scoring step from a constant predictor, where adding it to the offset is impossible."""
    work, shape = problem.work, problem.start.numbers[1]
    linearise_in(opaque, shape, np.full(work.eta.size, constant))
    right = design.times(work.weight * (constant - design.offset) + work.score)[:k]
    work.beta[:k] = np.linalg.lstsq(design.gram(work.weight)[:k, :k], right, rcond=None)[0]
    work.eta[:] = design.offset + work.beta[:k] @ design.flat[:k]
    return float(linearise_in(opaque, shape, work.eta))


def _start_at_full(problem: GlmProblem, opaque: Any, design: Design) -> Expansion:
    """Fit all independent columns; a scoring step away from there is the second place to start."""
    start, size = problem.start, len(design.flat) - int(problem.rows.n_fixed)
    expansion, status = _expand(design, problem, opaque, np.ones(size, dtype=np.bool_))
    if status == Status.OK:
        start.second_hessian[:], start.second_right[:] = expansion.gram, expansion.cross
        start.numbers[2] = 1.0
    return expansion


def _expand(
    design: Design, problem: GlmProblem, opaque: Any, mask: Mask
) -> tuple[Expansion, Status]:
    """Expand at the fit of the independent columns of a mask, with a little ridge."""
    rows, work = problem.rows, problem.work
    n_fixed, n = int(rows.n_fixed), design.n_live
    wanted = np.concatenate([np.arange(n_fixed), n_fixed + np.flatnonzero(mask)])
    kept = columns_to_expand(problem.unit_gram, wanted, n)
    inside = np.zeros(mask.size, dtype=np.bool_)
    inside[kept[kept >= n_fixed] - n_fixed] = True
    precision = _typical_precision(problem)
    penalty = None
    if problem.prior != TABLE:
        k, _ = place(opaque, np.ones(mask.size, dtype=np.bool_), precision)
        penalty = np.array(work.penalty[n_fixed:k])
    k, _ = place(opaque, inside, precision)
    if problem.prior == TABLE:
        work.penalty[n_fixed:k] = RIDGE
    _, _, shape, status = maximise(opaque, k, np.nan, problem.start.numbers[1])
    linearise_in(opaque, shape, work.eta)
    right = work.weight * (work.eta - design.offset) + work.score
    rescaled = rows.family in (GAUSSIAN, GAMMA)
    expansion = Expansion(
        design.gram(work.weight),
        design.times(right),
        float(np.sum(right[:n] ** 2 / work.weight[:n])),
        n_fixed,
        problem.table,
        factor=float(shape) if rescaled else 1.0,
        profiled=float(rows.constants.n) if rescaled and np.isnan(rows.shape) else None,
        penalty=penalty,
    )
    return expansion, Status(int(status))


def _start_plainly(problem: GlmProblem, opaque: Any, design: Design, eta: Column) -> None:
    """Start from R's initial means."""
    work, start = problem.work, problem.start
    start.numbers[0] = linearise_in(opaque, start.numbers[1], eta)
    start.second_hessian[:] = design.gram(work.weight)
    start.second_right[:] = design.times(work.weight * (eta - design.offset) + work.score)


def _typical_precision(problem: GlmProblem) -> float:
    """Prior precision of the slopes, its prior mean where it is unknown."""
    if problem.prior == NORMAL_LOG_GAMMA:
        return float(problem.prior_shape / problem.prior_rate)
    return float(problem.prior_rate)
