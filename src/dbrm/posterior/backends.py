"""A model as a function of the arrays of JAX or the tensors of PyTorch, with their derivatives.

Neither library is imported before it is asked for.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Literal

from dbrm.errors import InvalidSettingError, suggest
from dbrm.evidence import Link
from dbrm.features import Feature
from dbrm.features.array_values import array_value, expression_value

__all__ = ["Backend", "model_function"]

Backend = Literal["numpy", "jax", "torch"]


def model_function(
    terms: Sequence[Feature], coefficients: Sequence[float], link: Link | None, backend: str
) -> Callable[[Mapping[str, Any]], Any]:
    """Return the mean under a link, or the linear predictor, as a function of columns."""
    library = _find_library(backend)
    intercept, *slopes = coefficients

    def predict(table: Mapping[str, Any]) -> Any:
        eta: Any = intercept
        for slope, term in zip(slopes, terms, strict=True):
            eta = eta + slope * array_value(term, table, library)
        eta = library.asarray(eta)
        if link is None or link.expression is None:
            return eta
        return expression_value(link.expression, library, {"x": eta})

    return predict


def _find_library(backend: str) -> SimpleNamespace:
    makers = {"jax": _jax, "torch": _torch}
    if backend not in makers:
        near = suggest(str(backend), (*makers, "numpy"))
        msg = f"backend must be 'numpy', 'jax' or 'torch'; got backend={backend!r}{near}."
        raise InvalidSettingError(msg)
    try:
        return makers[backend]()
    except ImportError as error:
        msg = f"backend={backend!r} needs the package {backend}: pip install {backend}."
        raise ImportError(msg) from error


def _jax() -> SimpleNamespace:
    jnp, special = import_module("jax.numpy"), import_module("jax.scipy.special")
    names = ("exp", "log", "sin", "cos", "tanh", "sqrt", "abs", "where", "asarray")
    return SimpleNamespace(
        **{name: getattr(jnp, name) for name in names},
        atan=jnp.arctan,
        asinh=jnp.arcsinh,
        erf=special.erf,
        max=jnp.maximum,
    )


def _torch() -> SimpleNamespace:
    torch = import_module("torch")
    names = ("exp", "log", "sin", "cos", "tanh", "abs", "atan", "asinh", "erf", "where")
    return SimpleNamespace(
        **{name: getattr(torch, name) for name in names},
        # The functions of PyTorch take no plain numbers.
        sqrt=lambda x: math.sqrt(x) if isinstance(x, float) else torch.sqrt(x),
        max=lambda x, least: torch.clamp(x, min=least),
        asarray=torch.as_tensor,
    )
