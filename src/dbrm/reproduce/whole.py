"""`dbrm.fit` to the end or not at all: a run that was interrupted is no result."""

from typing import Any

from dbrm._typing import TableLike
from dbrm.fitting import fit
from dbrm.posterior import Posterior

__all__ = ["fit_whole"]


def fit_whole(X: TableLike, y: Any, **settings: Any) -> Posterior:
    """Fit; where Ctrl-C ends the search early, raise instead of returning.

    Raises
    ------
    KeyboardInterrupt
        If the posterior would hold only what was found until then.
    """
    posterior = fit(X, y, **settings)
    if posterior.record.ended.startswith("SIG"):
        raise KeyboardInterrupt(posterior.record.ended)
    return posterior
