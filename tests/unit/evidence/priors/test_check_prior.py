"""`dbrm.testing.check_prior`: built-ins pass, planted mistakes do not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dbrm.evidence.coefficient_priors import (
    BIC,
    COEFFICIENT_PRIORS,
    TCCH,
    HyperG,
    KnownVariance,
    Normal,
    Radial,
    RadialPrior,
    resolve_prior,
)
from dbrm.evidence.coefficient_priors.mixture import MixturePrior
from dbrm.testing import check_prior


@pytest.mark.parametrize("name", COEFFICIENT_PRIORS)
def test_built_in_priors_pass(name):
    prior = resolve_prior(name, **({"candidates": 15} if name == "benchmark" else {}))
    report = check_prior(prior, scale_free=not isinstance(prior, KnownVariance))
    assert report.prior is prior
    assert len(report.passed) >= 3


@given(
    a=st.floats(0.05, 20.0),
    b=st.floats(0.1, 100.0),
    r=st.floats(-6.0, 6.0),
    s=st.floats(-100.0, 400.0),
    v=st.floats(1.0, 100.0),
    k=st.floats(1e-3, 1e3),
    n=st.floats(20.0, 1e4),
)
# Two modes of the integrand change places near W = 400, within a few hundredths of log W.
@example(a=2.0, b=3.0, r=6.0, s=-100.0, v=3.0, k=867.0, n=1e4)
@settings(max_examples=25)
def test_any_constants_pass(a, b, r, s, v, k, n):
    """The grid of the integration follows the density wherever its constants put it."""
    check_prior(TCCH(a, b, r, s, v, k), n=n)


@dataclass(frozen=True)
class Planted(MixturePrior):
    """Hyper-g with one mistake, chosen by its label."""

    mistake: str
    name = "planted"

    def mixing(self, size, n):
        return HyperG().mixing(size, n)

    def score_table(self, sizes, shape):
        table = HyperG().score_table(sizes, shape)
        if self.mistake == "other prior":
            return HyperG(a=3.001).score_table(sizes, shape)
        if self.mistake == "wrong sign":
            return replace(table, pieces=-table.pieces)
        if self.mistake == "not a number":
            return replace(table, constant=table.constant * np.nan)
        if self.mistake == "unit":
            return replace(table, constant=table.constant - sizes * np.log(shape.total))
        return table

    def summary(self, size, fraction, shape):
        summary = HyperG().summary(size, fraction, shape)
        if self.mistake == "shrinkage":
            return replace(summary, shrinkage=0.5 * summary.shrinkage)
        return summary

    def glm_table(self, sizes, n):
        table = HyperG().glm_table(sizes, n)
        if self.mistake == "glm":
            return replace(table, pieces=table.pieces * 1.0001)
        return table


@pytest.mark.parametrize(
    ("mistake", "complaint"),
    [
        ("other prior", "tables equal direct integration': log Bayes factor"),
        ("wrong sign", "better fits score higher': at size 1 the score rises"),
        ("not a number", "values are finite or -inf': "),
        ("unit", "unit of the response': Bayes factors change by"),
        ("shrinkage", "tables equal direct integration': shrinkage"),
        ("glm", "tables equal direct integration': GLM log factor"),
    ],
)
def test_planted_mistakes_are_caught(mistake, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_prior(Planted(mistake))


def test_the_planted_prior_without_mistake_passes():
    check_prior(Planted("none"))


def test_a_prior_that_claims_a_unit_must_have_one():
    with pytest.raises(AssertionError, match="declared to depend on the unit"):
        check_prior(BIC(), scale_free=False)
    with pytest.raises(AssertionError, match="Bayes factors change"):
        check_prior(KnownVariance())


def test_a_prior_must_be_hashable():
    class Mutable(Planted):
        __hash__ = None

    with pytest.raises(AssertionError, match="must be hashable"):
        check_prior(Mutable("none"))


@dataclass(frozen=True)
class WrongRadial(RadialPrior):
    factor: float
    offset: float
    name = "wrong"

    @property
    def ridge(self):
        return None

    def radial(self, square, size):
        right = Normal(2.0).radial(square, size)
        return Radial(right.value + self.offset, self.factor * right.first, right.second)


def test_radial_mistakes_are_caught():
    with pytest.raises(AssertionError, match="first derivative"):
        check_prior(WrongRadial(2.0, 0.0))
    with pytest.raises(AssertionError, match="has mass"):
        check_prior(WrongRadial(1.0, 0.01))
    check_prior(WrongRadial(1.0, 0.0))
