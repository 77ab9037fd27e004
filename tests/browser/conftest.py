"""A real browser: Debian's chromium, driven by playwright.

Without a browser the tests skip; where DBRM_REQUIRE_BROWSER is set, as in CI, they fail.
"""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def missing(what):
    if os.environ.get("DBRM_REQUIRE_BROWSER"):
        pytest.fail(f"DBRM_REQUIRE_BROWSER is set, but there is no {what}")
    pytest.skip(f"there is no {what}")


@pytest.fixture(scope="session")
def browser():
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    with sync_playwright() as driver:
        # Chromium's sandbox cannot be used by root.
        is_root = os.name == "posix" and os.geteuid() == 0
        sandbox = ["--no-sandbox"] if is_root else []
        launched = driver.chromium.launch(executable_path=path, args=sandbox)
        yield launched
        launched.close()
