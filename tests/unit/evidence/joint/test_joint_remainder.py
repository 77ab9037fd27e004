"""Tests of `dbrm.evidence.joint.remainder`: two classes, other orders, dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from dbrm.evidence import GlmEngine, Jeffreys, Observations, build_engine, find_family
from dbrm.evidence.coefficient_priors import Normal
from dbrm.evidence.glm_remainder import GlmRemainder
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.joint.remainder import JointRemainder

RATIO = 0.7
UNIT = Jeffreys(constant="unit_information")


def classes_engine(y, prior=UNIT, family="multinomial"):
    return build_engine(Observations(y), prior, family=family)


def units(columns):
    return columns.std(axis=0) * np.sqrt(columns.shape[1])


@pytest.fixture
def rows(rng):
    """Columns of the remainder, a column of a model, and three classes."""
    columns = rng.normal(size=(90, 4)) * [1, 2, 3, 4] + 10.0
    eta = np.column_stack([np.zeros(90), columns - 10.0])[:, :3]
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1).astype(float)
    return columns, columns[:, :1] ** 2, y


def test_two_classes_are_a_logistic_model(rng):
    """Of two classes with effects of variance one the difference has variance two."""
    columns = rng.normal(size=(80, 3))
    y = (rng.uniform(size=80) < expit(columns @ [1.0, 0.5, 0.0])).astype(float)
    own = columns[:, :1] ** 2
    joint = JointRemainder.of(classes_engine(y), columns, units(columns))
    glm = GlmRemainder.of(GlmEngine(y, UNIT), columns, units(columns))
    found, wanted = joint.find_mode(own, RATIO), glm.find_mode(own, 2.0 * RATIO)
    # The other one's steps end a little earlier.
    assert found.log_evidence == pytest.approx(wanted.log_evidence, abs=2e-5)
    np.testing.assert_allclose(found.wald, wanted.wald, rtol=1e-4)
    fit, other = joint.fit(own, RATIO), glm.fit(own, 2.0 * RATIO)
    np.testing.assert_allclose(fit.coefficients[:2], other.fit.coefficients, rtol=1e-4)
    np.testing.assert_allclose(fit.coefficients[2:], other.effects, rtol=1e-4)


def test_the_evidence_without_a_remainder_is_that_of_a_logistic_model(rng):
    columns = rng.normal(size=(80, 2))
    y = (rng.uniform(size=80) < expit(columns @ [1.0, 0.5])).astype(float)
    found = JointRemainder.nothing(classes_engine(y)).wide_log_evidence(columns)
    wanted = GlmRemainder.nothing(GlmEngine(y, UNIT)).wide_log_evidence(columns)
    assert found == pytest.approx(wanted, abs=2e-5)


def test_which_class_is_the_first_does_not_matter(rows):
    columns, own, y = rows
    family = find_family("multinomial")
    chances, values = [], []
    for order in ([0, 1, 2], [2, 0, 1]):
        remainder = JointRemainder.of(
            classes_engine(np.array(order)[y.astype(int)].astype(float)), columns, units(columns)
        )
        fit = remainder.fit(own, RATIO)
        values.append(fit.log_evidence)
        design = np.hstack([own, (columns - remainder.means) / remainder.units])
        chances.append(family.probabilities(fit.joint, design, np.zeros(90))[:, order])
    assert values[0] == pytest.approx(values[1], abs=1e-8)
    np.testing.assert_allclose(chances[0], chances[1], atol=1e-7)


def test_evidence_is_that_of_dense_matrices(rows):
    """Likelihood, prior and curvature at the mode, written out; derivatives by differences."""
    columns, _, y = rows
    engine = classes_engine(y)
    remainder = JointRemainder.of(engine, columns, units(columns))
    nothing = np.empty((90, 0))
    mode = remainder.find_mode(nothing, RATIO)
    z = (columns - columns.mean(axis=0)) / units(columns)
    # Covariance of differences to the first of three independent effects.
    prior = RATIO * np.kron(np.eye(4), np.eye(2) + 1.0)
    intercepts = mode.parameters[:2]

    def log_posterior(b):
        eta = np.column_stack([np.zeros(90), intercepts + z @ b.reshape(4, 2)])
        value = log_softmax(eta, axis=1)[np.arange(90), y.astype(int)].sum()
        return value - 0.5 * b @ np.linalg.solve(prior, b)

    effects = np.sqrt(RATIO) * mode.parameters[2:]
    step, size = 1e-4, effects.size
    moves = step * np.eye(size)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            ends = [
                log_posterior(effects + s * moves[i] + t * moves[j]) * s * t
                for s in (-1, 1)
                for t in (-1, 1)
            ]
            hessian[i, j] = -sum(ends) / (4 * step**2)
    slopes = [log_posterior(effects + m) - log_posterior(effects - m) for m in moves]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-9)
    curvature = np.linalg.slogdet(hessian)[1] + np.linalg.slogdet(prior)[1]
    wanted = log_posterior(effects) - 0.5 * curvature
    plain = engine.fit(nothing)
    constant = plain.log_evidence - plain.log_likelihood
    assert mode.log_evidence == pytest.approx(wanted + constant, abs=1e-4)


def test_other_columns_change_the_spelling_only(rows):
    """Effects of a model's own column and of the remainder's are one coefficient."""
    columns, _, y = rows
    engine = classes_engine(y)
    remainder = JointRemainder.of(engine, columns, units(columns))
    family, offset = find_family("multinomial"), np.zeros(90)
    apart = remainder.fit(columns[:, 1:2], RATIO).joint
    change = np.zeros((5, 5))
    change[2, 0] = 1.0
    change[0, 1:] = -remainder.means / remainder.units
    change[np.arange(1, 5), np.arange(1, 5)] += 1.0 / remainder.units
    spread = np.linalg.inv(remainder.find_mode(columns[:, 1:2], RATIO).precision)
    apart = JointFit(apart.ancillary, apart.coefficients, spread)
    design = np.hstack([columns[:, 1:2], (columns - remainder.means) / remainder.units])
    np.testing.assert_allclose(
        family.mean_probabilities(apart.transformed(change, engine.joint.shift), columns, offset),
        family.mean_probabilities(apart, design, offset),
        atol=1e-9,
    )


@pytest.mark.parametrize("family", ["multinomial", "ordinal"])
def test_the_quadratic_has_the_effects_of_the_mode(rows, family):
    """Its gradient vanishes there, in directions that are independent before the data."""
    columns, own, y = rows
    remainder = JointRemainder.of(classes_engine(y, family=family), columns, units(columns))
    scale = np.array([0.5, 1.0, 2.0, 0.1])
    mode = remainder.find_mode(own, RATIO)
    parts = remainder.quadratic(mode, scale).parts
    found = remainder.effects(mode)
    turn = remainder._independent(mode)
    q = remainder.engine.joint.exchangeable_precision
    np.testing.assert_allclose(turn.T @ q @ turn, np.eye(len(q)), atol=1e-12)
    for part, effects in zip(parts, np.linalg.solve(turn, found.T), strict=True):
        score = part.products * scale - (part.gram * np.outer(scale, scale)) @ effects
        np.testing.assert_allclose(score, effects, atol=1e-7)


def test_the_quadratic_of_balanced_classes_is_that_of_all_effects(rng):
    """Where all classes are as probable in every row nothing is left out."""
    y = np.repeat([0.0, 1.0, 2.0], 30)
    columns = rng.normal(size=(90, 4))
    remainder = JointRemainder.of(classes_engine(y), columns, units(columns))
    tiny = 1e-8
    mode = remainder.find_mode(np.empty((90, 0)), tiny)
    parts = remainder.quadratic(mode, np.sqrt(tiny) * np.ones(4)).parts
    z = (columns - columns.mean(axis=0)) / remainder.units
    # Of three independent effects the contrasts have a variance of one, and weights of a third.
    for part in parts:
        np.testing.assert_allclose(part.gram, z.T @ z / 3, rtol=1e-4, atol=1e-6)
    explained = sum(float(part.products @ part.products) for part in parts)
    score = z.T @ (np.eye(3)[y.astype(int)] - 1 / 3)
    assert explained == pytest.approx(float(np.sum(score**2)), rel=1e-4)


def test_more_columns_than_rows_are_the_same_model(rng):
    """Evidence and predictors of wide columns, from those without a rotation."""
    columns = rng.normal(size=(30, 40))
    y = (rng.gumbel(size=(30, 3)) + columns[:, :3]).argmax(axis=1).astype(float)
    y[:3] = [0, 1, 2]
    remainder = JointRemainder.of(classes_engine(y), columns, units(columns))
    assert len(remainder.block) < 30
    plain = replace(remainder, block=remainder.rotation @ remainder.block, rotation=np.eye(40))
    nothing = np.empty((30, 0))
    modes = [one.find_mode(nothing, RATIO) for one in (remainder, plain)]
    assert modes[0].log_evidence == pytest.approx(modes[1].log_evidence, abs=1e-7)
    np.testing.assert_allclose(remainder.effects(modes[0]), plain.effects(modes[1]), atol=1e-7)
    scale = np.linspace(0.5, 1.5, 40)
    place = np.linspace(-1.0, 1.0, 40)
    wanted = plain.quadratic(modes[1], scale).log_evidence(place)
    for found, other in zip(
        remainder.quadratic(modes[0], scale).log_evidence(place), wanted, strict=True
    ):
        np.testing.assert_allclose(found, other, atol=1e-6)
    again = remainder.find_mode(
        nothing, RATIO, remainder.start(modes[0], remainder.effects(modes[0]))
    )
    np.testing.assert_allclose(again.parameters, modes[0].parameters, atol=1e-8)


def test_columns_that_depend_have_no_mode_but_those_that_separate_have(rows):
    columns, own, y = rows
    remainder = JointRemainder.of(classes_engine(y), columns, units(columns))
    assert remainder.find_mode(own[:, [0, 0]], RATIO).log_evidence == -np.inf
    assert np.isfinite(remainder.find_mode(y[:, None], RATIO).log_evidence)


def test_ordered_classes_have_one_too_but_not_every_prior(rows):
    columns, _, y = rows
    ordered = classes_engine(y, family="ordinal")
    assert JointRemainder.is_possible(ordered)
    found = JointRemainder.of(ordered, columns, units(columns)).find_mode(np.empty((90, 0)), RATIO)
    assert found.log_evidence > ordered.log_evidence(np.empty((90, 0)))[0]
    assert not JointRemainder.is_possible(classes_engine(y, prior=Normal(1.0)))
