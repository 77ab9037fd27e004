r"""The posterior of latent effects in one model, and their part in new linear predictors.

Everything is a first or second moment, mixed over the lattice of hyperparameters. Variables
stand in one vector: those of the banded effects, then coefficients and border. Of the
covariance among banded variables only the band is kept, which is all that neighbours need.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, FloatArray, IntArray, Mask, Matrix
from dbrm.evidence.latent.base import Bridge
from dbrm.evidence.latent.nodes import BoundEffect, between_knots

__all__ = ["LatentFit"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class LatentFit:
    """Moments of effects and coefficients.

    Parameters
    ----------
    effects
        Numbers of the effects in the model.
    places
        For each of them, where its nodes stand in the vector of all variables.
    mean, band
        Of the banded variables: means, and covariances inside the band.
    dense_mean, dense_covariance
        Of coefficients (of the raw columns, intercept first) and border.
    cross
        Covariances of banded (rows) with dense variables (columns).
    psi, shares
        Hyperparameters of all effects at the points that carry most of their posterior, and
        the probabilities of these points.
    unit
        What the response was divided by; hyperparameters refer to that scale.
    """

    effects: tuple[int, ...]
    places: tuple[IntArray, ...]
    mean: FloatArray
    band: Matrix
    dense_mean: FloatArray
    dense_covariance: Matrix
    cross: Matrix
    psi: Matrix
    shares: FloatArray
    unit: float = 1.0

    def effect(self, position: int) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation of one effect at its nodes."""
        places = self.places[position]
        banded = places < self.mean.size
        inside = np.where(banded, places, 0)
        outside = np.where(banded, 0, places - self.mean.size)
        if not self.mean.size:
            mean, variance = self.dense_mean[outside], np.diag(self.dense_covariance)[outside]
        else:
            spread = np.diag(self.dense_covariance)
            mean = np.where(banded, self.mean[inside], self.dense_mean[outside])
            variance = np.where(banded, self.band[inside, 0], spread[outside])
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def split_psi(self, bounds: Sequence[BoundEffect]) -> list[Matrix]:
        """Hyperparameters of each effect in the model, points by components."""
        ends = np.cumsum([len(bounds[k].effect.hyperparameters) for k in self.effects])[:-1]
        return np.split(self.psi, ends, axis=1)

    def predictor(
        self, bounds: Sequence[BoundEffect], values: Sequence[Any], design: Matrix
    ) -> tuple[Column, Column]:
        """Mean and variance of the linear predictor of new rows.

        Parameters
        ----------
        bounds
            All effects of the run, with the nodes of the training rows.
        values
            For each of them the new rows' positions or groups; ``None`` for one effect a row;
            groups and covariate for slopes.
        design
            Ones and the columns of the model.
        """
        k = design.shape[1]
        mean = design @ self.dense_mean[:k]
        fixed = self.dense_covariance[:k, :k]
        variance = np.einsum("ni,ni->n", design @ fixed, design)
        found = []
        for position, psi in enumerate(self.split_psi(bounds)):
            number = self.effects[position]
            sources, weights, extra = locate(bounds[number], values[number], psi, self.shares)
            if values[number] is None:
                sources = np.zeros((len(design), 0), dtype=np.int64)
                weights = np.zeros((len(design), 0))
                extra = np.full(len(design), extra[0])
            found.append((self.places[position][sources], weights))
            variance = variance + self.unit**2 * extra
        places = np.hstack([part for part, _ in found])
        weights = np.hstack([part for _, part in found])
        for i in range(places.shape[1]):
            mean = mean + weights[:, i] * self._mean_at(places[:, i])
            pull = np.einsum("ni,ni->n", self._dense_covariances(places[:, i], k), design)
            variance = variance + 2.0 * weights[:, i] * pull
            for j in range(places.shape[1]):
                both = weights[:, i] * weights[:, j]
                variance = variance + both * self._covariance(places[:, i], places[:, j])
        return mean, np.maximum(variance, 0.0)

    def _mean_at(self, places: IntArray) -> FloatArray:
        return np.concatenate([self.mean, self.dense_mean])[places]

    def _dense_covariances(self, places: IntArray, k: int) -> Matrix:
        """Covariances with the first dense variables, one row for each place."""
        return np.vstack([self.cross[:, :k], self.dense_covariance[:, :k]])[places]

    def _covariance(self, first: IntArray, second: IntArray) -> FloatArray:
        """Covariances of pairs; zero for banded pairs outside the band."""
        size = self.mean.size
        high, low = np.maximum(first, second), np.minimum(first, second)
        out = np.zeros(first.size)
        banded: Mask = high < size
        near = banded & (high - low < self.band.shape[1])
        out[near] = self.band[high[near], high[near] - low[near]]
        mixed = ~banded & (low < size)
        out[mixed] = self.cross[low[mixed], high[mixed] - size]
        dense = low >= size
        out[dense] = self.dense_covariance[high[dense] - size, low[dense] - size]
        return out


def locate(
    bound: BoundEffect, values: Any, psi: Matrix, shares: FloatArray
) -> tuple[IntArray, Matrix, FloatArray]:
    """Nodes, weights and left-over variance by which an effect reaches new rows."""
    if values is None:
        bridge = _average(bound, psi, shares, np.zeros(1))
        return bridge.sources, bridge.weights, bridge.variance
    if bound.effect.kind == "slopes":
        return _locate_slopes(bound, values, psi, shares)
    if bound.effect.kind == "knots":
        return _locate_between_knots(bound, np.asarray(values, dtype=np.float64), psi, shares)
    if bound.levels:
        known, index = _match_levels(bound, np.asarray(values))
        # All new groups are alike.
        new, place = np.zeros(1), np.zeros(known.size, dtype=np.int64)
    else:
        numbers = np.asarray(values, dtype=np.float64)
        index, known = _match_positions(bound.positions, numbers)
        place = np.zeros(known.size, dtype=np.int64)
        new, place[~known] = np.unique(numbers[~known], return_inverse=True)
    if known.all():
        return index[:, None], np.ones((index.size, 1)), np.zeros(index.size)
    bridge = _average(bound, psi, shares, new)
    width = bridge.sources.shape[1]
    sources = np.zeros((known.size, width), dtype=np.int64)
    weights, extra = np.zeros((known.size, width)), np.zeros(known.size)
    sources[known, 0], weights[known, 0] = index[known], 1.0
    sources[~known] = bridge.sources[place[~known]]
    weights[~known] = bridge.weights[place[~known]]
    extra[~known] = bridge.variance[place[~known]]
    return sources, weights, extra


def _locate_slopes(
    bound: BoundEffect,
    columns: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    psi: Matrix,
    shares: FloatArray,
) -> tuple[IntArray, Matrix, FloatArray]:
    """Slopes, and intercepts, of known groups; a new group is drawn like all groups."""
    groups, covariate = columns
    known, index = _match_levels(bound, np.asarray(groups))
    nodes, z = np.arange(bound.per_group), bound.multipliers(covariate)
    sources = bound.per_group * index[:, None] + nodes
    covariance = np.zeros((nodes.size, nodes.size))
    for share, point in zip(shares, psi, strict=True):
        band = bound.effect.precision(point, nodes.astype(np.float64))
        full = np.diag(band[:, 0])
        for d in range(1, nodes.size):
            full += np.diag(band[d:, d], -d) + np.diag(band[d:, d], d)
        covariance += share * np.linalg.inv(full)
    extra = np.where(known, 0.0, np.einsum("ni,ij,nj->n", z, covariance, z))
    return sources, np.where(known[:, None], z, 0.0), extra


def _locate_between_knots(
    bound: BoundEffect, values: FloatArray, psi: Matrix, shares: FloatArray
) -> tuple[IntArray, Matrix, FloatArray]:
    """Interpolate between knots; beyond the last one the walk goes on."""
    knots = bound.positions
    sources, weights = between_knots(knots, values)
    outside = (values < knots[0]) | (values > knots[-1])
    if not outside.any():
        return sources, weights, np.zeros(values.size)
    new, place = np.unique(values[outside], return_inverse=True)
    bridge = _average(bound, psi, shares, new)
    width = bridge.sources.shape[1]
    all_sources = np.zeros((values.size, 2 + width), dtype=np.int64)
    all_weights, extra = np.zeros((values.size, 2 + width)), np.zeros(values.size)
    all_sources[:, :2], all_weights[:, :2] = sources, np.where(outside[:, None], 0.0, weights)
    all_sources[outside, 2:] = bridge.sources[place]
    all_weights[outside, 2:] = bridge.weights[place]
    extra[outside] = bridge.variance[place]
    return all_sources, all_weights, extra


def _average(bound: BoundEffect, psi: Matrix, shares: FloatArray, new: FloatArray) -> Bridge:
    """The bridge, averaged over the hyperparameters."""
    bridges = [bound.effect.bridge(point, bound.positions, new) for point in psi]
    weights = [share * bridge.weights for share, bridge in zip(shares, bridges, strict=True)]
    variance = sum(s * b.variance for s, b in zip(shares, bridges, strict=True))
    if all(np.array_equal(b.sources, bridges[0].sources) for b in bridges):
        return Bridge(bridges[0].sources, np.asarray(sum(weights)), np.asarray(variance))
    sources = np.hstack([bridge.sources for bridge in bridges])
    return Bridge(sources, np.hstack(weights), np.asarray(variance))


def _match_levels(bound: BoundEffect, values: npt.NDArray[Any]) -> tuple[Mask, IntArray]:
    number = {level: j for j, level in enumerate(bound.levels)}
    index = np.array([number.get(value, -1) for value in values.tolist()], dtype=np.int64)
    known: Mask = index >= 0
    return known, np.where(known, index, 0)


def _match_positions(positions: FloatArray, values: FloatArray) -> tuple[IntArray, Mask]:
    """The nearest node, and whether it is the very position."""
    right = np.clip(np.searchsorted(positions, values), 0, positions.size - 1)
    left = np.maximum(right - 1, 0)
    nearer = np.abs(values - positions[left]) < np.abs(positions[right] - values)
    index = np.where(nearer, left, right)
    slack = 1e-12 * max(float(np.ptp(positions)), np.finfo(float).tiny)
    known: Mask = np.abs(values - positions[index]) <= slack
    return index.astype(np.int64), known
