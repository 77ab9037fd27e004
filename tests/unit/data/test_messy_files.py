"""Messy files end in the right numbers, a finding or a message; never in silence."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from messy_files import FILES, N_ROWS

from dbrm.data.files import read_file
from dbrm.errors import InvalidFileError
from dbrm.run.data_check import find_problems

pytestmark = pytest.mark.parametrize("what", FILES)


def write(folder, what):
    messy = FILES[what]
    path = folder / messy.name
    path.write_bytes(messy.text if isinstance(messy.text, bytes) else messy.text.encode())
    return path


def test_a_messy_file_is_read_or_refused(what, tmp_path):
    messy, path = FILES[what], write(tmp_path, what)
    if messy.refuses:
        with pytest.raises(InvalidFileError, match=messy.refuses):
            read_file(path)
        return
    file = read_file(path)
    for name, expected in messy.reads.items():
        np.testing.assert_array_equal(np.asarray(file.columns[name], dtype=float), expected)
    assert messy.notes in " ".join(file.notes)
    assert {len(column) for column in file.columns.values()} == {N_ROWS}
    found = find_problems(file.columns, "price")
    kinds = {finding.column: finding.kind for finding in found}
    assert messy.finds.items() <= kinds.items()
    # Nothing is said about columns that are as they should be.
    assert not set(messy.reads) & set(kinds) - set(messy.finds)
