"""A submitted run is deleted with its directory, unless a process still works on that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuning.errors import MissingError, RefusedChangeError
from tuning.records.lease import Lease
from tuning.records.ownership import claim
from tuning.service.database.runs import Submission
from tuning.service.service import Service
from tuning.serving.champion import Champion, table_of
from tuning.serving.release import PROMOTE, Release
from tuning.serving.releases import Releases
from tuning.storage.run_directory import RunDirectory


def test_a_run_is_deleted_once_no_process_works_on_it(service: Service) -> None:
    run = service.requests.submit(Submission("churn", "week", {"target": "y"}), 1.0)
    ended = service.requests.cancel(run.id, "churn", 2.0)
    directory = RunDirectory(run.run_directory)
    with Lease(directory, claim(directory, 1, (), 1, 0.0)).hold():
        with pytest.raises(RefusedChangeError, match="a process still works on run") as refused:
            service.delete(ended)
        assert run.run_directory not in str(refused.value)
        assert service.runs.get(run.id) == ended
    directory.write("records/1.parquet", b"x")
    service.delete(ended)
    assert not Path(run.run_directory).exists()
    with pytest.raises(MissingError):
        service.runs.get(run.id)


def test_what_a_run_has_left_that_never_began_goes_too(service: Service) -> None:
    run = service.requests.submit(Submission("churn", "week", {"target": "y"}), 1.0)
    ended = service.requests.cancel(run.id, "churn", 2.0)
    RunDirectory(run.run_directory).write("log.txt", b"x")
    service.delete(ended)
    assert not Path(run.run_directory).exists()


def test_a_run_that_champions_need_is_not_deleted(service: Service, tmp_path: Path) -> None:
    run = service.requests.submit(Submission("churn", "week", {"target": "y"}), 1.0)
    ended = service.requests.cancel(run.id, "churn", 2.0)
    directory, releases = RunDirectory(run.run_directory), Releases("churn", tmp_path / "champions of churn")
    directory.write("plan/1.parquet", b"x")
    served = Champion(*("acme", "own", releases.reference(directory), "acme", "models/acme", "0" * 64, None, 60, 1))
    releases.place(Release(1, None, PROMOTE), table_of([served]))
    with pytest.raises(RefusedChangeError, match="releases of champions needs models of run") as refused:
        service.delete(ended)
    assert run.run_directory not in str(refused.value)
    assert directory.read("plan/1.parquet") == b"x"
