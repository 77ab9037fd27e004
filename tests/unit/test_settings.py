"""Tests of `dbrm.run.settings`: every bad value is named."""

import re
from dataclasses import fields
from math import log
from typing import Unpack, get_type_hints

import numpy as np
import pytest

import dbrm
from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.evidence import Jeffreys, KnownVariance, Normal, ZellnerSiow
from dbrm.evolution import Operators
from dbrm.priors import Adaptive, Complexity, resolve_model_prior
from dbrm.run.settings import Settings, SettingsOptions

INTEGERS = {
    "max_complexity": 1,
    "population_size": 1,
    "n_populations": 1,
    "n_chains": 1,
    "max_depth": 0,
    "sweep": 0,
    "max_projection": 2,
    "max_model_size": 0,
    "n_init": 1,
    "n_iter": 1,
    "n_final": 1,
    "max_unique": 1,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_have_a_least_value(name):
    least = INTEGERS[name]
    assert getattr(Settings(**{name: least}), name) == least
    assert getattr(Settings(**{name: np.int64(least + 3)}), name) == least + 3
    for bad in (least - 1, 2.5, "many", True, [3]):
        message = f"{name} must be an integer of at least {least}; got {name}="
        with pytest.raises(InvalidSettingError, match=message):
            Settings(**{name: bad})


@pytest.mark.parametrize("name", ["merge", "scale", "missing", "preset", "algorithm", "heredity"])
def test_choices_are_listed(name):
    with pytest.raises(InvalidSettingError, match=f"{name} must be one of .*; got {name}='wrong'"):
        Settings(**{name: "wrong"})


@pytest.mark.parametrize("budget", [0, -1.0, float("nan")])
def test_a_time_budget_is_positive(budget):
    with pytest.raises(InvalidSettingError, match="time_budget must be a positive number"):
        Settings(time_budget=budget)


def test_editors_know_every_setting():
    """The typed keyword arguments of `dbrm.fit` are the fields of `Settings`, type by type."""
    kept = {field.name: field.type for field in fields(Settings)}
    assert SettingsOptions.__annotations__ == kept
    assert get_type_hints(dbrm.fit)["settings"] == Unpack[SettingsOptions]


def test_a_misspelt_setting_is_named():
    with pytest.raises(
        UnknownNameError, match=r"Unknown setting 'n_chain' \(did you mean 'n_chains'"
    ):
        Settings.from_options({"n_chain": 3})
    with pytest.raises(UnknownNameError, match="Unknown setting 'n_chain'"):
        dbrm.fit(np.eye(3), [1.0, 2.0, 3.0], n_chain=3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"prior": "jeffrey"}, UnknownNameError, "no coefficient prior 'jeffrey'"),
        ({"prior": 3}, InvalidSettingError, "prior must be"),
        ({"prior": {"name": "jeffreys", "konstant": 1}}, InvalidSettingError, "konstant"),
        ({"penalty": "bick"}, UnknownNameError, "no penalty 'bick'"),
        ({"penalty": -2.0}, InvalidSettingError, "penalty"),
        ({"transforms": ["sine"]}, UnknownNameError, "sine"),
        ({"transforms": 3}, InvalidSettingError, "transforms must be"),
        ({"operators": {"mutate": 1.0}}, InvalidSettingError, "operators must map mutation"),
        ({"operators": {"mutation": -1.0}}, InvalidSettingError, "operators needs weights"),
        ({"always": ["nobody"]}, UnknownNameError, "always names 'nobody'"),
        ({"random_state": "seed"}, InvalidSettingError, "random_state must be"),
        ({"family": "gausian"}, UnknownNameError, "gausian"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
    ],
)
def test_values_that_meet_the_data_are_named_too(rng, options, error, message):
    x = rng.normal(size=(20, 2))
    quick = {"n_chains": 1, "n_populations": 2, "sweep": 0}
    with pytest.raises(error, match=message):
        dbrm.fit(x, x[:, 0], **quick | options)


def test_settings_are_frozen():
    with pytest.raises(AttributeError):
        Settings().n_chains = 3


@pytest.mark.parametrize(
    ("family", "prior"),
    [
        ("gaussian", ZellnerSiow()),
        ("binomial", Normal(variance=1.0, standardised=True)),
        ("poisson", Jeffreys(constant="unit_information")),
        ("gamma", Jeffreys(constant="unit_information")),
    ],
)
def test_the_defaults_are_a_prior_of_the_family_and_an_adaptive_price(family, prior):
    chosen = Settings().resolved(family, 50.0)
    assert chosen.prior == prior
    found = resolve_model_prior(chosen.penalty, n=50, n_covariates=3, n_transforms=8)
    assert found == Adaptive(n_covariates=3, n_transforms=8)


def test_rows_in_blocks_have_a_prior_that_needs_the_likelihood_only():
    def prior(preset=None, **settings):
        return Settings(preset=preset).resolved("binomial", 1e6, **settings).prior

    assert prior(in_blocks=True) == Jeffreys(constant="unit_information")
    assert prior() != prior(in_blocks=True)
    assert prior("paper_text", in_blocks=True) == prior("paper_text")


def test_multiplicity_counts_columns_and_offered_transforms(rng):
    """Log prior of a covariate: minus log(p + |G|); minus log p where nothing is built."""
    x = rng.normal(size=(40, 3))
    y = x[:, 0] + 0.1 * rng.normal(size=40)
    quick = {"n_chains": 1, "n_populations": 2, "random_state": 1, "penalty": "multiplicity"}
    for algorithm, choices in (("gmjmcmc", 5), ("mjmcmc", 3)):
        found = dbrm.fit(x, y, transforms=["sin", "tanh"], algorithm=algorithm, **quick)
        alone = found.models.set_index("features").loc[[("x1",)], "log_prior"].item()
        assert alone == pytest.approx(-log(choices))


def test_the_preset_of_the_text():
    """Ex. 4-5: unknown variance, a = n^-2; Ex. 1-3: a = e^-2."""
    chosen = Settings(preset="paper_text").resolved("gaussian", 223.0)
    assert chosen.prior == Jeffreys()
    assert resolve_model_prior(chosen.penalty, n=223, n_covariates=9) == Complexity(2 * log(223))
    assert chosen.transforms == "paper-g1"
    binary = Settings(preset="paper_text").resolved("binomial", 64.0)
    assert resolve_model_prior(binary.penalty, n=64, n_covariates=9) == Complexity(2.0)
    assert binary.transforms == "paper-classification"


def test_the_preset_of_the_scripts():
    """Ex. 4-5: sigma = 1 known, a = 1/n, operators 1, 10, 5, 1, angles in degrees."""
    chosen = Settings(preset="paper_code").resolved("gaussian", 223.0)
    assert chosen.prior == KnownVariance(1.0, constant="none")
    assert resolve_model_prior(chosen.penalty, n=223, n_covariates=9) == Complexity(log(223))
    assert chosen.transforms == "paper-g1-code"
    assert chosen.operators == Operators(1, 10, 5, 1, informed=0.0)


def test_the_presets_charge_a_latent_effect_once():
    """Example 7: "each latent Gaussian variable has equal prior probability"."""
    assert Settings().resolved("poisson", 500.0).latent_charge == "hyperparameter"
    for preset in ("paper_text", "paper_code"):
        for family in ("gaussian", "poisson"):
            assert Settings(preset=preset).resolved(family, 500.0).latent_charge == "effect"
    given = Settings(preset="paper_text", latent_charge="hyperparameter")
    assert given.resolved("poisson", 500.0).latent_charge == "hyperparameter"
    with pytest.raises(InvalidSettingError, match="latent_charge must be one of"):
        Settings(latent_charge="term")


def test_what_the_user_says_beats_the_preset():
    given = Settings(preset="paper_code", penalty=7.0, transforms=["paper-g2", "cube"])
    chosen = given.resolved("gaussian", 223.0)
    assert chosen.penalty == 7.0
    assert chosen.transforms == ["paper-g2-code", "cube"]
    assert chosen.prior == KnownVariance()


def test_every_setting_is_documented():
    text = Settings.__doc__
    for field in fields(Settings):
        assert re.search(rf"\b{field.name}\b", text), field.name
