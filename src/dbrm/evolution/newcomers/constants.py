r"""Functions with fitted numbers inside, :math:`g(\theta F + \varphi)`, that explain residuals.

A grid of numbers is screened first; the best are fitted to all rows. Waves and exponentials are
then tried once more as factors of a product, and exponentials as arguments of another function:
``exp{-0.4*x}*sin{2.3*x}``, ``exp{-3.0*exp{-0.5*x}}``. Numbers are rounded to what costs nothing.
Sees columns and residuals, never responses or priors.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.evolution.function_shapes import Kind, Shape, shapes_of
from dbrm.evolution.information import effective_rows
from dbrm.evolution.newcomers.expressions import (
    Expression,
    fit,
    rounded,
    without_shift,
)
from dbrm.evolution.newcomers.grids import Scored, Source
from dbrm.evolution.newcomers.targets import Target
from dbrm.features import Feature, Transform

__all__ = ["propose_constants"]

# The best of these become factors of others; exponentials arguments, too.
_EXTENDED = (Kind.WAVE, Kind.SCALE)
_TWO_NUMBERS = (Kind.BOTH, Kind.WAVE)
# Functions of one argument that are fitted before those of others.
_ALIKE = 2
# Expressions tried for each that is wanted, and steps of a trial.
_TRIED, _FEW_STEPS = 2, 2
_MOST_PRODUCTS = 3
# Fewest effective rows, and least range of a bounded function as a share of the whole.
_LEAST_ROWS, _LEAST_RANGE = 3.0, 0.02
# Scales of standardised arguments: straight lines below, steps above.
_FLATTEST, _STEEPEST = 0.05, 50.0


def propose_constants(
    bases: Sequence[Feature],
    columns: Matrix,
    targets: Sequence[Target],
    transforms: Sequence[Transform],
    count: int,
    *,
    partners: Sequence[Feature] = (),
    partner_columns: Matrix | None = None,
) -> list[Feature]:
    """Propose functions of the bases with fitted numbers inside that explain residuals.

    Parameters
    ----------
    bases, columns
        The arguments, and their columns on the rows used for screening.
    targets
        The residuals that are to be explained, on the same rows.
    transforms
        The functions; of standardised ones, ``sin[z]``, the plain one is used.
    count
        Most features.
    partners, partner_columns
        Features that a function may be multiplied by, and their columns.

    Returns
    -------
        Different features, best first; those of several targets take turns.
    """
    shapes = shapes_of(tuple(transforms))
    sound = [j for j in range(len(bases)) if _usable(columns[:, j])]
    if not (shapes and sound and targets):
        return []
    sources = [Source.of(bases[j], columns[:, j], shapes) for j in sound]
    with_partners: list[tuple[Feature | None, Column | None]] = [(None, None)]
    for j, partner in enumerate(partners):
        assert partner_columns is not None
        if np.all(np.isfinite(partner_columns[:, j])):
            with_partners.append((partner, partner_columns[:, j]))
    most = max(2, -(-count // len(targets)))
    with np.errstate(all="ignore"):
        ranked = [_expressions(sources, shapes, t, with_partners, most) for t in targets]
    features: dict[Feature, None] = {}
    for turn in zip_longest(*ranked):
        for expression in turn:
            if expression is not None and len(features) < count:
                features.setdefault(expression.feature())
    return list(features)


def _usable(column: Column) -> bool:
    """Whether a column is finite and has more than two values."""
    low, high = np.min(column), np.max(column)
    two = np.all((column == low) | (column == high))
    return bool(np.isfinite(low) and np.isfinite(high) and not two)


def _expressions(
    sources: Sequence[Source],
    shapes: Sequence[Shape],
    target: Target,
    with_partners: Sequence[tuple[Feature | None, Column | None]],
    most: int,
) -> list[Expression]:
    """The best expressions for one residual, with short numbers, best first."""
    found: list[Scored] = []
    for source in sources:
        for partner, factor in with_partners:
            found += source.screen(Expression((), partner, factor), target)
    best = _fitted(found, target, most)
    outer = [shape for shape in shapes if shape.kind not in _TWO_NUMBERS]
    products: list[Scored] = []
    nested: list[Scored] = []
    for kind in _EXTENDED:
        start = _fitted([s for s in found if s.is_only(kind)], target, 1)
        for expression in [scored.expression for scored in start]:
            for source in sources:
                products += source.screen(expression, target)
            if kind is Kind.SCALE:
                argument = Source.of_chain(expression.chains[0], outer)
                nested += argument.screen(Expression(()), target)
    # Two functions must be worth more than the best one.
    least = best[0].score if best else -np.inf
    extended = _fitted(products, target, min(most, _MOST_PRODUCTS))
    extended += _fitted(nested, target, len(nested))
    best += [scored for scored in extended if scored.score > least]
    best.sort(key=lambda scored: -scored.score)
    return [_finished(scored, target) for scored in best[:most]]


def _fitted(found: list[Scored], target: Target, most: int) -> list[Scored]:
    """The best of the screened expressions, fitted to all rows, best first."""
    ranks: Counter[tuple[Feature, Feature | None]] = Counter()
    ordered: list[tuple[bool, Scored]] = []
    for scored in sorted(found, key=lambda scored: -scored.score):
        # Functions of one argument resemble each other: others come first.
        last = scored.expression.chains[-1]
        place = last.base, scored.expression.partner
        ordered.append((ranks[place] >= _ALIKE, scored))
        ranks[place] += 1
    ordered.sort(key=lambda pair: pair[0])
    # A grid is coarse: a few steps of each decide which are fitted to the end.
    tried = [
        Scored.of(*fit(scored.expression, target, _FEW_STEPS), target.n_rows)
        for _, scored in ordered[: _TRIED * most]
    ]
    tried.sort(key=lambda scored: -scored.score)
    fitted = []
    for scored in tried[:most]:
        expression, share = fit(scored.expression, target)
        if _is_sound(expression):
            fitted.append(Scored.of(expression, share, target.n_rows))
    return sorted(fitted, key=lambda scored: -scored.score)


def _is_sound(expression: Expression) -> bool:
    """Whether no function is used where it is nearly constant or straight, and many rows matter."""
    for chain in expression.chains:
        first = chain.layers[0]
        if first.shape.kind is Kind.BOTH and not _FLATTEST < abs(first.scale) < _STEEPEST:
            return False
        for layer, value in zip(chain.layers, chain.values()[1:], strict=True):
            extent = layer.shape.transform.extent
            if np.isfinite(extent) and not float(np.ptp(value)) > _LEAST_RANGE * extent:
                return False
    value = expression.value()
    return effective_rows(value, np.ones(value.size)) >= _LEAST_ROWS


def _finished(scored: Scored, target: Target) -> Expression:
    """In plain columns, without a shift that gains little, and with short numbers."""
    expression, share = scored.expression.of_plain_columns(), scored.share
    n_rows = target.n_rows
    for c, chain in enumerate(expression.chains):
        if chain.layers[0].shape.kind in _TWO_NUMBERS:
            simpler, left = without_shift(expression, target, c)
            # Half of what a shift costs in the score: it may yet gain.
            cheap = n_rows * (np.log1p(-left) - np.log1p(-share)) < np.log(n_rows)
            if cheap and left > 0.5 * share:
                expression, share = simpler, left
    return rounded(expression, target)
