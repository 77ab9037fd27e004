"""How chains are weighted when their models are merged: the values of ``merge=``.

A rule is a class that registers itself in `MERGE_RULES`, where the settings find the names they
allow: a new rule is one class in this file.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, final

from dbrm._choices import Choices
from dbrm._typing import FloatArray
from dbrm.search import log_sum_exp

__all__ = ["MERGE_RULES", "AbstractMergeRule", "Mass", "Uniform", "Union"]


class AbstractMergeRule(ABC):
    """Weight of a model: its posterior mass times the weights of chains that visited it."""

    #: Whether the weights of all chains that visited a model are added; otherwise it counts once.
    adds_weights: ClassVar[bool]
    #: Whether a model is dropped by its distance from the best of all chains, not of its own.
    common_scale: ClassVar[bool]

    @abstractmethod
    def log_weight(self, log_posterior: FloatArray) -> float:
        """Log weight of a chain that visited models with these log posteriors."""


MERGE_RULES: Choices[type[AbstractMergeRule]] = Choices("merge rule")


@final
@MERGE_RULES.register("union")
class Union(AbstractMergeRule):
    """Every model once, with weight :math:`p(y|M)p(M)` (default)."""

    adds_weights = False
    common_scale = True

    def log_weight(self, log_posterior: FloatArray) -> float:  # noqa: ARG002
        return 0.0


@final
@MERGE_RULES.register("mass")
class Mass(AbstractMergeRule):
    """The paper's :math:`u_b`: a model counts once for each chain that visited it."""

    adds_weights = True
    common_scale = True

    def log_weight(self, log_posterior: FloatArray) -> float:  # noqa: ARG002
        return 0.0


@final
@MERGE_RULES.register("uniform")
class Uniform(AbstractMergeRule):
    """The plain average of the posteriors that the chains found, each summing to one."""

    adds_weights = True
    common_scale = False

    def log_weight(self, log_posterior: FloatArray) -> float:
        return -log_sum_exp(log_posterior)
