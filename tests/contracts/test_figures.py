"""The table of figures: every recorded field is in it, with its type, and every view shows what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from itertools import islice
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from figure_tables import PAGE, written
from paths import ROOT

from tuning import RunResult, TuneRunner
from tuning.cli.output import lines
from tuning.records.columns import Figure, View
from tuning.records.figures import RECORDED, STUDY_FIGURES, TRIAL_FIGURES, named, shown_in
from tuning.records.schema import StudyRecord, TrialRecord
from tuning.runs.leaderboard import LEADERBOARD
from tuning.runs.report.page import page
from tuning.tracking.overview import overview

TYPES = {str: pa.string(), float: pa.float64(), int: pa.int64()}


@pytest.mark.parametrize(("record", "figures"), [(TrialRecord, TRIAL_FIGURES), (StudyRecord, RECORDED)])
def test_every_field_of_a_record_is_one_figure_of_its_type(record: type, figures: Iterable[Figure]) -> None:
    recorded = named(figures)
    assert sorted(recorded) == sorted(field.name for field in fields(record))
    for name, hint in get_type_hints(record).items():
        kind = next((each for each in get_args(hint) if each is not type(None)), hint) if _optional(hint) else hint
        short = recorded[name].type == pa.int32() and kind is int
        moment = name == "started" and kind is float
        assert recorded[name].type == TYPES.get(kind, recorded[name].type) or short or moment, name


def _optional(hint: Any) -> bool:
    return type(None) in get_args(hint)


@pytest.mark.parametrize("figures", [STUDY_FIGURES, TRIAL_FIGURES], ids=["studies", "trials"])
def test_a_figure_is_there_once(figures: tuple[Figure, ...]) -> None:
    assert len({each.name for each in figures}) == len(figures)


def test_what_one_customer_shows_is_recorded_but_the_verdict_which_takes_all() -> None:
    assert [each.name for each in shown_in("customer") if each not in RECORDED] == ["verdict"]


@pytest.mark.parametrize("view", sorted({*get_args(View)} - {"mlflow_model"}))
def test_every_table_has_figures_and_those_are_on_the_leaderboard(view: View) -> None:
    names = {each.name for each in shown_in(view)}
    assert names <= {each.name for each in shown_in("leaderboard")}
    assert len(names) > 3


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": np.repeat([*"abc"], 40), "x": rng.normal(size=120), "empty": np.nan})
    frame["y"] = 2 * frame["x"] + rng.normal(size=120)
    frame = frame[: 40 + 40 + 2]  # of the last one there are two rows
    runner = TuneRunner(data=frame, by="shop", target="y", search_space="ridge", trials=3, mlflow=False)
    return runner.run(tmp_path_factory.mktemp("figures") / "run", in_process=True, progress=False)


@pytest.mark.parametrize("view", sorted({*get_args(View)} - {"details", "mlflow_model"}))
def test_a_view_shows_its_figures_by_their_names(view: View, result: RunResult) -> None:
    board = result.leaderboard()
    shown = {
        "leaderboard": lambda: board.columns.tolist(),
        "terminal": lambda: next(islice(lines(result.board()), 1, 2)).replace(" or ", " ").split(),
        "notebook": lambda: re.findall("<th>(.*?)</th>", result.html_table()),
        "customer": lambda: [name for name, _ in result.customer("a").facts()],
        "report": lambda: re.findall(r'"title":"(\w+)', page(result)),
        "mlflow": lambda: overview(result, {}, 0.0, 1.0)[0].note.partition("\n| ")[2].partition("\n")[0].split(" | "),
    }[view]()
    wanted = {each.name for each in shown_in(view) if any(each.text(row) for row in result.board())}
    wanted -= {"params", *(["cv_score"] if view == "notebook" else [])}  # which the hold-out score replaces
    assert wanted <= {name.strip(" |") for name in shown}
    assert board.columns.tolist() == [*LEADERBOARD], "also those in which nobody has anything"


def test_the_page_shows_all_figures() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert text == written(text), "python docs/figure_tables.py writes what belongs there"
