"""Slices on a Ray cluster: the one that `ray.init` connected to."""

from collections.abc import Iterator
from typing import Any, final

from dbrm.chains.task import Outcome, Slice, run_slice
from dbrm.chains.workers import AbstractWorkers, lost
from dbrm.errors import DBRMError, InvalidSettingError
from dbrm.evolution import Problem

__all__ = ["RayTasks"]


@final
class RayTasks(AbstractWorkers):
    """Tasks of Ray; the problem is in its object store, once per machine."""

    def __init__(self) -> None:
        try:
            import ray
        except ImportError as error:
            msg = "executor='ray' needs Ray: pip install 'dbrm[ray]'."
            raise InvalidSettingError(msg) from error
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self._ray: Any = ray
        self._work = ray.remote(num_cpus=1, max_retries=0)(run_slice)

    @property
    def count(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def share(self, problem: Problem) -> None:
        self._problem = self._ray.put(problem)

    def run(self, slices: list[Slice]) -> Iterator[Outcome]:
        waiting = {self._work.remote(piece, self._problem): piece.task.index for piece in slices}
        while waiting:
            (reference,), _ = self._ray.wait(list(waiting), num_returns=1)
            index = waiting.pop(reference)
            try:
                yield self._ray.get(reference)
            except DBRMError:
                raise
            except Exception as error:
                yield from lost([index], error)
