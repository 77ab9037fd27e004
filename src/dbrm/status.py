"""What became of one evaluation: numbers that fail are data, not exceptions.

A status travels with the column or model it belongs to, is counted, and is
shown in the summary. It sees no other module.
"""

from enum import IntEnum

__all__ = ["Status"]


class Status(IntEnum):
    """Outcome of evaluating one feature on a table, or one model's evidence."""

    OK = 0
    # Columns
    NOT_A_NUMBER = 1
    OVERFLOW = 2
    CONSTANT = 3
    FEW_ROWS = 4
    SATURATED = 5
    ALIASED = 6
    # Models
    RANK_DEFICIENT = 10
    PERFECT_FIT = 11
    SEPARATED = 12
    NOT_CONVERGED = 13
    UNDEFINED = 14
    CONSTRAINED = 15

    @property
    def meaning(self) -> str:
        """One line for people."""
        return _MEANINGS[self]

    @property
    def usable(self) -> bool:
        """Whether the number that carries this status can be used."""
        return self in (Status.OK, Status.PERFECT_FIT, Status.SEPARATED, Status.NOT_CONVERGED)


_MEANINGS = {
    Status.OK: "fine",
    Status.NOT_A_NUMBER: "the feature is undefined (NaN) on some rows",
    Status.OVERFLOW: "the feature overflows on some rows",
    Status.CONSTANT: "the feature is constant on the training rows",
    Status.FEW_ROWS: "the feature varies in a handful of training rows only",
    Status.SATURATED: "a function in the feature hardly varies, compared with its whole range",
    Status.ALIASED: "a periodic function in the feature oscillates between neighbouring rows",
    Status.RANK_DEFICIENT: "the model's columns are linearly dependent",
    Status.PERFECT_FIT: "the model fits the training rows perfectly; the residual floor applies",
    Status.SEPARATED: "the likelihood has no maximum, only a supremum: the columns separate the "
    "classes, or mark rows without any event",
    Status.NOT_CONVERGED: "Newton's method stopped before convergence",
    Status.CONSTRAINED: "the fitted model does not obey signs= or monotone=",
    Status.UNDEFINED: "the coefficient prior is undefined for a model of this size",
}
