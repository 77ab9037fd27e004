"""The table that `dbrm.check` returns: a data frame that prints as sentences."""

from collections.abc import Sequence

import pandas as pd

from dbrm.data import Finding

__all__ = ["FindingsTable"]


class FindingsTable(pd.DataFrame):
    """A row for each finding; printed in full, one paragraph each, where pandas would cut."""

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> "FindingsTable":
        """The table of these findings."""
        rows = [(found.column, found.kind, found.seen, found.advice) for found in findings]
        return cls(rows, columns=["column", "finding", "seen", "advice"])

    def __repr__(self) -> str:
        if not len(self):
            return "Nothing found."
        findings = (
            Finding(row.finding, row.column, row.seen, row.advice) for row in self.itertuples()
        )
        return "\n".join(f"{finding.kind}: {finding.message}" for finding in findings)
