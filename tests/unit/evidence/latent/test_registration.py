"""Tests of `dbrm.evidence.latent.effects`: an effect is known wherever effects are named."""

import importlib
import pkgutil

import pytest

import dbrm
from dbrm.cli.fit import read_latent
from dbrm.evidence import bind
from dbrm.evidence.latent import LATENT_EFFECTS, Latent, effects
from dbrm.posterior.latent_storage import EFFECT, pack_effects, read_effects, spell_effects


@pytest.fixture(params=sorted(LATENT_EFFECTS))
def effect(request):
    return LATENT_EFFECTS[request.param]("t")


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
    bound = [bind(effect, [0.0, 1.0, 2.5, 4.0, 7.0], 5)]
    content = spell_effects(bound)
    EFFECT.check(content[0], "effect", {})
    assert read_effects(content, pack_effects(bound), [])[0].effect == effect
    assert read_latent([effect.name], {"t": None}) == [effect]


def test_an_effect_of_the_users_own_is_not_taken_for_one_of_the_same_name(effect):
    """Negative control: its settings would be read as those of another class."""
    own = type(type(effect).__name__, (type(effect),), {})("t")
    bound = bind(own, [0.0, 1.0, 2.5, 4.0, 7.0], 5)
    assert "effect" not in spell_effects([bound])[0]
