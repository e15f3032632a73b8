"""A known configuration is fitted again, once and without a search, and its model is the one that the search found."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tuning import RunResult, TuneRunner
from tuning.errors import PlanError
from tuning.evaluation.fixed import FixedConfiguration, FixedMember
from tuning.models.base import EncodedRows
from tuning.models.registry import family
from tuning.notes import PoolCode
from tuning.preprocessing.task import Task
from tuning.records.schema import NO_MODEL, OK
from tuning.runs.outcome import sentences
from tuning.study.warm_start import known_entries

QUIET: Any = {"progress": False, "in_process": True}


def rows(seed: int, count: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-2, 2, size=(count, 3)), columns=["a", "b", "c"])
    return frame.assign(y=frame["a"] * frame["b"] + 3 * frame["c"] + rng.normal(scale=0.1, size=count))


def runner(data: Mapping[str, pd.DataFrame], **more: Any) -> TuneRunner:
    given = {"target": "y", "trials": 4, "mlflow": False, "report": False, "pool": "off", "models": ["ridge", "knn"]}
    return TuneRunner(**{name: value for name, value in {"data": data, **given, **more}.items() if value is not None})


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Ensembles, as no family alone can learn such a target well."""
    data = {"one": rows(1), "two": rows(2)}
    result = runner(data).run(tmp_path_factory.mktemp("runs") / "searched", **QUIET)
    assert isinstance(result, RunResult)
    return result


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of rows of all fits."""
    found: list[int] = []

    def counting(original: Any) -> Any:
        def fit(self: Any, config: Any, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Any:
            found.append(len(train.y))
            return original(self, config, train, task, seed, steps)

        return fit

    with monkeypatch.context() as patch:
        for name in ("ridge", "knn"):
            kind = type(family(name))
            patch.setattr(kind, "fit", counting(kind.fit))
        yield found


def test_what_is_fitted_again_on_the_same_rows_is_the_model_that_was_found(
    searched: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = searched.fixed_configurations()
    assert list(fixed) == ["one", "two"]
    assert any(len(each.members) > 1 for each in fixed.values()), "an ensemble"
    data = {"one": rows(1), "two": rows(2)}
    with counted(monkeypatch) as fits:
        result = runner(data).run(tmp_path / "again", **QUIET)
        search = len(fits)
    with counted(monkeypatch) as fits:
        start = time.process_time()
        again = runner(data, fixed=fixed).run(tmp_path / "fixed", **QUIET)
        seconds = time.process_time() - start
    assert fits == [120] * sum(len(each.members) for each in fixed.values()), "each member once, on all rows"
    print(f"{search} fits of a search, {len(fits)} of known configurations in {seconds:.2f} CPU-s")
    new = rows(9)
    for customer in fixed:
        assert np.array_equal(again.model(customer).predict(new), result.model(customer).predict(new))
        assert again.model(customer).final_fit == "all"
        assert again.best_config(customer) == result.best_config(customer)
    assert again.trial_records == []
    assert {(each.status, each.trials, each.test_score) for each in again.study_records} == {(OK, 0, None)}
    assert again.fixed_configurations() == fixed, "the next week goes on with them"
    assert fixed == {name: FixedConfiguration.from_json(each.to_json()) for name, each in fixed.items()}


def test_a_resume_fits_what_is_not_recorded_and_searches_for_nobody(searched: RunResult, tmp_path: Path) -> None:
    data, known = {"one": rows(1), "two": rows(2)}, searched.fixed_configurations()
    runner(data, fixed=known).run(tmp_path / "run", **QUIET)
    shutil.rmtree(tmp_path / "run" / "records")
    shutil.rmtree(tmp_path / "run" / "models")
    again = TuneRunner.resume(tmp_path / "run", **QUIET)
    assert again.trial_records == []
    assert {(each.status, each.trials) for each in again.study_records} == {(OK, 0)}
    assert np.array_equal(again.model("one").predict(rows(9)), searched.model("one").predict(rows(9)))
    assert again.fixed_configurations() == known


def test_only_the_customers_that_are_named_are_spared_a_search(searched: RunResult, tmp_path: Path) -> None:
    known = {"one": searched.fixed_configurations()["one"]}
    plan = runner({"one": rows(1, 150), "two": rows(2)}, fixed=known)
    assert plan.plan().n_trials == 4
    result = plan.run(tmp_path / "run", **QUIET)
    assert {record.customer for record in result.trial_records} == {"two"}
    board = result.leaderboard().set_index("customer")
    assert board["status"].tolist() == [OK, OK]
    assert board["trials"].tolist() == [0, 4]
    assert board.loc["one", "model"] == searched.leaderboard().set_index("customer").loc["one", "model"]
    assert result.customer("one").study.rows == 150
    assert result.summary()["fixed"] == 1
    assert "whose configuration was known" in str(result.customer("one"))
    assert "no trial was run" in str(result.customer("one").notes[0])
    assert result.customer("one").importance()["matters"].any(), "it can still be explained"


def test_studies_that_fit_and_one_that_searches_share_a_run(searched: RunResult, tmp_path: Path) -> None:
    known, first = searched.fixed_configurations(), [{"model": "ridge", "alpha": 3.25}, {"model": "elsewhere"}]
    studies = {"one": {"old": known["one"], "other": known["two"], "search": first}, "two": {"old": known["two"]}}
    given = runner({"one": rows(1), "two": rows(2)}, fixed=studies, trials=2)
    assert (given.plan().customers, given.plan().n_trials) == (2, 2)
    result = given.run(tmp_path / "run", **QUIET)
    assert sorted(result.planned) == ["one/old", "one/other", "one/search", "two/old"]
    old, search = (RunResult(result.directory, name) for name in ("old", "search"))
    assert (list(old), list(search)) == (["one", "two"], ["one"])
    assert old.fixed_configurations() == known
    assert [each.study for each in result.trial_records] == ["one/search"] * 2
    assert result.trial_records[1].config == first[0]  # after the baseline; what the space has not is left out
    assert search.best_studies()["trials"].to_pylist() == [2]
    new = rows(9)
    for customer in known:
        assert np.array_equal(old.model(customer).predict(new), searched.model(customer).predict(new))


def test_a_single_customer_is_told_plainly(searched: RunResult, tmp_path: Path) -> None:
    known = {"one": searched.fixed_configurations()["one"]}
    result = runner({"one": rows(1)}, fixed=known).run(tmp_path / "run", **QUIET)
    first, *_ = sentences(result, result.summary())
    assert first.endswith("has a known configuration, fitted on all rows: none is left to score it.")


def test_on_the_rows_of_a_search_the_hold_out_scores_it_as_it_did_then(searched: RunResult, tmp_path: Path) -> None:
    known = searched.fixed_configurations()
    again = runner({"one": rows(1), "two": rows(2)}, fixed=known, final_fit="search").run(tmp_path / "run", **QUIET)
    then = {each.customer: each for each in searched.study_records}
    for record in again.study_records:
        assert record.test_score == pytest.approx(then[record.customer].test_score, rel=1e-12)
        assert record.test_error == pytest.approx(then[record.customer].test_error, rel=1e-9)
        assert (record.cv_score, record.trials) == (None, 0)


def test_rows_that_no_model_can_be_fitted_to_are_told_and_cost_nobody_else(searched: RunResult, tmp_path: Path) -> None:
    data = {"one": rows(1, 5), "two": rows(2)}
    result = runner(data, fixed=searched.fixed_configurations(), min_rows=20).run(tmp_path / "run", **QUIET)
    one, two = (result.customer(name).study for name in ("one", "two"))
    assert one is not None
    assert two is not None
    assert (one.status, two.status) == (NO_MODEL, OK)
    assert "5 rows with a target, fewer than min_rows: 20" in str(one.reason)


def test_a_configuration_with_the_pool_needs_a_pool(tmp_path: Path) -> None:
    of_pool = FixedConfiguration((FixedMember({"model": "ridge", "alpha": 1.0}, 3), FixedMember({"model": "pool"}, 0)))
    result = runner({"one": rows(1)}, fixed={"one": of_pool}).run(tmp_path / "run", **QUIET)
    study = result.customer("one").study
    assert study is not None
    assert [study.reason.code if study.reason else None] == [PoolCode.NO_POOL_MEMBER]


@pytest.mark.long
def test_a_constant_stays_one_and_a_winner_that_grew_stops_where_it_stopped(tmp_path: Path) -> None:
    noise = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": [9.0, 1.0, 8.0, 2.0, 9.5, 1.5]})
    first = runner({"noise": noise}, trials=2, models=["ridge"]).run(tmp_path / "first", **QUIET)
    assert first.customer("noise").study.family == "constant"
    fixed = first.fixed_configurations()
    again = runner({"noise": noise}, fixed=fixed).run(tmp_path / "again", **QUIET)
    assert again.model("noise").predict(noise).tolist() == first.model("noise").predict(noise).tolist()
    grown = runner({"one": rows(1)}, trials=3, models=["hist_gradient_boosting"], ensemble="none").run(
        tmp_path / "grown", **QUIET
    )
    found = grown.fixed_configurations()["one"].members[0]
    assert found.steps == grown.customer("one").study.best_step
    again = runner({"one": rows(1)}, fixed=grown.fixed_configurations(), models=["hist_gradient_boosting"]).run(
        tmp_path / "grown again", **QUIET
    )
    assert np.array_equal(again.model("one").predict(rows(9)), grown.model("one").predict(rows(9)))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "fixed: there is no customer 'nobody' among 1."),
        (
            {
                "objective": lambda config: 0.0,
                "target": None,
                "models": None,
                "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
                "metric": "loss",
                "mode": "min",
            },
            "fixed: an objective has no models",
        ),
        ({"compare": {"algorithms": ["random", "optuna"], "seeds": 1}}, "fixed: a comparison is one of searches"),
    ],
)
def test_a_plan_refuses_what_cannot_be_fitted_again(more: dict[str, Any], said: str) -> None:
    known = {"nobody": FixedConfiguration((FixedMember({"model": "ridge"}, 0),))}
    with pytest.raises(PlanError, match=said):
        runner({"one": rows(1)}, fixed=known, **more).plan()


def test_what_a_warm_start_gives_a_search_is_a_trial_like_any_other(searched: RunResult, tmp_path: Path) -> None:
    """Of a champion that is an ensemble all members, so that a search cannot lose them."""
    fixed = searched.fixed_configurations()
    entries = known_entries(fixed)
    assert len(entries) == sum(len(each.members) for each in fixed.values())
    result = runner({"one": rows(1), "two": rows(2)}, warm_start=entries, trials=8).run(tmp_path / "run", **QUIET)
    for entry in entries:
        tried = [json.dumps(each.config, sort_keys=True) for each in result.customer(entry["customer"]).trial_records]
        assert json.dumps(entry["config"], sort_keys=True) in tried
