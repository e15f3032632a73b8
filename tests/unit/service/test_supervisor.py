"""What becomes of a run whose driver ends, is asked to end, or is found again; each driver is a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from chaos import wait_for
from sqlalchemy import update
from supervised import Supervised, gone

from tuning.errors import UnavailableError
from tuning.records.ownership import Owner
from tuning.service.database import connection
from tuning.service.database.connection import Database
from tuning.service.database.runs import Submission
from tuning.service.database.tables import RUNS
from tuning.service.queue.claim import claim
from tuning.service.settings import Team
from tuning.service.states import RunState
from tuning.service.supervisor import launcher
from tuning.service.supervisor.drivers import ORDERS, Drivers, driver_environment

WORKS = "touch begun; while [ ! -e go ]; do sleep 0.05; done"
ENDS_WHEN_ASKED = "trap 'exit 143' TERM; touch begun; while :; do sleep 0.05; done"
#: Asked to end it does not, nor does its child, nor one in a session of its own, as Ray's processes are.
STUBBORN = (
    "trap '' TERM; sleep 1000 & echo $! > child; setsid sh -c 'sleep 1000 & echo $! > apart; wait' & "
    "while [ ! -s apart ]; do sleep 0.05; done; touch begun; while :; do sleep 0.05; done"
)

#: A log says anything.
WORDS_AND_NO_VALUES = (
    "echo 'the copy in MLflow is incomplete: 2 models are missing' >&2; echo 'error: none' >&2; "
    """echo '{"customers": 1, "succeeded": 1}'"""
)


@pytest.mark.parametrize(
    ("script", "state", "reason"),
    [
        ("""echo '{"customers": 3, "succeeded": 3}'""", RunState.FINISHED, "3 of 3 customers have a model"),
        ("""echo '{"customers": 3, "succeeded": 2}'; exit 3""", RunState.FINISHED, "2 of 3 customers have a model"),
        ("exit 4", RunState.FINISHED, ""),
        (
            """echo '{"customers": 3, "succeeded": 3, "not_copied": {"models": 2}}'""",
            RunState.FINISHED,
            "3 of 3 customers have a model; the copy in MLflow lacks 2 models: resume the run once MLflow answers",
        ),
        (WORDS_AND_NO_VALUES, RunState.FINISHED, "1 of 1 customer have a model"),
        ("""echo '{"reason": "`target` is wrong"}'; exit 2""", RunState.FAILED, "`target` is wrong"),
        ("""echo '{"outcome": "refused", "reason": "it is taken"}'; exit 6""", RunState.FAILED, "it is taken"),
        ("exit 5", RunState.QUEUED, "another process runs it (looked at again in 60 s)"),
        ("exit 1", RunState.QUEUED, "its process ended with 1 and said nothing; tried again in 10 s (try 1 of 3)"),
        ("""echo '{"reason": "no space."}'; exit 1""", RunState.QUEUED, "no space; tried again in 10 s (try 1 of 3)"),
        ("kill -KILL $$", RunState.QUEUED, "was killed, such as for want of memory; tried again in 10 s (try 1 of 3)"),
        ("exit 143", RunState.QUEUED, "was ended by SIGTERM, for which nobody has asked here; tried again in 10 s"),
    ],
)
def test_a_drivers_end_decides_what_becomes_of_its_run(
    database: Database, tmp_path: Path, script: str, state: RunState, reason: str
) -> None:
    server = Supervised(database, tmp_path, script)
    run = server.submit()
    server.supervisor.look()
    assert server.get(run).state is RunState.RUNNING
    ended = server.look_until(run, state)
    assert reason in ended.reason
    assert ended.slots == 0
    assert ended.attempts == (1 if "try 1" in ended.reason else 0)


def test_a_run_that_the_machine_fails_is_tried_three_times_with_growing_pauses(
    database: Database, tmp_path: Path
) -> None:
    server = Supervised(database, tmp_path, """echo '{"reason": "it crashes"}'; exit 1""")
    run = server.submit()
    for tries, pause in enumerate((10.0, 60.0, 300.0), 1):
        wait_for(lambda tries=tries: server.look(run).attempts == tries, what=f"try {tries}")
        server.now += pause - 1
        assert server.look(run).state is RunState.QUEUED
        server.now += 1
        assert server.look(run).state is RunState.RUNNING
    failed = server.look_until(run, RunState.FAILED)
    assert failed.reason.startswith("it crashes. It was tried again 3 times.")
    assert server.starts() == 4
    again = server.supervisor.requests.resume(run, "churn", server.now)
    assert again.attempts == 0


def test_a_reason_names_files_as_the_team_does(database: Database, tmp_path: Path) -> None:
    said = f"data: no file matches '{tmp_path}/shops/*.csv'; there is {tmp_path}"
    (tmp_path / "said.json").write_text(json.dumps({"reason": said}))
    server = Supervised(database, tmp_path, f"cat {tmp_path}/said.json; exit 2")
    failed = server.look_until(server.submit(), RunState.FAILED)
    assert failed.reason == f"data: no file matches 'shops/*.csv'; there is {tmp_path.name}"


@pytest.mark.parametrize("moment", ["queued", "claimed", "to be tried again"])
def test_what_a_team_may_not_run_any_more_begins_no_driver(database: Database, tmp_path: Path, moment: str) -> None:
    """The server was started anew with other settings."""
    server = Supervised(database, tmp_path, "exit 1")
    definition = {"data": str(tmp_path / "a.csv"), "target": "y", "metric": "ours.metrics:profit"}
    run = server.supervisor.requests.submit(Submission("churn", "week", definition), server.now).id
    listed = server.settings.model_copy(update={"teams": {"churn": Team(code=("ours.metrics:profit",))}})
    if moment == "claimed":
        claim(database, server.settings, 1, server.now)
    elif moment == "to be tried again":
        server.settings = listed
        server.again()
        wait_for(lambda: server.look(run).attempts == 1, what="the machine's failure")
        server.now += 60
    begun = server.starts()
    server.settings = listed.model_copy(update={"teams": {}})
    server.again().look()
    refused = server.get(run)
    assert (refused.state, refused.slots) == (RunState.FAILED, 0)
    assert refused.reason.startswith("metric: 'ours.metrics:profit' is code that this server's configuration")
    assert server.starts() == begun


@pytest.mark.parametrize(("word", "state"), [("stop", RunState.STOPPED), ("cancel", RunState.CANCELLED)])
def test_a_driver_is_asked_to_end_at_once(database: Database, tmp_path: Path, word: str, state: RunState) -> None:
    server = Supervised(database, tmp_path, ENDS_WHEN_ASKED)
    run = server.begun()
    getattr(server.supervisor.requests, word)(run, "churn", server.now)
    ended = server.look_until(run, state)
    assert ended.reason == f"{state} on request; what was recorded is kept"
    assert [event.state for event in server.runs.events(run)][-2:] == [RunState.STOPPING, state]


def test_a_driver_that_does_not_end_is_killed_after_a_minute_with_all_that_it_has_started(
    database: Database, tmp_path: Path
) -> None:
    server = Supervised(database, tmp_path, STUBBORN)
    run = server.begun()
    server.supervisor.requests.stop(run, "churn", server.now)
    pids = [server.process(run, "driver"), *(int((server.work_of(run) / n).read_text()) for n in ("child", "apart"))]
    for later, _ in ORDERS[:-1]:
        server.later = later + 1
        server.now -= 3600  # a clock that is set back keeps nobody alive
        server.supervisor.look()
        assert server.get(run).state is RunState.STOPPING
        assert not any(gone(pid) for pid in pids)
    server.later = ORDERS[-1][0] + 1
    stopped = server.look_until(run, RunState.STOPPED)
    assert "by SIGKILL" in stopped.reason
    assert all(gone(pid) for pid in pids)


@pytest.mark.long
def test_what_a_driver_leaves_behind_is_ended_before_its_run_is(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, "setsid sh -c 'trap \"\" HUP; echo $$ > left; exec sleep 3' & sleep 0.5")
    run = server.submit()
    server.look_until(run, RunState.FINISHED)
    assert gone(int((server.work_of(run) / "left").read_text()))


def test_a_server_that_was_killed_is_followed_by_one_that_finds_the_driver(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, WORKS)
    run = server.begun()
    driver = server.process(run, "driver")
    for _ in range(3):
        server.again().look()
    assert server.process(run, "driver") == driver
    (server.work_of(run) / "go").touch()
    server.look_until(run, RunState.FINISHED)
    assert server.starts() == 1


def test_a_driver_that_ended_while_there_was_no_server_is_noted_by_the_next(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, WORKS)
    run = server.begun()
    held_by = server.process(run, "launcher")
    (server.work_of(run) / "go").touch()
    wait_for(lambda: gone(held_by))
    server.again().look()
    assert server.get(run).state is RunState.FINISHED
    assert server.starts() == 1


def test_a_server_killed_between_claim_and_start_is_followed_by_one_that_starts(
    database: Database, tmp_path: Path
) -> None:
    server = Supervised(database, tmp_path)
    run = server.submit()
    assert claim(database, server.settings, 4, server.now) is not None
    server.again().look()
    server.look_until(run, RunState.FINISHED)
    assert server.starts() == 1


def test_runs_that_were_claimed_at_one_moment_are_told_apart(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is over before the first one's launcher has begun."""
    slow, go = tmp_path / "slow_launcher.py", tmp_path / "go"
    waits = f"while not os.path.exists({str(go)!r}): time.sleep(0.02)"
    begins = f"runpy.run_path({launcher.__file__!r}, run_name='__main__')"
    slow.write_text(f"import os, runpy, time\n{waits}\n{begins}\n")
    server = Supervised(database, tmp_path, """echo '{"customers": 1, "succeeded": 1}'""", slots=2)
    first = server.submit()
    with monkeypatch.context() as patched:
        patched.setattr(launcher, "__file__", str(slow))
        server.supervisor.look()
    second = server.submit()
    server.look_until(second, RunState.FINISHED)
    assert server.get(first).started == server.get(second).started
    assert (server.look(first).state, server.get(first).attempts) == (RunState.RUNNING, 0)
    go.touch()
    server.look_until(first, RunState.FINISHED)
    assert server.starts() == 2


@pytest.mark.parametrize("ends", ["by itself", "killed", "killed with its launcher"])
def test_what_ray_writes_is_for_its_user_alone_and_ends_with_the_driver(
    database: Database, tmp_path: Path, ends: str
) -> None:
    script = f'mkdir "$RAY_TMPDIR/ray"; stat -c "%a %n" "$RAY_TMPDIR" > ray; {WORKS}'
    server = Supervised(database, tmp_path, script)
    run = server.begun()
    mode, name = (server.work_of(run) / "ray").read_text().split()
    folder = Path(name)
    assert mode == "700"
    assert len(f"{folder}/ray/session_2026-11-28_13-36-30_647228_4194304/sockets/plasma_store") <= 107
    if ends == "by itself":
        (server.work_of(run) / "go").touch()
    if ends == "killed with its launcher":
        os.kill(server.process(run, "launcher"), signal.SIGKILL)
    if ends != "by itself":
        os.kill(server.process(run, "driver"), signal.SIGKILL)
    server.look_until(run, RunState.FINISHED if ends == "by itself" else RunState.QUEUED)
    assert not folder.exists()


def test_of_two_launchers_of_one_claim_one_starts_a_driver(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, WORKS)
    run = server.submit()
    claimed = claim(database, server.settings, 4, server.now)
    assert claimed is not None
    for _ in range(5):
        Drivers(server.settings, server.command).start(claimed)
    wait_for(lambda: server.starts() and server.launchers() == 1, what="four launchers' end")
    assert server.starts() == 1
    (server.work_of(run) / "go").touch()
    server.look_until(run, RunState.FINISHED)
    assert server.starts() == 1


def test_a_driver_whose_launcher_was_killed_is_waited_for(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, WORKS)
    run = server.begun()
    driver = server.process(run, "driver")
    os.kill(server.process(run, "launcher"), signal.SIGKILL)
    server.again().look()
    assert server.get(run).state is RunState.RUNNING
    (server.work_of(run) / "go").touch()
    wait_for(lambda: gone(driver))
    server.supervisor.look()
    again = server.get(run)
    assert (again.state, again.attempts) == (RunState.QUEUED, 1)
    assert "nobody saw it end" in again.reason


def test_a_driver_of_an_earlier_boot_is_not_waited_for(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path)
    run = server.submit()
    claimed = claim(database, server.settings, 4, server.now)
    assert claimed is not None
    folder = server.work_of(run)
    folder.mkdir(parents=True)
    before = asdict(Owner("here", os.getpid(), "another boot", 1))
    (folder / launcher.LAUNCHER).write_text(json.dumps({"launcher": before, "driver": before}))
    server.supervisor.look()
    assert server.get(run).state is RunState.QUEUED
    server.now += 10
    server.look_until(run, RunState.FINISHED)


def test_a_driver_begins_only_when_its_launcher_has_said_who_it_is(tmp_path: Path) -> None:
    (tmp_path / launcher.LAUNCHER).write_text("{}")  # another one was quicker
    command = [sys.executable, "-I", "-S", launcher.__file__, str(tmp_path), "", "host", "machine"]
    assert subprocess.run([*command, "/bin/sh", "-c", "touch begun"], timeout=60).returncode == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == [launcher.LAUNCHER]


def test_a_folder_that_cannot_be_written_is_a_reason_and_the_next_run_is_started(
    database: Database, tmp_path: Path
) -> None:
    server = Supervised(database, tmp_path)
    first = server.submit()
    server.settings.work.mkdir()
    (server.settings.work / first).write_text("in the way")
    second = server.submit()
    server.look_until(second, RunState.FINISHED)
    assert server.get(first).state is RunState.QUEUED
    assert server.get(first).reason.startswith("its process could not be started: ")


@pytest.mark.parametrize("definition", [["no", "mapping"], None])
def test_a_run_whose_row_cannot_be_used_fails_and_the_next_begins(
    database: Database, tmp_path: Path, definition: object
) -> None:
    server = Supervised(database, tmp_path, slots=1)
    bad, good = server.submit(), server.submit()
    with database.write() as connection:
        connection.execute(update(RUNS).where(RUNS.c.id == bad).values(definition=definition))
    server.look_until(good, RunState.FINISHED)
    assert server.get(bad).state is RunState.FAILED
    assert server.get(bad).reason
    assert server.starts() == 1


@pytest.mark.parametrize("content", ["", "[]", '{"driver": {"of": "another version"}}'])
def test_a_damaged_file_of_a_launcher_holds_no_other_run_up(database: Database, tmp_path: Path, content: str) -> None:
    server = Supervised(database, tmp_path)
    run = server.submit()
    assert claim(database, server.settings, 4, server.now) is not None
    folder = server.work_of(run)
    folder.mkdir(parents=True)
    (folder / launcher.LAUNCHER).write_text(content)
    server.look_until(server.submit(), RunState.FINISHED)


def test_the_definition_of_a_driver_has_the_slots_that_its_run_got(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path, WORKS)
    run = server.begun()
    assert yaml.safe_load((server.work_of(run) / "definition.yaml").read_text()) == {"target": "y", "slots": 1}
    (server.work_of(run) / "go").touch()
    server.look_until(run, RunState.FINISHED)


def test_a_database_that_is_locked_leaves_the_drivers_alone(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_S", 0.1)
    impatient = Database(database.url.render_as_string())
    server = Supervised(impatient, tmp_path, WORKS)
    run = server.begun()
    driver = server.process(run, "driver")
    with database.write():
        (server.work_of(run) / "go").touch()
        wait_for(lambda: gone(driver))
        wait_for(lambda: (server.work_of(run) / launcher.EXIT).exists())
        with pytest.raises(UnavailableError, match="locked"):
            server.supervisor.look()
    server.supervisor.look()
    assert server.get(run).state is RunState.FINISHED
    impatient.close()


def test_a_driver_does_not_see_what_is_secret(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TUNING_TOKEN", "PGPASSWORD"):
        monkeypatch.setenv(name, "planted")
    settings = Supervised(database, tmp_path).settings.model_copy(update={"data": ("/a", "s3://bucket/b")})
    environment = driver_environment(settings, "churn")
    assert "planted" not in environment.values()
    monkeypatch.setenv("TUNING_CONFIG", "/config")
    monkeypatch.setenv("PGPASSFILE", "/passwords")
    settings = settings.model_copy(update={"database": "sqlite:////a/service.db", "config": Path("/a/service.yaml")})
    *roots, end = driver_environment(settings, "churn")["TUNING_DATA_ROOTS"].split("\n")
    assert (roots[:2], end) == (["/a", "s3://bucket/b"], "")
    assert {f"!{place}" for place in (tmp_path / "work", tmp_path / "runs", "/config", "/passwords")} < {*roots}
    assert {"!/a/service.db", "!/a/service.db-wal", "!/a/service.yaml"} < {*roots}
    assert "RAY_ADDRESS" not in environment
    assert environment["TUNING_MACHINE_SLOTS"] == "4"  # whose memory all runs share
    without_roots = driver_environment(settings.model_copy(update={"data": ()}), "churn")["TUNING_DATA_ROOTS"]
    root = without_roots.split("\n")[0]  # without any, everything would be allowed
    assert root
    assert not Path(root).exists()


def test_the_thread_starts_what_is_submitted_and_says_what_hinders_it(database: Database, tmp_path: Path) -> None:
    server = Supervised(database, tmp_path)
    server.supervisor.start()
    try:
        run = server.submit()
        server.supervisor.wake()
        wait_for(lambda: server.get(run).state is RunState.FINISHED)
        assert server.supervisor.unhealthy_reason() is None
        server.later = 1000.0
        server.supervisor.wake()
        wait_for(lambda: server.supervisor.unhealthy_reason() is None)
    finally:
        server.supervisor.close()
    server.later = 2000.0
    assert "ago" in (server.supervisor.unhealthy_reason() or "")
