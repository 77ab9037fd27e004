"""Compiled functions passed by address.

Numba optimises the code of every callee anew inside every caller: through ten levels of
calls and several search loops the row loops alone would cost a minute of compilation.
Behind a pointer they are compiled once and loaded from disk ever after. Nothing is
compiled before the first call.
"""

from functools import cache

import numba as nb
from numba import types

from dbrm._kernels.glm import (
    evaluate_likelihood,
    evaluate_many_glm,
    evaluate_mixture,
    evaluate_normal,
    evaluate_plain,
    evaluate_wald,
    fit_newton,
    fit_plain,
)
from dbrm._kernels.glm_linalg import weighted_gram
from dbrm._kernels.glm_problem import CONTEXT, EVALUATION, FIT, GRAM, LINEARISE
from dbrm._kernels.glm_rows import linearise

__all__ = [
    "evaluation_of_many",
    "evaluation_pointer",
    "fit_pointer",
    "gram_pointer",
    "linearise_pointer",
]

_EVALUATIONS = {
    "likelihood": evaluate_likelihood,
    "wald": evaluate_wald,
    "normal": evaluate_normal,
    "mixture": evaluate_mixture,
    "plain": evaluate_plain,
}


def _linearise(family, link, shape, mean, total, eta, score, weight):
    return linearise(family, link, shape, mean, total, eta, score, weight)


def _weighted_gram(columns, chosen, k, weight, scaled, out):
    weighted_gram(columns, chosen, k, weight, scaled, out)


@cache
def linearise_pointer():
    """Address of `linearise`."""
    return nb.cfunc(LINEARISE, cache=True, nogil=True)(_linearise)


@cache
def gram_pointer():
    """Address of `weighted_gram`."""
    return nb.cfunc(GRAM, cache=True, nogil=True)(_weighted_gram)


@cache
def fit_pointer(*, plain):
    """Address of the fit: undamped scoring, or Newton's method."""
    return nb.cfunc(FIT, cache=True, nogil=True)(fit_plain if plain else fit_newton)


@cache
def evaluation_pointer(kind):
    """Address of the evaluation of one mask under this kind of prior."""
    return nb.cfunc(EVALUATION, cache=True, nogil=True)(_EVALUATIONS[kind])


@cache
def evaluation_of_many():
    """`evaluate_many_glm`. Called as a dispatcher, it would find out the types every time."""
    return evaluate_many_glm.compile((CONTEXT, types.boolean[:, ::1]))
