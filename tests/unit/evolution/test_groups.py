"""Tests of `dbrm.evolution.sweep.groups`: dimensionless products of powers."""

from dataclasses import replace

import numpy as np

from dbrm.evolution.sweep.groups import group_exponents, sweep_groups
from dbrm.evolution.sweep.projections import sweep_projections
from dbrm.evolution.units import Units
from dbrm.features import evaluate

LAWS = ["sin", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"]
# Density, speed, length and viscosity: the Reynolds number is what is pure.
FLOW = {"rho": "kg/m**3", "v": "m/s", "d": "m", "mu": "Pa*s"}


def test_the_reynolds_number_is_found():
    names = tuple(FLOW)
    found = group_exponents(Units.parse(FLOW, names), names)
    assert [k.tolist() for k in found] == [[-1.0, -1.0, -1.0, 1.0], [1.0, 1.0, 1.0, -1.0]]


def test_groups_are_pure_short_and_no_powers_of_each_other():
    units = {"t": "s", "s": "s", "m": "kg", "l": "m", "g": "m/s**2", "n": ""}
    names = tuple(units)
    dimensions = Units.parse(units, names)
    found = group_exponents(dimensions, names)
    texts = {tuple(k) for k in found}
    assert (1.0, -1.0, 0.0, 0.0, 0.0, 0.0) in texts
    assert (2.0, 0.0, 0.0, -1.0, 1.0, 0.0) in texts
    # Masses have no partner, pure numbers need none, squares of a group are left out.
    assert all(k[2] == 0.0 and k[5] == 0.0 for k in texts)
    assert (2.0, -2.0, 0.0, 0.0, 0.0, 0.0) not in texts
    lengths = [np.abs(k).sum() for k in found]
    assert lengths == sorted(lengths)


def test_without_dimensions_there_are_no_groups(pose, rng):
    assert group_exponents(Units.parse({"a": ""}, ("a", "b")), ("a", "b")) == []
    assert sweep_groups(pose(rng.uniform(1, 2, (20, 2)), rng.normal(size=20))) == []


def test_functions_of_the_group_that_matters_come_first(pose, rng):
    x = rng.uniform(1, 3, (80, 4))
    reynolds = x[:, 0] * x[:, 1] * x[:, 2] / x[:, 3]
    problem = pose(x, np.log(reynolds), names=tuple(FLOW), transforms=LAWS)
    units = Units.parse(FLOW, tuple(FLOW))
    problem = replace(problem, grammar=replace(problem.grammar, units=units))
    first = sweep_groups(problem)[0]
    assert first.text.startswith("log_abs(")
    assert set(first.covariates) == set(FLOW)


def test_a_group_is_an_input_of_sums_inside_functions(pose, rng):
    """A drag that levels off with the Reynolds number."""
    x = rng.uniform(1, 3, (150, 4))
    reynolds = x[:, 0] * x[:, 1] * x[:, 2] / x[:, 3]
    response = x[:, 0] * x[:, 1] ** 2 / (3.0 + reynolds)
    problem = pose(x, response, names=tuple(FLOW), transforms=LAWS, penalty=3.0)
    units = Units.parse(FLOW, tuple(FLOW))
    problem = replace(problem, grammar=replace(problem.grammar, units=units))
    law = sweep_projections(problem)[0]
    column = evaluate([law], problem.table)[0][:, 0]
    assert np.corrcoef(column, response)[0, 1] ** 2 > 1.0 - 1e-12
