"""A population of columns with everything its GLM evaluations share."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm._kernels.glm import (
    NORMAL,
    NORMAL_LOG_GAMMA,
    evaluate_many_glm,
    expect_at,
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
    boxed,
    new_work,
)
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN
from dbrm._typing import FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractPrepared
from dbrm.evidence.design import Design
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.glm_prior import GlmPrior
from dbrm.evidence.glm_starts import (
    full_start,
    null_start,
    plain_start,
    typical_precision,
)
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
class GlmPopulation(AbstractGlmPopulation):
    """Standardised columns, common starting points and scratch space; compiled.

    ``call`` is the address of the evaluation of one mask over ``problem``.
    Not to be shared between threads: evaluations write into the scratch space.
    """

    design: Design
    problem: GlmProblem
    call: Any

    @property
    def context(self) -> GlmContext:
        return GlmContext(self.call, boxed(self.problem))

    @property
    def size(self) -> int:
        return int(self.design.flat.shape[0]) - int(self.problem.rows.n_fixed)

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        # A copy is always contiguous and writable: one compiled version is enough.
        values, statuses = evaluate_many_glm(
            self.context, np.array(masks, dtype=np.bool_, order="C")
        )
        return values, statuses

    def solve(self, mask: Mask, *, firth: bool) -> Solution:
        problem, work, box = self.problem, self.problem.work, boxed(self.problem)
        k, _ = place(box, np.array(mask, dtype=np.bool_), typical_precision(problem))
        _, likelihood, shape, status = maximise(box, k, np.nan, problem.start.shape)
        if firth and status == Status.SEPARATED:
            place_firth(box, k, shape)
        expect_at(box, shape)
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
        problem = problem._replace(start=plain_start(problem, design, family, link))
    else:
        kind = "wald" if prior.strict else "likelihood"
        kind = {NORMAL: "normal", NORMAL_LOG_GAMMA: "mixture"}.get(prior.kind, kind)
        problem = problem._replace(start=null_start(problem, design, inner_eta))
        problem = problem._replace(start=full_start(problem, design))
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
