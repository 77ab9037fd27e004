"""The base class of all features: identity, complexity, immutability, interning.

Equal features are the same object (interned). The concrete classes are in
`dbrm.features.nodes` and `dbrm.features.projection`. Nothing here sees data.
"""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter, is_
from threading import Lock
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from dbrm._typing import Column, TableLike
from dbrm.features.transforms import Transform

__all__ = ["Feature", "intern", "lookup"]


class Feature(ABC):
    """A feature F(x); see `Covariate`, `Modification`, `Product`, `Projection`.

    Attributes
    ----------
    key
        128-bit identity: BLAKE2b of `canonical`, the same in every process. Weights
        of projections and other learnt numbers are not part of it, as in the paper:
        features "are characterized by the model topology" (Sec. 2.1). ``==`` and
        ``hash`` follow the key.
    canonical
        The topology as text; ``?`` stands for a learnt number.
    text
        The exact text, also ``str(feature)``: weights and knots are written out, and
        `dbrm.parse_feature` reads it back to the same object.
    width
        Total width: 0 for a covariate, plus 1 per transform, 1 per multiplication,
        and per projection the number of its weights with the bias (see docs/notation.md).
    complexity
        One plus the total width.
    depth
        Longest chain of transforms and multiplications, for the best order of multiplication.
    children
        The arguments of the last operation, in canonical order.
    transform
        The function applied last; None for covariates and products.
    fitted
        Whether all numbers learnt from training rows are known: knots at quantiles, and centre
        and scale of standardised arguments.
    """

    __slots__ = (
        "__weakref__",
        "_names",
        "canonical",
        "children",
        "complexity",
        "depth",
        "fitted",
        "key",
        "text",
        "transform",
        "width",
    )

    key: int
    canonical: str
    text: str
    width: int
    complexity: int
    depth: int
    children: tuple["Feature", ...]
    transform: Transform | None
    fitted: bool
    _names: frozenset[str]

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the covariates used, sorted."""
        return tuple(sorted(self._names))

    @abstractmethod
    def compute(self, columns: Mapping[str, Column]) -> Column:
        """Compute the values from those of the children, given by their text."""

    @abstractmethod
    def with_children(self, children: Sequence["Feature"]) -> "Feature":
        """Return the same operation on other children, in the order of `children`."""

    def evaluate(self, table: TableLike) -> Column:
        """Evaluate on every row of a table.

        Parameters
        ----------
        table
            Mapping of names to columns, a data frame, or an object with
            ``column(name)``.

        Raises
        ------
        UnknownNameError
            If the table lacks a covariate.
        """
        from dbrm.features.evaluation import evaluate_one

        return evaluate_one(self, table)

    def to_callable(self) -> Callable[[TableLike], Column]:
        """Return a plain function of a table."""

        def feature(table: TableLike) -> Column:
            return self.evaluate(table)

        feature.__doc__ = self.text
        return feature

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return a SymPy expression; ``symbols`` may give expressions for covariates."""
        from dbrm.features.export import to_sympy

        return to_sympy(self, symbols)

    def to_latex(self, *, digits: int = 4) -> str:
        """Return LaTeX for a formula, weights rounded to significant ``digits``."""
        from dbrm.features.export import to_latex

        return to_latex(self, digits=digits)

    def _repr_latex_(self) -> str:
        return f"${self.to_latex()}$"

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Feature {self.text}>"

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Feature) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __setattr__(self, name: str, value: object) -> None:
        msg = f"Features are immutable; {name!r} of {self.text!r} cannot be set."
        raise AttributeError(msg)

    def __delattr__(self, name: str) -> None:
        msg = f"Features are immutable; {name!r} of {self.text!r} cannot be deleted."
        raise AttributeError(msg)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a flat list of nodes: deep features must not exhaust the stack."""
        from dbrm.features.traversal import flatten, unflatten

        return unflatten, (flatten(self),)


Node = TypeVar("Node", bound=Feature)

# All features in use by their exact text. Equal content is then the same object, so that
# sub-expressions are shared; a feature without references is removed.
_INTERNED: WeakValueDictionary[str, Feature] = WeakValueDictionary()
_lock = Lock()
_fitted = attrgetter("fitted")


def lookup(
    kind: type[Node],
    text: str,
    children: tuple[Feature, ...],
    transform: Transform | None = None,
) -> Node | None:
    """Return the existing feature of this content, or None.

    The text is not enough: a user may define another transform under an old name, and must then
    get new nodes.
    """
    known = _INTERNED.get(text)
    if (
        type(known) is kind
        and known.transform is transform
        and all(map(is_, known.children, children))
    ):
        return known
    return None


def intern(
    node: Node,
    *,
    text: str,
    canonical: str,
    children: tuple[Feature, ...],
    width: int,
    depth: int,
    names: frozenset[str],
    transform: Transform | None = None,
    fitted: bool = True,
) -> Node:
    """Set the common attributes, and return the node, or the existing one of equal content."""
    fill = object.__setattr__
    fill(node, "text", text)
    fill(node, "canonical", canonical)
    fill(node, "children", children)
    fill(node, "transform", transform)
    fill(node, "width", width)
    fill(node, "complexity", width + 1)
    fill(node, "depth", depth)
    fill(node, "_names", names)
    fill(node, "fitted", fitted and all(map(_fitted, children)))
    digest = blake2b(canonical.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    fill(node, "key", int.from_bytes(digest, "big"))
    with _lock:
        existing = lookup(type(node), text, children, transform)
        if existing is None:
            _INTERNED[text] = node
        return node if existing is None else existing


def _renew_lock() -> None:
    global _lock
    _lock = Lock()


if sys.platform != "win32":
    # Another thread may hold the lock at the moment of a fork.
    os.register_at_fork(after_in_child=_renew_lock)
