"""Tests of `dbrm.evolution.operators`: what is created, and within which limits."""

from collections import Counter

import numpy as np
import pytest

import dbrm
from dbrm.errors import InvalidSettingError
from dbrm.evolution.operators import Grammar, Operators, Parents, create, draw_operator
from dbrm.evolution.problem import Filtration
from dbrm.evolution.projection import OptimizeThenTransform
from dbrm.features import (
    Covariate,
    Modification,
    Product,
    Projection,
    covariate,
    modify,
    multiply,
    project,
    resolve_transforms,
)

# One false alarm per million runs.
ALARM = 1e-6
X, Z = dbrm.parse_feature("x"), dbrm.parse_feature("z")
SINE = dbrm.parse_feature("sin(x)")


def parents(**options):
    return Parents([X, SINE], np.array([0.05, 1.05]), [X, Z], **options)


def grammar(operators=None, transforms=("tanh", "sin"), **limits):
    chosen = Operators() if operators is None else operators
    limits = {"max_depth": 5, "max_complexity": 12, "max_projection": 4} | limits
    strategy = OptimizeThenTransform()
    return Grammar(
        resolve_transforms(list(transforms)), operators=chosen, projection=strategy, **limits
    )


def build(_, transform, children):
    return project(transform, children, np.arange(2.0, len(children) + 2), 1.0)


def many(rng, count, *arguments, **options):
    return [create(rng, parents(**options), *arguments) for _ in range(count)]


@pytest.mark.parametrize(
    ("only", "kind"),
    [
        ("mutation", Covariate),
        ("crossover", Product),
        ("modification", Modification),
        ("projection", Projection),
    ],
)
def test_each_operator_creates_its_kind(rng, only, kind):
    weights = {"mutation": 0.0, "crossover": 0.0, "modification": 0.0, "projection": 0.0}
    made = many(rng, 50, grammar(Operators(**weights | {only: 1.0})), build)
    assert {type(feature) for feature in made if feature is not None} == {kind}


def test_operators_are_drawn_with_their_weights(rng):
    """Four kinds can be told apart by type; chi-square with three degrees of freedom."""
    from scipy.stats import chi2

    wide = grammar(Operators(1, 2, 3, 4), max_depth=50, max_complexity=500, max_projection=2)
    made = Counter(type(feature) for feature in many(rng, 4000, wide, build))
    # A projection of two equal parents is impossible and comes back as None.
    made[Projection] += made.pop(type(None), 0)
    observed = np.array([made[k] for k in (Covariate, Product, Modification, Projection)])
    expected = 4000 * np.array([0.1, 0.2, 0.3, 0.4])
    assert chi2.sf(np.sum((observed - expected) ** 2 / expected), 3) > ALARM
    # Negative control: equal weights.
    assert chi2.sf(np.sum((observed - 1000.0) ** 2 / 1000.0), 3) < ALARM


@pytest.mark.parametrize("limits", [{"max_depth": 1}, {"max_complexity": 3}, {"max_depth": 0}])
def test_limits_are_respected(rng, limits):
    chosen = grammar(Operators(1, 1, 1, 1), **limits)
    made = [feature for feature in many(rng, 800, chosen, build) if feature is not None]
    assert made
    assert all(feature.depth <= chosen.max_depth for feature in made)
    assert all(feature.complexity <= chosen.max_complexity for feature in made)
    # The limits can be reached.
    reached = max(feature.depth for feature in made), max(feature.complexity for feature in made)
    assert reached[0] == chosen.max_depth or reached[1] == chosen.max_complexity


def test_a_projection_has_as_many_inputs_as_allowed(rng):
    inputs = [dbrm.parse_feature(f"x{j}") for j in range(8)]
    wide = Parents(inputs, np.ones(8), inputs)
    only = grammar(Operators(0, 0, 0, 1), max_projection=4, max_complexity=30)
    made = [create(rng, wide, only, build) for _ in range(300)]
    assert {len(feature.children) for feature in made} == {2, 3, 4}


def test_children_of_a_projection_are_different_and_in_canonical_order(rng):
    seen = []

    def remember(generator, transform, children):
        seen.append([child.canonical for child in children])
        return build(generator, transform, children)

    only = grammar(Operators(0, 0, 0, 1), transforms=("tanh",))
    for _ in range(200):
        create(rng, parents(), only, remember)
    assert ["x", "z"] in seen or ["sin(x)", "x", "z"] in seen
    assert all(names == sorted(set(names)) for names in seen)


def test_a_projection_that_cannot_be_built_makes_no_feature(rng):
    only = grammar(Operators(0, 0, 0, 1))
    made = [create(rng, parents(), only, lambda *_: None) for _ in range(20)]
    assert made == [None] * 20


def test_parents_are_drawn_by_weight_and_from_outside(rng):
    drawn = Counter(parents(outside=0.25).draw(rng) for _ in range(4000))
    expected = {X: 0.125 + 0.75 * 0.05 / 1.1, Z: 0.125, SINE: 0.75 * 1.05 / 1.1}
    for feature, share in expected.items():
        z = (drawn[feature] - 4000 * share) / np.sqrt(4000 * share * (1 - share))
        assert abs(z) < 5.3  # one in ten million, twice three times


def test_without_a_population_parents_are_covariates(rng):
    empty = Parents([], np.empty(0), [X, Z])
    assert {empty.draw(rng) for _ in range(50)} == {X, Z}


def test_candidates_come_from_the_pool_better_ones_more_often(rng):
    pool = tuple(dbrm.parse_feature(f"sin(y{j})") for j in range(20))
    drawn = Counter(parents(pool=pool).draw_candidate(rng) for _ in range(6000))
    counts = [drawn[feature] for feature in pool]
    # The last one was once never drawn.
    assert min(counts) > 0
    assert counts[0] > counts[4] > counts[19]
    # A quarter of the candidates are covariates; 1500 expected, five standard deviations are 170.
    assert abs(drawn[X] + drawn[Z] - 1500) < 170


def test_no_transforms_leave_mutation_and_crossover(rng):
    made = many(rng, 200, grammar(Operators(1, 1, 1, 1), transforms=()), build)
    assert {type(feature) for feature in made} == {Covariate, Product}


def test_where_nothing_can_be_created_nothing_is(rng):
    only_functions = grammar(Operators(0, 0, 1, 1), transforms=())
    assert create(rng, parents(), only_functions, build) is None
    assert create(rng, Parents([], np.empty(0), []), grammar(), build) is None


@pytest.mark.parametrize(
    "weights", [(0, 0, 0, 0), (-1, 1, 1, 1), (np.inf, 1, 1, 1), (np.nan, 1, 1, 1)]
)
def test_weights_that_cannot_be_drawn_from_are_refused(weights):
    with pytest.raises(InvalidSettingError, match="weights that are not negative"):
        Operators(*weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"floor": 0.0}, "0 < floor <= deletion < 1"),
        ({"deletion": 1.0}, "0 < floor <= deletion < 1"),
        ({"floor": 0.5, "deletion": 0.4}, "0 < floor <= deletion < 1"),
        ({"threshold": 1.5}, r"threshold in \[0, 1\]"),
    ],
)
def test_filtrations_that_break_theorem_1_are_refused(options, message):
    with pytest.raises(InvalidSettingError, match=message):
        Filtration(**options)


def test_a_straight_line_makes_no_projections(rng):
    """Of a weighted sum ``not`` makes another weighted sum, which a model has anyway."""
    only = Operators(mutation=0, crossover=0, modification=0, projection=1)
    assert draw_operator(rng, grammar(only, transforms=("not",))) is None
    mixed = grammar(only, transforms=("not", "tanh", "power[-1]", "step[q0.5]"))
    made = [create(rng, parents(), mixed, build) for _ in range(80)]
    names = {feature.transform.name for feature in made if feature is not None}
    assert names == {"tanh", "power[-1]", "step[q0.5]"}


def test_factors_and_arguments_may_be_negated(rng):
    """No population holds not(x) beside x, and still x*not(z) and tanh(not(x)) are made."""
    chosen = grammar(Operators(0, 1, 1, 0), transforms=("not", "tanh"))
    made = {str(create(rng, parents(), chosen, build)) for _ in range(400)}
    assert {"x*not(z)", "not(x)*not(z)", "tanh(not(x))", "x*z", "tanh(z)"} <= made


def test_a_function_with_a_free_knot_is_built_where_its_column_is_known(rng):
    knots = resolve_transforms("free-knots")
    chosen = grammar(Operators(0, 0, 1, 0), transforms=("tanh",), knots=knots)
    asked = []

    def draw_knot(_, transform, children):
        asked.append(transform)
        return modify(transform, children[0], 1.5)

    made = [create(rng, parents(), chosen, draw_knot) for _ in range(100)]
    assert set(asked) == set(knots)
    assert len(asked) == sum(feature.transform.free_knot for feature in made) < 100


def test_only_functions_with_free_knots_are_functions_enough(rng):
    only = Operators(mutation=0, crossover=0, modification=1, projection=0)
    assert draw_operator(rng, grammar(only, transforms=())) is None
    assert draw_operator(rng, grammar(only, transforms=(), knots=resolve_transforms("hinge"))) == 2


def test_a_law_may_be_longer_than_other_features():
    feature = multiply(*(covariate(f"x{j}") for j in range(1, 8)))
    limits = {"max_complexity": 5, "max_depth": 5}
    chosen = grammar(Operators(), law_complexity=7, **limits)
    assert chosen.admits_law(feature)
    assert not chosen.admits(feature)
    assert not chosen.admits_law(multiply(feature, feature))
    assert not grammar(Operators(), **limits).admits_law(feature)
