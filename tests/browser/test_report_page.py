"""The report in a real browser."""

import pytest

import dbrm


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with several features and models to sort."""
    path = tmp_path_factory.mktemp("report") / "run.html"
    table = dbrm.datasets.simulate_planets(seed=1, n=60)
    axis = table.pop("SemiMajorAxisAU")
    table = table.drop(columns="TypeFlag").rename(columns={"RadiusJpt": "<b>radius & [$]</b>"})
    options = {"transforms": ["troot"], "n_chains": 2, "n_populations": 3, "random_state": 1}
    dbrm.fit(table, axis, **options).report(path, table, axis)
    return path


@pytest.fixture
def open_page(browser, report):
    """Open the report with a choice of options; whatever the console says fails the test."""
    contexts, complaints, asked = [], [], []

    def open_(**options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(asked) <= {report.as_uri(), "data:,"}


def column(page, table, number):
    return page.locator(f"#{table} tbody tr > :nth-child({number})").all_inner_texts()


def values(page, table, number):
    cells = page.locator(f"#{table} tbody tr > :nth-child({number})")
    return [float(cell.get_attribute("data-value")) for cell in cells.all()]


def test_the_console_is_watched(browser):
    """Negative control: a page with a mistake would be noticed."""
    page, complaints = browser.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content("<script>nonsense()</script>")
    page.close()
    assert len(complaints) == 1


def test_a_table_sorts_by_numbers_both_ways(open_page):
    page = open_page()
    before = values(page, "features", 2)
    assert before == sorted(before, reverse=True)
    page.get_by_role("button", name="complexity").click()
    found = values(page, "features", 3)
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]
    page.get_by_role("button", name="complexity").click()
    assert values(page, "features", 3) == sorted(found)
    heads = page.locator("#features th[aria-sort]")
    assert heads.count() == 1
    assert heads.first.get_attribute("aria-sort") == "ascending"


def test_a_table_sorts_by_words_from_the_keyboard(open_page):
    page = open_page()
    page.locator("#features th button", has_text="feature").focus()
    page.keyboard.press("Enter")
    words = [word.strip() for word in column(page, "features", 1)]
    assert words == page.evaluate("words => [...words].sort((a, b) => a.localeCompare(b))", words)


def test_rows_stay_whole_when_sorted(open_page):
    page = open_page()
    rows = set(page.locator("#models tbody tr").all_inner_texts())
    page.get_by_role("button", name="log evidence").click()
    assert set(page.locator("#models tbody tr").all_inner_texts()) == rows


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_theme_switches_and_is_remembered(open_page):
    page = open_page(color_scheme="light")
    light = background(page)
    page.get_by_role("button", name="Dark theme").click()
    dark = background(page)
    assert dark != light
    # What is stored travels to another process of the browser; nobody reloads as fast as a test.
    page.wait_for_timeout(500)
    page.reload()
    assert background(page) == dark
    page.get_by_role("button", name="Light theme").click()
    assert background(page) == light


def test_the_theme_follows_the_system(open_page):
    assert background(open_page(color_scheme="dark")) != background(open_page())


def test_paper_is_white_whatever_the_theme(open_page):
    page = open_page(color_scheme="dark")
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"
    assert not page.locator("button.theme").is_visible()


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_the_page_fits_its_window(open_page, width):
    """Only tables and formulas may scroll sideways, not the page."""
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_formulas_and_pictures_are_drawn(open_page):
    page = open_page()
    formula = page.locator("#formula .formula math").last.bounding_box()
    assert formula["width"] > 100
    assert formula["height"] > 15
    for picture in page.locator("figure svg").all():
        assert picture.bounding_box()["height"] > 40
        assert picture.get_attribute("aria-label")


def test_it_can_be_read_without_scripts(open_page):
    page = open_page(java_script_enabled=False)
    assert page.get_by_role("heading", level=1).is_visible()
    assert page.locator("#models tbody tr").count() > 1
    assert not page.locator("button.theme").is_visible()


def test_names_are_shown_as_they_are(open_page):
    assert "<b>radius & [$]</b>" in open_page().locator("#data").inner_text()


# Luminance contrast as WCAG 2 defines it, of every text against the nearest background.
CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  function rgba(colour) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return Array.from(canvas.getImageData(0, 0, 1, 1).data);
  }
  function luminance([r, g, b]) {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(
      v => v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  }
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = Array.from(node.childNodes).some(c => c.nodeType === 3 && c.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest("svg, .skip, [aria-hidden]")) continue;
    let back = node;
    while (back && rgba(getComputedStyle(back).backgroundColor)[3] < 255) back = back.parentElement;
    const ground = back ? rgba(getComputedStyle(back).backgroundColor) : [255, 255, 255];
    const pair = [luminance(rgba(getComputedStyle(node).color)), luminance(ground)].sort();
    found.push([(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), node.textContent.trim()]);
  }
  return found;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_has_enough_contrast(open_page, theme):
    """At least 4.5 to 1, as WCAG asks of normal text."""
    found = open_page(color_scheme=theme).evaluate(CONTRASTS)
    assert len(found) > 100
    assert [text for contrast, text in found if contrast < 4.5] == []


def test_the_contrast_check_sees_pale_text(open_page):
    """Negative control."""
    page = open_page()
    page.evaluate("document.querySelector('h1').style.color = '#c8c8c8'")
    assert min(contrast for contrast, _ in page.evaluate(CONTRASTS)) < 4.5


def test_tables_and_sections_have_names(open_page):
    page = open_page()
    assert page.locator("table").count() == page.locator("table > caption").count() > 3
    for section in page.locator("section").all():
        named = section.get_attribute("aria-labelledby")
        assert page.locator(f"#{named}").inner_text()
