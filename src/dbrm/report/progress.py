"""A progress bar for chains and populations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from math import inf

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from dbrm.evolution import ChainProgress
from dbrm.report.wording import shorten

__all__ = ["counting_bar", "progress_bar"]

_BEST = "best so far: "


@contextmanager
def progress_bar(
    n_chains: int,
    n_populations: int,
    time_budget: float | None = None,
    console: Console | None = None,
) -> Iterator["Board"]:
    """Show how far all chains are and what they have found.

    Parameters
    ----------
    time_budget
        Seconds after which the run ends at the latest: the time left is never more.
    console
        Where to show it; on standard error unless given.
    """
    with Board(n_chains, n_populations, time_budget, console or Console(stderr=True)) as board:
        yield board


class Board(Progress):
    """A line with a bar, and below it what the run does and the best formula so far."""

    def __init__(
        self, n_chains: int, n_populations: int, time_budget: float | None, console: Console
    ) -> None:
        self._done = dict.fromkeys(range(n_chains), 0)
        self._evaluated = dict.fromkeys(range(n_chains), 0)
        self._ended = dict.fromkeys(range(n_chains), False)
        self._best, self._formula, self._phase = -inf, "", ""
        self._each = n_populations
        columns = (
            TextColumn("{task.fields[chains]}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} populations"),
            TextColumn("{task.fields[models]:,} models"),
            _TimeLeft(time_budget),
        )
        super().__init__(*columns, console=console, transient=True)
        total = n_chains * n_populations
        self._task = self.add_task("", total=total, chains=self._count_chains(), models=0)

    def update_chain(self, chain: int, chain_progress: ChainProgress | None) -> None:
        """Take in what one chain reports; nothing means that it has ended."""
        if chain_progress is None:
            self._done[chain], self._ended[chain] = self._each, True
        else:
            self._ended[chain] = False
            share = chain_progress.n_done / max(chain_progress.total, 1)
            self._done[chain] = round(self._each * min(share, 1.0))
            self._evaluated[chain] = chain_progress.n_evaluated
            if chain_progress.best_log_posterior > self._best:
                self._best, self._formula = (
                    chain_progress.best_log_posterior,
                    chain_progress.best_model,
                )
        self.update(
            self._task,
            # Chains may be added.
            total=len(self._done) * self._each,
            completed=sum(self._done.values()),
            models=sum(self._evaluated.values()),
            chains=self._count_chains(),
        )

    def show_phase(self, phase: str) -> None:
        """Say what the run does now."""
        self._phase = phase
        self.refresh()

    def _count_chains(self) -> str:
        total = len(self._ended)
        return "1 chain" if total == 1 else f"{sum(self._ended.values())}/{total} chains done"

    def get_renderables(self) -> Iterator[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        if self._phase and not self._formula:
            yield Text(self._phase, style="dim")
        if self._formula:
            before = f"{self._phase}; {_BEST}" if self._phase else _BEST
            room = max(20, self.console.width - len(before) - 1)
            yield Text(before, style="dim").append(shorten(self._formula, room), style="default")


class _TimeLeft(ProgressColumn):
    """Time left, by the pace so far and by the budget, whichever ends first."""

    max_refresh = 0.5

    def __init__(self, time_budget: float | None) -> None:
        super().__init__()
        self._budget = inf if time_budget is None else time_budget

    def render(self, task: Task) -> Text:
        elapsed = task.elapsed or 0.0
        by_pace = inf
        if task.total and task.completed:
            by_pace = elapsed * (task.total / task.completed - 1.0)
        left = min(by_pace, self._budget - elapsed)
        if left == inf:
            return Text("")
        return Text(f"{timedelta(seconds=max(0, round(left)))} left", style="cyan")


@contextmanager
def counting_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for work whose length is known once it starts."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update
