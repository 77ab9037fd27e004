r"""Columns and latent effects of one population, ready for many evaluations.

Hyperparameters are searched from places that depend on the set of effects only, and columns
are taken in an order of their own, so that a value depends on the model alone: not on the
population, and not on the path of the search. The engine can therefore remember it.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import log
from typing import TYPE_CHECKING, Self, final

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractExpandable, AbstractPrepared, ModelFit
from dbrm.evidence.coefficient_priors.radial import NormalLogGamma
from dbrm.evidence.glm_expansion import Expansion
from dbrm.evidence.hyper_integration import integrate_precision
from dbrm.evidence.latent.columns import independent, standardise
from dbrm.evidence.latent_anchor import Key, combine
from dbrm.evidence.latent_expansion import expand, select
from dbrm.evidence.latent_summary import move, summarise, widen, without_intercept
from dbrm.evidence.nested_laplace import Conditional
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.evidence.latent_engine import LatentEngine

__all__ = ["Evaluation", "LatentPopulation", "Memory"]

# Models so many nats below the best, about, are looked at but not worked out.
HOPELESS = 40.0
# Sets of effects so many nats below the best beside the same columns are not expanded.
_IN_REACH = 15.0
_LONGEST_SELECTION = 8
# Models remembered at most.
_MOST_KNOWN = 50_000

#: Log evidence of a model, its status, and the mode of its hyperparameters.
Evaluation = tuple[float, Status, FloatArray]


@final
class Memory(dict[tuple[tuple[bytes, ...], Key], Evaluation]):
    """Evaluations by the names of the columns of a model and the numbers of its effects.

    All are forgotten when there are too many.
    """

    def keep(self, name: tuple[tuple[bytes, ...], Key], found: Evaluation) -> Evaluation:
        """Remember an evaluation."""
        if len(self) >= _MOST_KNOWN:
            self.clear()
        self[name] = found
        return found


@final
@dataclass(frozen=True, eq=False)
class LatentPopulation(AbstractExpandable):
    """Columns, followed by effects, ready for many evaluations."""

    engine: "LatentEngine"
    raw: Matrix
    enumeration_limit = 8
    expansion_limit = 20

    @property
    def size(self) -> int:
        return self.n_columns + self.engine.n_latent

    @property
    def n_columns(self) -> int:
        """Number of columns, without the effects."""
        return int(self.raw.shape[1])

    @cached_property
    def _standard(self) -> tuple[Matrix, FloatArray, FloatArray]:
        return standardise(self.raw, self.engine.rows.total, centre=self.engine.intercept)

    @cached_property
    def _base(self) -> AbstractPrepared:
        return self.engine.base.prepare(self.raw)

    @cached_property
    def _names(self) -> list[bytes]:
        """A name for each column that it has in every population."""
        columns = np.ascontiguousarray(self.raw.T)
        return [blake2b(column.tobytes(), digest_size=16).digest() for column in columns]

    @cached_property
    def _rank(self) -> IntArray:
        """Places of the columns in the order of their names."""
        order = sorted(range(self.n_columns), key=self._names.__getitem__)
        return np.argsort(np.array(order, dtype=np.int64))

    def _split(self, mask: Mask) -> tuple[Mask, Key]:
        columns = self.n_columns
        return mask[:columns], tuple(np.flatnonzero(mask[columns:]).tolist())

    def _in_order(self, chosen: Mask) -> IntArray:
        """Numbers of these columns, in the order that does not depend on the population."""
        numbers = np.flatnonzero(chosen)
        return numbers[np.argsort(self._rank[numbers])]

    def model(self, columns: IntArray, key: Key) -> Conditional:
        """The model of these columns and effects."""
        standard, _, scale = self._standard
        return self.engine.conditional(key, standard[:, columns], scale[columns])

    def evaluate(self, mask: Mask, *, thorough: bool = False) -> tuple[float, Status]:
        """Log evidence and status of one mask; the uncompiled search calls this.

        A `thorough` evaluation works out hopeless models too.
        """
        chosen, key = self._split(mask)
        value, status, _ = self._work_out(chosen, key, thorough=thorough)
        return value, status

    def _work_out(self, chosen: Mask, key: Key, *, thorough: bool) -> Evaluation:
        """Evaluate a model, unless it is known; that of columns alone by the engine for these."""
        if not key and not self.engine.complete:
            values, statuses = self._base.log_evidence(chosen[None])
            return float(values[0]), Status(int(statuses[0])), np.empty(0)
        columns = self._in_order(chosen)
        name = (tuple(self._names[j] for j in columns), key)
        if name in self.engine.known:
            return self.engine.known[name]
        model = self.model(columns, key)
        if model.prior.table.constant[0] == -np.inf:
            return -np.inf, Status.UNDEFINED, np.empty(0)
        start = self.engine.start(model, key)
        prior = self.engine.prior
        if isinstance(prior, NormalLogGamma) and model.n_fixed > 1:
            integral = self.engine.integral
            value, status, theta = integrate_precision(integral, model, prior, start)
            found = value + self.engine.constant, status, theta
        else:
            height = start.value + self.engine.anchor(key).volume
            if not thorough and -np.inf < height < self.level - HOPELESS:
                return height + self.engine.constant, start.status, start.theta
            found = self.engine.evidence(model, start, self.engine.anchor(key).scales)
        return self.engine.known.keep(name, found)

    @cached_property
    def level(self) -> float:
        """A value that the best models of the population reach, about.

        That of columns picked one by one beside the best single effect.
        """
        engine = self.engine
        keys: list[Key] = [(k,) for k in range(engine.n_latent)] or [()]
        values = {key: engine.anchor(key).point.value + engine.anchor(key).volume for key in keys}
        key = max(keys, key=values.__getitem__)
        none = np.zeros(self.n_columns, dtype=np.bool_)
        found = self._expand(none, key, engine.anchor(key).point.theta)
        if found is None:
            return max(values.values())
        columns = select(found, _LONGEST_SELECTION, least=log(engine.n))
        start = engine.start(self.model(columns, key), key)
        return max(*values.values(), start.value + engine.anchor(key).volume)

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        r"""Log evidence of all subsets up to a constant, most accurate near `centre`.

        For each set of effects, the hyperparameters are held near their mode beside the columns
        of `centre`, and the likelihood is expanded there.
        """
        chosen, engine = self._independent(centre[: self.n_columns]), self.engine
        effects = unpack_index(np.arange(1 << engine.n_latent), engine.n_latent)
        keys = [tuple(np.flatnonzero(mask).tolist()) for mask in effects]
        levels = np.array([engine.effect_log_prior[list(key)].sum() for key in keys])
        for row, key in enumerate(keys):
            possible = len(key) <= engine.most
            levels[row] += self._sketch(chosen, key)[0] if possible else -np.inf
        size = 1 << self.n_columns
        values = np.full((len(keys), size), -np.inf)
        for row in np.flatnonzero(levels > levels.max() - _IN_REACH).tolist():
            values[row] = self._approximate(chosen, keys[row], max_size)
        return values.reshape(-1)

    def _approximate(self, chosen: Mask, key: Key, max_size: int) -> FloatArray:
        """Log evidence of all subsets beside these effects, near `chosen`."""
        level, _, theta = self._sketch(chosen, key)
        if not key and not self.engine.complete:
            if not isinstance(self._base, AbstractExpandable):
                return np.full(1 << chosen.size, -np.inf)
            values = self._base.approximate_all(chosen, max_size)
        else:
            found = self._expand(chosen, key, theta)
            if found is None:
                return np.full(1 << chosen.size, -np.inf)
            values = found.approximate_all(max_size)
        here = int(np.dot(chosen, np.int64(1) << np.arange(chosen.size)))
        return values + (level - values[here] if np.isfinite(values[here]) else 0.0)

    def _sketch(self, chosen: Mask, key: Key) -> Evaluation:
        """Evaluate a model of several effects with their hyperparameters put together.

        They are those of each effect alone, some of them next to nothing.
        """
        if len(key) < 2:
            return self._work_out(chosen, key, thorough=True)
        engine, columns = self.engine, self._in_order(chosen)
        name = (tuple(self._names[j] for j in columns), key)
        if name in engine.sketched:
            return engine.sketched[name]
        singles = [self._work_out(chosen, (k,), thorough=True) for k in key]
        if any(value == -np.inf for value, _, _ in singles):
            return -np.inf, Status.UNDEFINED, np.empty(0)
        looks = combine([theta for _, _, theta in singles], int(engine.noise.free))
        best = engine.look(self.model(columns, key), key, looks)
        value = best.value + engine.anchor(key).volume + engine.constant
        return engine.sketched.keep(name, (value, best.status, best.theta))

    def _expand(self, chosen: Mask, key: Key, theta: FloatArray) -> Expansion | None:
        """The expansion at the fit of these columns and effects."""
        columns, n_always = np.flatnonzero(chosen), self.engine.always_columns[0].shape[1]
        model = self.model(columns, key)
        point = self.engine.look(model, key, [theta])
        if point.value == -np.inf:
            return None
        full = self.model(np.arange(self.n_columns), key)
        first = 1 + n_always
        beta = np.zeros(full.dense.shape[1])
        beta[:first], beta[full.n_fixed :] = point.beta[:first], point.beta[model.n_fixed :]
        beta[first + columns] = point.beta[first : model.n_fixed]
        n_common = n_always - int(np.count_nonzero(self.engine.own_precision[1:]))
        sizes = tuple(range(n_common, n_common + self.n_columns + 1))
        table = self.engine.prior_of_sizes(sizes).table
        return expand(full, theta, point.delta, beta, table, n_fixed=first, n=self.engine.n)

    def fit(self, mask: Mask) -> ModelFit:
        """Fit one model for reports and predictions.

        Columns that depend on others before them get the coefficient zero.
        """
        chosen, key = self._split(mask)
        engine = self.engine
        kept = self._independent(chosen)
        if not np.array_equal(kept, chosen):
            reduced = self.fit(np.concatenate([kept, mask[chosen.size :]]))
            first = 1 + engine.always_columns[0].shape[1]
            places = np.concatenate([np.arange(first), first + np.flatnonzero(kept[chosen])])
            return widen(reduced, places, first + int(chosen.sum()))
        model = self.model(np.flatnonzero(chosen), key)
        _, always_location, always_scale = engine.always_columns
        _, location, scale = self._standard
        fit = summarise(
            engine.integral(model, engine.start(model, key)),
            model,
            key,
            location=np.concatenate([always_location, location[chosen]]),
            scale=np.concatenate([always_scale, scale[chosen]]),
            unit=engine.unit,
            constant=engine.constant,
        )
        fit = move(fit, engine.prior_means)
        return fit if engine.intercept else without_intercept(fit)

    def _independent(self, chosen: Mask) -> Mask:
        """The columns in order, without those that depend on others before them."""
        always, columns = self.engine.always_columns[0], self._standard[0]
        together = np.hstack([always, columns[:, chosen]])
        places = (
            np.array(independent(together, intercept=self.engine.intercept), dtype=np.int64)
            - always.shape[1]
        )
        kept = np.zeros(chosen.size, dtype=np.bool_)
        kept[np.flatnonzero(chosen)[places[places >= 0]]] = True
        return kept

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        pairs = [self.evaluate(mask) for mask in masks]
        values = np.array([value for value, _ in pairs], dtype=np.float64)
        return values, np.array([status for _, status in pairs], dtype=np.uint8)

    @property
    def context(self) -> Self:
        return self
