r"""Mode jumping MCMC over the masks of one population (paper, Algorithm 1).

Kernels, mixed with probabilities that do not depend on the state:

0. *change*: flip one or a few components drawn uniformly; symmetric. Where features need
   others beside them, half of the changes flip a feature and a random part of its parents,
   whatever their state, which is symmetric too.
1. *swap*: exchange a feature of the model for one outside; symmetric.
2. *add or delete*, one half each: the feature to add is drawn with weights
   :math:`p_j`, the one to delete with weights :math:`1 - p_j`. For adding :math:`j`,

   .. math:: \frac{q(m|m')}{q(m'|m)} =
       \frac{(1-p_j) / \sum_{i \in m'} (1-p_i)}{p_j / \sum_{i \notin m} p_i},

   and the inverse for deleting. Where the move is impossible the chain stays.
3. *multiple try* with the symmetric changes of kernel 0: one of several proposals is
   drawn by posterior mass, and accepted against as many reference points.
4. *large jump*: flip a random index set :math:`I`, optimise outside :math:`I`, shake
   every component with probability :math:`\rho`; go back the same way, with the same
   :math:`I` and fresh randomness. The ratio of the shakes is
   :math:`\{\rho/(1-\rho)\}^{d(m, \chi_k) - d(m^*, \chi^*_k)}` (the paper omits
   :math:`1-\rho`). With delayed acceptance the posterior ratio is tried first and the way
   back is only travelled if it passes.

Every model looked at on the way is kept in the store. Random numbers are drawn only as
``rng.random()`` and only compared, or scaled and truncated, so that a test can hand in
a generator that enumerates all outcomes.

Moves and walk are one module because they are needed uncompiled together: for such tests and
for likelihoods written in Python, `dbrm._kernels.compilation` copies them module by module.

To add an optimiser, write a function beside `_greedy` and `_anneal`, give it a weight in
`OptimiserMix` and a branch in `_optimise`; for a kernel, `KernelMix` and `_propose`, or a branch
in the loop. Nothing else lists them. Settings of their own are fields of `dbrm.search.Mjmcmc`.
"""

from collections import namedtuple
from dataclasses import dataclass, fields

import numba as nb
import numpy as np

from dbrm._kernels.bits import pack
from dbrm._kernels.compilation import INTERNAL, ONCE
from dbrm._kernels.evaluation import evaluate
from dbrm._kernels.store import find, insert

__all__ = [
    "ADD_DELETE",
    "ANNEALING",
    "CHANGE",
    "GREEDY",
    "LARGE_JUMP",
    "LOCAL",
    "MULTIPLE_TRY",
    "SWAP",
    "KernelMix",
    "OptimiserMix",
    "Plan",
    "Position",
    "Target",
    "Trace",
    "mjmcmc_loop",
    "new_position",
    "optimise_from",
]


@dataclass(frozen=True, slots=True)
class KernelMix:
    """Weights of the kernels; each step draws one, whatever the state.

    The defaults spend most steps on moves that cost one evaluation at most. Multiple tries
    and large jumps meet many models, most of them poor: per model evaluated they find less
    posterior mass. They are there for posteriors with several modes.
    """

    change: float = 0.30
    swap: float = 0.20
    add_delete: float = 0.45
    multiple_try: float = 0.04
    large_jump: float = 0.01


@dataclass(frozen=True, slots=True)
class OptimiserMix:
    """Weights of the optimisers that follow a large jump."""

    greedy: float = 1.0
    annealing: float = 1.0
    local: float = 1.0

    @classmethod
    def only(cls, name):
        """One optimiser and no other, however many there are."""
        return cls(**{item.name: float(item.name == name) for item in fields(cls)})


# The codes of kernels and optimisers are the positions of their weights.
CHANGE, SWAP, ADD_DELETE, MULTIPLE_TRY, LARGE_JUMP = range(len(fields(KernelMix)))
GREEDY, ANNEALING, LOCAL = range(len(fields(OptimiserMix)))
# Exponents beyond this decide a comparison anyway; larger ones would overflow.
_LARGE = 700.0

# What is sampled from: the engine's context, the models seen, the two prior terms, which
# features need how many of which others beside them (empty arrays: none do), and the prior of
# the number of latent effects, the last components of a mask (one entry: there are none).
Target = namedtuple(
    "Target",
    "context store feature_log_prior size_log_prior parents needed latent_log_prior",
    defaults=(np.zeros((0, 0), dtype=np.bool_), np.zeros(0, dtype=np.int64), np.zeros(1)),
)
# What the loop is to do; see `dbrm.search.Mjmcmc` for the meaning of each number.
Plan = namedtuple(
    "Plan",
    "kernel_weights max_change n_tries jump_low jump_high rate optimiser_weights "
    "temperatures moves_per_temperature local_moves greedy_steps delayed adapt_until epsilon",
)
# Where a walk stands: its mask, what add and delete have learned and from what, and, as arrays
# of one number, its log posterior, its entry in the store, and the steps done.
Position = namedtuple("Position", "mask propensity seen value entry step")
# What happened at each step, and how often each kernel was tried and accepted.
Trace = namedtuple("Trace", "log_posterior size kernel accepted visits proposed_by accepted_by")
# Buffers of one loop.
_Workspace = namedtuple(
    "_Workspace", "trial trial_words back back_words tries try_words inside scratch weights masses"
)


@nb.njit(**INTERNAL)
def _flip(mask, words, j):
    mask[j] = not mask[j]
    words[j >> 6] ^= np.uint64(1) << np.uint64(j & 63)


@nb.njit(**INTERNAL)
def _copy(mask, words, to_mask, to_words):
    for j in range(mask.size):
        to_mask[j] = mask[j]
    for w in range(words.size):
        to_words[w] = words[w]


@nb.njit(**INTERNAL)
def _draw(rng, weights):
    """Draw a position with probability proportional to its weight."""
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    u = rng.random() * total
    running = 0.0
    last = 0
    for k in range(weights.size):
        if weights[k] > 0.0:
            running += weights[k]
            last = k
            if u < running:
                return k
    return last


@nb.njit(**INTERNAL)
def _draw_subset(rng, size, count, chosen):
    """Write `count` different components, drawn uniformly, to the front of `chosen`."""
    for j in range(size):
        chosen[j] = j
    for i in range(count):
        k = i + int(rng.random() * (size - i))
        chosen[i], chosen[k] = chosen[k], chosen[i]


@nb.njit(**INTERNAL)
def _log_prior(mask, feature_log_prior, size_log_prior, latent_log_prior):
    total = 0.0
    count = 0
    n_features = mask.size - latent_log_prior.size + 1
    for j in range(n_features):
        if mask[j]:
            total += feature_log_prior[j]
            count += 1
    effects = 0
    for j in range(n_features, mask.size):
        if mask[j]:
            total += feature_log_prior[j]
            effects += 1
    return total + size_log_prior[count] + latent_log_prior[effects]


@nb.njit(**INTERNAL)
def _has_orphan(mask, parents, needed):
    """Whether a feature of the mask has fewer of its parents in it than it needs."""
    for j in range(needed.size):
        if mask[j] and needed[j] > 0:
            present = 0
            for k in range(mask.size):
                present += mask[k] and parents[j, k]
            if present < needed[j]:
                return True
    return False


@nb.njit(**INTERNAL)
def _lookup(store, words):
    """Log posterior of a model and its entry in the store; ``-1 - slot`` if it has none.

    Apart from `_evaluate_and_store` because it is called all the time: the whole target, with
    the engine's context, costs more to hand over than a look-up takes.
    """
    entry = find(store, words)
    if entry < 0:
        return -np.inf, entry
    store.counts[1] += 1
    return store.values[entry] + store.priors[entry], entry


@nb.njit(**INTERNAL)
def _evaluate_and_store(target, mask, words, absent):
    """Evaluate a mask that is not in the store, and keep it; its entry is -1 if it is not kept.

    Masks of prior probability zero are not evaluated.
    """
    prior = _log_prior(
        mask, target.feature_log_prior, target.size_log_prior, target.latent_log_prior
    )
    if prior == -np.inf or _has_orphan(mask, target.parents, target.needed):
        return -np.inf, np.int64(-1)
    value, status = evaluate(target.context, mask)
    return value + prior, insert(target.store, -1 - absent, words, value, prior, status)


@nb.njit(**INTERNAL)
def _accept_probability(new, old, temperature):
    """Metropolis probability; moves between impossible masks are free."""
    if new >= old:
        return 1.0
    if new == -np.inf:
        return 0.0
    return np.exp((new - old) / temperature)


@nb.njit(**ONCE)
def _greedy(target, mask, words, inside, max_steps):
    """Steepest ascent over the components outside the index set."""
    store = target.store
    current, found = _lookup(store, words)
    if found < 0:
        current, _ = _evaluate_and_store(target, mask, words, found)
    for _step in range(max_steps):
        best = current
        best_component = -1
        for j in range(mask.size):
            if inside[j]:
                continue
            _flip(mask, words, j)
            value, found = _lookup(store, words)
            if found < 0:
                value, _ = _evaluate_and_store(target, mask, words, found)
            _flip(mask, words, j)
            if value > best:
                best = value
                best_component = j
        if best_component < 0:
            return
        _flip(mask, words, best_component)
        current = best


@nb.njit(**INTERNAL)
def _anneal(rng, target, mask, words, workspace, temperatures, moves):
    """Metropolis flips outside the index set, at each temperature in turn."""
    store = target.store
    outside = workspace.scratch
    n_outside = 0
    for j in range(mask.size):
        if not workspace.inside[j]:
            outside[n_outside] = j
            n_outside += 1
    if n_outside == 0:
        return
    current, found = _lookup(store, words)
    if found < 0:
        current, _ = _evaluate_and_store(target, mask, words, found)
    for temperature in temperatures:
        for _move in range(moves):
            j = outside[int(rng.random() * n_outside)]
            _flip(mask, words, j)
            value, found = _lookup(store, words)
            if found < 0:
                value, _ = _evaluate_and_store(target, mask, words, found)
            if rng.random() < _accept_probability(value, current, temperature):
                current = value
            else:
                _flip(mask, words, j)


@nb.njit(**INTERNAL)
def _optimise(rng, target, plan, kind, mask, words, workspace):
    """Improve `mask` outside the index set, by the chosen optimiser."""
    if kind == GREEDY:
        _greedy(target, mask, words, workspace.inside, plan.greedy_steps)
    elif kind == ANNEALING:
        _anneal(rng, target, mask, words, workspace, plan.temperatures, plan.moves_per_temperature)
    elif kind == LOCAL:
        _anneal(rng, target, mask, words, workspace, np.ones(1), plan.local_moves)


@nb.njit(**INTERNAL)
def _change(rng, parents, mask, words, max_change, scratch):
    """Flip one to `max_change` components drawn uniformly, or a feature and some parents."""
    if parents.size > 0 and rng.random() < 0.5:
        _flip_family(rng, mask, words, parents)
        return
    count = 1 + int(rng.random() * min(max_change, mask.size))
    _draw_subset(rng, mask.size, count, scratch)
    for i in range(count):
        _flip(mask, words, scratch[i])


@nb.njit(**ONCE)
def _flip_family(rng, mask, words, parents):
    """Flip a component drawn uniformly, and each of its parents with probability one half."""
    j = int(rng.random() * mask.size)
    _flip(mask, words, j)
    for k in range(mask.size):
        if parents[j, k] and rng.random() < 0.5:
            _flip(mask, words, k)


@nb.njit(**INTERNAL)
def _swap(rng, mask, words):
    """Exchange a feature of the model for one outside; `False` if there is none."""
    included = 0
    for j in range(mask.size):
        included += mask[j]
    if included == 0 or included == mask.size:
        return False
    leaving = int(rng.random() * included)
    entering = int(rng.random() * (mask.size - included))
    first = -1
    second = -1
    for j in range(mask.size):
        if mask[j]:
            if leaving == 0:
                first = j
            leaving -= 1
        else:
            if entering == 0:
                second = j
            entering -= 1
    _flip(mask, words, first)
    _flip(mask, words, second)
    return True


@nb.njit(**INTERNAL)
def _add_or_delete(rng, mask, words, propensity, weights):
    """Add or delete one feature; returns log q(back)/q(forth), ``-inf`` if impossible."""
    adding = rng.random() < 0.5
    forth = 0.0
    back = 0.0
    # Free of branches: they would be guessed wrong half of the time.
    for j in range(mask.size):
        outside = (1 - mask[j]) * propensity[j]
        inside = mask[j] * (1.0 - propensity[j])
        weights[j] = outside if adding else inside
        forth += weights[j]
        back += inside if adding else outside
    if forth == 0.0:
        return -np.inf
    j = _draw(rng, weights)
    _flip(mask, words, j)
    returning = 1.0 - propensity[j] if adding else propensity[j]
    back += returning
    return np.log(returning / back) - np.log(weights[j] / forth)


@nb.njit(**ONCE)
def _multiple_try(rng, target, plan, mask, words, workspace):
    """One of several changes, drawn by posterior mass, accepted against reference points.

    ``workspace.trial`` ends as the chosen proposal. Returns whether it is accepted.
    """
    store = target.store
    tries, try_words, masses = workspace.tries, workspace.try_words, workspace.masses
    for k in range(plan.n_tries):
        _copy(mask, words, tries[k], try_words[k])
        _change(rng, target.parents, tries[k], try_words[k], plan.max_change, workspace.scratch)
        masses[k], found = _lookup(store, try_words[k])
        if found < 0:
            masses[k], _ = _evaluate_and_store(target, tries[k], try_words[k], found)
    peak = masses.max()
    if peak == -np.inf:
        return False
    forward = 0.0
    for k in range(plan.n_tries):
        masses[k] = np.exp(masses[k] - peak)
        forward += masses[k]
    chosen = _draw(rng, masses)
    _copy(tries[chosen], try_words[chosen], workspace.trial, workspace.trial_words)
    # The reference set of the proposal: the current mask and fresh changes.
    current, found = _lookup(store, words)
    if found < 0:
        current, _ = _evaluate_and_store(target, mask, words, found)
    backward = np.exp(min(_LARGE, current - peak))
    for _k in range(plan.n_tries - 1):
        _copy(workspace.trial, workspace.trial_words, tries[0], try_words[0])
        _change(rng, target.parents, tries[0], try_words[0], plan.max_change, workspace.scratch)
        value, found = _lookup(store, try_words[0])
        if found < 0:
            value, _ = _evaluate_and_store(target, tries[0], try_words[0], found)
        backward += np.exp(min(_LARGE, value - peak))
    # No division: from an impossible or hopeless model the reference points may weigh nothing.
    return forward >= backward or rng.random() < forward / backward


@nb.njit(**INTERNAL)
def _flip_set(mask, words, inside):
    for j in range(mask.size):
        if inside[j]:
            _flip(mask, words, j)


@nb.njit(**ONCE)
def _large_jump(rng, target, plan, mask, words, workspace):
    """A mode jump; ``workspace.trial`` ends as the proposal. Returns whether it is accepted."""
    store = target.store
    size = mask.size
    low = min(plan.jump_low, size)
    high = min(plan.jump_high, size)
    count = low + int(rng.random() * (high - low + 1))
    _draw_subset(rng, size, count, workspace.scratch)
    workspace.inside[:] = False
    for i in range(count):
        workspace.inside[workspace.scratch[i]] = True
    kind = _draw(rng, plan.optimiser_weights)
    _copy(mask, words, workspace.trial, workspace.trial_words)
    _flip_set(workspace.trial, workspace.trial_words, workspace.inside)
    _optimise(rng, target, plan, kind, workspace.trial, workspace.trial_words, workspace)
    shaken = 0
    for j in range(size):
        if rng.random() < plan.rate:
            _flip(workspace.trial, workspace.trial_words, j)
            shaken += 1
    current, found = _lookup(store, words)
    if found < 0:
        current, _ = _evaluate_and_store(target, mask, words, found)
    proposed, found = _lookup(store, workspace.trial_words)
    if found < 0:
        proposed, _ = _evaluate_and_store(target, workspace.trial, workspace.trial_words, found)
    if proposed == -np.inf:
        return False
    if plan.delayed and not rng.random() < _accept_probability(proposed, current, 1.0):
        return False
    _copy(workspace.trial, workspace.trial_words, workspace.back, workspace.back_words)
    _flip_set(workspace.back, workspace.back_words, workspace.inside)
    _optimise(rng, target, plan, kind, workspace.back, workspace.back_words, workspace)
    distance = 0
    for j in range(size):
        distance += workspace.back[j] != mask[j]
    log_ratio = (distance - shaken) * np.log(plan.rate / (1.0 - plan.rate))
    if not plan.delayed:
        log_ratio += proposed - current
    return rng.random() < np.exp(min(0.0, log_ratio))


@nb.njit(**ONCE)
def _propose(rng, kernel, parents, max_change, mask, words, propensity, scratch, weights):
    """Change, swap, add or delete, in place; log q(back)/q(forth), ``-inf`` if impossible."""
    if kernel == CHANGE:
        _change(rng, parents, mask, words, max_change, scratch)
        return 0.0
    if kernel == SWAP:
        return 0.0 if _swap(rng, mask, words) else -np.inf
    if kernel == ADD_DELETE:
        return _add_or_delete(rng, mask, words, propensity, weights)
    return -np.inf


@nb.njit(**INTERNAL)
def _new_workspace(mask, words, n_tries):
    return _Workspace(
        mask.copy(),
        words.copy(),
        mask.copy(),
        words.copy(),
        np.zeros((n_tries, mask.size), dtype=np.bool_),
        np.zeros((n_tries, words.size), dtype=np.uint64),
        np.zeros(mask.size, dtype=np.bool_),
        np.empty(mask.size, dtype=np.int64),
        np.empty(mask.size),
        np.empty(n_tries),
    )


@nb.njit(cache=True, nogil=True)
def optimise_from(rng, target, plan, mask):
    """Maximise from `mask`, in place, by an optimiser drawn from the plan, all components free."""
    words = np.zeros(target.store.words.shape[1], dtype=np.uint64)
    pack(mask, words)
    workspace = _new_workspace(mask, words, plan.n_tries)
    _optimise(rng, target, plan, _draw(rng, plan.optimiser_weights), mask, words, workspace)


def new_position(mask, propensity):
    """Return the place before the first step."""
    return Position(
        mask,
        propensity,
        np.full(mask.size, 0.5),
        np.zeros(1),
        np.full(1, -1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@nb.njit(cache=True, nogil=True)
def mjmcmc_loop(rng, target, plan, position, trace, until):
    """Walk on from `position`, in place, up to step `until`; one entry of the trace per step.

    While adapting, the propensities follow the chain's own inclusion frequencies, kept
    within ``[epsilon, 1 - epsilon]``. In how many calls a walk is made changes nothing.
    """
    mask, propensity, seen = position.mask, position.propensity, position.seen
    size = mask.size
    words = np.zeros(target.store.words.shape[1], dtype=np.uint64)
    pack(mask, words)
    workspace = _new_workspace(mask, words, plan.n_tries)
    # Taken out of their records once: inside the loop that would cost more than the moves.
    store, parents = target.store, target.parents
    trial, trial_words, scratch, weights = (
        workspace.trial,
        workspace.trial_words,
        workspace.scratch,
        workspace.weights,
    )
    kernel_weights, max_change = plan.kernel_weights, plan.max_change
    current, entry = position.value[0], position.entry[0]
    if position.step[0] == 0:
        current, entry = _lookup(store, words)
        if entry < 0:
            current, entry = _evaluate_and_store(target, mask, words, entry)
    for step in range(position.step[0], until):
        kernel = _draw(rng, kernel_weights)
        accepted = False
        if kernel == MULTIPLE_TRY:
            accepted = _multiple_try(rng, target, plan, mask, words, workspace)
        elif kernel == LARGE_JUMP:
            accepted = _large_jump(rng, target, plan, mask, words, workspace)
        else:
            _copy(mask, words, trial, trial_words)
            log_ratio = _propose(
                rng, kernel, parents, max_change, trial, trial_words, propensity, scratch, weights
            )
            if log_ratio > -np.inf:
                proposed, found = _lookup(store, trial_words)
                if found < 0:
                    proposed, found = _evaluate_and_store(target, trial, trial_words, found)
                if proposed > -np.inf:
                    accepted = rng.random() < np.exp(min(0.0, proposed - current + log_ratio))
        if accepted:
            _copy(trial, trial_words, mask, words)
            current, entry = _lookup(store, words)
            if entry < 0:
                current, entry = _evaluate_and_store(target, mask, words, entry)
        _note(trace, step, kernel, accepted, current, entry, mask, step >= plan.adapt_until)
        if step < plan.adapt_until:
            for j in range(size):
                seen[j] += mask[j]
                frequency = seen[j] / (step + 2.0)
                propensity[j] = min(1.0 - plan.epsilon, max(plan.epsilon, frequency))
    position.value[0], position.entry[0], position.step[0] = current, entry, until


@nb.njit(**ONCE)
def _note(trace, step, kernel, accepted, current, entry, mask, counts):
    trace.proposed_by[kernel] += 1
    trace.accepted_by[kernel] += accepted
    trace.kernel[step] = kernel
    trace.accepted[step] = accepted
    trace.log_posterior[step] = current
    included = 0
    for j in range(mask.size):
        included += mask[j]
    trace.size[step] = included
    if counts and entry >= 0:
        trace.visits[entry] += 1
