r"""Dimensionless groups: products of powers of covariates that are pure numbers.

A law between quantities is one between their dimensionless groups (Buckingham's theorem). With
the exponents :math:`d_{bj}` of base dimension :math:`b` in covariate :math:`j`, a product
:math:`\prod_j x_j^{k_j}` is a pure number if :math:`\sum_j d_{bj} k_j = 0` for every :math:`b`.
The groups with small whole exponents are proposed as features, alone and inside functions, and as
inputs of sums inside functions. Like all of the sweep they only decide where chains look first.
"""

from itertools import product

import numpy as np

from dbrm._typing import FloatArray
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.units import Units
from dbrm.features import ColumnCache, Feature, covariate, evaluate, modify

__all__ = ["group_exponents", "sweep_groups"]

# Largest exponent, covariates of a group at most, covariates looked at, and groups.
_LARGEST, _MOST_FACTORS, _MOST_COVARIATES, _MOST_GROUPS = 2, 5, 8, 24
# Features proposed.
_TAKE = 24


def group_exponents(units: Units, names: tuple[str, ...]) -> list[FloatArray]:
    """Exponents of the dimensionless groups of these covariates, the shortest ones first.

    Of a group and its inverse both; of a group and its square the group alone.
    """
    names = names[:_MOST_COVARIATES]
    dimensions = [dict(units.dimensions.get(name, ())) for name in names]
    bases = sorted({base for powers in dimensions for base in powers})
    if not bases:
        return []
    powers = np.array([[float(of_one.get(base, 0)) for of_one in dimensions] for base in bases])
    choices = range(-_LARGEST, _LARGEST + 1)
    vectors = np.array(list(product(choices, repeat=len(names))), dtype=np.float64)
    count = np.count_nonzero(vectors, axis=1)
    pure = np.all(np.abs(vectors @ powers.T) < 1e-9, axis=1)
    # A covariate that is a pure number itself makes no group.
    of_dimension = np.abs(powers).sum(axis=0) > 0.0
    needed = np.count_nonzero(vectors[:, of_dimension], axis=1) == count
    primitive = np.gcd.reduce(np.abs(vectors).astype(np.int64), axis=1) == 1
    found = vectors[pure & needed & primitive & (count >= 2) & (count <= _MOST_FACTORS)]
    order = np.argsort(np.abs(found).sum(axis=1), kind="stable")[:_MOST_GROUPS]
    return list(found[order])


def sweep_groups(problem: Problem) -> list[Feature]:
    """Groups and functions of them, those most correlated with the response first.

    None unless units are given.
    """
    grammar = problem.grammar
    if grammar.units is None:
        return []
    names, powers = problem.table.names, Powers(grammar.transforms)
    bases = [covariate(name) for name in names[:_MOST_COVARIATES]]
    found = [powers.product(bases, k) for k in group_exponents(grammar.units, names)]
    groups = [group for group in found if group is not None]
    plain = [g for g in grammar.transforms if g.base is None]
    functions = [modify(g, group) for group in groups for g in plain]
    admitted = [f for f in dict.fromkeys([*groups, *functions]) if grammar.admits_law(f)]
    if not admitted:
        return []
    with np.errstate(all="ignore"):
        columns, _ = evaluate(admitted, problem.table, ColumnCache())
    sound = np.asarray(np.isfinite(columns).all(axis=0))
    strength = problem.strength_of(np.where(sound, columns, 0.0))
    order = np.argsort(-strength, kind="stable")[:_TAKE]
    return [admitted[j] for j in order if sound[j]]
