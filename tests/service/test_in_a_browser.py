"""The pages of a real server in a real browser: by keyboard, heard, on a phone, at night, and without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect
from served_folder import ServedFolder

from tuning.service.states import RunState

DEFINITION = """name: by-hand
data: data/*.csv
target: y
metric: r2
models: [ridge]
trials: 3
split: {folds: 2}
report: false
"""
PHONE, DESK = 360, 1100
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LONGEST_MS = 240_000.0  # of a plan or a run on a machine that is busy
MOST_TABS = 100
WRONG = """() => {
  const wrong = [], all = (selector) => [...document.querySelectorAll(selector)];
  const named = (each) => each.ariaLabel || each.labels?.length || each.getAttribute("aria-labelledby");
  if (all("h1").length !== 1) wrong.push(`${all("h1").length} h1`);
  all("h1, h2, h3").reduce((level, each) => {
    if (each.tagName[1] > level + 1) wrong.push(`heading ${each.textContent} is too deep`);
    return Number(each.tagName[1]);
  }, 0);
  const fields = all("input, select, textarea").filter((each) => each.type !== "hidden" && !each.hidden);
  for (const each of fields) if (!each.labels.length) wrong.push(`no label: ${each.name}`);
  for (const each of all("th")) if (!each.scope) wrong.push(`no scope: ${each.textContent}`);
  for (const each of all("img")) if (!each.alt) wrong.push(`no alt: ${each.src}`);
  const parts = all("svg, progress, nav, [role=region]");
  for (const each of parts) if (!named(each)) wrong.push(`no name: ${each.outerHTML}`);
  for (const each of all("a, button, summary")) if (!each.textContent.trim()) wrong.push("a link without words");
  const ids = all("[id]").map((each) => each.id);
  if (new Set(ids).size !== ids.length) wrong.push(`ids: ${ids}`);
  for (const each of all("main *")) {
    const scrolls = ["auto", "scroll"].includes(getComputedStyle(each).overflowX);
    const wide = scrolls && each.scrollWidth > each.clientWidth;
    if (wide && each.tabIndex < 0) wrong.push(`not scrolled by keys: ${each.outerHTML.slice(0, 80)}`);
  }
  if (document.documentElement.lang !== "en" || !document.title) wrong.push("no language or title");
  return wrong;
}"""
PALE = """() => {
  const channels = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((each) => each / 255)
    .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (each) => {
    for (; each; each = each.parentElement) {
      const found = channels(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const pale = [], words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const each = words.currentNode.parentElement, style = getComputedStyle(each);
    if (!words.currentNode.data.trim() || !each.checkVisibility() || each.closest("title, option")) continue;
    const colour = each.closest("svg") ? style.fill : style.color;
    const [low, high] = [light(channels(colour)), light(behind(each))].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) < 4.5) pale.push(`${words.currentNode.data.trim()}: ${colour}`);
  }
  return pale;
}"""


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    made = ServedFolder(tmp_path_factory.mktemp("served"), "--mlflow", "none")
    (made.folder / "data" / "tiny.csv").write_text("a,b,c,y\n1,2,3,4\n")
    expect.set_options(timeout=LONGEST_MS)
    yield made
    expect.set_options(timeout=5000)  # as it is by default
    made.end()


@pytest.fixture(scope="module")
def run(served: ServedFolder) -> str:
    """A finished run's id."""
    with served.client() as client:
        for found in client.runs():
            if found.state is RunState.FINISHED:
                return found.id
        return client.submit(served.definition).wait(LONGEST_MS / 1000).id


def token_of(served: ServedFolder) -> str:
    (token,) = json.loads((served.folder / "config" / "service-tokens.json").read_text()).values()
    return str(token)


@contextmanager
def window(
    browser: Browser,
    served: ServedFolder,
    width: int = DESK,
    *,
    scripts: bool = True,
) -> Iterator[Page]:
    """A window in which somebody logs in by typing, and in which no page may complain."""
    context = browser.new_context(
        base_url=served.url, viewport={"width": width, "height": 800}, java_script_enabled=scripts
    )
    page, said = context.new_page(), list[str]()
    page.set_default_timeout(LONGEST_MS)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto("/")
    expect(page.get_by_label("Token of your team")).to_be_focused()
    page.keyboard.insert_text(token_of(served))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    yield page
    context.close()
    assert said == []


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the focus is on what is called so; it must be seen on the way."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        focused, outline = page.evaluate(
            """() => {
              const each = document.activeElement, style = getComputedStyle(each);
              return [each.labels?.[0]?.textContent || each.ariaLabel || each.textContent.trim(),
                each === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
            }"""
        )
        assert outline, f"the focus on {focused!r} is not seen"
        if focused == name:
            return
    raise AssertionError(f"no Tab leads to {name!r}")


def customers(page: Page) -> list[str]:
    return page.locator("#leaderboard tbody th").all_inner_texts()


@pytest.mark.timeout(900)
def test_a_definition_is_planned_submitted_watched_and_read_by_keyboard_alone(
    browser: Browser, served: ServedFolder
) -> None:
    with window(browser, served) as page:
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_label("State")).to_be_focused()
        page.goto("/")
        tab_to(page, "New run")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="New run")).to_be_visible()
        tab_to(page, "Definition, as YAML or JSON")
        page.keyboard.insert_text(DEFINITION)
        tab_to(page, "Show the plan")
        page.keyboard.press("Enter")
        expect(page.locator("#plan dl")).to_contain_text("12")  # trials of four customers
        expect(page.locator("#plan")).to_contain_text("Nothing has started")
        tab_to(page, "Submit")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="by-hand")).to_be_visible()
        expect(page.locator(".state")).to_have_text("finished")  # without anybody's doing
        expect(page.locator("#tables")).to_contain_text("3 of 4 customers have a model")
        expect(page.locator("#tables")).to_contain_text("Bring more rows")
        tab_to(page, "test_score")
        page.keyboard.press("Enter")
        expect(page.locator("th[aria-sort=descending]")).to_have_text("test_score")
        expect(page.get_by_role("link", name="test_score", exact=True)).to_be_focused()
        cells = page.locator("#leaderboard tbody td:nth-child(4)").all_inner_texts()
        scores = [float(text.split()[0]) for text in cells if text]
        assert scores == sorted(scores, reverse=True)
        assert len(scores) == 3
        assert "sort=test_score" in page.url  # so that it can be sent to somebody
        first = customers(page)[0]
        tab_to(page, first)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Customer {first}")
        curves = page.get_by_role("img", name="r2 by step of")  # of those that no scheduler has stopped at the first
        expect(curves.locator("polyline.winner")).to_have_count(1)


@pytest.mark.timeout(600)
def test_every_page_is_named_for_screen_readers_fits_a_phone_and_is_not_pale(
    browser: Browser, served: ServedFolder, run: str
) -> None:
    with window(browser, served, PHONE) as page:
        for path in ("/", "/runs/new", f"/runs/{run}", f"/runs/{run}/customer?id=c0001"):
            page.goto(path)
            assert page.evaluate(WRONG) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE, path
            for colours in COLOURS:
                page.emulate_media(color_scheme=colours)
                assert page.evaluate(PALE) == [], (path, colours)


@pytest.mark.timeout(600)
def test_a_long_id_and_many_trials_are_readable_on_a_phone(browser: Browser, served: ServedFolder) -> None:
    long = "x" * 300
    shops = pd.read_csv(served.folder / "data" / "c0000.csv")
    table = pd.concat([shops.assign(shop=shop) for shop in (long, "b")])
    table.to_csv(served.folder / "shops.csv", index=False)
    (served.folder / "wide.yaml").write_text(
        "name: wide\ndata: shops.csv\nby: shop\ntarget: y\nmetric: r2\nsearch_space: ridge\ntrials: 60\n"
        "split: {folds: 2}\nreport: false\n"
    )
    with served.client() as client:
        run = client.submit(served.folder / "wide.yaml").wait(LONGEST_MS / 1000).id
    for width in (PHONE, DESK):
        with window(browser, served, width) as page:
            page.goto(f"/runs/{run}")
            link = page.locator(f"#leaderboard tbody th a[title={long}]")
            assert link.evaluate("each => each.closest('th').offsetWidth") <= 320
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            link.click()
            expect(page.get_by_role("heading", level=1)).to_have_text(f"Customer {long}")
            assert page.evaluate("document.documentElement.scrollHeight") <= 4000
            expect(page.get_by_role("region", name="Trials")).not_to_be_visible()
            page.locator("summary", has_text="Trials").click()
            expect(page.get_by_role("region", name="Trials").locator("tbody tr")).to_have_count(60)
            assert page.evaluate("document.documentElement.scrollHeight") <= 4000


@pytest.mark.timeout(600)
def test_everything_works_without_scripts(browser: Browser, served: ServedFolder, run: str) -> None:
    with window(browser, served, scripts=False) as page:
        page.goto(f"/runs/{run}")
        page.get_by_role("link", name="customer", exact=True).click()
        assert customers(page) == ["c0000", "c0001", "c0002", "tiny"]
        page.get_by_label("Status").select_option("no_model")
        page.get_by_role("button", name="Show").click()
        assert customers(page) == ["tiny"]
        page.locator("summary", has_text="Resume").click()
        expect(page.get_by_label("Trials per study")).to_be_visible()
        page.goto("/runs/new")
        wrong = DEFINITION.replace("target: y", "target: z")
        page.get_by_role("textbox", name="Definition").fill(wrong)
        page.get_by_role("button", name="Show the plan").click()
        expect(page.locator("main")).to_contain_text("no customer has a column 'z'")
        assert page.get_by_role("textbox", name="Definition").input_value() == wrong
