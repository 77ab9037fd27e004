"""Every simple feature of a table, for exact comparisons."""

import numpy as np

from dbrm.evolution.sweep.levels import Maker, build_levels
from dbrm.features import fit_knots


def simple_features(problem, max_complexity):
    """Return every canonical feature of at most this complexity, with its training column.

    For exact enumeration: whatever work and memory that takes. Some columns may not be
    finite, and some features may share a column.
    """
    table, transforms = problem.table, problem.grammar.transforms
    levels = build_levels(table, table.names, np.arange(table.n_rows), transforms, max_complexity)
    maker = Maker(levels, table.names, transforms)
    columns = np.hstack([level.columns for level in levels])
    features = [maker.feature(position) for position in range(columns.shape[1])]
    return [fit_knots(feature, table) for feature in features], columns
