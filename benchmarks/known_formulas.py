"""Known formulas: of Nguyen, of Keijzer, and from the Feynman lectures on physics.

Each is written with its constants as parameters ``t``, their true values beside it, so that a
formula can be compared with it up to constants, and the error of estimating them, the form
being known, can be computed. Constants are: a factor of every summand and of the argument of
every function, and where a function is applied to a sum, a constant summand in it, too (which
may truly be zero). An intercept belongs to every law and is not listed. The ranges are those of
the collections: Uy et al. (2011), Keijzer (2003), Udrescu and Tegmark (2020).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["FORMULAS", "HELD_OUT", "ROWS", "SECOND_VOLUME", "THIRD_VOLUME", "Formula"]

ROWS = 300
pi, sqrt, exp, log, sin, cos = np.pi, np.sqrt, np.exp, np.log, np.sin, np.cos


@dataclass(frozen=True)
class Formula:
    """A law, the constants in it, and where its variables live."""

    name: str
    text: str
    law: Callable[..., np.ndarray]
    constants: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]

    def __call__(self, x, constants=None):
        """Values of the law at the rows of x; not finite where it is not defined."""
        with np.errstate(all="ignore"):
            return self.law(self.constants if constants is None else constants, *x.T)

    def draw(self, rng, n):
        """Rows with independent uniform variables."""
        low, high = np.array(self.ranges).T
        return rng.uniform(low, high, (n, low.size))

    def draw_outside(self, rng, n):
        """Rows from ranges up to twice as far, where at least one variable leaves its range.

        Where the law is not defined there are no rows.
        """
        low, high = np.array(self.ranges).T
        rows = rng.uniform(np.where(low > 0, low / 2, 2 * low), 2 * high, (20 * n, low.size))
        rows = rows[((rows < low) | (rows > high)).any(axis=1)]
        return rows[np.isfinite(self(rows))][:n]


def _one(low, high):
    return ((low, high),)


def _all(count, low=1.0, high=5.0):
    return ((low, high),) * count


_NGUYEN = (
    Formula(
        "Nguyen-1", "x^3 + x^2 + x",
        lambda t, x: t[0] * x**3 + t[1] * x**2 + t[2] * x, (1, 1, 1), _one(-1, 1),
    ),
    Formula(
        "Nguyen-2", "x^4 + x^3 + x^2 + x",
        lambda t, x: sum(t[k] * x ** (k + 1) for k in range(4)), (1,) * 4, _one(-1, 1),
    ),
    Formula(
        "Nguyen-3", "x^5 + x^4 + x^3 + x^2 + x",
        lambda t, x: sum(t[k] * x ** (k + 1) for k in range(5)), (1,) * 5, _one(-1, 1),
    ),
    Formula(
        "Nguyen-4", "x^6 + x^5 + x^4 + x^3 + x^2 + x",
        lambda t, x: sum(t[k] * x ** (k + 1) for k in range(6)), (1,) * 6, _one(-1, 1),
    ),
    Formula(
        "Nguyen-5", "sin(x^2) cos(x) - 1",
        lambda t, x: t[0] * sin(t[1] * x**2) * cos(t[2] * x), (1, 1, 1), _one(-1, 1),
    ),
    Formula(
        "Nguyen-6", "sin(x) + sin(x + x^2)",
        lambda t, x: t[0] * sin(t[1] * x) + t[2] * sin(t[3] * x + t[4] * x**2 + t[5]),
        (1, 1, 1, 1, 1, 0), _one(-1, 1),
    ),
    Formula(
        "Nguyen-7", "log(x + 1) + log(x^2 + 1)",
        lambda t, x: t[0] * log(x + t[1]) + t[2] * log(x**2 + t[3]), (1,) * 4, _one(0, 2),
    ),
    Formula("Nguyen-8", "sqrt(x)", lambda t, x: t[0] * sqrt(x), (1,), _one(0, 4)),
    Formula(
        "Nguyen-9", "sin(x) + sin(y^2)",
        lambda t, x, y: t[0] * sin(t[1] * x) + t[2] * sin(t[3] * y**2), (1,) * 4, _all(2, 0, 1),
    ),
    Formula(
        "Nguyen-10", "2 sin(x) cos(y)",
        lambda t, x, y: t[0] * sin(t[1] * x) * cos(t[2] * y), (2, 1, 1), _all(2, 0, 1),
    ),
    Formula("Nguyen-11", "x^y", lambda t, x, y: t[0] * x ** (t[1] * y), (1, 1), _all(2, 0, 1)),
    Formula(
        "Nguyen-12", "x^4 - x^3 + y^2 / 2 - y",
        lambda t, x, y: t[0] * x**4 + t[1] * x**3 + t[2] * y**2 + t[3] * y,
        (1, -1, 0.5, -1), _all(2, 0, 1),
    ),
)  # fmt: skip

_KEIJZER = (
    Formula(
        "Keijzer-4", "x^3 exp(-x) cos(x) sin(x) (sin(x)^2 cos(x) - 1)",
        lambda t, x: (
            x**3 * exp(t[0] * x) * cos(t[1] * x) * sin(t[2] * x)
            * (t[3] * sin(t[4] * x) ** 2 * cos(t[5] * x) + t[6])
        ),
        (-1, 1, 1, 1, 1, 1, -1), _one(0, 10),
    ),
    Formula(
        "Keijzer-5", "30 x z / ((x - 10) y^2)",
        lambda t, x, y, z: t[0] * x * z / ((x + t[1]) * y**2),
        (30, -10), ((-1, 1), (1, 2), (-1, 1)),
    ),
    Formula("Keijzer-7", "log(x)", lambda t, x: t[0] * log(x), (1,), _one(1, 100)),
    Formula(
        "Keijzer-11", "x y + sin((x - 1) (y - 1))",
        lambda t, x, y: (
            t[0] * x * y + t[1] * sin(t[2] * x * y + t[3] * x + t[4] * y + t[5])
        ),
        (1, 1, 1, -1, -1, 1), _all(2, -3, 3),
    ),
    Formula(
        "Keijzer-14", "8 / (2 + x^2 + y^2)",
        lambda t, x, y: 8 / (t[0] + t[1] * x**2 + t[2] * y**2), (2, 1, 1), _all(2, -3, 3),
    ),
    Formula(
        "Keijzer-15", "x^3 / 5 + y^3 / 2 - y - x",
        lambda t, x, y: t[0] * x**3 + t[1] * y**3 + t[2] * y + t[3] * x,
        (0.2, 0.5, -1, -1), _all(2, -3, 3),
    ),
)  # fmt: skip

_FEYNMAN = (
    Formula(
        "Feynman I.6.20a", "exp(-t^2 / 2) / sqrt(2 pi)",
        lambda t, x: t[0] * exp(-t[1] * x**2), (1 / sqrt(2 * pi), 0.5), _one(1, 3),
    ),
    Formula(
        "Feynman I.8.14", "sqrt((x2 - x1)^2 + (y2 - y1)^2)",
        lambda t, a, b, c, d: sqrt(
            t[0] * a * a + t[1] * a * b + t[2] * b * b
            + t[3] * c * c + t[4] * c * d + t[5] * d * d + t[6]
        ),
        (1, -2, 1, 1, -2, 1, 0), _all(4),
    ),
    Formula(
        "Feynman I.10.7", "m / sqrt(1 - v^2 / c^2)",
        lambda t, m, v, c: t[0] * m / sqrt(1 - t[1] * v**2 / c**2),
        (1, 1), ((1, 5), (1, 2), (3, 10)),
    ),
    Formula(
        "Feynman I.11.19", "x1 y1 + x2 y2 + x3 y3",
        lambda t, a, b, c, d, e, f: t[0] * a * b + t[1] * c * d + t[2] * e * f,
        (1, 1, 1), _all(6),
    ),
    Formula(
        "Feynman I.12.2", "q1 q2 / (4 pi e r^2)",
        lambda t, p, q, e, r: t[0] * p * q / (e * r**2), (1 / (4 * pi),), _all(4),
    ),
    Formula(
        "Feynman I.12.11", "q (E + B v sin(theta))",
        lambda t, q, e, b, v, a: t[0] * q * e + t[1] * q * b * v * sin(t[2] * a),
        (1, 1, 1), _all(5),
    ),
    Formula(
        "Feynman I.13.4", "m (v^2 + u^2 + w^2) / 2",
        lambda t, m, v, u, w: m * (t[0] * v**2 + t[1] * u**2 + t[2] * w**2),
        (0.5, 0.5, 0.5), _all(4),
    ),
    Formula(
        "Feynman I.13.12", "G m1 m2 (1 / r2 - 1 / r1)",
        lambda t, g, m, n, r, s: g * m * n * (t[0] / s + t[1] / r), (1, -1), _all(5),
    ),
    Formula(
        "Feynman I.15.1", "m v / sqrt(1 - v^2 / c^2)",
        lambda t, m, v, c: t[0] * m * v / sqrt(1 - t[1] * v**2 / c**2),
        (1, 1), ((1, 5), (1, 2), (3, 10)),
    ),
    Formula(
        "Feynman I.16.6", "(u + v) / (1 + u v / c^2)",
        lambda t, u, v, c: (t[0] * u + t[1] * v) / (1 + t[2] * u * v / c**2),
        (1, 1, 1), _all(3),
    ),
    Formula(
        "Feynman I.18.4", "(m1 r1 + m2 r2) / (m1 + m2)",
        lambda t, m, n, r, s: (t[0] * m * r + t[1] * n * s) / (m + t[2] * n + t[3]),
        (1, 1, 1, 0), _all(4),
    ),
    Formula(
        "Feynman I.18.12", "r F sin(theta)",
        lambda t, r, f, a: t[0] * r * f * sin(t[1] * a), (1, 1), ((1, 5), (1, 5), (0, 5)),
    ),
    Formula(
        "Feynman I.24.6", "m (w^2 + w0^2) x^2 / 4",
        lambda t, m, w, v, x: m * (t[0] * w**2 + t[1] * v**2) * x**2,
        (0.25, 0.25), _all(4, 1, 3),
    ),
    Formula(
        "Feynman I.27.6", "1 / (1 / d1 + n / d2)",
        lambda t, d, e, n: 1 / (t[0] / d + t[1] * n / e + t[2]), (1, 1, 0), _all(3),
    ),
    Formula(
        "Feynman I.34.8", "q v B / p",
        lambda t, q, v, b, p: t[0] * q * v * b / p, (1,), _all(4),
    ),
    Formula(
        "Feynman I.37.4", "I1 + I2 + 2 sqrt(I1 I2) cos(delta)",
        lambda t, a, b, d: t[0] * a + t[1] * b + t[2] * sqrt(a * b) * cos(t[3] * d),
        (1, 1, 2, 1), _all(3),
    ),
    Formula(
        "Feynman I.39.22", "n k T / V",
        lambda t, n, k, c, v: t[0] * n * k * c / v, (1,), _all(4),
    ),
    Formula(
        "Feynman I.43.16", "mu q V / d",
        lambda t, m, q, v, d: t[0] * m * q * v / d, (1,), _all(4),
    ),
    Formula(
        "Feynman I.47.23", "sqrt(gamma p / rho)",
        lambda t, g, p, r: t[0] * sqrt(g * p / r), (1,), _all(3),
    ),
    Formula(
        "Feynman II.2.42", "k (T2 - T1) A / d",
        lambda t, k, c, b, a, d: k * (t[0] * b + t[1] * c) * a / d, (1, -1), _all(5),
    ),
    Formula(
        "Feynman II.3.24", "P / (4 pi r^2)",
        lambda t, p, r: t[0] * p / r**2, (1 / (4 * pi),), _all(2),
    ),
    Formula(
        "Feynman II.15.4", "-mu B cos(theta)",
        lambda t, m, b, a: t[0] * m * b * cos(t[1] * a), (-1, 1), _all(3),
    ),
    Formula(
        "Feynman III.15.14", "h^2 / (2 E d^2)",
        lambda t, h, e, d: t[0] * h**2 / (e * d**2), (0.5,), _all(3),
    ),
    Formula(
        "Feynman III.17.37", "beta (1 + alpha cos(theta))",
        lambda t, b, a, d: t[0] * b + t[1] * b * a * cos(t[2] * d), (1, 1, 1), _all(3),
    ),
)  # fmt: skip

FORMULAS = (*_NGUYEN, *_KEIJZER, *_FEYNMAN)

# Never run before settings and search were fixed, in two parts. Nineteen of Feynman's second volume
# with at most five variables and the functions on offer; after they had been run once, a chain
# whose time goes to the sweep was made to look at what the sweep found.
SECOND_VOLUME = (
    Formula(
        "Feynman II.6.11", "p cos(theta) / (4 pi e r^2)",
        lambda t, e, p, a, r: t[0] * p * cos(t[1] * a) / (e * r**2),
        (1 / (4 * pi), 1), ((1, 3), (1, 3), (0, 2), (1, 3)),
    ),
    Formula(
        "Feynman II.8.7", "3/5 q^2 / (4 pi e d)",
        lambda t, q, e, d: t[0] * q**2 / (e * d), (0.6 / (4 * pi),), _all(3),
    ),
    Formula("Feynman II.8.31", "e E^2 / 2", lambda t, e, f: t[0] * e * f**2, (0.5,), _all(2)),
    Formula(
        "Feynman II.10.9", "s / (e (1 + chi))",
        lambda t, s, e, x: t[0] * s / (e * (1 + t[1] * x)), (1, 1), _all(3),
    ),
    Formula(
        "Feynman II.11.20", "N p^2 E / (3 k T)",
        lambda t, n, e, p, k, c: t[0] * n * p**2 * e / (k * c), (1 / 3,), _all(5, 1, 3),
    ),
    Formula(
        "Feynman II.11.27", "n a e E / (1 - n a / 3)",
        lambda t, n, a, e, f: t[0] * n * a * e * f / (1 + t[1] * n * a),
        (1, -1 / 3), ((0, 1), (0, 1), (1, 2), (1, 2)),
    ),
    Formula(
        "Feynman II.11.28", "1 + n a / (1 - n a / 3)",
        lambda t, n, a: t[0] * n * a / (1 + t[1] * n * a), (1, -1 / 3), _all(2, 0, 1),
    ),
    Formula(
        "Feynman II.13.17", "2 I / (4 pi e c^2 r)",
        lambda t, e, c, i, r: t[0] * i / (e * c**2 * r), (1 / (2 * pi),), _all(4),
    ),
    Formula(
        "Feynman II.21.32", "q / (4 pi e r (1 - v / c))",
        lambda t, q, e, r, v, c: t[0] * q / (e * r * (1 + t[1] * v / c)),
        (1 / (4 * pi), -1), ((1, 5), (1, 5), (1, 5), (1, 2), (3, 10)),
    ),
    Formula(
        "Feynman II.24.17", "sqrt(w^2 / c^2 - pi^2 / d^2)",
        lambda t, w, c, d: sqrt(t[0] * w**2 / c**2 + t[1] / d**2 + t[2]),
        (1, -(pi**2), 0), ((4, 6), (1, 2), (2, 4)),
    ),
    Formula(
        "Feynman II.27.16", "e c E^2", lambda t, e, c, f: t[0] * e * c * f**2, (1,), _all(3)
    ),
    Formula("Feynman II.27.18", "e E^2", lambda t, e, f: t[0] * e * f**2, (1,), _all(2)),
    Formula("Feynman II.34.2", "q v r / 2", lambda t, q, v, r: t[0] * q * v * r, (0.5,), _all(3)),
    Formula(
        "Feynman II.34.2a", "q v / (2 pi r)",
        lambda t, q, v, r: t[0] * q * v / r, (1 / (2 * pi),), _all(3),
    ),
    Formula(
        "Feynman II.34.11", "g q B / (2 m)",
        lambda t, g, q, b, m: t[0] * g * q * b / m, (0.5,), _all(4),
    ),
    Formula(
        "Feynman II.34.29a", "q h / (4 pi m)",
        lambda t, q, h, m: t[0] * q * h / m, (1 / (4 * pi),), _all(3),
    ),
    Formula(
        "Feynman II.37.1", "mu (1 + chi) B",
        lambda t, m, b, x: t[0] * m * b + t[1] * m * b * x, (1, 1), _all(3),
    ),
    Formula(
        "Feynman II.38.3", "Y A x / d", lambda t, y, a, x, d: t[0] * y * a * x / d, (1,), _all(4)
    ),
    Formula(
        "Feynman II.38.14", "Y / (2 (1 + s))",
        lambda t, y, s: t[0] * y / (1 + t[1] * s), (0.5, 1), _all(2),
    ),
)  # fmt: skip

# Those of the third volume with at most five variables that are not among the formulas above,
# first run after that change.
THIRD_VOLUME = (
    Formula(
        "Feynman III.4.32", "1 / (exp(h w / (2 pi k T)) - 1)",
        lambda t, h, w, k, c: 1 / (t[0] * exp(t[1] * h * w / (k * c)) - 1),
        (1, 1 / (2 * pi)), _all(4),
    ),
    Formula(
        "Feynman III.4.33", "h w / (2 pi (exp(h w / (2 pi k T)) - 1))",
        lambda t, h, w, k, c: t[0] * h * w / (exp(t[1] * h * w / (k * c)) - t[2]),
        (1 / (2 * pi), 1 / (2 * pi), 1), _all(4),
    ),
    Formula(
        "Feynman III.7.38", "4 pi mu B / h",
        lambda t, m, b, h: t[0] * m * b / h, (4 * pi,), _all(3),
    ),
    Formula(
        "Feynman III.8.54", "sin(2 pi E t / h)^2",
        lambda t, e, s, h: t[0] * sin(t[1] * e * s / h) ** 2,
        (1, 2 * pi), ((1, 2), (1, 2), (1, 4)),
    ),
    Formula(
        "Feynman III.10.19", "mu sqrt(Bx^2 + By^2 + Bz^2)",
        lambda t, m, a, b, c: m * sqrt(t[0] * a**2 + t[1] * b**2 + t[2] * c**2 + t[3]),
        (1, 1, 1, 0), _all(4),
    ),
    Formula(
        "Feynman III.12.43", "n h / (2 pi)",
        lambda t, n, h: t[0] * n * h, (1 / (2 * pi),), _all(2),
    ),
    Formula(
        "Feynman III.13.18", "4 pi E d^2 k / h",
        lambda t, e, d, k, h: t[0] * e * d**2 * k / h, (4 * pi,), _all(4),
    ),
    Formula(
        "Feynman III.14.14", "I (exp(q V / (k T)) - 1)",
        lambda t, i, q, v, k, c: t[0] * i * exp(t[1] * q * v / (k * c)) + t[2] * i,
        (1, 1, -1), ((1, 5), (1, 2), (1, 2), (1, 2), (1, 2)),
    ),
    Formula(
        "Feynman III.15.12", "2 U (1 - cos(k d))",
        lambda t, u, k, d: t[0] * u + t[1] * u * cos(t[2] * k * d), (2, -2, 1), _all(3),
    ),
    Formula(
        "Feynman III.15.27", "2 pi alpha / (n d)",
        lambda t, a, n, d: t[0] * a / (n * d), (2 * pi,), _all(3),
    ),
    Formula(
        "Feynman III.19.51", "-m q^4 / (8 e^2 h^2 n^2)",
        lambda t, m, q, h, n, e: t[0] * m * q**4 / (e**2 * h**2 * n**2), (-1 / 8,), _all(5),
    ),
    Formula(
        "Feynman III.21.20", "-rho q A / m",
        lambda t, r, q, a, m: t[0] * r * q * a / m, (-1,), _all(4),
    ),
)  # fmt: skip

HELD_OUT = (*SECOND_VOLUME, *THIRD_VOLUME)
