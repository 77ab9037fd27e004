"""Tests of `dbrm.evidence.glm_remainder` under independent normal coefficients."""

import numpy as np
import pytest
import scipy.optimize

from dbrm.evidence import GlmEngine, Jeffreys, Normal
from dbrm.evidence.families import find_family
from dbrm.evidence.glm_remainder import GlmRemainder

VARIANCE, RATIO = 1.5, 0.3
RIDGE = Normal(variance=VARIANCE, standardised=True)


@pytest.fixture
def rows(rng):
    """A binary response, columns in odd units, and columns of a remainder."""
    columns = rng.normal(size=(70, 3)) * [1.0, 40.0, 0.01] + [0.0, 300.0, 2.0]
    eta = 1.3 * columns[:, 0] - 0.02 * (columns[:, 1] - 300.0)
    y = (rng.random(70) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    return columns, y, rng.normal(size=(70, 4))


def log_joint(columns, block, y):
    """Log likelihood and prior of coefficients and effects, written out."""
    spread = columns.std(axis=0)

    def value(theta):
        k = columns.shape[1]
        eta = theta[0] + columns @ theta[1 : k + 1] + block @ theta[k + 1 :]
        prior = -0.5 * np.sum((theta[1 : k + 1] * spread) ** 2) / VARIANCE
        prior += np.sum(np.log(spread)) - 0.5 * k * np.log(2.0 * np.pi * VARIANCE)
        prior -= 0.5 * np.sum(theta[k + 1 :] ** 2 + np.log(2.0 * np.pi))
        return float(np.sum(y * eta - np.logaddexp(0.0, eta)) + prior)

    return value


def laplace(columns, block, y):
    """By a general optimiser and the Hessian of the logistic likelihood, in the given units."""
    value = log_joint(columns, block, y)
    spread = columns.std(axis=0)
    design = np.column_stack([np.ones(len(y)), columns, block])
    own = np.concatenate([[0.0], spread**2 / VARIANCE, np.ones(block.shape[1])])
    scale = np.concatenate([[1.0], 1.0 / spread, np.ones(block.shape[1])])
    # The optimiser sees columns about their means, of one unit.
    move = np.eye(len(own))
    move[0, 1 : 1 + len(spread)] = -columns.mean(axis=0) / spread
    move[1:, 1:] = np.diag(scale[1:])
    found = scipy.optimize.minimize(
        lambda theta: -value(move @ theta),
        np.zeros(len(own)),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    mode = move @ found.x
    share = 1.0 / (1.0 + np.exp(-design @ mode))
    hessian = design.T @ ((share * (1.0 - share))[:, None] * design) + np.diag(own)
    return value(mode) + 0.5 * len(own) * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(hessian)[1]


def test_without_a_remainder_it_is_the_evidence_of_the_formula(rows):
    """To the same constant: formulas and models with a remainder are compared as they are."""
    columns, y, _ = rows
    engine = GlmEngine(y, RIDGE)
    nothing = GlmRemainder.nothing(engine)
    for members in ([], [0], [0, 1], [0, 1, 2]):
        own = columns[:, members]
        wanted, _ = engine.log_evidence_of(own, np.ones((1, len(members)), dtype=bool))
        assert nothing.find_mode(own, 1.0).log_evidence == pytest.approx(wanted[0], abs=1e-7)
        assert wanted[0] == pytest.approx(laplace(own, np.empty((70, 0)), y), abs=1e-5)


def test_evidence_with_a_remainder_is_laplaces(rows):
    columns, y, others = rows
    remainder = GlmRemainder.of(GlmEngine(y, RIDGE), others, others.std(axis=0))
    block = np.sqrt(RATIO) * remainder.block
    for members in ([], [0], [0, 1]):
        own = columns[:, members]
        wanted = laplace(own, block, y)
        assert remainder.find_mode(own, RATIO).log_evidence == pytest.approx(wanted, abs=1e-5)


def test_the_mean_is_that_of_the_posterior():
    """One column that nearly separates the classes; the integral over a fine grid."""
    x = np.linspace(-1.5, 1.5, 24)
    y = (x > 0.2).astype(float)
    y[[9, 15]] = 1.0 - y[[9, 15]]
    fit = GlmRemainder.nothing(GlmEngine(y, RIDGE)).fit(x[:, None], 1.0)
    value = log_joint(x[:, None], np.empty((24, 0)), y)
    first, second = np.meshgrid(np.linspace(-5.0, 4.0, 181), np.linspace(-1.0, 7.0, 161))
    mass = np.array([value(pair) for pair in np.stack([first.ravel(), second.ravel()], axis=1)])
    mass = np.exp(mass - mass.max())
    mean = np.array([first.ravel() @ mass, second.ravel() @ mass]) / mass.sum()
    far = mean - fit.fit.coefficients
    assert np.linalg.norm(far) > 0.05
    assert np.linalg.norm(far - fit.shift) < 0.3 * np.linalg.norm(far)


def test_it_is_possible_under_two_kinds_of_priors(rows):
    _, y, _ = rows
    shared = {
        RIDGE: True,
        Jeffreys(constant="unit_information"): False,
    }
    for prior, same in shared.items():
        assert GlmRemainder.is_possible(GlmEngine(y, prior))
        assert GlmRemainder.shares_prior(GlmEngine(y, prior)) == same
    assert not GlmRemainder.is_possible(GlmEngine(y, Normal(variance=VARIANCE)))
    positive = GlmEngine(y + 1.0, RIDGE, family=find_family("gamma"))
    assert not GlmRemainder.is_possible(positive)
