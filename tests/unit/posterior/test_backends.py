"""Models as functions of the arrays of other libraries."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.errors import ExportError, InvalidSettingError
from dbrm.evidence import find_link
from dbrm.features import resolve_transforms, transform_names
from dbrm.posterior.backends import model_function

PLAIN = [name for name in transform_names() if "[" not in name]
TEXTS = [
    *(
        f"{name}(x, 0.3)" if name in ("step", "step_down", "hinge", "hinge_down") else f"{name}(x)"
        for name in PLAIN
    ),
    "power[-2](x)",
    "step[q0.5=0.1](x)",
    "tanh(0.3 + 1.5*x - 2.0*y)",
    "sin((x - 3.1)/2.4)*y*y",
]
TABLE = {"x": np.array([-1.7, -0.4, 0.6, 2.1]), "y": np.array([0.2, 1.0, -3.0, 0.5])}


@pytest.mark.parametrize("text", TEXTS)
def test_features_have_the_same_values(text):
    feature = dbrm.parse_feature(text)
    function = model_function([feature], [0.5, 2.0], None, "jax")
    arrays = {name: jnp.asarray(column) for name, column in TABLE.items()}
    expected = 0.5 + 2.0 * feature.evaluate(TABLE)
    np.testing.assert_allclose(function(arrays), expected, rtol=2e-5)
    np.testing.assert_allclose(jax.jit(function)(arrays), expected, rtol=2e-5)


@pytest.mark.parametrize("text", ["tanh(x)", "log1p_abs(x)", "sin((x - 3.1)/2.4)*y*y", "cbrt(x)"])
def test_gradients_are_those_of_differences(text):
    feature = dbrm.parse_feature(text)
    function = model_function([feature], [0.5, 2.0], None, "jax")
    for x, y in zip(TABLE["x"], TABLE["y"], strict=True):
        step = 1e-6
        ends = feature.evaluate({"x": np.array([x - step, x + step]), "y": np.array([y, y])})
        slope = jax.grad(lambda value, y=y: function({"x": value, "y": y}))(float(x))
        assert slope == pytest.approx(2.0 * (ends[1] - ends[0]) / (2 * step), rel=1e-4, abs=1e-5)


def test_features_have_the_same_values_in_torch():
    """Where PyTorch is installed: it is no dependency, not even of the tests."""
    for text in TEXTS if find_spec("torch") else ():
        _compare_with_torch(text)


def _compare_with_torch(text):
    import torch

    feature = dbrm.parse_feature(text)
    function = model_function([feature], [0.5, 2.0], None, "torch")
    found = function({name: torch.tensor(column) for name, column in TABLE.items()})
    np.testing.assert_allclose(found.numpy(), 0.5 + 2.0 * feature.evaluate(TABLE), rtol=1e-12)


def test_a_model_in_torch_can_be_differentiated():
    if find_spec("torch") is None:
        return
    import torch

    link = find_link("logit")
    function = model_function([dbrm.parse_feature("sin(x)")], [0.5, 2.0], link, "torch")
    x = torch.tensor(TABLE["x"], requires_grad=True)
    mean = function({"x": x})
    mean.sum().backward()
    p = link.mean(0.5 + 2.0 * np.sin(TABLE["x"]))
    np.testing.assert_allclose(mean.detach().numpy(), p, rtol=1e-12)
    np.testing.assert_allclose(x.grad, 2.0 * np.cos(TABLE["x"]) * p * (1 - p), rtol=1e-10)


@pytest.mark.parametrize("name", ["logit", "probit", "cloglog", "log", "inverse"])
def test_links_have_the_same_means(name):
    link = find_link(name)
    function = model_function([dbrm.parse_feature("x")], [3.0, 0.5], link, "jax")
    expected = link.mean(3.0 + 0.5 * TABLE["x"])
    np.testing.assert_allclose(function({"x": jnp.asarray(TABLE["x"])}), expected, rtol=2e-5)


def test_a_fitted_model_can_be_differentiated():
    draw = np.random.default_rng(1)
    X = pd.DataFrame(draw.normal(size=(60, 2)), columns=["a", "b"])
    y = 3 * np.sin(X["a"]) + 0.1 * draw.normal(size=60)
    quick = {"n_chains": 1, "n_populations": 2, "transforms": ["sin"], "random_state": 1}
    model = dbrm.fit(X, y, **quick).best_model
    arrays = {name: jnp.asarray(X[name].to_numpy()) for name in X}
    function = model.to_callable("jax")
    np.testing.assert_allclose(function(arrays), model.to_callable()(X), rtol=1e-4, atol=1e-5)
    slope = jax.grad(lambda a: function({"a": a, "b": 0.0}))(0.0)
    assert slope == pytest.approx(3.0, abs=0.3)


def test_whole_numbers_as_names():
    draw = np.random.default_rng(1)
    X = pd.DataFrame(draw.normal(size=(60, 3)))
    quick = {"n_chains": 1, "n_populations": 1, "transforms": ["sin"], "sweep": 0}
    model = dbrm.fit(X, X[0] + 0.1 * draw.normal(size=60), **quick).best_model
    assert model.terms
    np.testing.assert_allclose(model.to_callable()(X), model.predict(X))


def test_the_functions_of_torch_are_asked_for_what_they_take(monkeypatch):
    """Where PyTorch is not installed: a module of the same names stands in for it."""

    def clamp(x, *, min):  # noqa: A002
        return np.maximum(x, min)

    names = {name: getattr(np, name) for name in ("exp", "log", "sin", "cos", "tanh", "abs")}
    fake = SimpleNamespace(
        **names, atan=np.arctan, asinh=np.arcsinh, erf=None, where=np.where, sqrt=np.sqrt
    )
    fake.clamp, fake.as_tensor = clamp, np.asarray
    monkeypatch.setitem(sys.modules, "torch", fake)
    for text in ("relu(x)", "sqrt_abs(x)", "hinge(x, 0.3)", "cbrt(x)"):
        feature = dbrm.parse_feature(text)
        function = model_function([feature], [0.0, 1.0], None, "torch")
        np.testing.assert_allclose(function(TABLE), feature.evaluate(TABLE))


def test_what_cannot_be_done_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        model_function([], [0.0], None, "torch")
    with pytest.raises(InvalidSettingError, match="did you mean 'torch'"):
        model_function([], [0.0], None, "pytorch")
    (own,) = resolve_transforms([dbrm.Transform("mine", np.sinh)])
    feature = dbrm.parse_feature("mine(x)", transforms=[own])
    with pytest.raises(ExportError, match="has no expression"):
        model_function([feature], [0.0, 1.0], None, "jax")(TABLE)
