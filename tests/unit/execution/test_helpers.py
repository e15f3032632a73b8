"""What a packed worker makes of its helpers, without Ray: their deaths, and none at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chaos import truth
from climbing import STEPS, climb
from local_helpers import LocalLink

from search_spaces import Float, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.execution import packed
from tuning.execution.crash_log import Nodes
from tuning.execution.packed import work_batch
from tuning.execution.study_run import NoHelpersError
from tuning.execution.worker import WorkerRun
from tuning.runs.begin import begin
from tuning.study.helpers import HelperLost, HelperPool, TrainingRequest

SPACE = SearchSpace([Float("x", 0.0, 1.0, default=0.5), Float("y", 0.0, 1.0, default=0.5)])
RUNNER = TuneRunner(
    objective=climb, search_space=SPACE, metric="weight", mode="max", steps=STEPS, trials=7, algorithm="random",
    scheduler={"name": "pbt", "perturbation_interval": 2}, mlflow=False, placement="spread", slots=4,
)  # fmt: skip


class Deadly(LocalLink):
    """Helpers that die with one trial, again and again."""

    blame: Callable[[int, str], None]

    def send(self, helper: int, request: TrainingRequest, state: object) -> None:
        super().send(helper, request, state)
        request, state, _ = self._working[helper]
        self._working[helper] = request, state, request.number == 3

    def wait(self) -> Sequence[Any]:
        events = super().wait()
        for event in events:
            if isinstance(event, HelperLost):
                self.blame(3, "Timeout (0:00:01)!")
        return events


class Nobody(LocalLink):
    """No helper starts."""

    def wait(self) -> Sequence[Any]:
        raise NoHelpersError


def searched(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: type[LocalLink]) -> RunResult:
    """The run when its worker has such helpers."""
    owned = begin(RUNNER.definition, str(folder))
    owned.lease.release()

    def start(config: Any, number: int, state: Any) -> Any:
        return climb(config, state)

    @contextmanager
    def helpers_of(work: Any, nodes: Any, data: Any, blame: Any, waiting: Any) -> Iterator[HelperPool]:
        link = kind(start, 4)
        link.blame = blame  # type: ignore[attr-defined]  # of those that ask for it
        yield HelperPool(link)

    monkeypatch.setattr(packed, "helpers_of", helpers_of)
    work_batch(WorkerRun.from_owned(owned), 0, lambda _: None, Nodes())
    return RunResult(str(folder))


@pytest.mark.long
def test_a_worker_without_any_helper_trains_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = RUNNER.run(tmp_path / "whole", progress=False, in_process=True)
    assert truth(searched(tmp_path / "nobody", monkeypatch, Nobody)) == truth(whole)
    assert truth(searched(tmp_path / "helped", monkeypatch, LocalLink)) == truth(whole)


def test_a_trial_that_ends_its_helpers_puts_its_study_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (study,) = searched(tmp_path, monkeypatch, Deadly).study_records
    assert study.status == "quarantined"
    assert str(study.reason).startswith("trial 3 has ended its worker 2 times: it ran longer than its time limit")
    assert study.error == "Timeout (0:00:01)!"
