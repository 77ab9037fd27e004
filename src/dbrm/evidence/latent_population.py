r"""Columns and latent effects of one population, ready for many evaluations.

Hyperparameters are searched from two anchors that depend on the population and the set of
effects only, so that a value does not depend on the path of the search: their modes in the
model without columns, and in the model of the columns that a quick forward selection picks.
At both anchors a model is looked at first; it is only worked out if it comes within
`HOPELESS` nats of the forward selection.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self, final

import numpy as np

from dbrm._typing import FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractPrepared, ModelFit
from dbrm.evidence.coefficient_priors.radial import NormalLogGamma
from dbrm.evidence.hyper_integration import integrate_precision
from dbrm.evidence.latent.columns import independent, standardise
from dbrm.evidence.latent_anchor import Anchor, Key, combine
from dbrm.evidence.latent_summary import summarise, widen
from dbrm.evidence.nested_laplace import Conditional, Point
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.evidence.latent_engine import LatentEngine

__all__ = ["LatentPopulation"]

HOPELESS = 40.0
_LONGEST_SELECTION = 8


@final
@dataclass(frozen=True, eq=False)
class LatentPopulation(AbstractPrepared):
    """Columns, followed by effects, ready for many evaluations."""

    engine: "LatentEngine"
    raw: Matrix
    _second: dict[Key, Anchor] = field(default_factory=dict, repr=False)
    enumeration_limit = 8

    @property
    def size(self) -> int:
        return int(self.raw.shape[1]) + self.engine.n_latent

    @cached_property
    def _standard(self) -> tuple[Matrix, FloatArray, FloatArray]:
        return standardise(self.raw, self.engine.rows.total)

    @cached_property
    def _base(self) -> AbstractPrepared:
        return self.engine.base.prepare(self.raw)

    def _split(self, mask: Mask) -> tuple[Mask, Key]:
        columns = self.raw.shape[1]
        return mask[:columns], tuple(np.flatnonzero(mask[columns:]).tolist())

    def model(self, chosen: Mask, key: Key) -> Conditional:
        """The model of these columns and effects."""
        columns, _, scale = self._standard
        return self.engine.conditional(key, columns[:, chosen], scale[chosen])

    def evaluate(self, mask: Mask, *, thorough: bool = False) -> tuple[float, Status]:
        """Log evidence and status of one mask; the uncompiled search calls this.

        A `thorough` evaluation works out hopeless models too.
        """
        chosen, key = self._split(mask)
        if not key and not self.engine.complete:
            values, statuses = self._base.log_evidence(chosen[None])
            return float(values[0]), Status(int(statuses[0]))
        model = self.model(chosen, key)
        if isinstance(self.engine.prior, NormalLogGamma):
            return self._unknown_precision(model, chosen, key)
        if model.prior.table.constant[0] == -np.inf:
            return -np.inf, Status.UNDEFINED
        start, volume = self._look(model, chosen, key)
        hopeless = not thorough and start.value + volume < self.level - HOPELESS
        if hopeless and start.value > -np.inf:
            return start.value + volume + self.engine.constant, start.status
        return self.engine.evidence(model, start)

    def _look(self, model: Conditional, chosen: Mask, key: Key) -> tuple[Point, float]:
        """The better of the two anchors."""
        n_always = self.engine.always_columns[0].shape[1]
        anchors = [self.engine.anchor(key), self._second_anchor(key)]
        none = np.zeros(chosen.size, dtype=np.bool_)
        looks = []
        for anchor in anchors:
            own = anchor if anchor.columns.size else Anchor(anchor.point, none, anchor.volume)
            looks.append((own.start(model, chosen, n_always), own.volume))
        return max(looks, key=lambda look: look[0].value)

    def _second_anchor(self, key: Key) -> Anchor:
        """Mode of the hyperparameters beside the selected columns."""
        if key not in self._second:
            first = self.engine.anchor(key)
            chosen = self._selection[0]
            none = Anchor(first.point, np.zeros(chosen.size, dtype=np.bool_), first.volume)
            model = self.model(chosen, key)
            start = none.start(model, chosen, self.engine.always_columns[0].shape[1])
            if len(key) < 2:
                found = Anchor.find(model, start, chosen)
            else:
                singles = [self._second_anchor((k,)).point.theta for k in key]
                looks = [model.at(t) for t in combine(singles, int(self.engine.noise.free))]
                best = max(looks, key=lambda point: point.value)
                found = Anchor(best, chosen, first.volume)
            self._second[key] = found if found.point.value > -np.inf else none
        return self._second[key]

    @cached_property
    def _selection(self) -> tuple[Mask, float]:
        """Columns picked one by one beside the best single effect, and how good they are."""
        engine = self.engine
        n_always = engine.always_columns[0].shape[1]
        keys: list[Key] = [(k,) for k in range(engine.n_latent)]
        best_key = max(keys, key=lambda key: engine.anchor(key).point.value)
        chosen = np.zeros(self.raw.shape[1], dtype=np.bool_)
        first = engine.anchor(best_key)
        anchor = Anchor(first.point, chosen.copy(), first.volume)
        value = first.point.value
        for _ in range(min(_LONGEST_SELECTION, chosen.size)):
            trials = []
            for j in np.flatnonzero(~chosen).tolist():
                trial = chosen.copy()
                trial[j] = True
                point = anchor.start(self.model(trial, best_key), trial, n_always)
                trials.append((point.value, j, point))
            top, j, point = max(trials, key=lambda found: found[0])
            if not top > value:
                break
            chosen[j], value = True, top
            anchor = Anchor(point, chosen.copy(), first.volume)
        return chosen, value

    @cached_property
    def level(self) -> float:
        """A value that the best models of the population reach, about."""
        values = [self._selection[1]]
        for k in range(self.engine.n_latent):
            anchor = self._second_anchor((k,))
            values.append(anchor.point.value + anchor.volume)
        return max(values)

    def _unknown_precision(
        self, model: Conditional, chosen: Mask, key: Key
    ) -> tuple[float, Status]:
        r"""Integrate over the common precision of the slopes: trapezoids in its logarithm."""
        prior = self.engine.prior
        assert isinstance(prior, NormalLogGamma)
        start, _ = self._look(model, chosen, key)
        if not chosen.any() and model.n_fixed == 1:
            return self.engine.evidence(model, start)
        value, status = integrate_precision(self.engine.integral, model, prior, start)
        return value + self.engine.constant, status

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
        model = self.model(chosen, key)
        start, _ = self._look(model, chosen, key)
        _, always_location, always_scale = engine.always_columns
        _, location, scale = self._standard
        return summarise(
            engine.integral(model, start),
            model,
            key,
            location=np.concatenate([always_location, location[chosen]]),
            scale=np.concatenate([always_scale, scale[chosen]]),
            unit=engine.unit,
            constant=engine.constant,
        )

    def _independent(self, chosen: Mask) -> Mask:
        """The columns in order, without those that depend on others before them."""
        always, columns = self.engine.always_columns[0], self._standard[0]
        together = np.hstack([always, columns[:, chosen]])
        places = np.array(independent(together), dtype=np.int64) - always.shape[1]
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
