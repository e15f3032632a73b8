"""What the service remembers: states, events, repeated submissions, tokens and schemas."""

from __future__ import annotations

import threading
from itertools import product
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from tuning.errors import DefinitionError, RefusedChangeError, RunError, UnavailableError
from tuning.service.database import schema
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission, SubmittedRun
from tuning.service.database.tables import METADATA
from tuning.service.database.tokens import Role, Tokens
from tuning.service.states import CHANGES, RunState

CHURN = Submission("churn", "week", {"data": "a.csv", "target": "y"})


def submitted(runs: Runs, submission: Submission = CHURN, at: float = 100.0) -> SubmittedRun:
    return runs.submit(submission, "runs", at)


def brought_to(runs: Runs, state: RunState) -> SubmittedRun:
    """A run in a state, by allowed changes only."""
    ways = {
        RunState.QUEUED: [],
        RunState.RUNNING: [RunState.RUNNING],
        RunState.STOPPING: [RunState.RUNNING, RunState.STOPPING],
        RunState.STOPPED: [RunState.STOPPED],
        RunState.FINISHED: [RunState.RUNNING, RunState.FINISHED],
        RunState.FAILED: [RunState.FAILED],
        RunState.CANCELLED: [RunState.CANCELLED],
    }
    run = submitted(runs)
    for to in ways[state]:
        run = runs.change(run.id, to, 200.0, **({"slots": 1} if to is RunState.RUNNING else {}))
    return run


@pytest.mark.parametrize(("before", "to"), list(product(RunState, RunState)), ids=str)
def test_only_the_changes_of_the_table_are_made_and_each_is_an_event(
    database: Database, before: RunState, to: RunState
) -> None:
    runs = Runs(database)
    run = brought_to(runs, before)
    told = len(runs.events(run.id))
    values = {"slots": 1} if to is RunState.RUNNING else {}
    if to in CHANGES[before]:
        assert runs.change(run.id, to, 300.0, "because", **values).state is to
        assert runs.events(run.id)[told:][0].reason == "because"
        return
    with pytest.raises(RefusedChangeError, match=f"is {before} and cannot become {to}"):
        runs.change(run.id, to, 300.0, **values)
    assert runs.get(run.id).state is before
    assert len(runs.events(run.id)) == told


def test_a_repeated_submission_is_the_same_run_and_another_body_is_refused(database: Database) -> None:
    runs = Runs(database)
    once = Submission("churn", "week", {"trials": 3}, key="k", digest="a")
    first = runs.submit(once, "runs", 100.0)
    assert runs.submit(once, "runs", 101.0) == first
    with pytest.raises(RefusedChangeError, match="another body"):
        runs.submit(Submission("churn", "week", {"trials": 4}, key="k", digest="b"), "runs", 102.0)
    other = runs.submit(Submission("credit", "week", {}, key="k", digest="b"), "runs", 103.0)
    assert other.id != first.id


def test_twenty_threads_that_submit_with_one_key_make_one_run(database: Database) -> None:
    runs, made = Runs(database), list[str]()
    once = Submission("churn", "week", {}, key="k", digest="a")
    threads = [threading.Thread(target=lambda: made.append(runs.submit(once, "runs", 1.0).id)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 20
    assert len(set(made)) == 1


def test_pages_hold_every_run_once_the_newest_first(database: Database) -> None:
    runs = Runs(database)
    made = [submitted(runs, at=100.0 + number // 2).id for number in range(7)]
    found, before = list[str](), None
    while page := runs.page("churn", before=before, limit=3):
        found += [run.id for run in page]
        before = (page[-1].submitted, page[-1].id)
    assert sorted(found) == sorted(made)
    assert [runs.get(run).submitted for run in found] == sorted((100 + n // 2 for n in range(7)), reverse=True)


def test_what_a_process_has_told_is_kept_whatever_is_in_it(database: Database) -> None:
    """A name of a file may be no text; PostgreSQL takes no NUL, and no answer half of a pair."""
    runs = Runs(database)
    run = brought_to(runs, RunState.RUNNING)
    outcome = {"leaking": {"a\0b": ["\udcff.csv", 1]}}
    ended = runs.change(run.id, RunState.FAILED, 300.0, "\udcff\0.csv is a link", outcome=outcome)
    assert ended.reason == "\\udcff\\x00.csv is a link"
    assert ended.outcome == {"leaking": {"a\\x00b": ["\\udcff.csv", 1]}}
    assert runs.events(run.id)[-1].reason == ended.reason


def test_a_database_that_anybody_begins_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "service.db"
    made = Database(f"sqlite:///{file}")
    schema.upgrade(made)
    with made.read():
        modes = {each.name: each.stat().st_mode & 0o077 for each in file.parent.iterdir()}
    made.close()
    assert modes == dict.fromkeys(("service.db", "service.db-wal", "service.db-shm"), 0)


def test_only_a_run_that_has_ended_is_deleted_with_its_events(database: Database) -> None:
    runs = Runs(database)
    run = submitted(runs)
    with pytest.raises(RefusedChangeError, match="Cancel it first"):
        runs.delete(run.id)
    runs.change(run.id, RunState.CANCELLED, 200.0)
    runs.delete(run.id)
    assert runs.events(run.id) == []


def test_a_token_is_found_by_its_text_alone_and_is_stored_nowhere(database: Database, tmp_path: Path) -> None:
    tokens = Tokens(database)
    token = tokens.create("churn", Role.SUBMIT, "cron", 100.0, expires=200.0)
    holder = tokens.holder(token)
    assert holder is not None
    assert (holder.team, holder.role, holder.valid(199.0), holder.valid(200.0)) == ("churn", Role.SUBMIT, True, False)
    assert tokens.holder(token[:-1]) is None
    tokens.revoke("churn", "cron", 150.0)
    again = tokens.holder(token)
    assert again is not None
    assert not again.valid(160.0)
    database.close()
    for file in tmp_path.iterdir():
        assert token.encode() not in file.read_bytes()


def test_the_name_of_a_token_is_given_again_once_it_has_ended(database: Database) -> None:
    tokens = Tokens(database)
    first = tokens.create("churn", Role.SUBMIT, "cron", 100.0, expires=200.0)
    with pytest.raises(DefinitionError, match="has a token 'cron' already"):
        tokens.create("churn", Role.READ, "cron", 150.0)
    second = tokens.create("churn", Role.READ, "cron", 250.0)
    tokens.revoke("churn", "cron", 260.0)
    third = tokens.create("churn", Role.READ, "cron", 270.0)
    assert [tokens.holder(token) is not None for token in (first, second, third)] == [False, False, True]


def test_roles_include_the_ones_before() -> None:
    assert [role.includes(Role.SUBMIT) for role in (Role.READ, Role.SUBMIT, Role.ADMIN)] == [False, True, True]


@pytest.mark.parametrize("team", ["", "A", "a/b", "../x", "a" * 64, "-a"])
def test_a_teams_name_fits_into_a_path(database: Database, team: str) -> None:
    with pytest.raises(DefinitionError, match="small letters"):
        Tokens(database).create(team, Role.READ, "x", 1.0)


def test_the_migrations_make_the_tables_of_the_code(database: Database) -> None:
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    schema.upgrade(database)  # again: nothing to do


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(RunError, match="another version of this program"):
        schema.upgrade(database)


@pytest.mark.parametrize("url", ["nonsense", "mysql://x/y", "postgresql+nodriver://x/y"])
def test_a_url_that_is_no_database_is_refused(url: str) -> None:
    with pytest.raises(DefinitionError, match="--database"):
        Database(url)


def test_a_database_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(UnavailableError, match="cannot be used"), Database(f"sqlite:///{tmp_path}/folder.db").read():
        pass
