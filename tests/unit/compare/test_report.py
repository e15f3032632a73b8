"""The report: one page that needs nothing else, plots of everything, text for a terminal."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from compare_curves import curves

from tuning.compare import Comparison, analyse

EVIL = "<script>alert('x')</script> & \"Co\""


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    frame = curves({"random": 0.0, "optuna": 0.9, "optuna+asha": 0.9}, tasks=8, seeds=3, cost={"optuna+asha": 0.4})
    return analyse(frame.replace({"task": {"c0": EVIL}}), noun="customer")


@pytest.fixture(scope="module")
def html(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return comparison.save(tmp_path_factory.mktemp("report") / "sub" / "report.html").read_text(encoding="utf-8")


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        if tag == "img":
            self.images.append(found)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _seen(html: str) -> _Seen:
    seen = _Seen()
    seen.feed(html)
    return seen


@pytest.mark.long
def test_the_page_needs_no_network_and_runs_no_script(html: str) -> None:
    seen = _seen(html)
    assert not {"script", "link", "iframe", "object"} & set(seen.tags)
    assert all(link.startswith("data:image/svg+xml;base64,") for link in seen.links)
    assert not re.search(r"url\(\s*['\"]?http", html)
    assert "default-src 'none'" in html


def test_every_picture_is_there_and_described(html: str, comparison: Comparison) -> None:
    images = _seen(html).images
    # Effects, critical difference, heat map; regret and rank on three axes.
    assert len(images) == 9
    for image in images:
        assert len(image["alt"] or "") > 20
        svg = base64.b64decode((image["src"] or "").partition(",")[2])
        assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_names_are_escaped(html: str) -> None:
    assert "<script" not in html
    assert EVIL in " ".join(_seen(html).text)


def test_the_page_says_the_sentence_and_every_figure(html: str, comparison: Comparison) -> None:
    text = " ".join(" ".join(_seen(html).text).split())
    assert comparison.sentence in text
    for row in comparison.table().itertuples():
        assert str(row.Index) in text
        assert f"{row.rank:.2f}" in text
    assert all(str(note) in text for note in comparison.notes)


def test_plots_show_what_was_computed(comparison: Comparison) -> None:
    axes = comparison.plot.regret("seconds").axes[0]
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in axes.get_lines()}
    result = comparison.results["seconds"]
    for row, name in enumerate(comparison.methods):
        assert drawn[name] == pytest.approx(result.mean_regret[row])
    ranks = comparison.plot.rank().axes[0]
    assert ranks.yaxis_inverted(), "the best rank is on top"


def test_critical_difference_diagram_names_every_method_with_its_rank(comparison: Comparison) -> None:
    words = " ".join(text.get_text() for text in comparison.plot.critical_difference().axes[0].texts)
    for name, rank in zip(comparison.methods, comparison.ranks, strict=True):
        assert f"{name} ({rank:.2f})" in words


def test_a_heat_map_of_many_tasks_shows_those_that_differ_most() -> None:
    found = analyse(curves({"random": 0.0, "optuna": 0.9}, tasks=60, seeds=1, trials=3))
    axes = found.plot.heat_map().axes[0]
    assert len(axes.get_yticks()) == 40
    assert "40 of 60 tasks" in axes.get_title(loc="left")
    table = found.per_task()
    spread = (table.max(axis=1) - table.min(axis=1)).sort_values()
    assert spread.index[-1] in [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.long
def test_two_methods_and_trials_only_make_a_page_too_and_always_the_same_one(tmp_path: Path) -> None:
    frame = curves({"random": 0.0, "optuna": 0.9}, tasks=2, seeds=1).drop(columns=["steps", "seconds"])
    html, again = (
        analyse(frame).save(tmp_path / name).read_text(encoding="utf-8") for name in ("one.html", "two.html")
    )
    assert len(_seen(html).images) == 4
    assert html == again


def test_in_a_narrow_window_the_table_keeps_what_is_decided(comparison: Comparison) -> None:
    def table(width: int | None) -> list[str]:
        return comparison.text(width).split("\n\n")[1].splitlines()

    assert len(table(None)[0]) > 80
    assert table(200) == table(None)
    assert max(map(len, table(80))) <= 80
    assert {"method", "regret", "difference", "(Holm)", "verdict"} <= set(table(80)[0].split())
    assert [line.split()[0] for line in table(80)] == [line.split()[0] for line in table(None)]


def test_a_notebook_shows_the_sentence_and_the_table(comparison: Comparison) -> None:
    shown = comparison._repr_html_()
    assert shown.startswith("<p><b>Use optuna")
    assert "<table" in shown
    assert "<li>found.plot.regret()</li>" in shown
    assert comparison.sentence in repr(comparison)
    assert {"table", "plot", "notes"} <= set(dir(comparison))
    assert "null_check" not in dir(comparison)
    with pytest.raises(AttributeError, match=r"a Comparison has no 'winner'. Here it is sentence"):
        comparison.winner  # noqa: B018  # what is asked for first


@pytest.mark.parametrize("name", ["regret", "critical_difference"])
def test_a_notebook_shows_a_plot_by_itself(comparison: Comparison, name: str) -> None:
    assert getattr(comparison.plot, name)()._repr_png_().startswith(b"\x89PNG")
