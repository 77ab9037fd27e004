"""A progress bar for chains and populations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dbrm.chains import Progress as Update
from dbrm.evolution import Glimpse
from dbrm.report.wording import shorten

__all__ = ["counting_bar", "progress_bar"]


@contextmanager
def progress_bar(n_chains: int, n_populations: int) -> Iterator[Update]:
    """Show one bar for all chains; yields the function that moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("populations", total=n_chains * n_populations, note="")
        seen = [0] * n_chains

        def update(chain: int, glimpse: Glimpse | None) -> None:
            seen[chain] = n_populations if glimpse is None else glimpse.population
            if glimpse is not None:
                bar.update(task, note=shorten(glimpse.best_model, 60))
            bar.update(task, completed=sum(seen))

        yield update


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
