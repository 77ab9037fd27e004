"""What a sum must be if the response is a factor times a function of it.

Every function is undone beside the factors that seem to stand apart, and beside those of which a
few simple inputs explain most.
"""

from copy import copy
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.inverses import IDENTITY, Function, invertible_functions
from dbrm.evolution.sweep.law_columns import LawColumns, law_covariates, law_rows
from dbrm.evolution.sweep.powers import separable_exponents
from dbrm.evolution.sweep.reductions import reduce_covariates
from dbrm.evolution.sweep.screening import invert, share_left
from dbrm.features import Feature, covariate

__all__ = ["LawScreen", "LawTarget", "law_targets", "plain_targets", "reduced_targets"]

# Rows on which factors and functions are screened, most inputs meanwhile, and fewest rows for each.
_SCREEN_ROWS, _SCREEN_INPUTS, _ROWS_PER_INPUT = 250, 24, 3
# Factors that stand apart of which sums are looked for beside.
_MOST_APART = 4
# Covariates that are few enough without groups of them.
_FEW_COVARIATES = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class LawTarget:
    r"""What a sum must be if the response is a factor times a function of it.

    Parameters
    ----------
    factor, factor_column
        The factor's parts, none for one; and its column, with the sign that the response has.
    bases
        What the sum is made of: covariates but for those of a factor that stands apart, or groups
        of them.
    target, weight
        :math:`g^{-1}(y / F)`, and :math:`|F g'|`, zero in rows that cannot be inverted.
    """

    factor: tuple[Feature, ...]
    factor_column: Column
    function: Function
    bases: tuple[Feature, ...]
    target: Column
    weight: Column


def law_targets(problem: Problem, kept: int, pause: Pause = never) -> list[LawTarget]:
    """Factors and functions under which few columns explain much, those of each function in turn.

    None unless laws are looked for at all. On the rows that `law_rows` gives.
    """
    screen = LawScreen.of(problem)
    if screen is None:
        return []
    with np.errstate(all="ignore"):
        return screen.targets(kept, pause)


def reduced_targets(problem: Problem) -> list[LawTarget]:
    """Targets of every function with the factor that stands apart, over the groups of the others.

    None unless there is a factor or a group, or few covariates, and laws are looked for at all.
    """
    screen = LawScreen.of(problem)
    if screen is None:
        return []
    with np.errstate(all="ignore"):
        return screen.reduced()


def plain_targets(problem: Problem) -> list[LawTarget]:
    """Targets of every function without a factor, over few covariates."""
    screen = LawScreen.of(problem)
    if screen is None:
        return []
    with np.errstate(all="ignore"):
        return screen.plain()


@final
class LawScreen:
    """Looks at all factors and functions of one response, without choosing what is inside them."""

    def __init__(self, problem: Problem, columns: LawColumns, response: Column) -> None:
        self.columns, self.response = columns, response
        self.variation = _variation(response)
        self.functions = [IDENTITY, *invertible_functions(problem.grammar.transforms)]
        self.unit = problem.complexity_price

    @classmethod
    def of(cls, problem: Problem) -> "LawScreen | None":
        """That of the response of a problem; `None` if laws are not looked for."""
        engine, table = problem.engine, problem.table
        if (
            not isinstance(engine, GaussianEngine)
            or engine.always is not None
            or engine.offset is not None
            or table.n_columns == 0
            or not np.ptp(engine.response) > 0
            or not invertible_functions(problem.grammar.transforms)
        ):
            return None
        rows = law_rows(problem)
        columns = LawColumns(problem, law_covariates(problem), rows)
        return cls(problem, columns, engine.response[rows])

    def with_response(self, response: Column) -> "LawScreen":
        """The same for another response on the same rows."""
        screen = copy(self)
        screen.response, screen.variation = response, _variation(response)
        return screen

    def targets(self, kept: int, pause: Pause) -> list[LawTarget]:
        """What sums must be under each function with its best factors, the most explained first.

        Before them those without a factor, and with one that stands apart.
        """
        products, separable = list(self.columns.short_products(2)), self.separable()[:_MOST_APART]
        apart = {p: set(self.columns.feature(*p).covariates) for p in separable}
        covariates = [covariate(name) for name in self.columns.names]
        found: list[tuple[bool, float, LawTarget]] = []
        for function in self.functions:
            if pause():
                break
            tried = dict.fromkeys((*separable, (), *self.screened(products, function, kept)))
            lefts = self._screening_left(list(tried), function)
            for positions, left in zip(tried, lefts.tolist(), strict=True):
                taken = apart.get(positions, set())
                bases = tuple(base for base in covariates if base.name not in taken)
                target = self._target(positions, bases, function)
                if target is not None:
                    later = positions != () and positions not in separable[:1]
                    found.append((later, left, target))
        return [target for _, _, target in sorted(found, key=lambda found: found[:2])]

    def reduced(self) -> list[LawTarget]:
        """Targets of every function over the groups of covariates."""
        found = self._reduced()
        targets = [] if found is None else [self._target(*found, g) for g in self.functions]
        return [target for target in targets if target is not None]

    def plain(self) -> list[LawTarget]:
        """Targets of every function over the covariates, if these are few."""
        bases = tuple(covariate(name) for name in self.columns.names)
        if len(bases) > _FEW_COVARIATES:
            return []
        targets = [self._target((), bases, function) for function in self.functions]
        return [target for target in targets if target is not None]

    def separable(self) -> list[tuple[int, ...]]:
        """Products of powers that the response may be a multiple of, by regressions of logarithms.

        All covariates that seem to be factors, and all of them but one.
        """
        vectors = self._apart()
        if vectors and np.count_nonzero(vectors[0]) > 1:
            each = np.flatnonzero(vectors[0])
            vectors += [np.where(np.arange(len(vectors[0])) == j, 0.0, vectors[0]) for j in each]
        found = [self.columns.position_of(vector, self.columns.signed) for vector in vectors]
        return [(position,) for position in dict.fromkeys(found) if position is not None]

    def screened(
        self, products: list[tuple[int, ...]], function: Function, kept: int
    ) -> list[tuple[int, ...]]:
        """The factors of which some inputs together explain most under this function."""
        # Factors of three only for plain sums; a plain sum without a factor is no law.
        most = 2 if function.transforms else 3
        products = [p for p in products if len(p) <= most and (p or function.transforms)]
        if not products:
            return []
        left = self._screening_left(products, function)
        cost = np.array([sum(self.columns.complexity[list(p)]) if p else 0 for p in products])
        gain = -0.5 * self.response.size * np.log(np.maximum(left, 1e-20)) - self.unit * cost
        order = np.argsort(-gain, kind="stable")[:kept]
        return [products[k] for k in order if np.isfinite(gain[k])]

    def _target(
        self, positions: tuple[int, ...], bases: tuple[Feature, ...], function: Function
    ) -> LawTarget | None:
        some, columns = list(positions), self.columns
        factor = np.prod(columns.values[:, some] * columns.scale[some], axis=1)
        targets, weights, signs, usable = invert(function, self.response, factor[:, None])
        if not (bases and usable[0] and all(self.columns.sound[p] for p in positions)):
            return None
        parts = tuple(self.columns.feature(p) for p in positions)
        column = signs[0] * factor
        return LawTarget(parts, column, function, bases, targets[:, 0], weights[:, 0])

    def _reduced(self) -> tuple[tuple[int, ...], tuple[Feature, ...]] | None:
        """A factor that stands apart, and groups of the other covariates on which the rest depends.

        ``None`` if there are neither, and not few covariates, or if nothing is left but the factor.
        """
        vectors = self._apart()
        apart = vectors[0] if vectors else np.zeros(len(self.columns.signed))
        taken = {base.text for base, k in zip(self.columns.signed, apart, strict=True) if k}
        free = [j for j, base in enumerate(self.columns.bases) if base.text not in taken]
        bases = [self.columns.bases[j] for j in free]
        taken |= {base.text for base in bases}
        others = [j for j, name in enumerate(self.columns.names) if name not in taken]
        values = self.columns.values[:, others] * self.columns.scale[others]
        response = self.response / np.exp(self.columns.signed_logs @ apart)
        found = reduce_covariates(self.columns.logs[:, free], values, response)
        if found is None and not vectors and len(self.columns.names) > _FEW_COVARIATES:
            return None
        groups: list[Feature | None] = list(bases)
        if found is not None:
            groups = [self.columns.powers.product(bases, row) for row in found.groups]
            factor = dict(zip([base.text for base in bases], found.factor.tolist(), strict=True))
            apart = apart + np.array([factor.get(base.text, 0.0) for base in self.columns.signed])
        position = self.columns.position_of(apart, self.columns.signed) if apart.any() else None
        spelt = [group for group in groups if group is not None]
        if len(spelt) < len(groups) or (apart.any() and position is None):
            return None
        plain = [self.columns.feature(j) for j in others]
        if found is not None and len(found.groups) == 1 and not plain:
            # A function of one group may be one of its inverse.
            inverse = self.columns.powers.product(bases, -found.groups[0])
            spelt += [] if inverse is None else [inverse]
        return () if position is None else (position,), (*spelt, *plain)

    def _apart(self) -> list[FloatArray]:
        """Exponents of the covariates that are never zero in a factor that stands apart."""
        if not self.columns.signed:
            return []
        logs = self.columns.signed_logs
        found = [separable_exponents(logs, self.response, weighted=on) for on in (True, False)]
        # Where both see another exponent it is none.
        doubtful = (found[0] != 0.0) & (found[1] != 0.0) & (found[0] != found[1])
        found = [np.where(doubtful, 0.0, exponents) for exponents in found]
        # Either may see a factor that the other does not.
        found.append(np.where(found[0] != 0.0, found[0], found[1]))
        return [exponents for exponents in found if exponents.any()]

    def _screening_left(self, products: list[tuple[int, ...]], function: Function) -> FloatArray:
        """Share of the response's variance that a sum of some inputs leaves beside each factor."""
        n_rows, columns = self.response.size, self.columns
        rows = np.linspace(0, n_rows - 1, min(n_rows, _SCREEN_ROWS)).astype(np.int64)
        atoms = [p for group in zip(*columns.atoms, strict=True) for p in group if columns.sound[p]]
        inputs = atoms[: min(_SCREEN_INPUTS, rows.size // _ROWS_PER_INPUT)]
        values = columns.values[rows]
        factors = np.column_stack([np.prod(values[:, list(p)], axis=1) for p in products])
        return share_left(function, self.response[rows], factors, values[:, inputs])


def _variation(response: Column) -> float:
    """Squares around the mean."""
    return max(float(np.sum((response - response.mean()) ** 2)), 1e-300)
