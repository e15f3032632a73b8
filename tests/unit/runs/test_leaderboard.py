"""The leaderboard from columns: whose study stands for a customer, exact parameters, and the CSV that pandas would
write.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest
from builders import reason

from tuning.cli.output import lines
from tuning.notes import EndCode
from tuning.records.schema import Config, StudyRecord
from tuning.records.tables import decode_table, encode
from tuning.runs.leaderboard import LEADERBOARD, Leaderboard
from tuning.runs.standings import Standings, UnfinishedCustomers

LEFT = UnfinishedCustomers(EndCode.NOT_FINISHED_YET(), {"c9": 2})


def study(name: str, customer: str, **values: Any) -> StudyRecord:
    empty = {field.name: None for field in fields(StudyRecord)}
    usual = {
        "run": "r",
        "study": name,
        "customer": customer,
        "algorithm": "random",
        "scheduler": "fifo",
        "study_seed": 1,
        "status": "ok",
        "reason": None,
        "notes": (),
        "task": "regression",
        "metric": "cost",
        "mode": "max",
        "trials": 3,
        "stopped": 0,
        "failed": 0,
        "rows": 9,
        "test_rows": 1,
        "features": 1,
        "started": 0.0,
        "seconds": 1.0,
        "fit_seconds": 1.0,
        "worker": "",
        "versions": "",
        "family": "ridge",
    }
    return StudyRecord(**{**empty, **usual, **values})


def board(
    *records: StudyRecord,
    planned: tuple[str, ...] = (),
    sort: str = "customer",
    mode: str = "max",
    metric: str = "cost",
) -> Leaderboard:
    standings = Standings(decode_table(encode(records)), pa.chunked_array([planned], pa.string()), mode)
    return Leaderboard(standings, metric, mode, LEFT, sort)


def test_of_several_studies_the_best_one_stands_for_a_customer() -> None:
    records = (
        *(study("a/2", "a", cv_score=3.0, trials=5), study("a/1", "a", cv_score=3.0), study("a/3", "a", cv_score=None)),
        *(study("b/2", "b", cv_score=1.0), study("b/1", "b", cv_score=2.0, gain=7.0)),
        *(
            study("c/2", "c", status="no_model", reason=reason("2")),
            study("c/1", "c", status="quarantined", reason=reason("1")),
        ),
    )
    found = board(*records, planned=("a", "c9", "b", "c"))
    assert [
        (row["customer"], row["cv_score"], str(row["reason"] or ""), row["trials"], row["seconds"]) for row in found
    ] == [
        ("a", 3.0, "", 11, 3.0),
        ("b", 2.0, "", 6, 2.0),
        ("c9", None, "not finished yet", 2, None),
        ("c", None, "1", 6, 2.0),
    ]
    assert [row["cv_score"] for row in board(*records, mode="min")] == [3.0, 1.0, None]
    assert found.standings.row_of("a") == 1  # of two that are as good the one with the smaller id
    assert found.standings.row_of("c9") == -1
    assert found.standings.row_of("nobody") is None
    assert [row["customer"] for row in board(*records, sort="gain")] == ["b", "a", "c"]
    assert [row["customer"] for row in board(*records, sort="seconds")] == ["a", "b", "c"]


def test_an_unfinished_customer_shows_the_best_of_its_trials_that_may_win() -> None:
    rows = [("a", "finished", 0.5), ("a", "finished", 0.75), ("a", "stopped", 0.1), ("b", "failed", None)]
    rows += [("b", "finished", math.nan)]
    trials = pa.Table.from_pylist([dict(zip(("customer", "state", "score"), row, strict=True)) for row in rows])
    for mode, best in {"min": "0.5", "max": "0.75"}.items():
        left = UnfinishedCustomers.of(EndCode.NOT_FINISHED_YET(), trials, mode)
        standings = Standings(decode_table(encode([study("c", "c")])), pa.chunked_array([["a", "b", "c", "d"]]), mode)
        found = Leaderboard(standings, "cost", mode, left, "trials")
        assert [(row["customer"], row["trials"], str(row["reason"] or "")) for row in found] == [
            ("a", 3, f"not finished yet; best so far {best}"),
            ("c", 3, ""),
            ("b", 2, "not finished yet"),
            ("d", 0, "not finished yet"),
        ]
        assert len(list(Leaderboard(standings, "cost", mode, left, "reason"))) == 4


@pytest.mark.parametrize(
    ("sort", "mode", "order"),
    [
        ("test_score", "max", ["b", "a", "c", "d", "e"]),
        ("test_score", "min", ["a", "b", "c", "d", "e"]),
        ("cv_error", "min", ["a", "b", "c", "d", "e"]),  # no score: the largest first
        ("trials", "max", ["c", "a", "b", "d", "e"]),
        ("model", "max", ["b", "a", "c", "d", "e"]),
        ("reason", "max", ["d", "e", "a", "b", "c"]),
        ("status", "max", ["d", "a", "b", "c", "e"]),  # no_model, ok, unfinished
        ("params", "max", ["c", "a", "b", "d", "e"]),
    ],
)
def test_it_can_be_sorted_by_every_column(sort: str, mode: str, order: list[str]) -> None:
    records = (
        study("a", "a", test_score=1.0, cv_error=0.5, config={"alpha": 2}),
        study("b", "b", test_score=2.0, family="lasso", config={"alpha": 3}),
        study("c", "c", test_score=math.nan, trials=8, config={"alpha": 1}),
        study("d", "d", status="no_model", family=None, reason=reason("a file"), trials=0),
    )
    found = board(*records, planned=("e", *"abcd"), sort=sort, mode=mode)
    assert [row["customer"] for row in found] == order
    assert found.frame()["customer"].tolist() == order


@pytest.mark.parametrize("sort", LEADERBOARD)
def test_an_order_has_every_customer_once(sort: str) -> None:
    found = board(study("a", "a"), study("b", "b", status="no_model"), planned=("c",), sort=sort)
    assert sorted(row["customer"] for row in found) == ["a", "b", "c"]


def test_numbers_in_ids_are_compared_as_numbers() -> None:
    ids = ["zone-10", "zone-2", "2", "10", "02", "zone", "zone-2b", "zone 1", "", "zone-2-10", "zone-2-9", "Ä1", "a\n1"]
    shown = [row["customer"] for row in board(*(study(name, name) for name in ids))]
    assert shown == [
        *("", "02", "2", "10", "a\n1", "zone", "zone 1", "zone-2", "zone-2-9", "zone-2-10", "zone-2b", "zone-10", "Ä1"),
    ]


@pytest.mark.parametrize(
    ("family", "best_step", "config", "params"),
    [
        ("ridge", 3, {"model": "ridge", "alpha": 1e-7, "zeta": None}, '{"alpha":1e-07,"zeta":null}'),
        ("ridge", 3, {"alpha": 0.1, "model": "ridge"}, '{"alpha":0.1}'),
        ("ridge", 3, {"model": "ridge"}, "{}"),
        ("ridge", 3, None, None),
        ("xgboost", 3, {"model": "xgboost", "z": 1}, '{"n_estimators":30,"z":1}'),
        ("ridge", 3, {"x": '{"model":"a"}', "model": "ridge"}, '{"x":"{\\"model\\":\\"a\\"}"}'),
        (None, None, {"x": 1, "model": "an objective's own"}, '{"model":"an objective\'s own","x":1}'),
        (None, None, {"x": 1, "model": 2}, '{"model":2,"x":1}'),
        (None, None, {"x": {"model": "a"}, "y": [1, 2]}, '{"x":{"model":"a"},"y":[1,2]}'),
        ("Mine", 1, {"model": "Mine", "text": "a,}", "ö": True}, '{"text":"a,}","ö":true}'),
    ],
)
def test_parameters_are_those_of_the_refit_without_the_models_name(
    family: str | None, best_step: int | None, config: Config | None, params: str | None
) -> None:
    (row,) = board(study("a", "a", family=family, best_step=best_step, config=config)).frame().to_dict("records")
    assert row["params"] == params


def test_the_csv_is_what_pandas_writes() -> None:
    odd = study(
        "b",
        'quote " and\nline',
        notes=(reason("a, b"),),
        cv_score=math.nan,
        gain=1e-7,
        test_score=-math.inf,
    )
    small = study("c", "c", cv_score=1 / 3, gain=2.0, baseline="ridge", ensemble='[{"family":"a"},{"family":"b"}]')
    found = board(odd, small, planned=("c9", "c8"))
    text = b"".join(found.csv()).decode()
    assert text == found.frame().astype({"rows": "Int64", "test_rows": "Int64"}).to_csv(index=False)
    assert text.startswith(",".join(LEADERBOARD) + "\n")
    assert '"quote "" and\nline",ok,,ridge,undecided,cost,max,,9,,1,,,,-inf,,,,,,,1e-07,' in text
    assert "ensemble of 2 (a, b)" in text


def test_a_table_in_the_terminal_gives_it_no_orders() -> None:
    odd = study("a", "\x1b[31mred\x07", cv_score=1.0, config={"model": "ridge", "kind": "\x1b]0;title\x07"})
    printed = "\n".join(
        lines(board(odd, study("b", "caf\u00e9 \u2603\tb", status="no_model", reason=reason("\x1b[2J\nx"))))
    )
    assert "".join(printed.split("\n")).isprintable()
    assert "caf\u00e9 \u2603 b" in printed
    assert r"\x1b[31mred\x07" in printed


def test_each_customer_is_one_row_of_the_csv_whatever_its_id_is() -> None:
    ids = ["a\rb", "a\r\nb", "a\nb", "\r", "a,b", '"', "\x00", "\u2028", "=1+1", " a "]
    scores = {"test_score": 1.0, "baseline_test_score": 0.5, "gain": 0.5}
    found = board(*(study(name, name, **scores) for name in ids))
    content = b"".join(found.csv(exact=True))
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert sorted(row["customer"] for row in rows) == sorted(ids)
    assert {row["gain"] for row in rows} == {"0.5"}


def test_the_csv_holds_no_formula_and_its_exact_form_every_text_as_it_is() -> None:
    formulas = ['=HYPERLINK("http://a.example")', "@SUM(1)", "+1+1", "-a", "\t=1", "\r=1", "-1e", "+"]
    harmless = ["a=b", "'=1", "-5", "+1.5e-3", "-.5", "", " =1", "é"]
    found = board(
        *(study(name or "empty", name, status="no_model", reason=reason(name)) for name in formulas + harmless)
    )
    rows = list(csv.DictReader(io.StringIO(b"".join(found.csv()).decode(), newline="")))
    assert {row["customer"] for row in rows} == {*(f"'{name}" for name in formulas), *harmless}
    assert all(row["reason"] == row["customer"] for row in rows)
    exact = list(csv.DictReader(io.StringIO(b"".join(found.csv(exact=True)).decode(), newline="")))
    assert {row["customer"] for row in exact} == {*formulas, *harmless}


def test_a_terminal_shows_what_varies_before_the_actors_that_have_trained_it() -> None:
    config: Config = {"actors": 2, "cpus_per_actor": 0.5, "eta": 0.25, "max_depth": 6, "model": "xgboost"}
    rows = (study("a", "a", family="xgboost", config=config), study("b", "b", family=None, config=config))
    _, _, model, objective = lines([*board(*rows)])
    assert model.endswith("  eta=0.25, max_depth=6, actors=2, cpus_per_actor=0.5")
    assert objective.endswith("  actors=2, cpus_per_actor=0.5, eta=0.25, max_depth=6, model=xgboost")


def test_an_error_has_the_name_and_the_sign_that_users_write() -> None:
    scores = {"cv_score": 14.0, "test_score": 13.84, "test_error": 0.25, "baseline_test_score": 20.0}
    scores |= {"constant_test_score": 40.0, "gain": 30.8, "gain_over_constant": 65.4}
    records = study("a", "a", **scores), study("b", "b", test_score=1.0)
    found = board(*records, metric="rmse", mode="min", sort="test_score")
    assert [row["customer"] for row in found] == ["b", "a"]
    row = list(found)[1]
    assert [row[name] for name in ("metric", "mode", *scores)] == ["rmse", "min", *scores.values()]
    head, *_, line = lines(found)
    assert head == "rmse, smaller is better"
    assert "13.84 ± 0.25" in line
    assert "30.8 %" in line
