"""The reference names everything that is public."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import dbrm
from dbrm.cli.app import app
from dbrm.datasets import CATALOGUE
from dbrm.evidence import COEFFICIENT_PRIORS
from dbrm.evidence.families import FAMILIES
from dbrm.evidence.links import LINKS
from dbrm.features import TRANSFORM_SETS, TRANSFORMS
from dbrm.priors import MODEL_PRIORS
from dbrm.report import Plots

DOCS = Path(__file__).resolve().parents[2] / "docs"


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in dbrm.__all__ if not name.startswith("_")])
def test_every_public_name_is_in_the_reference(name):
    assert re.search(rf"::\s+dbrm\.{name}\b", page("api.md"))


@pytest.mark.parametrize("kind", [dbrm.DBRMRegressor, dbrm.DBRMClassifier, dbrm.DBRMFeatures])
def test_every_method_of_an_estimator_is_listed(kind):
    """Those of its own; what scikit-learn adds is explained there."""
    (listed,) = re.findall(rf"autoclass:: dbrm\.{kind.__name__}\n +:members: (.*)", page("api.md"))
    own = {name for name in vars(kind) if not name.startswith("_") and name != "set_output"}
    own = {name for name in own if not re.match(r"(set|get)_.*request$|posteriors?_$", name)}
    assert own <= set(listed.split(", ")) | {"classes_", "features_"}


@pytest.mark.parametrize("kind", [dbrm.Posterior, Plots, dbrm.Feature, dbrm.Settings], ids=str)
def test_everything_public_has_a_docstring(kind):
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and (callable(member) or isinstance(member, property)):
            assert inspect.getdoc(member), f"{kind.__name__}.{name}"


def test_every_setting_is_described():
    described = inspect.getdoc(dbrm.Settings)
    parameters = described.partition("Parameters\n")[2]
    named = set(re.findall(r"\w+", " ".join(re.findall(r"^(\S.*)$", parameters, re.MULTILINE))))
    assert {field.name for field in fields(dbrm.Settings)} <= named


@pytest.mark.parametrize(
    "name",
    [
        *TRANSFORMS,
        *TRANSFORM_SETS,
        *FAMILIES,
        *LINKS,
        *COEFFICIENT_PRIORS,
        *MODEL_PRIORS,
    ],
)
def test_every_name_that_can_be_written_is_explained(name):
    assert re.search(rf'`"?{re.escape(name)}"?`', page("names.md"))


def test_every_command_is_explained():
    text = page("how-to/command-line.md")
    commands = [command.callback.__name__ for command in app.registered_commands]
    commands += [group.name or group.typer_instance.info.name for group in app.registered_groups]
    assert len(commands) >= 6
    assert [command for command in commands if f"`dbrm {command}" not in text] == []


def test_every_data_set_can_be_found_by_its_loader():
    assert all(entry.load.__name__ in page("api.md") for entry in CATALOGUE.values())
