r"""Hinges and steps with knots where a residual wants them.

For one column and one residual, the share of the residual's squares that
:math:`\max(0, x - c)` or :math:`I(x > c)` explains is computed for every training value
:math:`c`, after one sort, in :math:`O(n \log n)`; so it is for products with another feature.
Sees columns and residuals, never responses or priors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import final

import numpy as np

from dbrm._kernels.knots import knot_shares
from dbrm._typing import Column, Matrix
from dbrm.evolution.newcomers.rounding import shortest
from dbrm.evolution.newcomers.targets import Target
from dbrm.features import Feature, Transform, modify, multiply, shortest_between

__all__ = ["propose_knots"]

# Fewest rows on either side of a knot; of few rows at most this share.
_LEAST_ROWS, _LEAST_SHARE = 5, 0.1
# Least share of a column's squares outside the model that it is to be added to.
_IN_SPAN = 1e-4
# Knots that a second one is tried with, how often the two are moved, and the least gain of that.
_PAIRED, _ROUNDS, _SMALL_GAIN = 4, 6, 1e-6
# Below one, so that the logarithm of what is left is finite.
_MOST = 1.0 - 1e-12
_UP, _DOWN = ("hinge", "step"), ("hinge_down", "step_down")


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Knot:
    """A hinge or step: where it is, and what it explains of a residual.

    `knot` and `beyond` are neighbouring values of the base, the latter on the side where the
    function is not zero. `search` and `residual` say where it was found.
    """

    share: float
    family: Transform
    base: int
    partner: int | None
    knot: float
    beyond: float
    search: "_KnotSearch"
    residual: int


def propose_knots(
    bases: Sequence[Feature],
    columns: Matrix,
    targets: Sequence[Target],
    families: Sequence[Transform],
    count: int,
    *,
    partners: Sequence[Feature] = (),
    partner_columns: Matrix | None = None,
) -> list[Feature]:
    """Propose hinges and steps of the bases, alone or times a partner, that explain residuals.

    Parameters
    ----------
    bases, columns
        What may have knots, and their columns on the rows used for screening.
    targets
        The residuals that are to be explained, on the same rows.
    families
        The transforms with free knots: ``hinge``, ``hinge_down``, ``step``, ``step_down``.
    count
        Most features.
    partners, partner_columns
        Features that a hinge or step may be multiplied by, and their columns; only those of other
        covariates are, as in multivariate adaptive regression splines.

    Returns
    -------
        Different features, best first; those of several targets take turns.
    """
    if not (len(bases) and len(targets) and len(families)):
        return []
    search = _KnotSearch(columns, targets, partner_columns)
    found: list[list[_Knot]] = [[] for _ in targets]
    for base in range(len(bases)):
        names = set(bases[base].covariates)
        others = [j for j, partner in enumerate(partners) if names.isdisjoint(partner.covariates)]
        for k, knots in enumerate(search.best(base, families, others)):
            found[k] += knots
    ranked = [_with_pairs(search, k, knots) for k, knots in enumerate(found)]
    features: dict[Feature, None] = {}
    for knot in [knot for turn in zip_longest(*ranked) for knot in turn if knot is not None]:
        if len(features) == count:
            break
        made = modify(knot.family, bases[knot.base], knot.search.rounded(knot))
        if knot.partner is not None:
            made = multiply(made, partners[knot.partner])
        features.setdefault(made)
    return list(features)


def _with_pairs(search: "_KnotSearch", k: int, knots: list[_Knot]) -> list[_Knot]:
    """All knots, best first; two of one column where together they explain much more.

    A tent needs two hinges, and neither of them is near the best single one.
    """
    best = sorted(knots, key=lambda knot: -knot.share)[:_PAIRED]
    pairs = [member for knot in best for member in search.pair(k, knot, best[0].share)]
    return sorted([*knots, *pairs], key=lambda knot: -knot.share)


@final
class _KnotSearch:
    """All knots of columns against the same residuals."""

    def __init__(
        self, columns: Matrix, targets: Sequence[Target], partner_columns: Matrix | None
    ) -> None:
        n_rows = len(columns)
        self._columns = columns
        self._targets = targets
        self._residuals = np.column_stack([target.residual for target in targets])
        self._starts = np.cumsum([0, *(target.span.shape[1] for target in targets)])
        self._span = np.hstack([target.span for target in targets])
        self._partners = partner_columns
        self._least = max(min(_LEAST_ROWS, int(_LEAST_SHARE * n_rows)), 1)

    def _factor(self, partner: int | None) -> Column:
        if partner is None or self._partners is None:
            return np.ones(len(self._columns))
        return self._partners[:, partner]

    def best(
        self, base: int, families: Sequence[Transform], partners: Sequence[int]
    ) -> list[list[_Knot]]:
        """For each residual, the best knot of each family, alone and with each partner."""
        found: list[list[_Knot]] = [[] for _ in range(self._residuals.shape[1])]
        column = self._columns[:, base]
        if not np.all(np.isfinite(column)):
            return found
        known = {family.name: family for family in families}
        for sign, names in ((1.0, _UP), (-1.0, _DOWN)):
            if not known.keys() & set(names):
                continue
            order = np.argsort(sign * column, kind="stable")
            values = sign * column[order]
            if values[0] == values[-1]:
                break
            residuals, span = self._residuals[order], self._span[order]
            for partner in (None, *partners):
                factor = self._targets[0].root * self._factor(partner)
                wanted = [known.get(name) for name in names]
                if partner is None and sign < 0 and "step" in known:
                    # The same column as a step up, from one.
                    wanted[1] = None
                if not any(wanted) or not np.all(np.isfinite(factor)):
                    continue
                shares = knot_shares(
                    values, factor[order], residuals, span, self._starts, self._least, _IN_SPAN
                )
                best = np.argmax(shares, axis=2)
                for family, kind in zip(wanted, range(2), strict=True):
                    for k, knots in enumerate(found):
                        i = int(best[kind, k])
                        share = float(shares[kind, k, i])
                        if family is not None and share > 0.0:
                            place = sign * float(values[i]), sign * float(values[i + 1])
                            knots.append(_Knot(share, family, base, partner, *place, self, k))
        return found

    def pair(self, k: int, knot: _Knot, alone: float) -> list[_Knot]:
        """Two knots, each the best beside the other, if they explain much more than one did.

        Both have the share that they explain together.
        """
        joint, pair, n_rows = knot.share, list[_Knot](), len(self._columns)
        for _ in range(_ROUNDS):
            beside, explained = self._beside(k, knot)
            partners = [] if knot.partner is None else [knot.partner]
            best = beside.best(knot.base, [knot.family], partners)[0]
            other = next((other for other in best if other.partner == knot.partner), None)
            if other is None:
                break
            together = min(explained + (1.0 - explained) * other.share, _MOST)
            if not together > joint + _SMALL_GAIN:
                break
            joint, pair, knot = together, [knot, other], other
        gain = 0.5 * n_rows * (np.log1p(-min(alone, joint)) - np.log1p(-joint)) if pair else 0.0
        return [replace(member, share=joint) for member in pair if gain > 2.0 * np.log(n_rows)]

    def _beside(self, k: int, knot: _Knot) -> tuple["_KnotSearch", float]:
        """The search beside a hinge or step, and what that explains of a residual."""
        hinge = knot.family.apply(self._columns[:, knot.base], knot.knot)
        target, explained = self._targets[k].beside(self._factor(knot.partner) * hinge)
        return _KnotSearch(self._columns, [target], self._partners), explained

    def rounded(self, knot: _Knot) -> float:
        """The knot with few digits: for a step the rows stay, for a hinge the fit."""
        if knot.family.name.startswith("step"):
            return shortest_between(*sorted((knot.knot, knot.beyond)))
        column = self._columns[:, knot.base]
        factor, target = self._factor(knot.partner), self._targets[knot.residual]

        def share(value: float) -> float:
            return target.share(factor * knot.family.apply(column, value))

        return shortest(knot.knot, share, len(column))
