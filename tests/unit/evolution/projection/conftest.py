"""Responses of every family, random expression trees, and projectors over them."""

import numpy as np
import pytest
from scipy.special import expit, ndtr
from threadpoolctl import threadpool_limits

from dbrm.data import Table
from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evidence.families import find_family
from dbrm.evolution.projection import Projector, resolve_strategy
from dbrm.features import Product, covariate, get_transform, modify, project

NAMES = ("x1", "x2", "x3", "x4")


def _own_family():
    """A family that the kernels do not know: half as dispersed as they come, by a subclass."""
    from dbrm.evidence.families import ExponentialFamily

    known = find_family("poisson")

    class Counts(ExponentialFamily):
        name = "counts"
        default_link = "log"
        mean_interval = support = (0.0, np.inf)
        discrete = True
        log_density = staticmethod(known.log_density)
        variance = staticmethod(known.variance)
        cdf = staticmethod(known.cdf)
        quantile = staticmethod(known.quantile)
        rvs = staticmethod(known.rvs)

    return Counts()


@pytest.fixture(autouse=True, scope="session")
def single_thread():
    """One thread for linear algebra, as inside chains: the matrices are tiny."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture
def respond():
    """Return a function that draws a response with weights, offset, trials and exposure."""

    def respond(rng, kind, signal):
        n = signal.size
        weights = rng.integers(1, 4, n).astype(float)
        offset = 0.2 * rng.normal(size=n)
        family, _, link = kind.partition("/")
        extra = {"weights": weights, "offset": offset}
        if family == "gaussian":
            y = 5.0 + 3.0 * signal + rng.normal(size=n)
            y = np.exp(0.2 * y) if link == "log" else y
        elif family == "binomial":
            extra["trials"] = rng.integers(1, 6, n).astype(float)
            mean = ndtr(signal) if link == "probit" else expit(2.0 * signal)
            y = rng.binomial(extra["trials"].astype(int), mean).astype(float)
        elif family == "gamma":
            y = rng.gamma(2.0, np.exp(signal) / 2.0) + 1e-3
            if link == "inverse":
                # Offsets could leave the domain of this link.
                extra.pop("offset")
        elif family == "negative_binomial":
            y = rng.negative_binomial(2, 2 / (2 + np.exp(1.0 + signal))).astype(float)
        else:
            y = rng.poisson(np.exp(0.5 + signal)).astype(float)
            if family == "poisson":
                extra["exposure"] = rng.uniform(0.5, 2.0, n)
        chosen = _own_family() if family == "counts" else family
        observations = Observations(y, **extra)
        return build_engine(observations, Jeffreys(), family=chosen, link=link or None)

    return respond


FAMILIES = (
    "gaussian",
    "gaussian/log",
    "binomial",
    "binomial/probit",
    "binomial/cloglog",
    "poisson",
    "gamma",
    "gamma/inverse",
    "negative_binomial",
    "counts",
)


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture
def table(rng):
    return Table(NAMES, rng.normal(size=(60, len(NAMES))))


@pytest.fixture
def tree():
    """Return a function that grows a random feature with a projection on top."""

    def grow(rng, transforms, depth):
        if depth == 0 or rng.random() < 0.15:
            return covariate(NAMES[rng.integers(len(NAMES))])
        kind = rng.random()
        transform = get_transform(transforms[rng.integers(len(transforms))])
        if kind < 0.2:
            return modify(transform, grow(rng, transforms, depth - 1))
        if kind < 0.45:
            return Product([grow(rng, transforms, depth - 1) for _ in range(rng.integers(2, 4))])
        return join(rng, transform, transforms, depth)

    def join(rng, transform, transforms, depth):
        made = [grow(rng, transforms, depth - 1) for _ in range(rng.integers(2, 4))]
        children = list({child.key: child for child in made}.values())
        weights = (0.6 * rng.normal(size=len(children))).tolist()
        return project(transform, children, weights, 0.3 * rng.normal())

    def tree(rng, transforms, depth=3):
        top = get_transform(transforms[rng.integers(len(transforms))])
        return join(rng, top, transforms, depth)

    return tree


@pytest.fixture
def projector(table):
    """Return a function that makes a projector over the table."""

    def projector(engine, strategy, over=None):
        return Projector(resolve_strategy(strategy), engine, table if over is None else over)

    return projector
