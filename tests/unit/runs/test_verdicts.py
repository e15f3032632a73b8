"""The verdict on each customer: what to use, as far as its hold-out rows can tell."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import false_discovery_control

from tuning import TuneRunner
from tuning.definition.baselines import GivenBaseline
from tuning.runs.outcome import sentences
from tuning.runs.report.page import page
from tuning.runs.verdicts import JUDGED, ToUse, discoveries, verdicts
from tuning.service.views.tables import RunTables
from tuning.service.views.write import write
from tuning.tracking.overview import overview

OWN = {"column": "predicted"}
TYPES = {"status": pa.string(), **dict.fromkeys(("trial", "trials", "test_rows", "rare_rows"), pa.int64())}
USUAL = {"status": "ok", "trial": 3, "trials": 9, "test_rows": 100, "rare_rows": None, "test_score": 0.8}


def judged(customers: list[dict[str, Any]], baseline: GivenBaseline = None) -> list[str | None]:
    """The verdicts on customers; what is not said of one is usual."""
    rows = [{**dict.fromkeys(JUDGED), **USUAL, **each} for each in customers]
    columns = {name: pa.array([row[name] for row in rows], TYPES.get(name, pa.float64())) for name in JUDGED}
    found: list[str | None] = verdicts(pa.table(columns), baseline).to_pylist()
    return found


def customer(
    first: tuple[float | None, float | None], constant: tuple[float | None, float | None], **others: Any
) -> dict[str, Any]:
    """first, constant: the gains over the baseline and over the constant, each with its error."""
    gains = {"gain": first[0], "gain_error": first[1]}
    return {**gains, "gain_over_constant": constant[0], "gain_over_constant_error": constant[1], **others}


BETTER, WORSE, UNSURE, NONE = (0.2, 0.02), (-0.2, 0.02), (0.02, 0.02), (None, None)
MUCH_WORSE, SAME = (-0.3, 0.02), (0.0, 0.0)


@pytest.mark.parametrize(
    ("baseline", "one", "verdict"),
    [
        (None, customer(BETTER, BETTER), "model"),
        (None, customer(UNSURE, BETTER), "model"),
        (None, customer(SAME, BETTER), "model"),  # the first model itself
        (None, customer(NONE, BETTER), "model"),  # trial 0 failed
        (None, customer(WORSE, BETTER), "baseline"),
        (None, customer(WORSE, UNSURE), "baseline"),
        (None, customer(UNSURE, UNSURE), "undecided"),
        (None, customer(BETTER, UNSURE), "undecided"),
        (None, customer(UNSURE, WORSE), "constant"),
        (None, customer(BETTER, WORSE), "constant"),
        (None, customer(WORSE, MUCH_WORSE), "constant"),  # of both, the better one
        (None, customer(MUCH_WORSE, WORSE), "baseline"),
        (None, customer(UNSURE, SAME, trial=None), "constant"),  # is the model
        (None, customer(WORSE, SAME, trial=None), "baseline"),
        (None, customer(BETTER, NONE), "model"),  # the metric is not defined for a constant
        (None, customer(UNSURE, NONE), "undecided"),
        (None, customer(NONE, NONE, test_score=None), "undecided"),  # nor on these hold-out rows
        (None, customer((0.2, None), (0.2, None)), "undecided"),  # no error is known
        (OWN, customer(BETTER, BETTER), "model"),
        (OWN, customer(BETTER, UNSURE), "model"),
        (OWN, customer(UNSURE, BETTER), "undecided"),
        (OWN, customer(WORSE, BETTER), "baseline"),
        (OWN, customer(BETTER, WORSE), "constant"),
        (OWN, customer(BETTER, SAME, trial=None), "constant"),
        (OWN, customer(UNSURE, SAME, trial=None), "undecided"),
        ("mean", customer(BETTER, BETTER), "model"),
        ("mean", customer(WORSE, WORSE), "constant"),
        ("mean", customer(UNSURE, UNSURE), "undecided"),
        ("ridge", customer(UNSURE, BETTER), "model"),
        (None, customer(BETTER, BETTER, test_rows=20), "model"),
        (None, customer(BETTER, BETTER, test_rows=19), "undecided"),
        (None, customer(WORSE, WORSE, test_rows=3), "undecided"),
        (None, customer(BETTER, BETTER, rare_rows=5), "model"),
        (None, customer(BETTER, BETTER, rare_rows=4), "undecided"),
        (None, customer(NONE, NONE, trial=None, trials=0, test_score=None), None),  # known before, fitted on all rows
        (None, customer(NONE, NONE, test_rows=0, test_score=None), None),  # an objective
        (None, customer(NONE, NONE, status="no_model", test_rows=0, trial=None), None),
        (None, customer(NONE, NONE, status="quarantined"), None),
        (None, customer(NONE, NONE, status="pool", test_rows=0, trial=None), "pool"),
    ],
)
def test_one_customer(baseline: GivenBaseline, one: dict[str, Any], verdict: str | None) -> None:
    assert judged([one], baseline) == [verdict]


@pytest.mark.parametrize(
    ("errors", "others", "verdict"),
    [
        (2.2, 0, "model"),  # of a single customer, p is .02
        (2.2, 9, "undecided"),  # of ten, one in five has such a gain by chance
        (2.2, 999, "undecided"),
        (4.0, 9, "model"),
        (4.0, 999, "undecided"),
        (6.5, 999, "model"),
        (-2.2, 0, "constant"),
        (-2.2, 9, "undecided"),
        (-4.0, 9, "constant"),
        (-4.0, 999, "undecided"),
        (-6.5, 999, "constant"),
    ],
)
def test_the_more_are_looked_at_the_more_it_takes(errors: float, others: int, verdict: str) -> None:
    one, nothing = customer(NONE, (errors, 1.0)), customer(NONE, (0.1, 1.0))
    assert judged([one, *[nothing] * others]) == [verdict, *["undecided"] * others]


def test_those_that_decide_nothing_cost_the_others_nothing() -> None:
    one, few = customer(NONE, (2.2, 1.0)), customer(NONE, (0.1, 1.0), test_rows=19)
    same, failed = customer(SAME, SAME, trial=0), customer(NONE, NONE, status="no_model")
    assert judged([one, *[few, same, failed] * 99])[0] == "model"


def test_many_sure_ones_do_not_make_doubtful_ones_worse_than_a_constant() -> None:
    """Each direction is corrected by itself: a hundred good models are no evidence that another is bad."""
    found = judged([*[customer(NONE, (9.0, 1.0))] * 100, customer(NONE, (-2.2, 1.0)), customer(NONE, (2.2, 1.0))])
    assert found == [*["model"] * 100, "undecided", "model"]


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_the_correction_is_scipys(count: int) -> None:
    p = np.random.default_rng(count).uniform(size=count) ** 4
    for level in (0.01, 0.025, 0.2):
        assert discoveries(p, level).tolist() == (false_discovery_control(p) <= level).tolist()
    assert discoveries(np.array([np.nan, 0.01, np.nan]), 0.025).tolist() == [False, True, False]
    assert discoveries(np.array([np.nan]), 0.025).tolist() == [False]


def test_where_nothing_can_be_gained_few_are_told_otherwise() -> None:
    """Models that are as good as a constant, 200 runs of 50 customers: one in twenty names some."""
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(200):
        t = rng.standard_t(19, size=50)
        named += any(each != ToUse.UNDECIDED for each in judged([customer(NONE, (gain, 1.0)) for gain in t]))
    assert named <= 0.08 * 200


def shop(seed: int, rows: int, signal: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return pd.DataFrame({"x": x, "z": rng.normal(size=rows), "y": signal * x + rng.normal(size=rows)})


@pytest.mark.long
def test_the_same_is_said_first_everywhere_and_stands_in_every_table(tmp_path: Path) -> None:
    shops = {"good": shop(0, 200, 3.0), "few": shop(1, 60, 3.0), "noise": shop(2, 200, 0.0), "none": shop(3, 2, 1.0)}
    given = {"data": shops, "target": "y", "search_space": "ridge", "trials": 2, "mlflow": False}
    result = TuneRunner(given).run(tmp_path / "run", progress=False, in_process=True)
    first, *_ = sentences(result, result.summary())
    assert first.startswith(
        "3 of 4 customers have a model: use 1, a constant guess is as good for 1, 1 undecided (1 with"
    )
    assert "; 1 without; " in first
    told = {"few": "undecided", "good": "model", "noise": "constant", "none": None}
    board = result.leaderboard().set_index("customer")
    assert {name: verdict for name, verdict in board["verdict"].items() if verdict} | {"none": None} == told
    assert board.loc[["few", "good", "noise"], "test_rows"].tolist() == [12, 40, 40]
    assert {name: result.customer(name).verdict for name in told} == told
    assert ("verdict", "model") in result.customer("good").facts()
    assert first in html.unescape(result._repr_html_())
    assert first in html.unescape(page(result))
    assert overview(result, {}, 0.0, 1.0)[0].note.startswith(f"**{first}** Typical ")
    (tmp_path / "views").mkdir()
    write(result.directory.uri, str(tmp_path / "views"))
    tables = RunTables(tmp_path / "views")
    assert tables.summary["sentences"][0] == first
    assert {row["customer"]: row["verdict"] for row in tables.page(sort="verdict").rows} == told
