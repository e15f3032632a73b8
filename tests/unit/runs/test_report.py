"""The report of a run: one page that answers at first sight, needs no network, and stays bounded."""

from __future__ import annotations

import json
import re
import shutil
import threading
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from builders import definition, tuner_of, write_customers
from click.testing import CliRunner
from scipy.stats import binom

from schedulers.direction import worth_of
from search_spaces.yaml_text import dump_yaml
from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.basics.wording import value_text
from tuning.cli.program import main
from tuning.evaluation.metrics import mode_of
from tuning.notes import DataCode, EndCode, FileCode
from tuning.records.gains import gain_over, is_error
from tuning.runs.outcome import of_many, unit_of
from tuning.runs.report import page
from tuning.runs.run_counts import Typical, typical_of

EVIL = "</script><script>alert('x')</script> & \"Co\""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    frames = []
    for name in ["a", "b", "c", "d", EVIL, "tiny", "loyal"]:
        rows = 2 if name == "tiny" else 40
        frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["x", "z", "w"]).assign(shop=name, empty=np.nan)
        frame["y"] = 1.0 if name == "loyal" else 2 * frame["x"] + rng.normal(size=rows)
        frames.append(frame)
    runner = TuneRunner(
        data=pd.concat(frames), by="shop", target="y", search_space="ridge", scheduler="fifo", trials=10, mlflow=False
    )
    folder = tmp_path_factory.mktemp("report") / "run"
    runner.run(folder, in_process=True, progress=False)
    return folder


@pytest.fixture(scope="module")
def html(run: Path) -> str:
    return (run / "report.html").read_text(encoding="utf-8")


class Seen(HTMLParser):
    """What somebody sees, and the data of the table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.scripts, self.links, self.pictures = "", [""], list[str](), list[str]()
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        found = dict(attrs)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag == "img":
            self.pictures.append(found["alt"] or "")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._inside[-1:] == ["script"]:
            self.scripts[-1] += data
        elif self._inside[-1:] != ["style"]:
            self.text += data + " "

    @property
    def table(self) -> dict[str, list[object]]:
        """Title → values of each column of the customers."""
        columns = json.loads(self.scripts[1])["columns"]
        return {
            each["title"]: [each["texts"][code] for code in each["codes"]] if "codes" in each else each["values"]
            for each in columns
        }


@pytest.mark.long
def test_a_run_leaves_a_report_that_says_what_the_records_say(run: Path, html: str) -> None:
    result, seen = RunResult(run), Seen(html)
    top = html[html.index("<h1>") : html.index("<img")]
    assert all(f"<b>{each}</b>" in top for each in ("5 of 7", value_text(result.summary()["typical"]["test_score"])))
    assert "<p" not in top  # figures first
    assert "5 of 7 customers have a model" in seen.text
    tones = json.loads(seen.scripts[1])["tones"]
    assert [tones[str(row)] for row, status in enumerate(seen.table["status"]) if status == "no_model"] == ["bad"] * 2
    assert "<h1>search: the best model of 'y' for every customer</h1>" in unescape(html)
    board = result.leaderboard()
    assert seen.table["customer"] == board["customer"].tolist()
    for title, column in {"test_score": "test_score", "gain in %": "gain", "seconds": "seconds"}.items():
        shown = [np.nan if value is None else value for value in seen.table[title]]
        assert shown == pytest.approx(board[column].tolist(), rel=1e-3, abs=1e-9, nan_ok=True)
    parameters = dict(zip(seen.table["customer"], seen.table["params"], strict=True))
    assert parameters["a"] == board.set_index("customer")["params"]["a"]


def test_failures_come_with_what_to_do(html: str) -> None:
    text = Seen(html).text
    assert "2 rows with a target, fewer than min_rows: 4." in text
    assert DataCode.TOO_FEW_ROWS.advice in text
    assert "is constant" in text
    assert DataCode.TARGET_CONSTANT.advice in text


def test_what_was_guessed_and_left_out_is_said(html: str) -> None:
    text = Seen(html).text
    assert "The task is regression (guessed from the target)" in text
    assert re.search(r"left out: .*empty", text)


def test_pictures_show_the_customers_and_are_described(html: str) -> None:
    pictures = " ".join(Seen(html).pictures)
    for shown in ("Gain over the baseline", "number of rows", "Seconds per"):
        assert shown in pictures
    assert "Where the dots fall to the right, more rows would help" in Seen(html).text  # the metric is an error


def test_nothing_is_loaded_and_no_text_becomes_a_script(html: str) -> None:
    seen = Seen(html)
    assert all(link.startswith("data:image/svg+xml;base64,") for link in seen.links)
    assert "default-src 'none'" in html
    assert len(seen.scripts[1:]) == 2  # the table's rows and its code
    assert EVIL in seen.table["customer"]


@pytest.mark.long
def test_the_command_writes_it_again_and_says_where(run: Path) -> None:
    (run / "report.html").unlink()
    answer = CliRunner().invoke(main, ["report", str(run)])
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.strip() == str(run / "report.html")
    assert (run / "report.html").is_file()


@pytest.mark.long
def test_the_last_line_of_a_run_says_where_its_report_is(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    written = {**definition(tmp_path / "data", trials=1), "report": True}
    (tmp_path / "all.yaml").write_text(dump_yaml(written))
    command = ["run", str(tmp_path / "all.yaml"), "--run-dir", str(tmp_path / "run"), "--in-process"]
    answer = CliRunner().invoke(main, command)
    assert answer.exit_code == 0, answer.output
    assert answer.stderr.splitlines()[-1].split() == ["report", str(tmp_path / "run" / "report.html")]


@pytest.mark.long
def test_a_report_of_many_customers_has_the_first_and_says_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_CUSTOMERS", 3)
    monkeypatch.setattr(page, "MOST_DRAWN", 4)
    seen = Seen(page.page(RunResult(run)))
    assert len(seen.table["customer"]) == 3
    assert "The first 3 of 7 customers" in seen.text
    assert "The pictures are of a part of the 7 customers" in seen.text


def test_a_report_of_a_run_that_has_not_ended_says_so(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "cut")
    for part in (tmp_path / "cut" / "records").rglob("studies-*"):
        part.unlink()
    seen = Seen(page.page(RunResult(tmp_path / "cut")))
    assert "The run has not ended, 7 studies left" in seen.text
    assert EndCode.NOT_FINISHED.advice in seen.text
    assert f"tuning resume {tmp_path / 'cut'}" in seen.text


def test_of_one_customer_it_shows_the_search(tmp_path: Path) -> None:
    result = TuneRunner(
        objective=lambda config: (config["x"] - 1) ** 2,
        search_space={"x": {"type": "float", "low": -2, "high": 2}},
        metric="loss",
        mode="min",
        trials=12,
        mlflow=False,
    ).run(tmp_path / "run", in_process=True, progress=False)
    seen = Seen((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert "Every line is a trial." in seen.text
    assert "search: the best of one search" in seen.text
    assert "cross" not in seen.text  # no trial was stopped
    best = result.leaderboard()["cv_score"][0]
    assert f"Experiment: best loss {best:.4g} of 12 trials (smaller is better), with x=" in seen.text
    assert seen.pictures == ["Score of each trial step by step"]  # importances would take longer than the search
    assert Seen(page.page(result)).pictures == ["Score of each trial step by step", "What matters in a search"]


@pytest.mark.parametrize("report", [True, False])
def test_what_draws_a_report_is_loaded_while_trials_run(
    report: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, before = threading.Event(), list[bool]()

    def objective(config: dict[str, float]) -> float:
        before.append(loaded.wait(10.0) if report and before else loaded.is_set())
        return config["x"]

    monkeypatch.setattr(page, "load_ahead", lambda studies: loaded.set() if studies == 1 else None)
    runner = tuner_of(objective, trials=3, report=report)
    runner.timing = Timing(parts_s=0.0)
    runner.run(tmp_path / "run", in_process=True, progress=False)
    assert before == [False, report, report]


def test_told_otherwise_a_run_leaves_none(tmp_path: Path) -> None:
    TuneRunner(
        objective=lambda config: config["x"],
        search_space={"x": {"type": "float", "low": -2, "high": 2}},
        trials=1,
        mlflow=False,
        report=False,
    ).run(tmp_path / "run", in_process=True, progress=False)
    assert not (tmp_path / "run" / "report.html").exists()


def typical(gains: list[float], metric: str = "roc_auc") -> Typical:
    """Of customers whose baselines score 2 (or err by it), and whose constants score 1 (or err by 4)."""
    mode, constant = mode_of(metric), 4.0 if is_error(metric) else 1.0
    scores = [worth_of(worth_of(2.0, mode) + gain, mode) for gain in gains]
    columns: dict[str, list[float | None]] = {
        "gain": [gain_over(2.0, score, metric, mode) for score in scores],
        "test_score": [*scores],
        "cv_score": [2.0] * len(gains),
        "constant_test_score": [constant] * len(gains),
        "gain_over_constant": [gain_over(constant, score, metric, mode) for score in scores],
    }
    return typical_of(pa.table(columns))


@pytest.mark.parametrize(
    ("gains", "metric", "said"),
    [
        (
            [0.1] * 20 + [-0.1] * 2,
            "roc_auc",
            "Typical roc_auc on rows not seen: 2.1, a constant guess 1; gain over the baseline, the first model tried: "
            "+0.1 (95 %: +0.1 to +0.1).",
        ),
        (
            [0.1] * 6 + [-0.1] * 4,
            "mae",
            "1.9 minutes, 52.5 % less error than a constant guess; gain over the baseline, the first model tried: "
            "+5 % of the error (95 %: -5 to +5).",
        ),
        ([0.1] * 5, "roc_auc", "the first model tried: +0.1."),
        ([-np.inf] * 9, "mae", ""),
    ],
)
def test_the_typical_gain_is_said_with_its_interval(gains: list[float], metric: str, said: str) -> None:
    assert said in of_many(typical(gains, metric), metric, mode_of(metric), unit=unit_of("trip_minutes", metric))


@pytest.mark.parametrize("count", [0, 5, 6, 9, 18, 20, 100, 1000, 1001, 100_000])
def test_a_median_lies_between_ranks_as_a_fair_coin_falls(count: int) -> None:
    found = typical([float(rank) for rank in range(1, count + 1)])
    rank = int(found["gain_low"] or 0)
    assert 2 * binom.cdf(rank - 1, count, 0.5) <= 0.05
    assert 2 * binom.cdf(rank, count, 0.5) > 0.05  # no wider than it must be
    assert found["gain_high"] == (count - rank + 1 if rank else None)


def test_reasons_are_counted_by_code_and_by_what_was_raised() -> None:
    emptied = [(f"c{n}", FileCode.FILE_EMPTY(f"c{n}.csv")) for n in range(5)]
    failed = [
        ("x", EndCode.RAISED("ValueError", error="ValueError: 1")),
        ("y", EndCode.RAISED("ValueError", error="2")),
    ]
    other = [("z", EndCode.RAISED("KeyError", error="KeyError: 'a'"))]
    first, second, last = page.grouped([*other, *failed, *emptied])
    assert (first.count, first.examples, first.note.advice) == (5, ["c0", "c1", "c2"], FileCode.FILE_EMPTY.advice)
    assert (second.count, second.note.subject, last.count) == (2, "ValueError", 1)
    assert last.note.advice == EndCode.RAISED.advice
