"""Tests of `dbrm.evolution.newcomers.knots`."""

from itertools import pairwise

import numpy as np
import pytest

from dbrm.evolution.newcomers.knots import propose_knots
from dbrm.evolution.newcomers.targets import Target
from dbrm.features import covariate, get_transform, parse_feature, resolve_transforms

of = Target.of

FREE = resolve_transforms("free-knots")
X, Z = covariate("x"), covariate("z")


def centred(column):
    return column - column.mean()


def columns_of(rng, n=400):
    return np.column_stack([rng.normal(size=n), rng.uniform(-2, 2, size=n)])


def share(feature, columns, residual):
    column = centred(feature.evaluate({"x": columns[:, 0], "z": columns[:, 1]}))
    return (column @ residual) ** 2 / ((column @ column) * (residual @ residual))


@pytest.mark.parametrize("truth", ["hinge(x, 0.7)", "hinge_down(x, 0.7)", "step(x, 0.7)"])
def test_the_knot_is_found(rng, truth):
    """The best proposal has the family and, to within its error, the knot of the truth.

    Others follow in the order of what they explain, up to the tenth of a nat that rounding costs.
    """
    columns = columns_of(rng)
    truth = parse_feature(truth)
    signal = truth.evaluate({"x": columns[:, 0]})
    residual = centred(signal + 0.1 * rng.normal(size=400))
    best, *others = propose_knots([X, Z], columns, [of(residual)], FREE, 5)
    assert best.transform is truth.transform
    assert best.knot == pytest.approx(0.7, abs=0.05)
    assert best.complexity == 3
    shares = [share(feature, columns, residual) for feature in (best, *others)]
    assert all(later < earlier + 5e-4 for earlier, later in pairwise(shares))
    assert len({best, *others}) == 5


def test_a_product_with_a_partner_is_found(rng):
    columns = columns_of(rng)
    table = {"x": columns[:, 0], "z": columns[:, 1]}
    signal = parse_feature("step(x, 0.3)*z").evaluate(table)
    residual = centred(signal + 0.2 * rng.normal(size=400))
    (best,) = propose_knots(
        [X, Z], columns, [of(residual)], FREE, 1, partners=[X, Z], partner_columns=columns
    )
    assert {factor.text.split("(")[0] for factor in best.children} <= {"step", "step_down", "z"}
    assert share(best, columns, residual) > 0.9


def test_only_what_the_model_lacks_counts(rng):
    """Beside x the best hinge is where the slope changes, not where it explains x again."""
    columns = columns_of(rng)
    signal = 3.0 * columns[:, 0] + np.maximum(columns[:, 0] - 0.5, 0.0)
    span = centred(columns[:, [0]]) / np.linalg.norm(centred(columns[:, 0]))
    residual = centred(signal + 0.05 * rng.normal(size=400))
    residual = residual - span @ (span.T @ residual)
    hinge = [get_transform("hinge")]
    (best,) = propose_knots([X], columns[:, :1], [Target.of(residual, span)], hinge, 1)
    (naive,) = propose_knots([X], columns[:, :1], [of(residual)], hinge, 1)
    assert best.knot == pytest.approx(0.5, abs=0.05)
    assert abs(naive.knot - 0.5) > 0.05


@pytest.mark.parametrize("family", ["hinge", "step"])
def test_two_knots_of_one_column_are_found_together(rng, family):
    """A tent and a box; the best single knot of a tent is at neither of its corners."""
    x = rng.uniform(0.0, 10.0, size=400)
    g = get_transform(family)
    signal = g(x, 3.0) - 2.0 * g(x, 6.5) if family == "hinge" else g(x, 3.0) - g(x, 6.5)
    residual = centred(signal + 0.2 * rng.normal(size=400))
    found = propose_knots([X], x[:, None], [of(residual)], [g], 3)
    assert sorted(feature.knot for feature in found[:2]) == pytest.approx([3.0, 6.5], abs=0.15)


def test_one_knot_is_not_doubled(rng):
    x = rng.uniform(0.0, 10.0, size=400)
    residual = centred(np.maximum(x - 4.0, 0.0) + rng.normal(size=400))
    assert len(propose_knots([X], x[:, None], [of(residual)], [get_transform("hinge")], 5)) == 1


def test_residuals_take_turns(rng):
    columns = columns_of(rng)
    strong = centred(np.maximum(columns[:, 0], 0.0))
    weak = centred(0.3 * np.maximum(columns[:, 1], 0.0) + rng.normal(size=400))
    first, second = propose_knots([X, Z], columns, [of(strong), of(weak)], FREE[:1], 2)
    assert first.covariates == ("x",)
    assert second.covariates == ("z",)


def test_a_step_has_few_digits_and_keeps_its_rows(rng):
    values = np.repeat([1.0, 2.0, 2.3456, 2.4567, 9.0], 20)
    residual = centred((values > 2.4) + 0.01 * rng.normal(size=100))
    (best,) = propose_knots([X], values[:, None], [of(residual)], [get_transform("step")], 1)
    assert str(best) == "step(x, 2.4)"
    (mirrored,) = propose_knots(
        [X], values[:, None], [of(residual)], [get_transform("step_down")], 1
    )
    assert str(mirrored) == "step_down(x, 2.4)"


def test_rounding_a_hinge_costs_nothing(rng):
    """The digits that are left lose less than .1 nats against the best training value."""
    columns = columns_of(rng)
    residual = centred(np.maximum(columns[:, 0] - 0.4321, 0.0) + 0.3 * rng.normal(size=400))
    (best,) = propose_knots([X], columns[:, :1], [of(residual)], [get_transform("hinge")], 1)
    assert len(str(best)) < len("hinge(x, 0.4321)")
    exact = [parse_feature(f"hinge(x, {c})") for c in columns[:, 0]]
    shares = [share(f, columns, residual) for f in exact if np.sum(columns[:, 0] > f.knot) >= 5]
    loss = 200 * np.log((1 - share(best, columns, residual)) / (1 - max(shares)))
    assert loss <= 0.1


def test_nothing_is_proposed_for_columns_without_knots(rng):
    residual = centred(rng.normal(size=30))
    flat, broken = np.zeros(30), np.full(30, np.inf)
    few = (np.arange(30) < 1).astype(float)
    columns = np.column_stack([flat, broken, few])
    assert propose_knots([X, Z, covariate("w")], columns, [of(residual)], FREE, 5) == []
    assert propose_knots([X], rng.normal(size=(30, 1)), [], FREE, 5) == []
    assert propose_knots([X], rng.normal(size=(30, 1)), [of(residual)], (), 5) == []


def test_noise_is_explained_no_better_than_by_chance(rng):
    """Negative control: the best of all knots explains little of pure noise.

    The maximum over correlated knots of n times the share stays below 25 with a probability of
    more than 1 - 1e-4 (Bonferroni over 2 columns, 400 knots, 4 families: 3200 * 6e-7 / 10,
    neighbouring knots being nearly one).
    """
    columns = columns_of(rng)
    residual = centred(rng.normal(size=400))
    best = propose_knots([X, Z], columns, [of(residual)], FREE, 1)[0]
    assert 400 * share(best, columns, residual) < 25
