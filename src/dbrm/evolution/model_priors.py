"""Priors of visited models under the simplest spelling of each feature that is known by now.

A model is recorded with the prior that its features had when it was met. A simpler spelling of one
of them may be found later, and the model is then more probable than its record says.
"""

from dataclasses import replace

import numpy as np

from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import Registry
from dbrm.search import ModelTable, effects_of

__all__ = ["with_prior"]


def with_prior(models: ModelTable, problem: Problem, registry: Registry) -> ModelTable:
    """The models with their prior as it is now; draws of a projection's weights are counted."""
    prior = problem.model_prior
    used = np.unique(models.members)
    terms = np.zeros(len(registry))
    terms[used] = [registry.log_prior(int(number), prior) for number in used]
    sums = models.sum_terms(terms)
    sizes = np.arange(int(models.sizes.max(initial=0)) + 1)
    effects = effects_of(models.latent, len(problem.latent)) @ problem.latent.log_prior
    log_prior = sums + effects + prior.size_log_prior(sizes)[models.sizes]
    return replace(models, log_prior=log_prior)
