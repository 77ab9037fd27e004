"""Tests of `dbrm.features.export`."""

import subprocess
import sys

import numpy as np
import pytest

from dbrm.features import TRANSFORMS, Transform, covariate, modify, parse_feature, power, step

sympy = pytest.importorskip("sympy")

FORMS = [
    *TRANSFORMS,
    *("step[0.3]", "step_down[-0.2]", "hinge[0.5]", "hinge_down[0.5]"),
    *("power[-1]", "power[2/3]", "step[q0.5=0.1]", "hinge[q0.25=-0.4]"),
]


@pytest.mark.parametrize("name", FORMS)
def test_sympy_form_has_the_same_values(name):
    x = np.random.default_rng(1).normal(size=200) * 2
    feature = parse_feature(f"{name}(x)")
    function = sympy.lambdify([sympy.Symbol("x")], feature.to_sympy(), "scipy")
    np.testing.assert_allclose(function(x), feature.evaluate({"x": x}), rtol=1e-10, atol=1e-14)


def test_sympy_of_a_whole_feature():
    x, y = sympy.symbols("x y")
    feature = parse_feature("tanh(0.5 + 2.0*x*y)*x*x")
    assert feature.to_sympy() == x**2 * sympy.tanh(0.5 + 2.0 * x * y)
    t = sympy.Symbol("t", positive=True)
    assert parse_feature("troot(x*x*x)").to_sympy({"x": t}) == t


def test_sympy_of_users_transforms():
    x = sympy.Symbol("x")
    plain = modify(Transform("mine", lambda v: v**3), covariate("x"))
    assert plain.to_sympy() == sympy.Function("mine")(x)
    given = Transform("mine", lambda v: v**3, sympy=lambda v: v**3)
    assert modify(given, covariate("x")).to_sympy() == x**3


def test_an_unknown_knot_stays_a_symbol():
    expression = modify(step("q0.5"), covariate("x")).to_sympy()
    assert {str(symbol) for symbol in expression.free_symbols} == {"x", "c_step[q0.5]"}


def test_without_sympy_the_error_says_what_to_install_and_latex_works():
    code = (
        "import sys; sys.modules['sympy'] = None\n"
        "from dbrm.features import parse_feature\n"
        "f = parse_feature('troot(x*x)')\n"
        "print(f.to_latex())\n"
        "try: f.to_sympy()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    latex, error = done.stdout.splitlines()
    assert latex == r"\left|{x}^{2}\right|^{1/3}"
    assert 'pip install "dbrm[sympy]"' in error


def test_features_do_not_import_heavy_packages():
    code = (
        "import dbrm.features, sys\n"
        "print(sorted({'sympy', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x", "x"),
        ("x1*x1*y", r"{x_{1}}^{2} \, y"),
        ("x_12", "x_{12}"),
        ("alpha_beta", r"\mathrm{alpha\_beta}"),
        ("`50% of {a}`", r"\text{50\% of \{a\}}"),
        ("sin(x)*sin(x)", r"\left(\sin\left(x\right)\right)^{2}"),
        ("tanh(0.3 - 1.23456789*x + 1e-7*y)",
         r"\tanh\left(0.3 - 1.235 \, x + 1 \cdot 10^{-7} \, y\right)"),
        ("exp(-123456.7*x)", r"e^{-1.235 \cdot 10^{5} \, x}"),
        ("step[1.5](x)", r"\mathrm{I}\left(x > 1.5\right)"),
        ("step[q0.5](x)", r"\mathrm{I}\left(x > q_{0.5}\right)"),
        ("step[q0.5=0.25](`#1`)", r"\mathrm{I}\left(\text{\#1} > 0.25\right)"),
        ("tanh(0.0 + 0.0*x)", r"\tanh\left(0 + 0 \, x\right)"),
    ],
)  # fmt: skip
def test_latex(text, latex):
    assert parse_feature(text).to_latex() == latex


def test_latex_digits_and_own_forms():
    feature = parse_feature("tanh(3.14159*x)")
    assert feature.to_latex(digits=2) == r"\tanh\left(3.1 \, x\right)"
    mine = Transform("my_g", lambda x: x**3)
    assert modify(mine, covariate("x")).to_latex() == r"\operatorname{my\_g}\left(x\right)"
    assert modify(power(5), covariate("x")).to_latex() == r"\left(x\right)^{5}"
