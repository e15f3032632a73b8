"""A customer who asks for more than any machine has gets that as its reason; the others are tuned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from s3_server import SECRET, Bucket
from shown_output import note_texts

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import PlanError, RunError
from tuning.execution.callback_keys import CallbackKey, lookup
from tuning.execution.context import WorkerRun
from tuning.execution.jobs import ShardJob
from tuning.execution.packed import work_shard
from tuning.execution.run_queue import RunQueue
from tuning.runs.begin import OwnedRun
from tuning.storage.run_directory import RunDirectory

MACHINES = [
    {"CPU": 2.0, "memory": 4e9, "licence": 2.0},
    {"CPU": 1.0, "GPU": 1.0, "memory": 8e9},
    {"CPU": 64.0, "gone": 1.0},
]


class _Workers:
    """Stands in for a Tuner: works the shards that it is to work, in this process."""

    def __init__(self, owned: OwnedRun, queue: CallbackKey[RunQueue], *_: object) -> None:
        self.owned, self.queue = owned, queue

    def fit(self) -> None:
        for job in lookup(self.queue).shards:
            work_shard(WorkerRun.of(self.owned), job.shard, lambda _: None)


class _Placed(_Workers):
    """The same, but what machines have no room for waits, as with Tune, and the rest is done meanwhile."""

    def fit(self) -> None:
        queue, waiting = lookup(self.queue), list[str]()
        for name, job in iter(queue.next, None):
            if isinstance(job, ShardJob) and queue.room.has(job.takes):
                work_shard(WorkerRun.of(self.owned), job.shard, lambda _: None)
                queue.end(name)
            else:
                waiting.append(name)
        for name in queue.given_up(waiting):
            waiting.remove(name)
            queue.end(name)
        assert queue.closed
        assert not waiting


@pytest.fixture
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [{"Resources": has, "Alive": "gone" not in has} for has in MACHINES]
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr("ray.nodes", lambda: nodes)
    monkeypatch.setattr("tuning.driver.hosts.ray.start_ray", lambda slots: False)
    monkeypatch.setattr("tuning.driver.hosts.ray.build_tuner", _Workers)


def runner(folder: Path, needs: dict[str, Any], **fields: Any) -> TuneRunner:
    """needs: customers and the resources of each; None for those of the run."""
    rows = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) % 7})
    rows.to_csv(folder / "rows.csv", index=False)
    data = {name: {"path": str(folder / "rows.csv"), "resources": need} for name, need in needs.items()}
    given = {"target": "y", "task": "regression", "search_space": "ridge", "mlflow": False, "slots": 2, "trials": 2}
    given["placement"] = "packed"
    return TuneRunner(**{**given, "data": data, **fields})


def gangs(folder: Path, actors: dict[str, int | None], model: str = "xgboost", **fields: Any) -> TuneRunner:
    """actors: customers and how many actors train a trial of each; None for what the run says. model: of those."""
    made = runner(folder, dict.fromkeys(actors)).definition.to_dict()
    data = {name: dict(given) for name, given in made["data"].items()}
    for name in data:
        if (number := actors[name]) is not None:
            space = {"model": model, "actors": number, "max_depth": 3}
            constants = {name: {"type": "constant", "value": value} for name, value in space.items()}
            data[name]["search_space"] = constants | {"eta": {"type": "float", "low": 0.1, "high": 0.3}}
    given = {"data": data, "placement": "auto", **({} if fields else {"models": ["ridge"]}), **fields}
    return TuneRunner(**{**{name: value for name, value in made.items() if name != "search_space"}, **given})


@pytest.mark.usefixtures("_cluster")
def test_a_customer_who_asks_for_too_much_costs_the_others_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    needs = {"cpus": {"cpus": 1000}, "fits": {"cpus": 2}, "gpus": {"cpus": 2, "gpus": 1}, "usual": None}
    needs["memory"] = {"memory_gb": 1000}
    result = runner(tmp_path, needs).run(str(tmp_path / "run"), progress=False)
    board = RunResult(tmp_path / "run").leaderboard().set_index("customer")
    assert dict(board["status"]) == {name: "ok" if name in ("fits", "usual") else "no_model" for name in needs}
    better = "; request less, or run it where there is a larger machine"
    assert (
        board["reason"]["cpus"] == f"resources: a trial needs 1000 CPU, which no machine has; the most is 2 CPU{better}"
    )
    assert board["reason"]["gpus"].startswith(
        "resources: a trial needs 2 CPU, 1 GPU, which no machine has; the most is 2 CPU"
    )
    assert "1000 GB memory, which no machine has; the most is 2 CPU, 8 GB memory" in board["reason"]["memory"]
    assert result.unfinished == 0
    assert (
        "resources of 'cpus': a trial needs 1000 CPU, which no machine has; the most is 2 CPU. No model" in caplog.text
    )


@pytest.mark.usefixtures("_cluster")
def test_so_it_is_with_a_customer_whose_trials_are_spread(tmp_path: Path) -> None:
    made = runner(tmp_path, {"large": {"cpus": 1000}, "usual": None})
    data = {"large": {"path": str(tmp_path / "rows.csv"), "resources": {"cpus": 1000}, "placement": "spread"}}
    definition = made.definition.to_dict()
    both = TuneRunner({**definition, "data": {**definition["data"], **data}})
    assert both.plan().placement == "packed, spread"
    board = both.run(tmp_path / "run", progress=False).leaderboard().set_index("customer")
    assert dict(board["status"]) == {"large": "no_model", "usual": "ok"}
    assert board["reason"]["large"].startswith("resources: a trial needs 1000 CPU, which no machine has")


@pytest.mark.usefixtures("_cluster")
def test_so_it_is_with_a_customer_whose_actors_have_no_room_side_by_side(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = gangs(tmp_path, {"large": 9, "usual": None})
    assert made.plan().placement == "packed, spread"
    board = made.run(tmp_path / "run", progress=False).leaderboard().set_index("customer")
    assert dict(board["status"]) == {"large": "no_model", "usual": "ok"}
    why = "a trial takes 1 CPU and 9 actors of 1 CPU; there is no room for all of them at once"
    assert board["reason"]["large"] == f"search_space: {why}; take fewer actors, or more `slots`"
    assert f"search_space of 'large': {why}. No model comes of that; the others go on." in caplog.text


@pytest.mark.usefixtures("_cluster")
def test_so_it_is_with_a_customer_whose_actors_cannot_read_from_object_storage(
    tmp_path: Path, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    run = bucket.uri("runs/weekly", credentials=True)
    board = gangs(tmp_path, {"large": 1, "usual": None}, "xgboost_ray").run(run, progress=False).leaderboard()
    board = board.set_index("customer")
    assert dict(board["status"]) == {"large": "no_model", "usual": "ok"}
    why = f"the actors of 'xgboost_ray' read their rows from the run directory, {RunDirectory(run).shown}, which must "
    why += "be in a folder that all nodes share"
    assert board["reason"]["large"] == f"search_space: {why}; give one, or take `xgboost` with `actors`"
    assert f"search_space of 'large': {why}. No model comes of that; the others go on." in caplog.text
    assert SECRET not in board["reason"]["large"] + caplog.text


@pytest.mark.usefixtures("_cluster")
@pytest.mark.parametrize("address", ["", "somewhere:6379"])
def test_where_all_actors_cannot_read_the_run_is_refused_and_waits_for_no_machine(
    tmp_path: Path, bucket: Bucket, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(PlanError, match=r"^search_space of 'a', 'b': the actors of 'xgboost_ray' read their rows from"):
        gangs(tmp_path, {"a": 1, "b": 1}, "xgboost_ray").run(bucket.uri("run", credentials=True), progress=False)
    assert bucket.names() == []


@pytest.mark.usefixtures("_cluster")
@pytest.mark.parametrize(
    ("actors", "fields", "said"),
    [
        ({"a": 9, "b": 8}, {}, "search_space of 'a': a trial takes 1 CPU and 9 actors of 1 CPU; there is no room"),
        (
            {"a": None, "b": None},
            {"models": [{"estimator": "xgboost", "actors": 9}]},
            "models: a trial takes 1 CPU and 9 actors of 1 CPU; there is no room for all of them at once; take fewer",
        ),
    ],
)
def test_actors_that_all_customers_ask_for_are_refused_where_they_have_no_room(
    actors: dict[str, int | None], fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(PlanError) as caught:
        gangs(tmp_path, actors, **fields).run(tmp_path / "run", progress=False)
    assert str(caught.value).startswith(said)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("_cluster")
@pytest.mark.parametrize(
    ("needs", "fields", "said"),
    [
        (
            {"a": {"cpus": 3}, "b": {"cpus": 3}},
            {},
            "resources of 'a', 'b': a trial needs 3 CPU, which no machine has; the",
        ),
        ({"a": {"cpus": 1}, "b": None}, {"resources": {"gpus": 2}}, "resources: a trial needs 1 CPU, 2 GPU, which no"),
    ],
)
def test_what_the_run_asks_for_is_refused_as_a_whole(
    needs: dict[str, Any], fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    for run in (runner(tmp_path, needs, **fields).run, runner(tmp_path, needs, **fields).tuner):
        with pytest.raises(PlanError) as caught:
            run(str(tmp_path / "run"))
        assert str(caught.value).startswith(said)
        assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("_cluster")
def test_a_resource_that_no_node_was_started_with_is_named(tmp_path: Path) -> None:
    needs = {"disk": {"custom": {"fast_disk": 1}}, "lots": {"custom": {"licence": 3}}, "usual": None}
    result = runner(tmp_path, needs, resources={"custom": {"licence": 1}}).run(str(tmp_path / "run"), progress=False)
    board = result.leaderboard().set_index("customer")
    assert dict(board["status"]) == {"disk": "no_model", "lots": "no_model", "usual": "ok"}
    said = "resources: a trial needs 1 CPU, {}, which no machine has; the most is 2 CPU, {}; request less"
    assert board["reason"]["disk"].startswith(said.format("1 fast_disk", "0 fast_disk"))
    assert board["reason"]["lots"].startswith(said.format("3 licence", "2 licence"))


@pytest.mark.usefixtures("_cluster")
def test_what_a_larger_machine_has_begun_is_not_ended_on_a_smaller_one(tmp_path: Path) -> None:
    needs = {"large": {"cpus": 3}, "usual": None}
    runner(tmp_path, needs).run(str(tmp_path / "run"), progress=False, in_process=True)
    with pytest.raises(RunError, match=r"customer 'large' has trials already, and now a trial needs 3 CPU, .* Resume"):
        runner(tmp_path, needs, trials=3).run(str(tmp_path / "run"), progress=False, resume=True)
    assert list(RunResult(tmp_path / "run").leaderboard()["trials"]) == [2, 2]


@pytest.mark.usefixtures("_cluster")
def test_a_machine_that_is_lost_for_good_costs_those_who_need_it_until_there_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = list[OwnedRun]()

    def losing(owned: OwnedRun, queue: CallbackKey[RunQueue], *_: object) -> _Workers:
        built.append(owned)
        monkeypatch.setattr("ray.nodes", lambda: [{"Resources": MACHINES[1], "Alive": True}])
        return _Placed(owned, queue)

    monkeypatch.setattr("tuning.planning.room.LOOK_S", -1.0)
    made = runner(tmp_path, {"large": {"cpus": 2}, "usual": None})
    made.timing = Timing(room_s=0.0, attempt_pause_s=0.0)
    with monkeypatch.context() as there:
        there.setattr("tuning.driver.hosts.ray.build_tuner", losing)
        with pytest.raises(RunError) as ended:
            made.run(tmp_path / "run", progress=False)
    assert len(built) == 4  # the first one has searched the usual customer
    said = str(ended.value)
    assert "1 of 2 studies could not be finished in 3 attempts without progress: a worker has no place: " in said
    assert "it takes 2 CPU, for which the machines that are there have no room, and none has joined them" in said
    assert "add one, then resume the run. Everything recorded is kept. Resume with: " in said
    board = RunResult(tmp_path / "run").leaderboard().set_index("customer")
    assert dict(board["status"]) == {"large": "unfinished", "usual": "ok"}
    assert board["reason"]["large"] == "not finished yet: resume the run"
    monkeypatch.setattr("ray.nodes", lambda: [{"Resources": MACHINES[0], "Alive": True}])
    assert set(made.run(tmp_path / "run", progress=False, resume=True).leaderboard()["status"]) == {"ok"}


def test_the_plan_says_what_this_machine_is_too_small_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    needs = {"a": {"cpus": 1000}, "b": {"cpus": 1000}, "c": {"memory_gb": 100_000}, "d": None}
    made = runner(tmp_path, needs, resources={"gpus": 1000}).plan()
    notes = "\n".join(note_texts(made))
    assert "resources.cpus of 'a', 'b': 1000 is more than there is here: 2." in notes
    assert "resources.memory_gb of 'c': 100000 is more than there is here: " in notes
    assert "resources.gpus of 'd': 1000 is more" not in notes
    assert "resources.gpus: 1000 is more than there is here: 0." in notes
    notes = "\n".join(note_texts(runner(tmp_path, {"a": None}, resources={"custom": {"fast_disk": 1}}).plan()))
    assert "resources.custom.fast_disk: 1 is more than there is here: 0. Request less" in notes
    monkeypatch.setenv("RAY_ADDRESS", "somewhere:6379")
    assert "is more than" not in "\n".join(note_texts(runner(tmp_path, needs).plan()))


@pytest.mark.parametrize("key", ["gpus", "cpus", "custom"])
def test_what_this_machine_has_not_is_refused_before_ray_starts(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("Ray was started"))
    monkeypatch.setattr("tuning.planning.shortages.other_gpus", lambda: False)
    made = runner(tmp_path, {"a": None, "b": None}, resources={key: {"disk": 1} if key == "custom" else 1000})
    with pytest.raises(PlanError, match=rf"^resources\.{key}\b.* is more than there is here: .* Request less"):
        made.run(tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
    with pytest.raises(PlanError, match=rf"^resources\.{key}\b"):
        made.tuner(tmp_path / "run")
