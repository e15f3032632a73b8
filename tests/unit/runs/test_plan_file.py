"""The plan file holds what was resolved: workers read it there, and a resume goes on with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuning import RunResult, TuneRunner
from tuning.errors import OtherFormatError, RunError, StorageError
from tuning.records.ownership import claim_file, newest_term
from tuning.runs.begin import OwnedRun, begin, resume_run
from tuning.runs.deletion import delete_run
from tuning.runs.plan_file import freeze, frozen_definition, read_batch, read_plan
from tuning.storage.run_directory import RunDirectory


def started(folder: Path, **fields: object) -> OwnedRun:
    """A run of three customers: one with trials of its own, one with a search space of its own."""
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "y"]).to_csv(folder / "rows.csv", index=False)
    path = str(folder / "rows.csv")
    data = {"plain": path, "few": {"path": path, "trials": 2}, "ridge": {"path": path, "search_space": "ridge"}}
    values = {"data": data, "target": "y", "task": "regression", "algorithm": "random", "trials": 3, **fields}
    owned = begin(TuneRunner(**values).definition, str(folder / "run"))
    owned.lease.release()
    return owned


def test_what_is_read_is_what_was_planned(tmp_path: Path) -> None:
    owned = started(tmp_path, stop={"target": 0.001})
    recorded = read_plan(owned.directory, owned.term)
    assert recorded.run == owned.run
    assert recorded.spec.to_dict() == owned.plan.spec.to_dict()
    assert sorted(recorded.studies, key=lambda study: study.id) == sorted(
        owned.plan.studies, key=lambda study: study.id
    )
    assert {study.id: study.n_trials for study in recorded.studies} == {"plain": 3, "few": 2, "ridge": 3}
    batches = range(recorded.batches)
    assert [study for n in batches for study in read_batch(owned.directory, owned.term, n).studies] == [
        *recorded.studies
    ]


def test_a_resume_with_more_trials_leaves_a_customer_its_own_number(tmp_path: Path) -> None:
    owned = started(tmp_path)
    again = resume_run(RunDirectory(owned.directory.uri), owned.plan.spec.definition.model_copy(update={"trials": 5}))
    again.lease.release()
    assert {study.id: study.n_trials for study in again.plan.studies} == {"plain": 5, "few": 2, "ridge": 5}
    term = newest_term(again.directory)
    assert term is not None
    assert {study.id: study.n_trials for study in read_plan(again.directory, term).studies}["plain"] == 5


def test_a_run_reads_its_definition_however_many_customers_that_names(tmp_path: Path) -> None:
    owned = started(tmp_path)
    names = [f"{number}-{'n' * 100_000}" for number in range(50)]
    freeze(owned.directory, owned.plan.spec.definition.model_copy(update={"customers": tuple(names)}), owned.term)
    assert [*frozen_definition(owned.directory).customers] == names


def test_a_definition_that_is_not_what_the_run_wrote_is_not_believed(tmp_path: Path) -> None:
    owned = started(tmp_path)
    file = tmp_path / "run" / owned.term.definition
    file.write_text(file.read_text().replace("trials: 3", "trials: 4"))
    with pytest.raises(StorageError, match=r"\.yaml is not what the run has written: its SHA-256 differs"):
        frozen_definition(owned.directory)


@pytest.mark.parametrize("written", [None, 1, 99])
def test_a_run_of_another_format_is_answered_by_one_sentence(written: object, tmp_path: Path) -> None:
    owned = started(tmp_path)
    claimed = tmp_path / "run" / claim_file(1)
    claimed.write_text(json.dumps({**json.loads(claimed.read_text()), "format": written}))
    for ask in (newest_term, resume_run, lambda directory: RunResult(directory.uri).leaderboard(), delete_run):
        with pytest.raises(
            OtherFormatError, match=rf"^[^.]*run was written by another version .* format {written or 1} "
        ):
            ask(RunDirectory(owned.directory.uri))


def test_a_damaged_plan_says_how_to_go_on(tmp_path: Path) -> None:
    owned = started(tmp_path)
    second = resume_run(RunDirectory(owned.directory.uri))
    second.lease.release()
    (tmp_path / "run" / second.term.plan).write_bytes(b"PAR1 torn")
    with pytest.raises(StorageError, match=rf"cannot be read: .* Or remove {second.term.plan}: the run then continues"):
        resume_run(RunDirectory(owned.directory.uri))
    (tmp_path / "run" / second.term.plan).unlink()
    third = resume_run(RunDirectory(owned.directory.uri))
    third.lease.release()
    assert third.plan.studies == second.plan.studies
    for plan in (second.term.plan, third.term.plan):
        (tmp_path / "run" / plan).unlink(missing_ok=True)
    (tmp_path / "run" / owned.term.plan).write_bytes(b"PAR1 torn")
    with pytest.raises(StorageError, match=r"cannot be read: .* Put the run's own file back; without it only a new"):
        resume_run(RunDirectory(owned.directory.uri))


def test_a_run_without_its_plan_is_no_empty_folder(tmp_path: Path) -> None:
    """Whoever has got no further than a term file may begin again; where there are records, these would be lost."""
    owned = started(tmp_path)
    folder, uri = tmp_path / "run", owned.directory.uri
    (folder / owned.term.plan).unlink()
    for read in (RunResult, lambda uri: resume_run(RunDirectory(uri))):
        with pytest.raises(RunError, match=r"has not come as far as its plan.*tuning run DEFINITION --run-dir"):
            read(uri)
    (folder / owned.term.records).mkdir(parents=True)
    (folder / owned.term.records / "trials-b00000.parquet").touch()
    definition = owned.plan.spec.definition
    for again in (
        lambda: RunResult(uri),
        lambda: begin(definition, uri),
        lambda: resume_run(owned.directory, definition),
    ):
        with pytest.raises(RunError, match=rf"the plan of .* is not there any more: .*{owned.term.plan}\. Put it back"):
            again()
