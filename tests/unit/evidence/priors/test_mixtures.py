"""Mixtures of g-priors against their definitions, closed forms and mpmath."""

from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import stats

from dbrm.evidence.coefficient_priors import (
    CCH,
    TCCH,
    AdaptedZellnerSiow,
    BenchmarkBeta,
    BetaPrime,
    EBLocal,
    GaussianShape,
    GPrior,
    HyperG,
    HyperGN,
    Intrinsic,
    JeffreysG,
    Robust,
    TruncatedGamma,
    UniformG,
    ZellnerSiow,
)
from dbrm.evidence.coefficient_priors.mixture import glm_log_factors

N, P = 47.0, 5


def log_bayes_factor(prior, n, size, fraction):
    """What the piecewise table says, without the constant that would drown it."""
    table = prior.score_table(np.array([0, size]), GaussianShape(n, 1.0, 1e-12))
    if table.pieces.shape[1] == 0:
        return table.value(fraction, 1) - table.value(1.0, 0)
    arguments = (np.zeros(2), *table.arguments[1:])
    return type(table)(*arguments).value(fraction, 1)


# The densities of g as the literature writes them.
LITERATURE = {
    HyperG(a=3.5): lambda g: 0.75 * (1 + g) ** -1.75,
    HyperGN(a=3.5): lambda g: 0.75 / N * (1 + g / N) ** -1.75,
    ZellnerSiow(r=0.5): stats.invgamma(0.5, scale=0.25 * N).pdf,
    BetaPrime(): lambda g: stats.beta(0.25, (N - P - 1.5) / 2).pdf(1 / (1 + g)) / (1 + g) ** 2,
    Robust(): lambda g: np.where(
        g > (1 + N) / (P + 1) - 1, 0.5 * np.sqrt((1 + N) / (P + 1)) * (1 + g) ** -1.5, 0.0
    ),
    Intrinsic(): lambda g: stats.beta(0.5, 0.5).pdf(N / ((P + 1) * g)) * N / ((P + 1) * g**2),
    UniformG(): lambda g: (1 + g) ** -2.0,
    JeffreysG(): lambda g: 1 / (1 + g),
    BenchmarkBeta(9): lambda g: stats.beta(0.01, 0.81).pdf(1 / (1 + g)) / (1 + g) ** 2,
    TruncatedGamma(a=2.0, s=3.0): lambda g: (
        9 / (1 - 4 * np.exp(-3)) * np.exp(-3 / (1 + g)) / (1 + g) ** 3
    ),
    AdaptedZellnerSiow(): lambda g: (
        stats.gamma(0.5, scale=2 / (N + 3)).pdf(1 / (1 + g))
        / stats.gamma(0.5, scale=2 / (N + 3)).cdf(1.0)
        / (1 + g) ** 2
    ),
}


@pytest.mark.parametrize("prior", LITERATURE, ids=repr)
def test_density_is_that_of_the_literature(prior):
    """Shape and normalising constant at once, between the ends of the support."""
    mixing = prior.mixing(P, N)
    t = np.array([1e-6, 0.01, 0.2, 0.5, 0.9, 0.97])
    u = t / mixing.v
    density = LITERATURE[prior]((1 - u) / u) / u**2
    np.testing.assert_allclose(
        mixing.log_density(np.log(t), np.log1p(-t)), np.log(density), rtol=1e-10, atol=1e-10
    )


def hyper_g(n, p, f):
    return mpmath.hyp2f1((n - 1) / 2, 1, (p + 3) / 2, 1 - f) / (p + 1)


def robust(n, p, f):
    lead = (mpmath.mpf(n + 1) / (p + 1)) ** (-mpmath.mpf(p) / 2) * f ** (-(n - 1) / 2) / (p + 1)
    argument = (1 - 1 / f) * (p + 1) / (1 + n)
    return lead * mpmath.hyp2f1(mpmath.mpf(p + 1) / 2, (n - 1) / 2, mpmath.mpf(p + 3) / 2, argument)


def beta_prime(n, p, f):
    a, b = mpmath.mpf(1) / 2, n - p - mpmath.mpf(3) / 2
    return mpmath.beta((a + p) / 2, b / 2) / mpmath.beta(a / 2, b / 2) * f ** (-b / 2)


CLOSED_FORMS = [(HyperG(), hyper_g), (Robust(), robust), (BetaPrime(), beta_prime)]


@pytest.mark.parametrize(("prior", "closed_form"), CLOSED_FORMS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(
    ("n", "p", "f"), [(47, 5, 0.38), (10, 1, 1 - 1e-8), (3, 1, 0.5), (300, 20, 0.01), (50, 48, 0.2)]
)
def test_closed_forms(prior, closed_form, n, p, f):
    with mpmath.workdps(40):
        expected = float(mpmath.log(closed_form(mpmath.mpf(n), p, mpmath.mpf(f))))
    assert log_bayes_factor(prior, float(n), p, f) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def by_mpmath(mixing, n, size, fraction):
    """Log Bayes factor, integrated over log g with forty digits."""
    with mpmath.workdps(40):
        half, f = (mpmath.mpf(n) - 1) / 2, mpmath.mpf(fraction)

        def kernel(x, *, data):
            t = 1 / (1 + mpmath.exp(-x))
            u = t / mixing.v
            value = mpmath.mpf(mixing.a) / 2 * mpmath.log(t) - mixing.z * mpmath.exp(x) / 2
            value += mpmath.mpf(mixing.b) / 2 * mpmath.log(1 / (1 + mpmath.exp(x)))
            value -= mixing.r * mpmath.log(mixing.k + (1 - mpmath.mpf(mixing.k)) * t)
            value -= mixing.s * u / 2
            if data:
                value += size * mpmath.log(u) / 2 - half * mpmath.log(f + (1 - f) * u)
            return mpmath.exp(value)

        ends = [*range(-240, -40, 20), *range(-40, 41, 2), *range(60, 241, 20)]
        with_data = mpmath.quad(lambda x: kernel(x, data=True), ends)
        return float(mpmath.log(with_data / mpmath.quad(lambda x: kernel(x, data=False), ends)))


@pytest.mark.parametrize(
    "prior",
    [
        ZellnerSiow(),
        TCCH(1.5, 0.7, 2.5, 3.0, 2.0, 0.3),
        pytest.param(HyperGN(), marks=pytest.mark.slow),
        pytest.param(CCH(0.6, 3.0, -7.0), marks=pytest.mark.slow),
    ],
)
def test_quadrature_with_forty_digits(prior):
    expected = by_mpmath(prior.mixing(P, N), N, P, 0.38)
    assert log_bayes_factor(prior, N, P, 0.38) == pytest.approx(expected, rel=1e-12)


@cache
def legendre():
    """Nodes and weights with thirty digits."""
    with mpmath.workdps(30):
        return mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(4, mpmath.mp.prec)


def integral(function, ends):
    """Gauss-Legendre sums over panels that are halved until halves agree with the whole."""

    def panel(low, high):
        centre, half = (low + high) / 2, (high - low) / 2
        return half * mpmath.fsum(weight * function(centre + half * x) for x, weight in legendre())

    todo = [(low, high, panel(low, high)) for low, high in pairwise(map(mpmath.mpf, ends))]
    scale, total = max(value for _, _, value in todo), mpmath.mpf(0)
    while todo:
        low, high, whole = todo.pop()
        middle = (low + high) / 2
        halves = panel(low, middle), panel(middle, high)
        scale = max(scale, *halves)
        if abs(sum(halves) - whole) <= 1e-16 * scale:
            total += sum(halves)
        else:
            todo += [(low, middle, halves[0]), (middle, high, halves[1])]
    return total


def glm_by_mpmath(mixing, size, wald):
    """Log of the integral of u^(p/2) e^(-Wu/2), over log g with thirty digits."""
    with mpmath.workdps(30):
        a, b, r, k = mpmath.matrix([mixing.a / 2, mixing.b / 2, mixing.r, mixing.k])
        tilt, lift = mpmath.mpf(mixing.s) / (2 * mixing.v), mpmath.mpf(size) / 2

        def kernel(x, power, rate):
            odds = mpmath.exp(x)
            log_ends = power * x - (power + b) * mpmath.log1p(odds)
            bend = mpmath.log((k + odds) / (1 + odds))
            return mpmath.exp(log_ends - r * bend - rate * odds / (1 + odds))

        ends = [-100 / a, *range(-40, 41, 5), 100 / b]
        ends = sorted({float(end) for end in ends})
        rate = tilt + mpmath.mpf(wald) / (2 * mixing.v)
        with_data = integral(lambda x: kernel(x, a + lift, rate), ends)
        without = integral(lambda x: kernel(x, a, tilt), ends)
        return float(mpmath.log(with_data / without) - lift * mpmath.log(mixing.v))


def glm_errors(prior, size, n, walds):
    """Errors of the table against direct sums at all `walds`, and against mpmath at the worst."""
    table, mixing = prior.glm_table(np.array([0, size]), n), prior.mixing(size, n)
    null = table.value(0.0, 0.0, 0.0, 0)
    values = np.array([table.value(0.0, 0.0, wald, 1) for wald in walds]) - null
    apart = np.abs(values - glm_log_factors(mixing, size, walds)[0])
    worst = int(np.argmax(apart))
    return apart[worst], abs(values[worst] - glm_by_mpmath(mixing, size, walds[worst]))


def test_two_modes_that_change_places():
    """Where the integrand has two modes, panels of usual width were off by 3.7e-6."""
    prior = TCCH(2, 3, 6, -100, 3, 867)
    assert glm_by_mpmath(prior.mixing(12, 1e4), 12, 400.0) == pytest.approx(
        -71.0203393976, abs=1e-9
    )
    table = prior.glm_table(np.array([0, 12]), 1e4)
    value = table.value(0.0, 0.0, 400.0, 1) - table.value(0.0, 0.0, 0.0, 0)
    assert value == pytest.approx(-71.0203393976, abs=1e-8)


def random_mixture(rng):
    """Constants of any size that somebody might choose, and a model."""
    a, b, v, k, n, size = np.exp(
        rng.uniform(np.log([0.05, 0.1, 1, 1e-9, 70, 1]), np.log([60, 300, 300, 1e9, 1e6, 60]))
    )
    prior = TCCH(a, b, rng.uniform(-18, 18), rng.uniform(-300, 1200), v, k)
    return prior, int(size), float(int(n))


WALDS = np.exp(np.linspace(-2.0, 16.0, 120))


def test_any_constants_to_thirty_digits(rng):
    for _ in range(3):
        assert max(glm_errors(*random_mixture(rng), WALDS)) < 1e-8


@pytest.mark.slow
def test_very_many_constants_to_thirty_digits(rng):
    for _ in range(300):
        assert max(glm_errors(*random_mixture(rng), WALDS)) < 1e-8


# mpmath with forty digits: the integral of `by_mpmath`, its nodes placed around the mode.
EXTREMES = [(47.0, 5, 0.38), (10.0, 1, 1 - 1e-8), (223.0, 15, 1e-9), (1e6, 50, 0.001)]
STORED = {
    HyperG(): (11.654490392428681, -0.69314715805994504, 2104.9850877527375, 3453419.1398221752),
    HyperGN(): (11.490520104410676, -1.426062404716756, 2107.6886736123499, 3453425.9730603731),
    ZellnerSiow(): (
        11.705390474270139,
        -1.4596124154367634,
        2107.4628822771954,
        3453425.7962720418,
    ),
    BetaPrime(): (11.141088296711972, -1.7467186373811689, 2111.3874768017346, 3453426.0040467315),
    Robust(): (12.400680004931514, -1.5455211857700666, 2106.3046164175452, 3453424.0816651379),
    Intrinsic(): (12.648419902892562, -1.3178118148434058, 2105.8507965727225, 3453423.6305828022),
    UniformG(): (11.131891269708348, -0.40546509010816417, 2094.0269960196294, 3453411.4328746077),
    JeffreysG(): (13.675564439472619, 0.69314721055994567, 2117.365221633612, 3453428.2430639375),
    BenchmarkBeta(15): (
        8.9518243953432101,
        -4.3993065522414895,
        2112.5373902363022,
        3453423.5668851,
    ),
    AdaptedZellnerSiow(): (
        11.670204384946458,
        -1.5094590242223732,
        2107.4695638908662,
        3453425.7962733902,
    ),
}


@pytest.mark.parametrize("prior", STORED, ids=repr)
def test_extreme_points(prior):
    values = [log_bayes_factor(prior, *point) for point in EXTREMES]
    np.testing.assert_allclose(values, STORED[prior], rtol=1e-12)


@pytest.mark.parametrize(("n", "size", "fraction"), EXTREMES)
def test_extreme_points_of_fixed_g(n, size, fraction):
    """Fixed and estimated g by their textbook formulas with forty digits."""
    with mpmath.workdps(40):
        f, df = mpmath.mpf(fraction), mpmath.mpf(n) - 1

        def factor(g):
            return ((df - size) * mpmath.log(1 + g) - df * mpmath.log(1 + g * f)) / 2

        ratio = ((1 - f) / size) / (f / (df - size))
        expected = [float(factor(mpmath.mpf(n))), float(factor(max(ratio - 1, mpmath.mpf(0))))]
    values = [log_bayes_factor(prior, n, size, fraction) for prior in (GPrior(), EBLocal())]
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


def test_null_constant_is_the_evidence_of_the_intercept_alone():
    """Integrate a flat mean and sigma^-2 numerically for three observations."""
    y = np.array([0.3, 1.1, -0.7])
    total = float(((y - y.mean()) ** 2).sum())
    with mpmath.workdps(20):

        def over_mean(log_variance):
            variance = mpmath.exp(log_variance)
            # The flat mean integrates to sqrt(2 pi variance / n).
            return (
                (2 * mpmath.pi * variance) ** (-1)
                / mpmath.sqrt(3)
                * mpmath.exp(-total / (2 * variance))
            )

        expected = float(mpmath.log(mpmath.quad(over_mean, [-30, -5, 0, 5, 30, 90])))
    table = HyperG().score_table(np.array([0]), GaussianShape(3.0, total, 1e-12))
    assert table.value(1.0, 0) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("prior", [HyperG(), Robust(), EBLocal(), GPrior(g=4.0)], ids=repr)
def test_gaussian_and_glm_sides_meet(prior):
    """With n -> infinity at fixed W = n(1-f)/f the two log factors agree."""
    n, wald, size = 1e9, 17.0, 3
    gaussian = log_bayes_factor(prior, n, size, 1 / (1 + wald / n))
    table = prior.glm_table(np.array([0, size]), n)
    # The Gaussian factor is relative to the null likelihood, the other to the maximum.
    glm = table.value(0.0, 0.0, wald, 1) - table.value(0.0, 0.0, 0.0, 0) + wald / 2
    assert gaussian == pytest.approx(glm, abs=1e-6)
