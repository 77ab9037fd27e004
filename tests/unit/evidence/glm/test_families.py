"""Tests of families and links, by the checks that users have, and of those checks."""

import pkgutil
from dataclasses import dataclass

import numpy as np
import pytest

from dbrm.errors import InvalidSettingError
from dbrm.evidence import families
from dbrm.evidence.families import (
    FAMILIES,
    Binomial,
    ExponentialFamily,
    Family,
    Gamma,
    NegativeBinomial,
    Poisson,
    find_family,
)
from dbrm.evidence.links import LINKS, Link, Log, Logit, find_link
from dbrm.testing import check_family, check_link

DENSITIES = {name: family for name, family in FAMILIES.items() if isinstance(family, Family)}


@pytest.mark.parametrize("family", DENSITIES.values(), ids=DENSITIES)
def test_built_in_families_pass(family):
    # A density of shares with poles at both ends cannot be integrated in floating point.
    moderate, large = (0.03, 0.08) if family.name == "beta" else (0.4, 2.0)
    assert len(check_family(family, dispersion=moderate).passed) >= 11
    if family.has_dispersion:
        check_family(family, dispersion=large)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_built_in_links_pass(link):
    assert len(check_link(link).passed) == 5


class Borrowed(ExponentialFamily):
    """A family made of a built-in one; subclasses break one part each."""

    parent = Poisson()
    name = "borrowed"
    default_link = "log"
    mean_interval = support = (0.0, np.inf)
    discrete = True

    def log_density(self, y, mean, dispersion=1.0, trials=None):
        return self.parent.log_density(y, mean, dispersion, trials)

    def variance(self, mean, dispersion=1.0):
        return self.parent.variance(mean, dispersion)

    def cdf(self, y, mean, dispersion=1.0, trials=None):
        return self.parent.cdf(y, mean, dispersion, trials)

    def quantile(self, probability, mean, dispersion=1.0, trials=None):
        return self.parent.quantile(probability, mean, dispersion, trials)

    def rvs(self, rng, mean, dispersion=1.0, trials=None):
        return self.parent.rvs(rng, mean, dispersion, trials)


class NoConstant(Borrowed):
    def log_density(self, y, mean, dispersion=1.0, trials=None):
        return y * np.log(mean) - mean


class WrongVariance(Borrowed):
    def variance(self, mean, dispersion=1.0):
        return mean * mean


class StrictCdf(Borrowed):
    def cdf(self, y, mean, dispersion=1.0, trials=None):
        return self.parent.cdf(y - 1, mean)


class QuantileOffByOne(Borrowed):
    def quantile(self, probability, mean, dispersion=1.0, trials=None):
        return self.parent.quantile(probability, mean) + 1


class WrongDraws(Borrowed):
    def rvs(self, rng, mean, dispersion=1.0, trials=None):
        return rng.poisson(np.asarray(mean) * 1.2).astype(float)


class Refuses(Borrowed):
    def check_response(self, response, trials=None):
        Gamma().check_response(response)


class Accepts(Borrowed):
    def check_response(self, response, trials=None):
        pass


class WrongScore(Borrowed):
    """Derivative in the linear predictor, not in the mean."""

    def score(self, y, mean, dispersion=1.0, trials=None):
        return y - mean


class ObservedInformation(Borrowed):
    """Minus the second derivative at the mean's own value, without expectation."""

    def information(self, mean, dispersion=1.0, trials=None):
        return 2 / mean


class NotProportional(Borrowed):
    parent = NegativeBinomial()
    has_dispersion = True
    dispersion_divides_information = True


@dataclass(frozen=True)
class PearsonGamma(Borrowed):
    """Estimates the dispersion by moments, which is not maximum likelihood."""

    parent = Gamma()
    discrete = False
    has_dispersion = True

    def estimate_dispersion(self, y, mean, weights):
        return float(np.average((y / mean - 1) ** 2, weights=weights))


@pytest.mark.parametrize(
    ("family", "title"),
    [
        (NoConstant(), "density sums to one"),
        (WrongVariance(), "variance of the density"),
        (StrictCdf(), "cdf adds up the density"),
        (QuantileOffByOne(), "quantile inverts the cdf"),
        (WrongDraws(), "responses follow the cdf"),
        (Refuses(), "own responses are accepted"),
        (Accepts(), "other responses are refused"),
        (WrongScore(), "score is the derivative in the mean"),
        (ObservedInformation(), "information is the expected curvature"),
        (NotProportional(), "dispersion divides the information"),
        (PearsonGamma(), "dispersion has maximum likelihood"),
    ],
)
def test_broken_families_are_caught(family, title):
    """Negative controls: every check has the power to fail."""
    with pytest.raises(AssertionError, match=title):
        check_family(family)


class BrokenLink(Link):
    name = "broken"
    mean_interval = (0.0, 1.0)

    def __init__(self, part):
        self.part = part

    def eta(self, mean):
        return Logit().eta(mean)

    def mean(self, eta):
        if self.part == "overflow":
            return 1 / (1 + np.exp(-eta))
        return Logit().mean(eta * (1.01 if self.part == "mean" else 1))

    def slope(self, eta):
        return Logit().slope(eta) * (1.01 if self.part == "slope" else 1)

    def curvature(self, eta):
        return Logit().curvature(eta) * (-1 if self.part == "curvature" else 1)


@pytest.mark.parametrize(
    ("part", "title"),
    [
        ("mean", "mean inverts eta"),
        ("slope", "slope is the derivative"),
        ("curvature", "curvature is the second derivative"),
        ("overflow", "far out"),
    ],
)
def test_broken_links_are_caught(part, title):
    with pytest.raises(AssertionError, match=title):
        check_link(BrokenLink(part))


def test_names_and_objects_are_found():
    assert find_family("poisson") == Poisson()
    assert find_family(Binomial()) == Binomial()
    assert find_link("log") == Log()


@pytest.mark.parametrize("family", [Gamma, NegativeBinomial])
@pytest.mark.parametrize("dispersion", [0.0, -1.0, np.inf, np.nan])
def test_dispersions_must_be_positive(family, dispersion):
    with pytest.raises(InvalidSettingError, match="positive finite dispersion"):
        family(dispersion)


def test_a_family_of_the_package_needs_one_file():
    """Every module registers what it defines; adding one touches no list."""
    modules = {module.name for module in pkgutil.iter_modules(families.__path__)} - {"base"}
    assert set(FAMILIES) == modules
    assert find_family("negative-binomial") == NegativeBinomial()
