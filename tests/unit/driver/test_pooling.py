"""The training of a run's pool by the run's workers: it may die, be stopped, and begin again."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from builders import definition, write_customers
from without_ray import refuse_ray

from tuning import TuneRunner
from tuning.basics.timing import USUAL
from tuning.basics.wording import amount
from tuning.errors import RunError, RunInterrupted
from tuning.execution import pool as pool_job
from tuning.notes import PoolCode
from tuning.records.schema import FAILED, FINISHED, POOL_STUDY
from tuning.runs.pool_file import read_pool
from tuning.storage.run_directory import RunDirectory

pytestmark = pytest.mark.long

LOST = "There is no pool, so each model is of its own customer's rows alone: "


@pytest.fixture(autouse=True)
def _no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_ray(monkeypatch)


def runner(folder: Path, **keys: object) -> TuneRunner:
    if not folder.exists():
        write_customers(folder, 2)
    placed = {"placement": "auto", "search_space": "ridge", "trials": 2, "slots": 2}
    return TuneRunner(**definition(folder, **{"pool": "on", **placed, **keys}))


def test_the_pool_is_a_trial_of_the_run_with_its_score_and_its_cost(tmp_path: Path) -> None:
    result = runner(tmp_path / "data").run(tmp_path / "run", progress=False)
    first, *others = result.trials().to_dict("records")
    assert (first["study"], first["customer"], first["state"]) == (POOL_STUDY, "", FINISHED)
    assert (first["family"], first["config.iterations"], first["metrics"]["customers"]) == ("catboost", 600, 2)
    assert len(first["fold_scores"]) == 3
    assert first["score"] == pytest.approx(sum(first["fold_scores"]) / 3)
    assert min(first["seconds"], first["fit_seconds"]) > 0
    counts = result.summary()
    assert (counts["trials"], len(others), counts["without_pool"]) == (4, 4, None)
    assert counts["fit_seconds"] > first["fit_seconds"]
    assert POOL_STUDY not in {entry["study"] for entry in result.customer("c0000").trials().to_dict("records")}
    assert all("iterations" not in config for config in result.warm_start())
    assert (counts["pool_customers"], counts["pool_members"] <= 2) == (2, True)
    member = f"The pool, of the rows of 2 customers, is a member of {amount(counts['pool_members'], 'model')}."
    assert member in sentences_of(result)


def test_a_first_trial_that_cannot_begin_costs_the_fleets_weights_and_not_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> object:
        raise RuntimeError("no search here")

    monkeypatch.setattr(pool_job, "planned_study", fails)
    result = runner(tmp_path / "data").run(tmp_path / "run", progress=False)
    counts = result.summary()
    assert (counts["pool_customers"], counts["without_pool"], counts["without_model"]) == (2, None, 0)


def test_a_worker_that_dies_while_it_trains_the_pool_is_followed_by_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = pool_job.fitted_pool

    def dies_once(*given: object, **keys: object) -> object:
        if not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os._exit(1)
        return fitted(*given, **keys)

    monkeypatch.setattr(pool_job, "fitted_pool", dies_once)
    result = runner(tmp_path / "data").run(tmp_path / "run", progress=False)
    first = result.trials().iloc[0]
    assert (first["state"], first["attempt"]) == (FINISHED, 2)


@pytest.mark.parametrize(
    ("raises", "why"), [(False, "training it has ended its worker 2 times"), (True, "MemoryError: too many rows")]
)
def test_what_happens_to_it_costs_the_run_its_pool_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raises: bool, why: str
) -> None:
    def fails(*_: object, **__: object) -> object:
        if raises:
            raise MemoryError("too many rows")
        os._exit(1)

    monkeypatch.setattr(pool_job, "fitted_pool", fails)
    result = runner(tmp_path / "data").run(tmp_path / "run", progress=False)
    counts = result.summary()
    assert (counts["succeeded"], counts["customers"]) == (2, 2)
    assert counts["without_pool"]["text"].startswith(why)
    first = result.trials().iloc[0]
    assert (first["state"], first["reason"]) == (FAILED, counts["without_pool"]["text"])
    assert f"{LOST}{why}" in " ".join(sentences_of(result))
    pool = read_pool(result.directory)
    assert pool is not None
    assert pool.without is not None
    assert pool.without.to_dict() == counts["without_pool"]


def sentences_of(result: object) -> list[str]:
    from tuning.runs.outcome import sentences

    return sentences(result, result.summary())


ENDS_FOR = """
import os
import time

def prepare(frame):
    if len(frame) in {rows}:
        {how}
    return frame
"""


@pytest.mark.parametrize(
    ("bad", "how", "why"),
    [
        (1, "os._exit(1)", "its process ended without"),
        (1, "time.sleep(600)", "it ran longer than its time limit"),
        (6, "os._exit(1)", ""),
    ],
)
def test_a_customer_whose_data_ends_the_worker_is_left_out_of_the_pool(
    tmp_path: Path, bad: int, how: str, why: str
) -> None:
    """The others have theirs, unless there are many such customers. Studies go on with Ray, as after any death."""
    write_customers(tmp_path / "data", 3)
    rows = range(61, 61 + bad)
    for count in rows:
        frame = pd.read_csv(tmp_path / "data" / "c0000.csv")
        pd.concat([frame] * 9)[:count].to_csv(tmp_path / "data" / f"bad{count}.csv", index=False)
    (tmp_path / "code.py").write_text(ENDS_FOR.format(rows=[*rows], how=how))
    limits = {"crashes_before_quarantine": 1} | ({"trial_seconds": 5.0} if "sleep" in how else {})  # others are read
    found = runner(tmp_path / "data", prepare=f"{tmp_path}/code.py:prepare", limits=limits)
    found.timing = replace(USUAL, prepare_s=5.0)
    with pytest.raises(RunError, match="Ray was wanted"):
        found.run(tmp_path / "run", progress=False)
    pool = read_pool(RunDirectory(tmp_path / "run"))
    assert pool is not None
    if bad == 1:
        assert set(pool.customers) == {"c0000", "c0001", "c0002"}
        assert str(pool.left_out["bad61"]).startswith(f"its data, or a first trial on it, has ended a worker: {why}")
    else:
        assert pool.without is not None
        assert (pool.without.code, pool.without.values["customers"]) == (PoolCode.POOL_DATA_ENDED_WORKER, 6)


def test_what_takes_too_long_is_ended_and_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_job, "POOL_SECONDS", 1.0)
    monkeypatch.setattr(pool_job, "fitted_pool", lambda *_, **__: threading.Event().wait())
    result = runner(tmp_path / "data").run(tmp_path / "run", progress=False)
    assert result.summary()["without_pool"] == PoolCode.POOL_TOOK_LONGER(limit=1.0).to_dict()
    assert result.trials().iloc[0]["attempt"] == 1
    assert result.summary()["succeeded"] == 2


def test_a_run_that_is_stopped_meanwhile_has_no_pool_yet_and_a_resume_trains_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waits(*_: object, **__: object) -> object:
        os.kill(os.getppid(), 2)
        time.sleep(600)
        return None

    given = runner(tmp_path / "data")
    whole = given.run(tmp_path / "whole", progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(pool_job, "fitted_pool", waits)
        with pytest.raises(RunInterrupted):
            given.run(tmp_path / "run", progress=False)
    assert read_pool(whole.directory) is not None
    assert not (tmp_path / "run" / "pool").exists()
    result = given.run(tmp_path / "run", progress=False, resume=True)
    assert result.unfinished == 0
    boosters = [sorted(os.listdir(tmp_path / name / "pool")) for name in ("run", "whole")]
    assert boosters[0] == boosters[1]
