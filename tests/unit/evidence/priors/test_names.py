"""Tests of `dbrm.evidence.coefficient_priors.names`."""

import pytest

from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.evidence.coefficient_priors import (
    COEFFICIENT_PRIORS,
    TCCH,
    GPrior,
    HyperG,
    Jeffreys,
    KnownVariance,
    NormalLogGamma,
    ZellnerSiow,
    resolve_prior,
)

# The setting `prior` of the design, and the aliases promised with it.
DESIGN_NAMES = [
    *("jeffreys", "known_variance", "bic", "aic", "g-prior", "hyper-g", "hyper-g-n"),
    *("zellner-siow", "jzs", "beta-prime", "robust", "intrinsic", "eb-local", "tcch", "cch"),
    *("uniform", "jeffreys-g", "normal", "normal-loggamma"),
]


@pytest.mark.parametrize("name", DESIGN_NAMES)
def test_every_promised_name_resolves(name):
    prior = resolve_prior(name)
    assert resolve_prior(name.upper().replace("-", "_")) == prior
    assert resolve_prior(prior) is prior


def test_a_prior_knows_the_name_it_is_found_by():
    for name in COEFFICIENT_PRIORS:
        options = {"candidates": 9} if name == "benchmark" else {}
        prior = resolve_prior(name, **options)
        assert resolve_prior(prior.name, **options) == prior


def test_options_by_keyword_and_by_mapping():
    assert resolve_prior("JZS", r=0.5) == ZellnerSiow(r=0.5)
    assert resolve_prior({"name": "hyper_g", "a": 4}) == HyperG(a=4)
    assert resolve_prior({"name": "g-prior", "g": "benchmark"}, candidates=15) == GPrior(
        g="benchmark", candidates=15
    )
    assert resolve_prior("known variance", variance=2.0) == KnownVariance(variance=2.0)
    assert resolve_prior("tcch", k=0.5, v=2.0) == TCCH(k=0.5, v=2.0)
    assert resolve_prior("normal-loggamma", rate=0.1) == NormalLogGamma(rate=0.1)


def test_unknown_name_lists_what_is_close_and_what_is_known():
    with pytest.raises(UnknownNameError, match=r"no coefficient prior 'hyperg'.*'hyper-g'.*Known"):
        resolve_prior("hyperg")


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("hyper-g", {"alpha": 3}, "has no option 'alpha'; its options: a"),
        ("bic", {"n": 3}, "has no option 'n'; its options: none"),
        ("benchmark", {}, "cannot be built from the options {}.*candidates"),
        ("hyper-g", {"a": 2.0}, "a to be finite and above 2; got a=2.0"),
        ("tcch", {"v": 0.5}, "v of at least 1"),
        ("cch", {"s": float("inf")}, "finite s; got s=inf"),
        ({"a": 3}, {}, "needs a 'name'; got the keys"),
        (Jeffreys(), {"constant": "none"}, "is complete"),
        (7, {}, "must be a name, a mapping or a CoefficientPrior; got 7"),
        ("hyper-g", {"a": "three"}, "cannot be built from the options"),
    ],
)
def test_wrong_options_say_what_is_possible(spec, options, message):
    with pytest.raises(InvalidSettingError, match=message):
        resolve_prior(spec, **options)
