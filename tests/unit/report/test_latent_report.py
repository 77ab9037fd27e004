"""Latent effects in findings and on the page."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.report.contents import describe
from dbrm.report.findings import find, headline
from dbrm.report.html import to_html
from dbrm.report.rerun import rerun_code


@pytest.fixture(scope="module")
def walk():
    """A Gaussian response that wanders in time, and nothing else."""
    draw = np.random.default_rng(1)
    level = np.cumsum(draw.normal(size=80))
    table = pd.DataFrame({"x": draw.normal(size=80), "t <s>": np.arange(80)})
    response = pd.Series(level + 0.2 * draw.normal(size=80), name="y")
    return dbrm.fit(
        table,
        response,
        latent=[dbrm.latent.RW1("t <s>")],
        algorithm="mjmcmc",
        n_chains=1,
        n_iter=20,
        random_state=1,
    )


def test_a_model_with_nothing_but_a_latent_effect_is_a_finding(walk):
    assert walk.best_model.terms == ()
    assert headline(find(walk)).title != "Nothing was found"


def test_the_page_has_a_table_of_them(walk, kepler):
    page = to_html(describe(walk, walk.rows()))
    assert 'id="latent"' in page
    assert "RW1(t &lt;s&gt;)" in page
    assert "t <s>" not in page
    assert 'id="latent"' not in to_html(describe(kepler, None))


def test_the_code_on_the_page_names_them(walk):
    code = rerun_code(walk).replace("dbrm.fit(", "dict(").replace("    X,\n    y,\n", "")
    namespace = {}
    exec(code, namespace)
    assert namespace["posterior"]["latent"] == [dbrm.latent.RW1("t <s>")]
