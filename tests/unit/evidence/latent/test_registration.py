"""Tests of `dbrm.evidence.latent.effects`: an effect is known wherever effects are named."""

import importlib
import pkgutil

import numpy as np
import pytest

import dbrm
from dbrm.cli.fit import read_latent
from dbrm.evidence import bind, columns_of
from dbrm.evidence.latent import LATENT_EFFECTS, Latent, RandomSlope, effects
from dbrm.posterior.latent_storage import EFFECT, pack_effects, read_effects, spell_effects


@pytest.fixture(params=sorted(LATENT_EFFECTS))
def effect(request):
    kind = LATENT_EFFECTS[request.param]
    return kind("t", "x") if kind is RandomSlope else kind("t")


def bound_to_rows(effect):
    rows = {"t": np.array([0.0, 1.0, 2.5, 4.0, 7.0]), "x": np.array([1.0, 2.0, 5.0, 3.0, 0.0])}
    return bind(effect, columns_of(effect, rows), 5)


def test_every_effect_of_the_package_is_registered_under_the_name_of_its_class():
    modules = [
        importlib.import_module(f"{effects.__name__}.{module.name}")
        for module in pkgutil.iter_modules(effects.__path__)
    ]
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    kinds = {name: kind for name, kind in public.items() if isinstance(kind, type)}
    kinds = {name: kind for name, kind in kinds.items() if issubclass(kind, Latent)}
    assert len(kinds) >= 6
    assert kinds == LATENT_EFFECTS
    assert all(getattr(dbrm.latent, name) is kind for name, kind in kinds.items())


def test_files_and_commands_know_every_effect(effect):
    bound = [bound_to_rows(effect)]
    content = spell_effects(bound)
    EFFECT.check(content[0], "effect", {})
    read = read_effects(content, pack_effects(bound), [])[0]
    assert (read.effect, read.centre, read.scale) == (effect, bound[0].centre, bound[0].scale)
    assert read_latent([effect.name], {"t": None, "x": None}) == [effect]


def test_an_effect_of_the_users_own_is_not_taken_for_one_of_the_same_name(effect):
    """Negative control: its settings would be read as those of another class."""
    own = type(type(effect).__name__, (type(effect),), {})(*effect.columns)
    assert "effect" not in spell_effects([bound_to_rows(own)])[0]
