"""One name for the evaluation of a mask, whatever the engine.

The compiled loops call ``evaluate(context, mask)``; Numba picks the engine's own kernel
by the type of the context, so that a loop is compiled once per engine and can be kept on
disk. Uncompiled, a context may also be any object with a method ``evaluate(mask)``: that
is how a likelihood written in Python runs through the same loops.
"""

from numba.extending import overload

from dbrm._kernels.gaussian import GaussianContext, evaluate_gaussian
from dbrm._kernels.glm import evaluate_glm
from dbrm._kernels.glm_problem import GlmContext

__all__ = ["COMPILED_CONTEXTS", "evaluate"]

COMPILED_CONTEXTS = (GaussianContext, GlmContext)


def evaluate(context, mask):
    """Log evidence and status of one mask."""
    if isinstance(context, GaussianContext):
        return evaluate_gaussian(context, mask)
    if isinstance(context, GlmContext):
        return evaluate_glm(context, mask)
    return context.evaluate(mask)


@overload(evaluate)
def _evaluate(context, mask):  # noqa: ARG001
    if context.instance_class is GaussianContext:
        return lambda context, mask: evaluate_gaussian(context, mask)
    if context.instance_class is GlmContext:
        return lambda context, mask: evaluate_glm(context, mask)
    return None
