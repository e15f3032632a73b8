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
from tuning.errors import PlanError
from tuning.execution.jobs import BatchJob
from tuning.execution.packed import work_batch
from tuning.execution.run_queue import RunQueue
from tuning.execution.worker import WorkerRun
from tuning.runs.begin import OwnedRun
from tuning.storage.run_directory import RunDirectory

MACHINES = [
    {"CPU": 2.0, "memory": 4e9, "licence": 2.0},
    {"CPU": 1.0, "GPU": 1.0, "memory": 8e9},
    {"CPU": 64.0, "gone": 1.0},
]


class _Workers:
    """Stands in for a Tuner: works batches in this process. What machines have no room for waits, as with Tune."""

    def __init__(self, owned: OwnedRun, queue: RunQueue, *_: object) -> None:
        self.owned, self.queue = owned, queue

    def fit(self) -> None:
        queue = self.queue
        while not queue.closed:
            waiting = list[str]()
            for name, job in iter(queue.next, None):
                if isinstance(job, BatchJob) and queue.capacity.fits(job.request):
                    work_batch(WorkerRun.from_owned(self.owned), job.batch, lambda _: None)
                    queue.end(name)
                else:
                    waiting.append(name)
            for name in queue.timed_out(waiting):
                waiting.remove(name)
                queue.end(name)
            assert not waiting


@pytest.fixture
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [{"Resources": has, "Alive": "gone" not in has} for has in MACHINES]
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr("ray.nodes", lambda: nodes)
    monkeypatch.setattr("tuning.driver.hosts.ray.start_ray", lambda slots: False)
    monkeypatch.setattr("tuning.driver.hosts.ray.build_tuner", _Workers)
    monkeypatch.setattr("tuning.planning.capacity.LOOK_S", -1.0)


def runner(folder: Path, needs: dict[str, Any], **fields: Any) -> TuneRunner:
    """needs: customers and the resources of each; None for those of the run."""
    rows = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) % 7})
    rows.to_csv(folder / "rows.csv", index=False)
    data = {name: {"path": str(folder / "rows.csv"), "resources": need} for name, need in needs.items()}
    given = {"target": "y", "task": "regression", "search_space": "ridge", "mlflow": False, "slots": 2, "trials": 2}
    given["placement"] = "packed"
    made = TuneRunner(**{**given, "data": data, **fields})
    made.timing = Timing(room_s=0.0, attempt_pause_s=0.0)
    return made


def worker_groups(folder: Path, actors: dict[str, int | None], model: str = "xgboost", **fields: Any) -> TuneRunner:
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


NO_ROOM = "for which the machines that are there have no room, and none has joined them within 0 s"


@pytest.mark.usefixtures("_cluster")
def test_a_customer_who_asks_for_too_much_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    needs: dict[str, Any] = {"cpus": {"cpus": 1000}, "fits": {"cpus": 2}, "gpus": {"cpus": 2, "gpus": 1}, "usual": None}
    needs |= {"disk": {"custom": {"fast_disk": 1}}, "lots": {"custom": {"licence": 3}}}
    made = runner(tmp_path, needs)
    result = made.run(tmp_path / "run", progress=False)
    board = RunResult(tmp_path / "run").leaderboard().set_index("customer")
    assert dict(board["status"]) == {name: "ok" if name in ("fits", "usual") else "no_model" for name in needs}
    assert board["reason"]["cpus"] == f"a worker: it takes 1000 CPU, {NO_ROOM}; add one, then resume the run"
    assert board["reason"]["gpus"].startswith("a worker: it takes 2 CPU + 1 GPU, for which")
    assert "1 fast_disk, for which" in board["reason"]["disk"]
    assert "3 licence, for which" in board["reason"]["lots"]
    assert result.unfinished == 0
    assert "a worker takes 1000 CPU, for which" in caplog.text
    larger = {"CPU": 2000.0, "GPU": 1.0, "fast_disk": 1.0, "licence": 3.0}
    monkeypatch.setattr("ray.nodes", lambda: [{"Resources": larger, "Alive": True}])
    assert set(made.run(tmp_path / "run", progress=False, resume=True).leaderboard()["status"]) == {"ok"}


def test_actors_that_cannot_read_from_object_storage_are_refused(tmp_path: Path, bucket: Bucket) -> None:
    run = bucket.uri("run", credentials=True)
    made = worker_groups(tmp_path, {"large": 1, "usual": None}, "xgboost_ray")
    said = r"^customer 'large': the actors of 'xgboost_ray' read their rows from the run directory, .* in a folder"
    with pytest.raises(PlanError, match=said) as caught:
        made.run(run, progress=False)
    assert RunDirectory(run).shown in str(caught.value)
    assert SECRET not in str(caught.value)
    assert bucket.names() == []


@pytest.mark.usefixtures("_cluster")
def test_what_a_larger_machine_has_begun_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"large": {"cpus": 3}, "usual": None}
    runner(tmp_path, needs).run(tmp_path / "run", progress=False, in_process=True)
    more = runner(tmp_path, needs, trials=3)
    board = more.run(tmp_path / "run", progress=False, resume=True).leaderboard().set_index("customer")
    assert dict(board["status"]) == {"large": "no_model", "usual": "ok"}
    assert dict(board["trials"]) == {"large": 2, "usual": 3}
    monkeypatch.setattr("ray.nodes", lambda: [{"Resources": {"CPU": 4.0}, "Alive": True}])
    board = more.run(tmp_path / "run", progress=False, resume=True).leaderboard()
    assert (set(board["status"]), set(board["trials"])) == ({"ok"}, {3})


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
    monkeypatch.setattr("tuning.planning.plan_notes.other_gpus", lambda: False)
    made = runner(tmp_path, {"a": None, "b": None}, resources={key: {"disk": 1} if key == "custom" else 1000})
    with pytest.raises(PlanError, match=rf"^resources\.{key}\b.* is more than there is here: .* Request less"):
        made.run(tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()
    with pytest.raises(PlanError, match=rf"^resources\.{key}\b"):
        made.tuner(tmp_path / "run")
