"""`dbrm.data` reads every data-frame library without importing one."""

import subprocess
import sys


def test_no_dataframe_library_is_imported():
    code = (
        "import sys, dbrm.data; "
        "print(sorted({'pandas', 'polars', 'pyarrow', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
