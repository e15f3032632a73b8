"""A giant and many small customers in one run: one Tuner, and the records of either placement alone."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from builders import SPACE
from chaos import command, duplicates, hazard, hazards, truth, wait_for, write_hazards
from worker_groups import left_over, nodes_of

from benchmarks.lost_actor import processes
from tuning import RunResult, TuneRunner
from tuning.errors import RunInterrupted
from tuning.records.parts import TRIALS, of_kind, written_by_driver
from tuning.study.record import worker_name


def rows(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(count, 3)), columns=["a", "b", "c"])
    return frame.assign(y=frame["a"] - 2 * frame["b"] + rng.normal(scale=0.3, size=count))


def packed(result: RunResult, spread: set[str]) -> dict[str, Any]:
    """What came of the packed customers, every digit of it."""
    found = truth(result)
    return {what: [row for row in found[what] if row["customer"].strip("'") not in spread] for what in found}


def trials(result: RunResult, customer: str) -> list[Any]:
    """What trials of a customer came to. Where they overlap, they are suggested and told in another order."""
    found = [record for record in result.trial_records if record.customer == customer]
    return [(r.trial, r.config, r.state, r.score, [step.score for step in r.steps]) for r in found]


def studies(result: RunResult) -> list[Any]:
    return [
        (
            *(each.customer, each.trial, each.ensemble, each.ensemble_score, each.test_score, each.status),
            *(each.family, each.reason, each.baseline, each.baseline_cv_score, each.gain, each.gain_error),
        )
        for each in result.study_records
    ]


def test_a_giant_and_small_customers_are_searched_in_one_tuner_as_they_are_alone(
    ray_cluster: None, tmp_path: Path
) -> None:
    """With a pool and a baseline of the user's, which are the same wherever studies run."""
    data = {
        **{f"c{number:02d}": rows(60, number) for number in range(6)},
        "few": rows(3, 98),
        "giant": rows(60_000, 99),
    }
    data = {name: frame.assign(predicted=frame["y"] + frame["c"]) for name, frame in data.items()}
    runner = TuneRunner(
        data=data, target="y", task="regression", models=["ridge"], algorithm="random", scheduler="fifo", trials=4,
        slots=2, mlflow=False, report=False, pool="on", baseline={"column": "predicted"},
    )  # fmt: skip
    plan = runner.plan()
    assert [study.id for study in plan.spread] == ["giant"]
    mixed = runner.run(tmp_path / "mixed", progress=False)
    alone = runner.run(tmp_path / "packed", progress=False, in_process=True)
    assert len([path for path in (tmp_path / "mixed" / "tune").iterdir() if path.is_dir()]) == 1
    assert packed(mixed, {"giant"}) == packed(alone, {"giant"})
    assert trials(mixed, "giant") == trials(alone, "giant")
    assert studies(mixed) == studies(alone)
    found = {study.customer: study for study in mixed.study_records}
    few = found.pop("few")
    assert (few.status, few.family) == ("pool", "pool")
    assert {each.baseline for each in found.values()} == {"your predictions (predicted)"}
    assert any('"pool' in str(each.ensemble) for each in found.values())
    boosters = [sorted(os.listdir(tmp_path / name / "pool")) for name in ("packed", "mixed")]
    assert boosters[0] == boosters[1]
    pools = [each.trials().iloc[0] for each in (mixed, alone)]
    assert pools[0]["fold_scores"] == pools[1]["fold_scores"]
    assert [each["worker"] == worker_name() for each in pools] == [False, True]
    first = min(record.started for record in mixed.trial_records if record.customer == "giant")
    assert first <= min(record.started for record in mixed.trial_records)  # it does not wait for others
    assert mixed.unfinished == 0
    for name in ("giant", "few"):
        said = [each.model(name).predict(data["giant"]) for each in (mixed, alone)]
        np.testing.assert_array_equal(*said)
        assert np.isfinite(said[0]).all()


@pytest.mark.slow
def test_what_crashes_is_put_aside_in_either_placement_and_costs_the_others_nothing(
    ray_cluster: None, tmp_path: Path
) -> None:
    write_hazards(tmp_path / "data", 6, {1: "exit", 2: "exit"})
    (tmp_path / "manifest.yaml").write_text("c0000: {placement: spread}\nc0002: {placement: spread}\n")
    fields: dict[str, Any] = {"objective": hazard, "algorithm": "random", "manifest": str(tmp_path / "manifest.yaml")}
    runner = hazards(tmp_path / "data", **fields)
    assert [study.id for study in runner.plan().spread] == ["c0000", "c0002"]
    result = runner.run(tmp_path / "run", progress=False)
    board = result.leaderboard().set_index("customer")
    ill = {"c0001", "c0002"}
    assert dict(board["status"]) == {name: "quarantined" if name in ill else "ok" for name in board.index}
    assert all("has ended its worker 2 times" in board["reason"][name] for name in ill)
    assert "Reproduce it with: TuneRunner(…, customers=['c0002']).run(in_process=True)" in board["reason"]["c0002"]
    (guilty,) = (r for r in result.trial_records if r.customer == "c0002" and r.state == "failed")
    assert guilty.attempt == 2
    assert str(guilty.reason).startswith("its worker died")
    again = runner.run(tmp_path / "run", resume=True, progress=False)
    assert again.leaderboard()["status"].tolist() == result.leaderboard()["status"].tolist()
    others = ["c0000", "c0003", "c0004", "c0005"]
    well = hazards(tmp_path / "data", objective=hazard, algorithm="random", customers=others)
    healthy = well.run(tmp_path / "healthy", progress=False, in_process=True)
    assert packed(result, {*ill, "c0000"}) == packed(healthy, {"c0000"})
    assert trials(result, "c0000") == trials(healthy, "c0000")


GROUP = {"model": "xgboost", "actors": 2, "cpus_per_actor": 0.5, "max_depth": 3, "n_estimators": 10}
OF_A_GROUP: dict[str, Any] = {
    **{name: {"type": "constant", "value": value} for name, value in GROUP.items()},
    "learning_rate": {"type": "float", "low": 0.1, "high": 0.5, "default": 0.3},
}


@pytest.mark.slow
def test_giants_whose_files_are_broken_get_a_reason_and_the_others_what_they_get_without_them(
    group_cluster: None, tmp_path: Path
) -> None:
    rows(60_000, 99).to_parquet(tmp_path / "torn.parquet")  # spread for its size
    content = bytearray((tmp_path / "torn.parquet").read_bytes())
    content[20_000:200_000] = bytes(180_000)  # its end, and so the number of its rows, can be read
    (tmp_path / "torn.parquet").write_bytes(content)
    (tmp_path / "text.csv").write_bytes(b"\xff\xfe\x00")  # spread for its actors
    giants: dict[str, Any] = {
        "torn": {"path": str(tmp_path / "torn.parquet")},
        "text": {"path": str(tmp_path / "text.csv"), "search_space": OF_A_GROUP},
    }
    small: dict[str, Any] = {}
    for number in range(6):
        rows(60, number).to_csv(tmp_path / f"c{number}.csv", index=False)
        small[f"c{number}"] = {"path": str(tmp_path / f"c{number}.csv")}
    fields: dict[str, Any] = {
        "target": "y", "task": "regression", "models": ["ridge"], "algorithm": "random", "scheduler": "fifo",
        "trials": 4, "slots": 2, "resources": {"cpus": 0.5}, "mlflow": False,
    }  # fmt: skip
    runner = TuneRunner(data={**giants, **small}, **fields)
    assert sorted(study.id for study in runner.plan().spread) == ["text", "torn"]
    mixed = runner.run(tmp_path / "mixed", progress=False)
    board = mixed.leaderboard().set_index("customer")
    assert dict(board["status"]) == dict.fromkeys(giants, "no_model") | dict.fromkeys(small, "ok")
    assert "the file torn.parquet cannot be read" in board["reason"]["torn"]
    assert "the file text.csv is not utf-8 text" in board["reason"]["text"]
    alone = TuneRunner(data=small, **fields).run(tmp_path / "alone", progress=False, in_process=True)
    assert packed(mixed, set(giants)) == packed(alone, set())


@pytest.mark.slow
def test_ctrl_c_twice_leaves_nothing_of_a_group_on_a_ray_that_is_not_ours_and_the_run_goes_on(
    group_cluster: None, tmp_path: Path
) -> None:
    rows(4_000, 99).to_csv(tmp_path / "giant.csv", index=False)
    space = OF_A_GROUP | {"n_estimators": {"type": "constant", "value": 100}}
    data: dict[str, Any] = {"giant": {"path": str(tmp_path / "giant.csv"), "search_space": space}}
    for number in range(2):
        rows(60, number).to_csv(tmp_path / f"c{number}.csv", index=False)
        data[f"c{number}"] = {"path": str(tmp_path / f"c{number}.csv")}
    runner = TuneRunner(
        data=data, target="y", task="regression", models=["ridge"], algorithm="random", scheduler="fifo", trials=2,
        slots=2, resources={"cpus": 0.5}, split={"folds": 2}, mlflow=False,
    )  # fmt: skip
    pids: set[int] = set()

    def twice() -> None:
        wait_for(lambda: len(nodes_of("GroupActor")) == 2, 120, "the actors")
        pids.update(processes("xgboost"))
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # Python takes two pending signals for one

    before = signal.signal(signal.SIGINT, lambda *_: None)  # one that comes late is not to end the tests
    watching = threading.Thread(target=twice)
    watching.start()
    try:
        with pytest.raises(RunInterrupted, match="stopped by Ctrl-C"):
            runner.run(tmp_path / "run", progress=False)
        watching.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert left_over() == {}
    wait_for(lambda: not pids & set(processes("xgboost")), 60, "the end of the actors")
    recorded = {record.key: record.started for record in RunResult(tmp_path / "run").trial_records}
    result = runner.run(tmp_path / "run", progress=False, resume=True)
    assert set(result.leaderboard()["status"]) == {"ok"}
    assert recorded.items() <= {record.key: record.started for record in result.trial_records}.items()
    assert duplicates(result) == []


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_a_driver_that_is_killed_loses_nothing_of_either(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number in range(6):
        (tmp_path / "data" / f"c{number}.csv").write_text("a\n1\n")
    (tmp_path / "manifest.yaml").write_text("c0: {placement: spread}\n")
    definition = {
        "name": "mixed", "data": str(tmp_path / "data" / "*.csv"), "manifest": str(tmp_path / "manifest.yaml"),
        "objective": "chaos:paced", "metric": "loss", "mode": "min", "search_space": SPACE, "algorithm": "random",
        "scheduler": "fifo", "trials": 12, "seed": 5, "slots": 3, "mlflow": False, "placement": "packed",
    }  # fmt: skip
    (tmp_path / "definition.yaml").write_text(yaml.safe_dump(definition))
    driver = command(tmp_path, "run", "definition.yaml", "--run-dir", "run", CHAOS_PAUSE="0.2")

    def both_have_begun() -> bool:
        names = [path.name for path in (tmp_path / "run").glob("records/*/*.parquet")]
        assert driver.poll() is None, (tmp_path / "err").read_text()
        parts = of_kind(names, TRIALS)
        return 0 < len(written_by_driver(parts)) < len(parts)

    wait_for(both_have_begun, 300, "records of both")
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    before = {record.key: record.started for record in RunResult(tmp_path / "run").trial_records}
    again = command(tmp_path, "resume", "run")
    assert again.wait(300) == 0, (tmp_path / "err").read_text()
    result = RunResult(tmp_path / "run")
    assert before.items() <= {record.key: record.started for record in result.trial_records}.items()
    assert duplicates(result) == []
    whole = TuneRunner(**definition).run(tmp_path / "whole", progress=False, in_process=True)
    assert packed(result, {"c0"}) == packed(whole, {"c0"})
    assert trials(result, "c0") == trials(whole, "c0")
