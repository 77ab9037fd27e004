r"""Hinges and steps with knots where a residual wants them.

For one column and one residual, the share of the residual's squares that
:math:`\max(0, x - c)` or :math:`I(x > c)` explains is computed for every training value
:math:`c`, after one sort, in :math:`O(n \log n)`; so it is for products with another feature.
Sees columns and residuals, never responses or priors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import final

import numpy as np

from dbrm._kernels.knots import knot_shares
from dbrm._typing import Column, Matrix
from dbrm.evolution.newcomers.rounding import explained_share, shortest
from dbrm.features import Feature, Transform, modify, multiply, shortest_between

__all__ = ["propose_knots"]

# Fewest rows on either side of a knot; of few rows at most this share.
_LEAST_ROWS, _LEAST_SHARE = 5, 0.1
# Least share of a column's squares outside the model that it is to be added to.
_IN_SPAN = 1e-4
_UP, _DOWN = ("hinge", "step"), ("hinge_down", "step_down")


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Knot:
    """A hinge or step: where it is, and what it explains of a residual.

    `knot` and `beyond` are neighbouring values of the base, the latter on the side where the
    function is not zero.
    """

    share: float
    family: Transform
    base: int
    partner: int | None
    knot: float
    beyond: float


def propose_knots(
    bases: Sequence[Feature],
    columns: Matrix,
    residuals: Sequence[Column],
    families: Sequence[Transform],
    count: int,
    *,
    partners: Sequence[Feature] = (),
    partner_columns: Matrix | None = None,
    spans: Sequence[Matrix] = (),
) -> list[Feature]:
    """Propose hinges and steps of the bases, alone or times a partner, that explain residuals.

    Parameters
    ----------
    bases, columns
        What may have knots, and their columns on the rows used for screening.
    residuals
        Centred score residuals of models on the same rows.
    families
        The transforms with free knots: ``hinge``, ``hinge_down``, ``step``, ``step_down``.
    count
        Most features.
    partners, partner_columns
        Features that a hinge or step may be multiplied by, and their columns.
    spans
        For each residual centred orthonormal columns that span its model, so that only what the
        model lacks counts; without them the residual alone decides.

    Returns
    -------
        Different features, best first; those of several residuals take turns.
    """
    if not (len(bases) and len(residuals) and len(families)):
        return []
    search = _KnotSearch(columns, residuals, partner_columns, spans)
    found: list[list[_Knot]] = [[] for _ in residuals]
    for base in range(len(bases)):
        for k, knots in enumerate(search.best(base, families)):
            found[k] += knots
    ranked = [sorted(knots, key=lambda knot: -knot.share) for knots in found]
    features: dict[Feature, None] = {}
    for turn in zip_longest(*ranked):
        for k, knot in enumerate(turn):
            if knot is not None and len(features) < count:
                value = search.rounded(k, knot)
                hinged = modify(knot.family, bases[knot.base], value)
                made = hinged if knot.partner is None else multiply(hinged, partners[knot.partner])
                features.setdefault(made)
        if len(features) >= count:
            break
    return list(features)


@final
class _KnotSearch:
    """All knots of columns against the same residuals."""

    def __init__(
        self,
        columns: Matrix,
        residuals: Sequence[Column],
        partner_columns: Matrix | None,
        spans: Sequence[Matrix],
    ) -> None:
        n_rows = len(columns)
        self._columns = columns
        self._residuals = np.column_stack(list(residuals))
        self._spans = list(spans) or [np.empty((n_rows, 0)) for _ in residuals]
        self._starts = np.cumsum([0, *(span.shape[1] for span in self._spans)])
        self._span = np.ascontiguousarray(np.hstack(self._spans))
        # The first factor is one: a hinge without a partner.
        self._factors = np.ones((n_rows, 1))
        if partner_columns is not None:
            self._factors = np.hstack([self._factors, partner_columns])
        self._least = max(min(_LEAST_ROWS, int(_LEAST_SHARE * n_rows)), 1)

    def best(self, base: int, families: Sequence[Transform]) -> list[list[_Knot]]:
        """For each residual, the best knot of each family and partner."""
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
            for number, factor in enumerate(self._factors.T):
                alone = number == 0
                wanted = [known.get(name) for name in names]
                if alone and sign < 0 and "step" in known:
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
                            partner = None if alone else number - 1
                            knots.append(_Knot(share, family, base, partner, *place))
        return found

    def rounded(self, k: int, knot: _Knot) -> float:
        """The knot with few digits: for a step the rows stay, for a hinge the fit."""
        if knot.family.name.startswith("step"):
            return shortest_between(*sorted((knot.knot, knot.beyond)))
        column = self._columns[:, knot.base]
        factor = self._factors[:, 0 if knot.partner is None else knot.partner + 1]

        def share(value: float) -> float:
            hinge = factor * knot.family.apply(column, value)
            return explained_share(hinge, self._residuals[:, k], self._spans[k])

        return shortest(knot.knot, share, len(column))
