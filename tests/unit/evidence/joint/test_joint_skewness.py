"""Tests of `dbrm.evidence.joint.skewness`: two classes, and means over draws."""

import numpy as np
from scipy.special import expit, log_softmax

from dbrm.evidence import GlmEngine, Jeffreys, Observations, build_engine
from dbrm.evidence.glm_remainder import GlmRemainder
from dbrm.evidence.joint.remainder import JointRemainder
from dbrm.evidence.joint.skewness import mean_shift
from dbrm.status import Status

UNIT = Jeffreys(constant="unit_information")


def shift_of(remainder, mode, ratio):
    offset = np.zeros(remainder.engine.n_rows)
    columns = np.sqrt(ratio) * remainder.block
    return mean_shift(remainder.engine.joint, columns, offset, mode.parameters, mode.precision)


def classes_engine(y):
    return build_engine(Observations(y), UNIT, family="multinomial")


def test_two_classes_are_a_logistic_model(rng):
    columns = rng.normal(size=(40, 3))
    y = (rng.uniform(size=40) < expit(columns @ [2.0, 0.5, 0.0])).astype(float)
    units, nothing = columns.std(axis=0) * np.sqrt(3), np.empty((40, 0))
    joint = JointRemainder.of(classes_engine(y), columns, units)
    found = shift_of(joint, joint.find_mode(nothing, 1.0), 1.0)
    wanted = GlmRemainder.of(GlmEngine(y, UNIT), columns, units).fit(nothing, 2.0).shift
    np.testing.assert_allclose(found, wanted, rtol=1e-3)


def test_the_mean_is_nearer_to_that_of_draws_than_the_mode_is(rng):
    """One column, three classes, a grid of all coefficients; intercepts are known."""
    x = rng.normal(size=25)
    eta = np.column_stack([np.zeros(25), 2.0 * x, -1.0 * x])
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1).astype(float)
    remainder = JointRemainder.of(classes_engine(y), x[:, None], x[:, None].std(axis=0))
    ratio = 4.0
    mode = remainder.find_mode(np.empty((25, 0)), ratio)
    q = remainder.engine.joint.exchangeable_precision
    z = np.sqrt(ratio) * remainder.block[0]
    side = np.linspace(-4.0, 8.0, 241)
    a, b = np.meshgrid(mode.parameters[2] + side - 2.0, mode.parameters[3] + side - 6.0)
    grid = np.stack([a.ravel(), b.ravel()], axis=1)
    predictors = mode.parameters[:2] + z[:, None] * grid[:, None, :]
    full = np.concatenate([np.zeros((*predictors.shape[:2], 1)), predictors], axis=2)
    chance = log_softmax(full, axis=2)[:, np.arange(25), y.astype(int)].sum(axis=1)
    log_posterior = chance - 0.5 * np.einsum("nk,kl,nl->n", grid, q, grid)
    weight = np.exp(log_posterior - log_posterior.max())
    mean = weight @ grid / weight.sum()
    known = mode.precision.copy()
    known[:2, :2] += 1e8 * np.eye(2)
    found = mean_shift(remainder.engine.joint, z[None], np.zeros(25), mode.parameters, known)[2:]
    wanted = mean - mode.parameters[2:]
    assert np.linalg.norm(wanted) > 0.05
    assert np.linalg.norm(found - wanted) < 0.35 * np.linalg.norm(wanted)


def test_separated_classes_are_predicted_from_a_proper_prior(rng):
    """Not by coefficients that run away, nor by intervals that reach to the other classes."""
    x = np.concatenate([rng.normal(size=30) + centre for centre in (-9.0, 0.0, 9.0)])
    y = np.repeat([0.0, 1.0, 2.0], 30)
    engine = classes_engine(y)
    fit = engine.fit(x[:, None])
    assert fit.status is Status.SEPARATED
    population = engine.prepare(x[:, None])
    found, penalty = population.penalised(np.array([0]))
    unit = engine.joint.unit_information(population.columns)
    np.testing.assert_allclose(penalty[2:, 2:], unit)
    # Of one observation of three classes alike, in a column of unit variance.
    np.testing.assert_allclose(unit, np.eye(2) / 3 - 1 / 9, atol=1e-12)
    gradient = np.concatenate(
        [found.point.ancillary_score, found.point.score @ population.columns[0]]
    )
    np.testing.assert_allclose(gradient, penalty @ found.parameters, atol=1e-7)
    chances = engine.family.mean_probabilities(fit.joint, x[:, None], np.zeros(90))
    assert -np.mean(np.log(chances[np.arange(90), y.astype(int)])) < 0.1
    # The reported coefficients are the posterior mean, further out than the mode.
    inside = found.parameters[2:] / population.scale
    assert np.all(np.abs(fit.joint.coefficients[0]) > np.abs(inside))
