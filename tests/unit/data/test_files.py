"""Tests of `dbrm.data.files`: nothing that a file says is changed without a word."""

import gzip

import numpy as np
import pytest

from dbrm.data.files import read_file
from dbrm.errors import InvalidFileError


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_repeated_column_name_is_refused(name, separator, tmp_path):
    text = "a,b,a,a.1\n1,2,3,4\n5,6,7,8\n".replace(",", separator)
    with pytest.raises(InvalidFileError, match=r"column names must be unique; repeated: 'a'\. Re"):
        read_file(write(tmp_path / name, text))


def test_a_repeated_name_in_quotes_is_refused(tmp_path):
    with pytest.raises(InvalidFileError, match="repeated: 'a,b'"):
        read_file(write(tmp_path / "t.csv", 'c,"a,b",a,"a,b"\n1,2,3,4\n'))


def test_names_that_only_look_alike_are_kept(tmp_path):
    columns = read_file(write(tmp_path / "t.csv", 'a,A,a.1,"a "\n1,2,3,4\n5,6,7,8\n')).columns
    assert list(columns) == ["a", "A", "a.1", "a "]
    np.testing.assert_array_equal(np.asarray(columns["a.1"]), [3, 7])
