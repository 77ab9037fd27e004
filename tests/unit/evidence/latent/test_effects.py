"""The built-in effects, and what `check_latent` finds in broken ones."""

from dataclasses import dataclass

import numpy as np
import pytest

from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence.latent import (
    AR1,
    IID,
    OU,
    RW1,
    RW2,
    ExponentialDeviation,
    Latent,
    LogGamma,
    NormalPrior,
    RandomIntercept,
)
from dbrm.evidence.latent.layout import LARGEST_BORDER, WIDEST, Layout
from dbrm.evidence.latent.nodes import bind
from dbrm.testing import check_latent

BUILTIN = [
    (AR1("t"), False),
    (OU("t"), True),
    (RW1("t"), True),
    (RW2("t"), False),
    (IID("t"), True),
    (IID(), True),
    (RandomIntercept("t"), True),
    (RW1("t", precision_prior=ExponentialDeviation(2.0)), True),
]


@pytest.mark.parametrize(("effect", "consistent"), BUILTIN, ids=lambda v: str(v)[:40])
def test_built_in_effects_pass_the_check(effect, consistent):
    report = check_latent(effect, consistent=consistent)
    assert "log determinant" in report.passed


@dataclass(frozen=True)
class Broken(Latent):
    """A random walk, wrong in one way at a time."""

    column: str = "t"
    fault: str = ""
    hyperparameters = ("log_precision",)
    start = (0.5,)
    nullity = 1

    def precision(self, psi, positions):
        band = RW1("t").precision(psi, positions)
        if self.fault == "proper":
            band[:, 0] += 0.1
        return band[:, :1] if self.fault == "band" else band

    def log_determinant(self, psi, positions):
        extra = 0.01 if self.fault == "determinant" else 0.0
        return RW1("t").log_determinant(psi, positions) + extra

    def log_hyperprior(self, psi):
        return LogGamma().log_density(psi[0]) + (0.01 if self.fault == "prior" else 0.0)

    def bridge(self, psi, positions, new):
        found = super().bridge(psi, positions, new)
        if self.fault == "bridge":
            found.variance[0] *= 1.01
        return found


def test_an_effect_of_ones_own_needs_no_bridge_of_its_own():
    check_latent(Broken())


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("band", "precision is a band"),
        ("proper", "null space"),
        ("determinant", "log determinant"),
        ("prior", "integrates to one"),
        ("bridge", "bridge"),
    ],
)
def test_the_check_finds_planted_faults(fault, message):
    with pytest.raises(AssertionError, match=message):
        check_latent(Broken(fault=fault))


def test_ar1_is_ou_on_a_grid():
    grid = np.arange(12.0)
    rho = 0.7
    ar1 = np.array([0.4, np.log((1 + rho) / (1 - rho))])
    ou = np.array([0.4, np.log(-np.log(rho))])
    band = AR1("t").precision(ar1, grid)
    np.testing.assert_allclose(band, OU("t").precision(ou, grid), atol=1e-12)
    new = np.array([-2.0, 3.5, 14.0])
    first, second = AR1("t").bridge(ar1, grid, new), OU("t").bridge(ou, grid, new)
    np.testing.assert_allclose(first.weights, second.weights, atol=1e-12)
    np.testing.assert_allclose(first.variance, second.variance, atol=1e-12)


def test_names_and_plain_descriptions():
    effect = OU("time", rate_prior=NormalPrior(1.0, 0.5))
    assert effect.name == "OU(time)"
    assert effect.to_dict()["rate_prior"] == {"prior": "NormalPrior", "mean": 1.0, "precision": 0.5}
    assert IID().name == "IID()"


@pytest.mark.parametrize("kind", [AR1, OU, RW1, RW2, RandomIntercept])
@pytest.mark.parametrize("column", ["", None, 3])
def test_effects_need_a_column(kind, column):
    with pytest.raises(InvalidSettingError, match="needs the name of the column"):
        kind(column)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LogGamma(rate=0.0),
        lambda: NormalPrior(precision=-1.0),
        lambda: ExponentialDeviation(np.inf),
        lambda: RW1("t", normalisation="none"),
    ],
)
def test_settings_out_of_range_are_refused(make):
    with pytest.raises(InvalidSettingError, match="needs"):
        make()


def test_positions_in_any_order_and_repeated():
    bound = bind(RW1("t"), np.array([3.0, 1.0, 2.0, 1.0, 3.0]), 5)
    np.testing.assert_array_equal(bound.positions, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(bound.index[:, 0], [2, 0, 1, 0, 2])


def test_groups_may_have_names():
    bound = bind(RandomIntercept("s"), np.array(["b", "a", "b"]), 3)
    assert bound.levels == ("a", "b")
    np.testing.assert_array_equal(bound.index[:, 0], [1, 0, 1])


@pytest.mark.parametrize(
    ("effect", "values", "message"),
    [
        (RandomIntercept("s"), np.array(["a", "a"]), "at least 2 different groups"),
        (RW2("t"), np.array([1.0, 2.0, 3.0]), "at least 4 different positions"),
        (AR1("t"), np.array([1.0, np.nan]), "finite position in every row"),
        (AR1("t"), np.array(["x", "y"]), "numbers as positions"),
    ],
)
def test_columns_that_cannot_carry_an_effect(effect, values, message):
    with pytest.raises(InvalidDataError, match=message):
        bind(effect, values, values.size)


def test_effects_over_one_column_interleave(rng):
    t = rng.permutation(60.0 + np.arange(50))
    layout = Layout([bind(e, t, 50) for e in (RW1("t"), AR1("t"), IID("t"))], 50)
    assert layout.width == 3
    assert not layout.border
    assert layout.size == 150


def test_crossed_groups_go_to_the_border(rng):
    n = 200
    t, site = np.arange(float(n)), rng.integers(0, 30, n)
    layout = Layout([bind(RW1("t"), t, n), bind(RandomIntercept("s"), site, n)], n)
    assert [border.number for border in layout.border] == [1]
    assert layout.width == 1
    nested = Layout([bind(RW1("t"), t, n), bind(RandomIntercept("s"), t // 5, n)], n)
    assert not nested.border
    assert nested.width <= WIDEST


def test_two_long_orderings_are_refused(rng):
    n = LARGEST_BORDER + 200
    bounds = [bind(RW1("t"), np.arange(float(n)), n), bind(RW1("u"), rng.normal(size=n), n)]
    with pytest.raises(InvalidDataError, match="different orderings"):
        Layout(bounds, n)


def test_many_new_positions_are_bridged_in_parts():
    """As the closed form of the random walk, for more positions than are treated at once."""
    positions, psi = np.arange(30.0), np.array([0.5])
    new = np.linspace(-3.0, 33.0, 1001)[1::2]
    found, exact = Broken().bridge(psi, positions, new), RW1("t").bridge(psi, positions, new)
    np.testing.assert_allclose(found.variance, exact.variance, rtol=1e-7, atol=1e-9)
    values = np.sin(positions)
    np.testing.assert_allclose(
        (found.weights * values[found.sources]).sum(axis=1),
        (exact.weights * values[exact.sources]).sum(axis=1),
        atol=1e-8,
    )
