"""Rows that have an order of time are split by it, and never at random without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from shown_output import note_texts

from tuning import TuneRunner
from tuning.cli.program import main
from tuning.definition.definition import define
from tuning.definition.yaml_file import read_definition
from tuning.errors import CustomerError
from tuning.notes import DataCode, FileCode, NoteCode, PlanCode
from tuning.planning.plan import make_plan
from tuning.runs.plan_file import begun_term, read_spec
from tuning.study.customer_data import CustomerData, OwnCode

RNG = np.random.default_rng(0)
ROWS = 120
DAYS = pd.date_range("2020-01-01", periods=ROWS).strftime("%Y-%m-%d")
PRICES = 100 + np.cumsum(RNG.normal(size=ROWS))  # each depends on the day before
NOISE = RNG.normal(size=ROWS)


def said(frame: pd.DataFrame | dict[str, pd.DataFrame], **fields: Any) -> str:
    plan = make_plan(define({"data": frame, "target": "y", "search_space": "ridge", "mlflow": False, **fields}))
    order = (PlanCode.SPLIT_BY_TIME, PlanCode.ROWS_IN_ORDER)
    return "\n".join(str(note) for note in plan.notes if note.code in order)


@pytest.mark.parametrize("task", ["auto", "regression"])
def test_the_plan_names_the_date_that_rows_are_sorted_by_and_the_figure(task: str) -> None:
    note = said(pd.DataFrame({"day": DAYS, "y": PRICES}), task=task)
    assert note.startswith(
        "split by time, the latest rows by 'day' held out: the rows are sorted by 'day' and the target follows that of "
        "the row before (lag-1 autocorrelation 0.9"
    )
    assert note.endswith("; `split: random` if not meant.")


def test_the_rows_need_not_be_in_their_order() -> None:
    shuffled = pd.DataFrame({"day": DAYS, "y": PRICES}).sample(frac=1, random_state=0)
    assert "held out: the target follows that of the row before, in the order of 'day' (lag-1" in said(shuffled)


def test_targets_that_follow_each_other_are_seen_without_a_date() -> None:
    note = said(pd.DataFrame({"x": NOISE, "y": PRICES}))
    assert note.startswith("the target follows that of the row before (lag-1")
    assert "`split: {type: time, column: COLUMN}`; if not, `split: random`." in note


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": NOISE, "y": NOISE[::-1]}),
        pd.DataFrame({"x": PRICES, "y": PRICES + 0.1 * NOISE}),  # another column says it, whatever the rows' order
        pd.DataFrame({"x": NOISE, "y": np.sort(PRICES)}),  # sorted by the target, which is no time
        pd.DataFrame({"day": np.roll(DAYS[::-1], 7), "y": NOISE}),
        pd.DataFrame({"day": DAYS[:20], "y": PRICES[:20]}),  # too few to tell
    ],
    ids=["noise", "told", "target", "unsorted", "few"],
)
def test_nothing_is_said_of_rows_without_such_an_order(frame: pd.DataFrame) -> None:
    assert not said(frame)


@pytest.mark.parametrize("split", [{"type": "random"}, {"type": "time", "column": "day"}])
def test_nothing_is_said_where_the_definition_has_chosen(split: dict[str, str]) -> None:
    assert not said(pd.DataFrame({"day": DAYS, "y": PRICES}), split=split)


def test_of_many_customers_most_decide() -> None:
    walk, noise = pd.DataFrame({"x": NOISE, "y": PRICES}), pd.DataFrame({"x": NOISE, "y": NOISE[::-1]})
    assert said({"a": walk, "b": walk, "c": noise}).startswith("for 2 of the 3 customers looked at, the target")
    assert not said({"a": walk, "b": noise, "c": noise})


TABLES = {
    "sorted": pd.DataFrame({"day": DAYS, "y": PRICES}),
    "shuffled": pd.DataFrame({"day": DAYS, "y": PRICES}).sample(frac=1, random_state=0),
    "sorted, without dependence": pd.DataFrame({"day": DAYS, "y": NOISE}),
    "unsorted, without dependence": pd.DataFrame({"day": np.roll(DAYS[::-1], 7), "y": NOISE}),
    "no date": pd.DataFrame({"x": NOISE, "y": PRICES}),
    "classes": pd.DataFrame({"day": DAYS, "y": np.where(np.median(PRICES) < PRICES, "up", "down")}),
}


@pytest.mark.parametrize("name", TABLES)
def test_init_a_plan_and_a_run_hold_out_the_same_rows(name: str, tmp_path: Path) -> None:
    TABLES[name].to_csv(tmp_path / "t.csv", index=False)
    answer = CliRunner().invoke(main, ["init", str(tmp_path / "t.csv"), "--target", "y"])
    (tmp_path / "d.yaml").write_text(answer.stdout)
    held_out = []
    for given in (read_definition(tmp_path / "d.yaml"), define({"data": {"t": TABLES[name]}, "target": "y"})):
        plan = make_plan(given)
        data = CustomerData(plan.spec, OwnCode(given), lambda _: TABLES[name]).divided(TABLES[name], 0)
        held_out.append(data.split.test.tolist())
    assert held_out[0] == held_out[1]
    latest = np.argsort(TABLES[name]["day"].to_numpy())[-24:] if "day" in TABLES[name] else []
    assert (sorted(held_out[0]) == sorted(latest)) is (name not in ("unsorted, without dependence", "no date"))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (lambda rows: rows.assign(day=DAYS[0]), DataCode.TOO_FEW_PARTS),
        (lambda rows: rows.drop(columns="day"), FileCode.COLUMN_ABSENT),
        (lambda rows: rows.assign(day=rows["day"].where(rows.index > 0)), DataCode.TIME_EMPTY),
    ],
)
def test_a_customer_that_the_guessed_date_cannot_divide_is_split_at_random(
    rows: Callable[[pd.DataFrame], pd.DataFrame], why: NoteCode
) -> None:
    usual = TABLES["sorted"].assign(x=NOISE)
    frames = {"a": usual, "b": usual, "odd": rows(usual)}
    plan = make_plan(define({"data": frames, "target": "y"}))
    assert plan.spec.time_column == "day"
    customers = CustomerData(plan.spec, OwnCode(plan.spec.definition), lambda each: frames[each.id])
    odd = next(study.customer for study in plan.studies if study.customer.id == "odd")
    data = customers.prepared(odd)
    note = data.notes[-1]
    assert (note.code, note.subject, note.values["why"].code) == (DataCode.SPLIT_AT_RANDOM, "day", why)
    assert len(data.split.folds) == 3
    asked = make_plan(define({"data": frames, "target": "y", "split": {"type": "time", "column": "day"}}))
    with pytest.raises(CustomerError) as refused:
        CustomerData(asked.spec, OwnCode(asked.spec.definition), lambda each: frames[each.id]).prepared(odd)
    assert refused.value.note.code is why


@pytest.mark.long
def test_the_run_and_its_report_say_it(tmp_path: Path) -> None:
    runner = TuneRunner(
        data=pd.DataFrame({"day": DAYS, "y": PRICES}), target="y", search_space="ridge", trials=1, mlflow=False
    )
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    assert any("the latest rows by 'day' held out: the rows are sorted by 'day'" in note for note in note_texts(result))
    assert read_spec(result.directory, begun_term(result.directory)).time_column == "day"
    assert "the rows are sorted by" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_the_plan_names_dates_in_several_notations_and_decimal_commas() -> None:
    """They are no refusal: as text they are worth little, and the way out is a word in the definition."""
    days = pd.date_range("2020-01-01", periods=ROWS)
    odd = [day.strftime(("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y")[place % 3]) for place, day in enumerate(days)]
    frame = pd.DataFrame({"day": odd, "price": [f"{each:.2f}".replace(".", ",") for each in PRICES], "y": NOISE})
    definition = {"data": {"a": frame, "b": frame.drop(columns="day")}, "target": "y", "search_space": "ridge"}
    notes = note_texts(make_plan(define({**definition, "mlflow": False})))
    assert [note for note in notes if note.startswith("column")] == [
        "column 'day' seems to hold dates in several notations: write them in one, or convert them with `prepare`.",
        "column 'price' seems to hold numbers such as '100,13': in a CSV set `csv: {decimal: ','}`, else convert them.",
    ]
