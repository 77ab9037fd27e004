"""Tests of formulas typeset for browsers."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import dbrm
from dbrm.features import TRANSFORMS, covariate, get_transform, parse_feature
from dbrm.features.nodes import Modification
from dbrm.report.mathml import effect_mathml, feature_mathml, model_mathml, number_mathml

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
# What MathML Core says about the number of children.
CHILDREN = {"msup": 2, "msub": 2, "mfrac": 2, "math": None, "mrow": None, "msqrt": None}


def tree(text):
    """Parse, and check what the grammar of MathML asks for."""
    root = ElementTree.fromstring(text)
    for node in root.iter():
        tag = node.tag.removeprefix(NAMESPACE)
        if tag in ("mi", "mn", "mo", "mtext", "mspace"):
            assert len(node) == 0
        else:
            assert tag in CHILDREN
            assert CHILDREN[tag] in (None, len(node)), ElementTree.tostring(node)
            assert not (node.text or "").strip()
    return root


def letters(text):
    return re.sub(r"\s", "", "".join(tree(text).itertext()))


@pytest.mark.parametrize(
    ("feature", "shown"),
    [
        ("x1", "x1"),
        ("troot(PeriodDays*PeriodDays*Mass)", "|PeriodDays2·Mass|1/3"),
        ("sin(`a <b`)", "sin(a<b)"),
        ("sin(x)*sin(x)*y", "(sin(x))2·y"),
        ("tanh(0.3 + 1.2*x - 2e-07*y)", "tanh(0.3+1.2·x−2·10−7·y)"),
        ("sqrt_abs(x)", "|x|"),
        ("step[1.5](x)", "I(x>1.5)"),
        ("step[q0.5=0.25](x)", "I(x>0.25)"),
        ("step[q0.5](x)", "I(x>q0.5)"),
        ("sin_degrees(x)", "sin([x]∘)"),
        ("not(x)", "(1−(x))"),
    ],
)
def test_a_feature_shows_all_of_its_parts(feature, shown):
    assert letters(feature_mathml(parse_feature(feature))) == shown


@pytest.mark.parametrize(
    "name", ["a_b", "</math><script>", "a & b", "{#1}", r"\frac", "~^", "$%", "été", "x y", "`"]
)
def test_names_are_shown_as_they_are(name):
    """In one piece, and never as markup or as LaTeX."""
    (word,) = [node for node in tree(feature_mathml(covariate(name))).iter() if node.text]
    assert word.text.replace("\xa0", " ") == name
    (word,) = [node for node in tree(effect_mathml(name)).iter() if node.text]
    assert word.text.replace("\xa0", " ") == name


@pytest.mark.parametrize("name", [*TRANSFORMS, "power[-2]", "power[2/3]", "hinge_down[q0.25]"])
def test_every_transform_is_typeset_by_its_own_formula(name):
    """No built-in falls back to text."""
    transform = get_transform(name)
    assert transform.latex is not None
    feature = Modification(transform, covariate("x"))
    assert any(node.tag == f"{NAMESPACE}mrow" for node in tree(feature_mathml(feature)).iter())


@pytest.mark.parametrize(
    "latex", [None, r"\unknown{#1}", r"\left(#1", "#1}", r"\mathrm", r"\textbf{<b>#1</b>}", "#1&"]
)
def test_a_function_of_your_own_has_at_least_its_name(latex):
    cube = dbrm.Transform("cubic", lambda x: x**3, latex=latex)
    feature = parse_feature("cubic(x)", transforms=[cube])
    assert letters(feature_mathml(feature)) == "cubic(x)"


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\frac{#1}{2}", "x2"),
        (r"\max^{2}\left(#1, 0\right)", "max2(x,0)"),
        (r"\operatorname{a\_b}\left(#1\right)", "a_b(x)"),
        (r"\alpha < \{#1\}", "α<{x}"),
    ],
)
def test_latex_of_a_function_of_your_own(latex, shown):
    own = dbrm.Transform("own", np.sin, latex=latex)
    assert letters(feature_mathml(parse_feature("own(x)", transforms=[own]))) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "0.5"), (-12345.6, "−1.235·104"), (1e-9, "1·10−9"), (0.0, "0")]
)
def test_numbers(value, shown):
    assert letters(number_mathml(value)) == shown


def test_a_model_is_left_side_intercept_and_terms(rng):
    x = rng.normal(size=(40, 2))
    y = 1.0 + 2.0 * x[:, 0] - 3.0 * x[:, 1] + 0.01 * rng.normal(size=40)
    left, intercept, *terms = [
        letters(part) for part in model_mathml(dbrm.enumerate_models(x, y).best_model, digits=1)
    ]
    assert (left, intercept) == ("y=", "1")
    assert sorted(terms) == ["+2·x1", "−3·x2"]


def test_the_left_side_names_the_link(rng):
    x = rng.normal(size=(40, 1))
    posterior = dbrm.enumerate_models(x, rng.poisson(np.exp(x[:, 0])), family="poisson")
    assert letters(model_mathml(posterior.best_model)[0]) == "log(E[y])="
