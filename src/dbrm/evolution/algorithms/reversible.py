r"""One step of reversible GMJMCMC, free of data (paper, Theorem 2, corrected).

From a model :math:`M` a population :math:`\mathcal S' \sim q_S(\cdot|M)` is grown around it,
optimisation inside :math:`\mathcal S'` leads to :math:`M'_k`, and a shake that flips every
feature of :math:`\mathcal S'` with probability :math:`\rho` to the proposal :math:`M'`. The
way back grows :math:`\mathcal S \sim q_S(\cdot|M')`, *without regard to* :math:`M`, and
optimises to :math:`M_k`; if :math:`M \not\subset \mathcal S` the proposal is rejected. Then

.. math:: a = \frac{p(M'|y)}{p(M|y)}
    \Bigl(\frac{\rho}{1-\rho}\Bigr)^{d(M, M_k) - d(M', M'_k)}
    (1-\rho)^{|\mathcal S| - |\mathcal S'|} .

The posterior ratio is tried first (delayed acceptance). The paper's theorem omits
:math:`1-\rho` and conditions the backward population on what it should generate; with
either, the chain has another stationary distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, log1p
from typing import Protocol, final

import numpy as np

__all__ = ["Model", "ModelSpace", "Swap", "reversible_step"]

Model = frozenset[int]


class ModelSpace(Protocol):
    """What the step needs to know about features and data."""

    def grow(self, rng: np.random.Generator, model: Model) -> Sequence[int]:
        """Draw a population that contains the model."""

    def optimise(self, rng: np.random.Generator, model: Model, population: Sequence[int]) -> Model:
        """Maximise the posterior inside the population, from the model."""

    def log_posterior(self, model: Model) -> float:
        """Unnormalised log posterior, ``-inf`` for impossible models."""


@final
@dataclass(frozen=True, slots=True)
class Swap:
    """Outcome of one step."""

    accepted: bool
    passed_first_stage: bool
    returned: bool


def reversible_step(
    rng: np.random.Generator, space: ModelSpace, model: Model, rate: float
) -> tuple[Model, Swap]:
    """Draw the next model."""
    population = space.grow(rng, model)
    optimised = space.optimise(rng, model, population)
    flipped = frozenset(f for f in population if rng.random() < rate)
    proposal = optimised ^ flipped
    gain = _difference(space.log_posterior(proposal), space.log_posterior(model))
    if not rng.random() < exp(min(0.0, gain)):
        return model, Swap(accepted=False, passed_first_stage=False, returned=False)
    back = space.grow(rng, proposal)
    if not model.issubset(back):
        return model, Swap(accepted=False, passed_first_stage=True, returned=False)
    returned = space.optimise(rng, proposal, back)
    log_ratio = (len(model ^ returned) - len(flipped)) * (log(rate) - log1p(-rate))
    log_ratio += (len(back) - len(population)) * log1p(-rate)
    accepted = bool(rng.random() < exp(min(0.0, log_ratio)))
    return (proposal if accepted else model), Swap(accepted, True, True)


def _difference(new: float, old: float) -> float:
    return -inf if new == -inf else new - old
