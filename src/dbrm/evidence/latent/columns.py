"""Columns of a model beside latent effects: standardised, and independent of each other."""

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix

__all__ = ["independent", "standardise"]

_TOLERANCE = 1e-9


def standardise(
    columns: Matrix, total: Column, *, centre: bool = True
) -> tuple[Matrix, FloatArray, FloatArray]:
    """Centre and scale over the rows that count; return also the centres and the scales.

    Every column by itself, with the same digits whatever stands beside it. Without an intercept
    columns are not centred.
    """
    weights, across = total / total.sum(), np.ascontiguousarray(columns.T)
    location = (weights * across).sum(axis=1) if centre else np.zeros(len(across))
    centred = across - location[:, None]
    largest = np.max(np.abs(centred), axis=1, initial=0.0)
    largest = np.where(largest > 0.0, largest, 1.0)
    scale = largest * np.sqrt((weights * (centred / largest[:, None]) ** 2).sum(axis=1))
    scale = np.where(scale > 0.0, scale, 1.0)
    return np.ascontiguousarray((centred / scale[:, None]).T), location, scale


def independent(columns: Matrix, *, intercept: bool = True) -> list[int]:
    """Columns in order, without those that depend on the intercept and others before them."""
    basis = np.full((len(columns), int(intercept)), len(columns) ** -0.5)
    kept = []
    for j, column in enumerate(columns.T):
        rest = column - basis @ (basis.T @ column)
        rest -= basis @ (basis.T @ rest)
        if rest @ rest > _TOLERANCE * max(float(column @ column), np.finfo(float).tiny):
            kept.append(j)
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
    return kept
