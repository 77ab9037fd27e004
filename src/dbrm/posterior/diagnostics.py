"""Can the chains be trusted? Numbers that compare chains, and a verdict in words.

* *Agreement*: each chain's own renormalised inclusion probabilities, compared per feature.
* *Captured mass*: the share of all posterior mass found that each chain found by itself.
* *Unexplored mass*: the share of the mass that only one chain found, averaged over chains. It
  estimates what one more chain would add.
* *R-hat and effective sample size* of log posterior and model size (split chains), for
  algorithms whose chains sample from the posterior.
* *A random candidate*: chains start from the same covariates and the same pool, and may all miss
  the same feature. Features drawn at random afterwards must not give a better model.
"""

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evolution import Candidate, Draws
from dbrm.posterior.merge import Merged
from dbrm.search import effects_of, log_sum_exp

__all__ = ["Diagnostics", "diagnose", "effective_size", "split_rhat"]

# Chains disagree on a feature if their inclusion probabilities differ by more than this.
DISAGREEMENT = 0.2
# More mass found by one chain alone, a larger R-hat or fewer effective draws are a problem.
ENOUGH_MASS, GOOD_RHAT, ENOUGH_DRAWS = 0.05, 1.05, 200
# So is a chain that found less than this share of all mass, and a random candidate that raises
# the best log posterior by more than this.
LEAST_CAPTURED, CLEAR_GAIN = 0.05, 1.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Diagnostics:
    """How far the chains of a run agree.

    Parameters
    ----------
    chain_inclusion
        Chains by features: each chain's own inclusion probabilities.
    captured
        Share of the posterior mass found that each chain found.
    unexplored
        Estimated share of the mass not found yet; none from a single chain.
    rhat, effective_draws
        Of ``log_posterior`` and ``size``; empty where the chains do not sample from the
        posterior.
    disagreements
        Positions of the features on which chains disagree.
    latent_disagreements
        Numbers of the latent effects on which they do.
    candidate
        The best of many features drawn at random after the search. ``None`` if other numbers
        show a problem already, or if none were drawn: with a single chain, latent effects,
        heredity, groups, or out-of-core data.
    """

    chain_inclusion: Matrix
    captured: FloatArray
    unexplored: float | None
    rhat: dict[str, float]
    effective_draws: dict[str, float]
    disagreements: list[int]
    latent_disagreements: list[int] = field(default_factory=list)
    candidate: Candidate | None = None

    def with_features(self, n_features: int) -> "Diagnostics":
        """With features, the last ones, that no chain has met."""
        more = n_features - self.chain_inclusion.shape[1]
        return replace(self, chain_inclusion=np.pad(self.chain_inclusion, ((0, 0), (0, more))))

    @property
    def better_candidate(self) -> Candidate | None:
        """The candidate, if it clearly improves the best model; usually ``None``."""
        found = self.candidate
        return found if found is not None and found.gain > CLEAR_GAIN else None

    @property
    def agree(self) -> bool:
        """Whether there are several chains and no problem; `verdict` says it in words."""
        return len(self.captured) > 1 and not self._problems()

    @property
    def found_by_one(self) -> bool:
        """Whether only one of several chains has found the models that hold the mass."""
        return len(self.captured) > 1 and bool(np.sort(self.captured)[-2] < LEAST_CAPTURED)

    @property
    def never_moved(self) -> bool:
        """Whether no chain that samples ever left its first model."""
        draws = list(self.effective_draws.values())
        return bool(draws) and bool(np.isnan(draws).all())

    def verdict(self) -> str:
        """A sentence on whether the chains agree."""
        n_chains = len(self.captured)
        if n_chains == 1:
            return "There was only one chain: run several (n_chains) to see whether they agree."
        problems = self._problems()
        if not problems:
            still = "; none of them ever left its first model" if self.never_moved else ""
            return f"The {n_chains} chains agree{still}."
        return f"The {n_chains} chains {' and '.join(problems)}: run longer."

    def _problems(self) -> list[str]:
        problems = []
        if self.disagreements:
            count = len(self.disagreements)
            problems.append(f"disagree on {count} feature{'s' if count > 1 else ''}")
        if self.latent_disagreements:
            count = len(self.latent_disagreements)
            problems.append(f"disagree on {count} latent effect{'s' if count > 1 else ''}")
        if self.unexplored is not None and self.unexplored > ENOUGH_MASS:
            problems.append(
                f"each miss about {self.unexplored:.0%} of the probability that others find"
            )
        lagging = int(np.sum(self.captured < LEAST_CAPTURED))
        if lagging and not problems:
            verb = "have" if lagging > 1 else "has"
            problems.append(f"differ ({lagging} {verb} found hardly any of the probability)")
        bad = [name for name, value in self.rhat.items() if not value < GOOD_RHAT]
        if bad:
            problems.append(f"have not mixed (R-hat of {', '.join(bad)})")
        few = [name for name, value in self.effective_draws.items() if value < ENOUGH_DRAWS]
        if few and not bad:
            problems.append(f"have few effective draws of {', '.join(few)}")
        better = self.better_candidate
        if better is not None:
            problems.append(
                f"have all missed {better.feature}, which raises the log posterior by "
                f"{better.gain:.1f}"
            )
        return problems


def diagnose(merged: Merged, draws: list[Draws | None]) -> Diagnostics:
    """Compare the chains behind a merged posterior."""
    log_posterior = merged.models.log_evidence + merged.models.log_prior
    log_mass = log_sum_exp(log_posterior)
    share = np.exp(log_posterior - log_mass)
    inclusion = np.array([_inclusion(merged, share, rows) for rows in merged.visited])
    captured = np.array([share[rows].sum() for rows in merged.visited])
    spread = inclusion.max(axis=0) - inclusion.min(axis=0)
    rhat, effective = {}, {}
    sampled = [draw for draw in draws if draw is not None]
    if sampled and len(sampled) == len(draws):
        for name in ("log_posterior", "size"):
            values = [np.asarray(getattr(draw, name), dtype=np.float64) for draw in sampled]
            rhat[name] = split_rhat(values)
            effective[name] = effective_size(values)
    return Diagnostics(
        chain_inclusion=inclusion,
        captured=captured,
        unexplored=_unexplored(merged, share),
        rhat=rhat,
        effective_draws=effective,
        disagreements=np.flatnonzero(spread > DISAGREEMENT).tolist(),
        latent_disagreements=_latent_disagreements(merged, share),
    )


def _latent_disagreements(merged: Merged, share: FloatArray) -> list[int]:
    """Latent effects whose inclusion differs between chains."""
    n_latent = int(np.bitwise_or.reduce(merged.models.latent, initial=np.uint64(0))).bit_length()
    effects = effects_of(merged.models.latent, n_latent)
    inclusion = np.array(
        [
            share[rows] @ effects[rows] / max(share[rows].sum(), np.finfo(float).tiny)
            for rows in merged.visited
        ]
    )
    spread = inclusion.max(axis=0) - inclusion.min(axis=0)
    return [int(k) for k in np.flatnonzero(spread > DISAGREEMENT)]


def _inclusion(
    merged: Merged, share: FloatArray, rows: "np.typing.NDArray[np.int64]"
) -> FloatArray:
    own = np.zeros(share.size)
    own[rows] = share[rows]
    own /= max(own.sum(), np.finfo(float).tiny)
    return merged.models.add_up(own, len(merged.features))


def _unexplored(merged: Merged, share: FloatArray) -> float | None:
    """Share of the mass found by one chain alone, averaged over chains."""
    if len(merged.visited) == 1:
        return None
    finders = np.zeros(share.size, dtype=np.int64)
    for rows in merged.visited:
        finders[rows] += 1
    alone = [float(share[rows][finders[rows] == 1].sum()) for rows in merged.visited]
    return float(np.mean(alone))


def split_rhat(chains: list[FloatArray]) -> float:
    r"""Potential scale reduction of Gelman et al. with every chain split in two.

    .. math:: \hat R = \sqrt{\frac{(n-1)/n \cdot W + B/n}{W}}

    One where all values are equal.
    """
    halves = _halves(chains)
    if halves.shape[1] < 2:
        return float("nan")
    within = float(np.mean(np.var(halves, axis=1, ddof=1)))
    n = halves.shape[1]
    between = n * float(np.var(halves.mean(axis=1), ddof=1))
    if within == 0.0:
        return 1.0 if between == 0.0 else float("inf")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def effective_size(chains: list[FloatArray]) -> float:
    """Effective number of independent draws, by Geyer's initial monotone sequence.

    Not a number where all values are equal: a chain that never moves has no draws to count.
    """
    halves = _halves(chains)
    n_chains, n = halves.shape
    if n < 4:
        return float("nan")
    covariance = np.zeros(n)
    for half in halves:
        padded = np.fft.rfft(half - half.mean(), n=2 * n)
        covariance += np.fft.irfft(np.abs(padded) ** 2)[:n] / (n * n_chains)
    within = covariance[0] * n / (n - 1)
    total = within * (n - 1) / n + float(np.var(halves.mean(axis=1), ddof=1))
    if total == 0.0:
        return float("nan")
    correlation = 1.0 - (within - covariance * n / (n - 1)) / total
    correlation[0] = 1.0
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    kept = pairs[: negative[0]] if negative.size else pairs
    time = max(-1.0 + 2.0 * float(np.minimum.accumulate(kept).sum()), 1.0 / np.log10(n_chains * n))
    return float(n_chains * n / time)


def _halves(chains: list[FloatArray]) -> Matrix:
    half = min(chain.size for chain in chains) // 2
    return np.array([part for chain in chains for part in (chain[:half], chain[half : 2 * half])])
