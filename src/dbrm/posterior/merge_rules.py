"""How chains are weighted when their models are merged: the values of ``merge=``.

A rule is a class with a name. `MERGE_RULES` holds all of them; the settings take their names
from there, so that a new rule is a class in this file.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, final

from dbrm._typing import FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.search import log_sum_exp

__all__ = ["MERGE_RULES", "AbstractMergeRule", "Mass", "Uniform", "Union", "find_merge_rule"]


class AbstractMergeRule(ABC):
    """Weight of a model: its posterior mass times the weights of chains that visited it."""

    name: ClassVar[str]
    #: Whether the weights of all chains that visited a model are added; otherwise it counts once.
    adds_weights: ClassVar[bool]
    #: Whether a model is dropped by its distance from the best of all chains, not of its own.
    common_scale: ClassVar[bool]

    @abstractmethod
    def log_weight(self, log_posterior: FloatArray) -> float:
        """Log weight of a chain that visited models with these log posteriors."""


@final
class Union(AbstractMergeRule):
    """Every model once, with weight :math:`p(y|M)p(M)` (default)."""

    name = "union"
    adds_weights = False
    common_scale = True

    def log_weight(self, log_posterior: FloatArray) -> float:  # noqa: ARG002
        return 0.0


@final
class Mass(AbstractMergeRule):
    """The paper's :math:`u_b`: a model counts once for each chain that visited it."""

    name = "mass"
    adds_weights = True
    common_scale = True

    def log_weight(self, log_posterior: FloatArray) -> float:  # noqa: ARG002
        return 0.0


@final
class Uniform(AbstractMergeRule):
    """The plain average of the posteriors that the chains found, each summing to one."""

    name = "uniform"
    adds_weights = True
    common_scale = False

    def log_weight(self, log_posterior: FloatArray) -> float:
        return -log_sum_exp(log_posterior)


MERGE_RULES: dict[str, AbstractMergeRule] = {
    rule.name: rule for rule in (Union(), Mass(), Uniform())
}


def find_merge_rule(name: str) -> AbstractMergeRule:
    """A rule by its name."""
    rule = MERGE_RULES.get(name)
    if rule is None:
        msg = f"merge must be one of {', '.join(map(repr, MERGE_RULES))}; got merge={name!r}."
        raise InvalidSettingError(msg)
    return rule
