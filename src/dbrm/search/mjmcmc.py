r"""Mode jumping MCMC inside one population: its settings.

The loop itself is `dbrm._kernels.mjmcmc`; there the kernels and their ratios are
written down; `dbrm.search.walker` runs it. Two estimates come out of a run: renormalised
over all models looked at (the paper's eq. for :math:`\hat p(M|y)`, Sec. 3), and visit
frequencies (eq. map2), which are only collected after adaptation has ended.
"""

from dataclasses import dataclass, field, fields, replace
from typing import final

import numpy as np

from dbrm._kernels import mjmcmc as source
from dbrm._kernels.mjmcmc import KernelMix, OptimiserMix
from dbrm._kernels.store import new_store
from dbrm._typing import FloatArray, Mask
from dbrm.errors import InvalidSettingError
from dbrm.search.exploration import Exploration, PreparedPopulation, PriorTerms
from dbrm.search.walker import KERNEL_NAMES, Walker, collect, kernels, new_target

__all__ = ["KERNEL_NAMES", "KernelMix", "Mjmcmc", "OptimiserMix"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mjmcmc:
    r"""Settings of mode jumping MCMC.

    Parameters
    ----------
    n_steps
        Steps per population.
    kernels, optimisers
        Weights of the kernels and of the optimisers inside large jumps.
    max_change
        Most components that the change kernel flips.
    n_tries
        Proposals of one multiple-try step.
    jump_size
        Fewest and most components of the index set of a large jump.
    rate
        The :math:`\rho` of the shake that ends a large jump.
    hottest, coldest, cooling, moves_per_temperature
        Annealing: first and last temperature, their factor, flips at each.
    local_moves, greedy_steps
        Length of the other two optimisers.
    ascend
        Whether the walk, through the first of several populations, begins with steepest ascent
        of at most `greedy_steps` steps: from the null model that is forward selection. The
        models met on the way do not count: they all lie beside one path.
    delayed
        Delayed acceptance: try the posterior ratio before the way back.
    adapt
        Share of the steps during which add and delete learn from the chain's own
        inclusion frequencies. Afterwards they are frozen and frequencies are counted.
    epsilon
        Learned probabilities stay within ``[epsilon, 1 - epsilon]``.
    max_kept, window
        Models kept, and how far below the best one (nats).
    """

    n_steps: int = 20_000
    kernels: KernelMix = field(default_factory=KernelMix)
    optimisers: OptimiserMix = field(default_factory=OptimiserMix)
    max_change: int = 2
    n_tries: int = 4
    jump_size: tuple[int, int] = (5, 10)
    rate: float = 0.1
    hottest: float = 10.0
    coldest: float = 0.05
    cooling: float = 3.0
    moves_per_temperature: int = 4
    local_moves: int = 5
    greedy_steps: int = 20
    ascend: bool = False
    delayed: bool = True
    adapt: float = 0.3
    epsilon: float = 0.02
    max_kept: int = 100_000
    window: float = 25.0

    def __post_init__(self) -> None:
        for mix in (self.kernels, self.optimisers):
            _check_weights(mix)
        if not _weights(replace(self.kernels, swap=0.0)).sum() > 0:
            msg = "KernelMix needs a kernel besides swap, which never changes the model size."
            raise InvalidSettingError(msg)
        for name in ("n_steps", "max_change", "n_tries", "local_moves", "greedy_steps"):
            if getattr(self, name) < 1:
                msg = f"Mjmcmc needs {name} of at least 1; got {name}={getattr(self, name)!r}."
                raise InvalidSettingError(msg)
        for name in ("rate", "epsilon"):
            if not 0.0 < getattr(self, name) < 1.0:
                msg = (
                    f"Mjmcmc needs {name} strictly between 0 and 1, otherwise moves cannot be "
                    f"reversed; got {name}={getattr(self, name)!r}."
                )
                raise InvalidSettingError(msg)
        if not 0.0 <= self.adapt < 1.0:
            msg = f"Mjmcmc needs adapt in [0, 1); got adapt={self.adapt!r}."
            raise InvalidSettingError(msg)
        if not 1 <= self.jump_size[0] <= self.jump_size[1]:
            msg = f"Mjmcmc needs 1 <= low <= high in jump_size; got {self.jump_size!r}."
            raise InvalidSettingError(msg)
        if not (0.0 < self.coldest <= self.hottest and self.cooling > 1.0):
            msg = "Mjmcmc needs 0 < coldest <= hottest and cooling > 1."
            raise InvalidSettingError(msg)

    def plan(self) -> source.Plan:
        """The settings as the compiled loop takes them."""
        n_temperatures = int(np.log(self.hottest / self.coldest) / np.log(self.cooling)) + 1
        return source.Plan(
            kernel_weights=_weights(self.kernels),
            max_change=self.max_change,
            n_tries=self.n_tries,
            jump_low=self.jump_size[0],
            jump_high=self.jump_size[1],
            rate=float(self.rate),
            optimiser_weights=_weights(self.optimisers),
            temperatures=self.hottest / self.cooling ** np.arange(n_temperatures, dtype=float),
            moves_per_temperature=self.moves_per_temperature,
            local_moves=self.local_moves,
            greedy_steps=self.greedy_steps,
            delayed=self.delayed,
            adapt_until=int(self.adapt * self.n_steps),
            epsilon=float(self.epsilon),
        )

    def explore(
        self,
        rng: np.random.Generator,
        population: PreparedPopulation,
        terms: PriorTerms,
        start: Mask,
    ) -> Exploration:
        """Walk through the masks of a population from `start`."""
        start = self.begin(rng, population, terms, start)
        walker = Walker(self, population, terms, start)
        walker.walk(rng, self.n_steps)
        return walker.found()

    def begin(
        self,
        rng: np.random.Generator,
        population: PreparedPopulation,
        terms: PriorTerms,
        start: Mask,
    ) -> Mask:
        """First mask of a walk: `start`, or where steepest ascent from there ends."""
        if not self.ascend:
            return start
        steepest = replace(self, optimisers=type(self.optimisers).only("greedy"))
        return steepest.maximize(rng, population, terms, start).last

    def maximize(
        self,
        rng: np.random.Generator,
        population: PreparedPopulation,
        terms: PriorTerms,
        start: Mask,
    ) -> Exploration:
        """Maximise from `start` by one of the optimisers; ``last`` is where it ends."""
        size = population.size
        plan = self.plan()
        moves = plan.moves_per_temperature * plan.temperatures.size + self.local_moves
        met = max(self.greedy_steps * size, moves) + 1
        store = new_store(min(met, self.capacity(size)), max(1, -(-size // 64)))
        target = new_target(population, store, terms)
        mask = terms.without_orphans(start)
        kernels(target).optimise_from(rng, target, plan, mask)
        return collect(store, mask, window=self.window, max_kept=self.max_kept)

    def capacity(self, size: int) -> int:
        """Room for every model that can be met, up to a limit."""
        per_step = self.n_tries * 2 + 2
        met = 1 << size if size < 24 else 1 << 24
        return int(min(met, self.n_steps * per_step + 1, 4 * self.max_kept + 1))


def _weights(mix: KernelMix | OptimiserMix) -> FloatArray:
    return np.array([getattr(mix, item.name) for item in fields(mix)], dtype=np.float64)


def _check_weights(mix: KernelMix | OptimiserMix) -> None:
    weights = _weights(mix)
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0) and weights.sum() > 0):
        msg = f"Weights must not be negative and not all be zero; got {mix!r}."
        raise InvalidSettingError(msg)
