"""The page predicts: sliders move in a real browser, and the numbers are those of `predict`."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import dbrm

# Digits that must agree: those of `predict` and `predict_interval`.
CLOSE = 1e-9
EFFORT = {"transforms": ["erf", "hinge"], "n_chains": 1, "n_populations": 2, "random_state": 1}
# "root" is a Gaussian response whose predictions are on the scale of its square root.
FAMILIES = ["gaussian", "root", "binomial", "poisson", "negative_binomial", "gamma"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    n = 150
    return pd.DataFrame(
        {
            "size": np.exp(2 * rng.normal(size=n)),
            "b & <i>": rng.normal(5, 2, n),
            "site": rng.choice(["u", "v", "w"], n),
            "flag": rng.random(n) < 0.4,
            "count": rng.integers(0, 9, n),
        }
    )


def linear(table):
    return 0.5 * np.log(table["size"]) - 0.2 * table["b & <i>"] + 0.5 * (table["site"] == "u")


def fit(table, family):
    rng = np.random.default_rng(4)
    eta = linear(table)
    y = {
        "gaussian": lambda: eta + 0.3 * rng.normal(size=len(eta)),
        "root": lambda: (3.0 + eta + 0.5 * rng.normal(size=len(eta))) ** 2,
        "binomial": lambda: (eta + rng.logistic(size=len(eta)) > 0).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "negative_binomial": lambda: rng.poisson(rng.gamma(2.0, np.exp(eta) / 2.0)).astype(float),
        "gamma": lambda: rng.gamma(3.0, np.exp(eta) / 3.0),
    }[family]()
    family = "gaussian" if family == "root" else family
    return dbrm.fit(table, pd.Series(y, name="y"), family=family, **EFFORT)


@pytest.fixture(scope="module", params=FAMILIES)
def opened(request, browser, table, tmp_path_factory):
    """A posterior, and its page at a width."""
    posterior = fit(table, request.param)
    assert (posterior.root_scale > 0.5) == (request.param == "root")
    path = tmp_path_factory.mktemp("what_if") / "run.html"
    half = table.iloc[::2]
    posterior.report(path, test=(half, posterior.rows().response[::2]))
    complaints = []

    def open_(width, **options):
        page = browser.new_page(viewport={"width": width, "height": 800}, **options)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield posterior, open_
    assert complaints == []


def set_row(page, row):
    """Type the values of a row; levels are chosen."""
    for name, value in row.items():
        label = page.locator("#whatif label", has=page.get_by_text(name, exact=True))
        if not label.count():
            # It takes part in no model.
            continue
        if isinstance(value, str | bool | np.bool_):
            level = value if isinstance(value, str) else str(bool(value)).lower()
            label.locator("select").select_option(label=level)
        else:
            label.locator("input[type=number]").fill(repr(float(value)))
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def answer(page):
    """Prediction, baseline and contributions as the page has them, all digits."""
    mean = float(page.locator("#whatif .mean").get_attribute("data-value"))
    section = page.locator("#whatif")
    baseline = float(section.get_attribute("data-baseline"))
    parts = json.loads(section.get_attribute("data-parts"))
    return mean, baseline, parts


def interval(page, name):
    """An interval as the page has it, all digits."""
    ends = page.locator(f"#whatif .{name}")
    return [float(ends.get_attribute(f"data-{end}")) for end in ("lower", "upper")]


@pytest.fixture(scope="module")
def expected(opened, table):
    """Typical rows, one far outside the training range, and what Python says of each."""
    posterior, _ = opened
    rows = table.iloc[[3, 77]]
    rows = pd.concat([rows, rows.iloc[[0]].assign(**{"size": 1e4, "b & <i>": -30.0})])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dbrm.errors.DBRMWarning)
        # One by one, as the page has them: quantiles of several rows are found on one grid.
        return rows, [
            (
                posterior.predict(row)[0],
                posterior.predict_interval(row, of="mean")[0],
                posterior.predict_interval(row)[0],
            )
            for row in (rows.iloc[[position]] for position in range(len(rows)))
        ]


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_predictions_are_those_of_predict(opened, expected, width):
    """The row far outside is held at the edge."""
    posterior, open_ = opened
    page = open_(width)
    rows, numbers = expected
    names = posterior.portable()["names"]
    for position, (known_mean, of_mean, of_response) in enumerate(numbers):
        row = rows.iloc[[position]]
        set_row(page, row.iloc[0].to_dict())
        mean, baseline, parts = answer(page)
        assert mean == pytest.approx(known_mean, rel=CLOSE, abs=CLOSE)
        np.testing.assert_allclose(interval(page, "of-mean"), of_mean, rtol=CLOSE, atol=CLOSE)
        if posterior.family.name != "binomial":
            found = interval(page, "of-response")
            np.testing.assert_allclose(found, of_response, rtol=CLOSE, atol=CLOSE)
        else:
            # Zero and one: no news.
            assert not page.locator("#whatif .of-response").is_visible()
        known = posterior.effects.contributions(row).iloc[0]
        assert baseline == pytest.approx(known["(baseline)"], rel=CLOSE, abs=CLOSE)
        np.testing.assert_allclose(parts, known[names], rtol=CLOSE, atol=CLOSE)
    assert page.locator("#whatif .outside").is_visible()
    page.close()


def test_a_slider_moves_the_prediction(opened):
    """What is shown beside a slider is what is predicted with."""
    posterior, open_ = opened
    page = open_(800)
    before = answer(page)[0]
    slider = page.get_by_label("size, slider")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    after = answer(page)[0]
    assert after != before
    shown = float(page.get_by_label("size, number").input_value())
    row = {}
    for label in page.locator("#whatif label").all():
        name = label.locator(".name").inner_text()
        if label.locator("select").count():
            text = label.locator("option:checked").inner_text()
            row[name] = [text == "true"] if text in ("true", "false") else [text]
        else:
            row[name] = [float(label.locator("input[type=number]").input_value())]
    assert row["size"] == [shown]
    complete = {"flag": [False], "count": [4.0], "b & <i>": [5.0], "site": ["u"]} | row
    expected = posterior.predict(pd.DataFrame(complete))[0]
    assert after == pytest.approx(expected, rel=CLOSE, abs=CLOSE)
    page.get_by_role("button", name="Typical row").click()
    assert answer(page)[0] == before
    page.close()


def test_simpler_formulas_predict_the_same_row(opened, table):
    posterior, open_ = opened
    page = open_(800)
    row = table.iloc[[10]]
    set_row(page, row.iloc[0].to_dict())
    cells = page.locator("#simpler td.here").all()
    assert len(cells) == len(posterior.path) > 1
    for step, cell in enumerate(cells):
        expected = posterior.path_model(step).predict(row)[0]
        found = float(cell.get_attribute("data-value"))
        assert found == pytest.approx(expected, rel=CLOSE, abs=CLOSE)
    page.close()


@pytest.mark.parametrize("width", [360, 400, 800, 1400])
def test_nothing_is_clipped(opened, width):
    """The page does not scroll sideways, and no control or number leaves its section."""
    _, open_ = opened
    page = open_(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """() => [...document.querySelectorAll("#whatif *, #simpler *, #covariates figure")]
          .filter(node => node.checkVisibility() && node.getBoundingClientRect().width > 0)
          .filter(node => {
            const own = node.getBoundingClientRect();
            const card = node.closest("section").getBoundingClientRect();
            return own.left < card.left - 1 || own.right > card.right + 1;
          }).map(node => node.outerHTML.slice(0, 80))"""
    )
    assert outside == []
    page.close()


def test_a_page_without_scripts_does_not_promise_predictions(opened):
    _, open_ = opened
    page = open_(800, java_script_enabled=False)
    assert not page.locator("#whatif").is_visible()
    assert not page.locator("#simpler .here").first.is_visible()
    assert page.locator("#scores").is_visible()
    page.close()


def test_predictions_are_not_printed(opened):
    _, open_ = opened
    page = open_(800)
    page.emulate_media(media="print")
    assert not page.locator("#whatif").is_visible()
    page.close()


def test_measures_on_held_out_rows_are_beside_those_on_training_rows(opened):
    posterior, open_ = opened
    page = open_(800)
    heads = page.locator("#scores thead").first.inner_text()
    assert "training rows (150)" in heads
    assert "held-out rows (75)" in heads
    first = page.locator("#scores tbody tr").first.locator("td.v")
    values = [float(cell.get_attribute("data-value")) for cell in first.all()]
    scores = posterior.checks.scores()
    assert values[0] == pytest.approx(scores["value"][0], rel=1e-12)
    if posterior.family.name == "binomial":
        assert page.locator("table.confusion").count() == 2
        assert page.locator("figure", has_text="ROC curve").count() == 1
    page.close()


@pytest.fixture(scope="module", params=["multinomial", "ordinal", "ordinal probit"])
def classes(request, browser, table, tmp_path_factory):
    """A posterior of classes, and its page."""
    rng = np.random.default_rng(6)
    family, _, link = request.param.partition(" ")
    noisy = linear(table) + rng.logistic(size=len(table))
    kinds = np.digitize(noisy, np.quantile(noisy, [0.3, 0.5, 0.8]))
    labels = pd.Series(kinds, name="kind")
    if family == "multinomial":
        labels = pd.Series(np.array(["elm", "ash", "<b>oak", "yew"])[kinds], name="kind")
    options = {"link": link} if link else {}
    posterior = dbrm.fit(table, labels, family=family, **EFFORT, **options)
    path = tmp_path_factory.mktemp("classes") / "run.html"
    posterior.report(path, test=(table.iloc[::2], labels.iloc[::2]))
    page = browser.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    yield posterior, page
    page.close()
    assert complaints == []


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_classes_have_the_probabilities_of_predict_proba(classes, table, width):
    posterior, page = classes
    page.set_viewport_size({"width": width, "height": 800})
    for position in (3, 77, 120):
        row = table.iloc[[position]]
        set_row(page, row.iloc[0].to_dict())
        rows = page.locator("#whatif .chances tbody tr")
        assert rows.locator("th").all_inner_texts() == [str(name) for name in posterior.classes]
        cells = rows.locator("td.n").all()
        found = [float(cell.get_attribute("data-value")) for cell in cells]
        np.testing.assert_allclose(found, posterior.predict_proba(row)[0], rtol=CLOSE, atol=CLOSE)
        chosen = page.locator("#whatif .chances tr.chosen th").inner_text()
        assert chosen == str(posterior.predict(row)[0])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (page.locator("#whatif .moves").count() == 1) == posterior.family.ordered


def test_classes_are_measured_on_held_out_rows(classes, table):
    posterior, page = classes
    first = page.locator("#scores tbody tr").first
    assert first.locator("th").inner_text() == "right class"
    values = [float(cell.get_attribute("data-value")) for cell in first.locator("td.v").all()]
    expected = posterior.checks.scores()["value"][0]
    assert values[0] == pytest.approx(expected, rel=1e-12)
    assert len(values) == 2
    tables = page.locator("table.confusion")
    assert tables.count() == 2
    heads = tables.first.locator("tbody th").all_inner_texts()
    assert heads == [f"observed {name}" for name in posterior.classes]
    counts = [int(cell) for cell in tables.last.locator("tbody td").all_inner_texts()]
    assert sum(counts) == len(table.iloc[::2])


@pytest.mark.parametrize(
    "family",
    ["student_t", "beta", "zero_inflated_poisson"],
)
def test_other_families_have_means_with_intervals(family, browser, table, tmp_path):
    rng = np.random.default_rng(4)
    eta = linear(table)
    y = {
        "student_t": lambda: eta + 0.3 * rng.standard_t(3, len(eta)),
        "beta": lambda: rng.beta(8 / (1 + np.exp(-eta)), 8 / (1 + np.exp(eta))).clip(0.001, 0.999),
        "zero_inflated_poisson": lambda: rng.poisson(np.exp(eta)) * (rng.random(len(eta)) > 0.3),
    }[family]()
    y = pd.Series(y, name="y")
    posterior = dbrm.fit(table, y, family=family, max_averaged=80, **EFFORT)
    posterior.report(tmp_path / "run.html")
    page = browser.new_page()
    page.goto((tmp_path / "run.html").as_uri())
    for position in (3, 77):
        row = table.iloc[[position]]
        set_row(page, row.iloc[0].to_dict())
        assert answer(page)[0] == pytest.approx(posterior.predict(row)[0], rel=CLOSE, abs=CLOSE)
        of_mean = posterior.predict_interval(row, of="mean")[0]
        np.testing.assert_allclose(interval(page, "of-mean"), of_mean, rtol=CLOSE, atol=CLOSE)
    assert not page.locator("#whatif .of-response").is_visible()
    page.close()


@pytest.fixture(scope="module", params=["cox", "cox in strata", "weibull"])
def lives(request, browser, table, tmp_path_factory):
    """A posterior of survival times, its strata or none, and its page."""
    rng = np.random.default_rng(6)
    family, _, strata = request.param.partition(" in ")
    n = len(table)
    time, end = rng.weibull(1.5, n) * np.exp(-linear(table) / 1.5), rng.exponential(3.0, n)
    options = {"strata": table["count"] > 4} if strata else {}
    options["max_averaged"] = 80
    posterior = dbrm.fit(
        table.drop(columns="count") if strata else table,
        pd.Series(np.minimum(time, end), name="months"),
        event=(time <= end).astype(int),
        family=family,
        **EFFORT,
        **options,
    )
    path = tmp_path_factory.mktemp("lives") / "run.html"
    posterior.report(path)
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    yield posterior, bool(strata), page
    page.close()
    assert complaints == []


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_survival_is_that_of_predict_survival(lives, table, width):
    """At the time that a slider is moved to, and along the curve; the stratum is chosen."""
    posterior, has_strata, page = lives
    page.set_viewport_size({"width": width, "height": 800})
    for position, steps in ((3, 0), (77, 5)):
        row = table.iloc[[position]]
        set_row(page, row.iloc[0].to_dict())
        strata = {}
        if has_strata:
            label = page.locator("#whatif .survival label").first
            label.locator("select").select_option(index=position % 2)
            strata["strata"] = [posterior.record.strata[position % 2]]
        slider = page.get_by_label("time, slider")
        slider.focus()
        before = slider.input_value()
        for _ in range(steps):
            page.keyboard.press("ArrowRight")
        assert int(slider.input_value()) == int(before) + steps
        set_row(page, row.iloc[0].to_dict())
        assert answer(page)[0] == pytest.approx(posterior.predict(row)[0], rel=CLOSE, abs=CLOSE)
        chosen = float(page.locator("#whatif output.time").get_attribute("data-value"))
        box = page.locator("#whatif .survival")
        number = page.evaluate("JSON.parse(document.querySelector('#whatif-data').textContent)")
        times = number["predictive"]["times"][position % 2 if has_strata else 0]
        assert chosen in times
        expected = posterior.predict_survival(row, times, **strata)
        curve = json.loads(box.get_attribute("data-curve"))
        np.testing.assert_allclose(curve, expected.survival[0], rtol=CLOSE, atol=CLOSE)
        here = times.index(chosen)
        found = float(box.locator(".chance").get_attribute("data-value"))
        assert found == curve[here]
        ends = [expected.lower[0, here], expected.upper[0, here]]
        np.testing.assert_allclose(interval(page, "of-chance"), ends, rtol=CLOSE, atol=CLOSE)
        if posterior.family.name == "weibull":
            ends = posterior.predict_interval(row)[0]
            np.testing.assert_allclose(interval(page, "of-response"), ends, rtol=CLOSE)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#scores", has_text="concordance").is_visible()
