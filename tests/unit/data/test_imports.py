"""`dbrm.data` reads every data-frame library without importing one; nor do data sets at import."""

import subprocess
import sys


def test_no_dataframe_library_is_imported():
    code = (
        "import sys, dbrm.data, dbrm.datasets; "
        "heavy = {'pandas', 'polars', 'pyarrow', 'pooch', 'sklearn', 'scipy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
