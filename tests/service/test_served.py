"""`tuning serve` as a process, asked by the client and the commands."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

import pandas as pd
import pytest
from chaos import wait_for
from commands import tuning
from served_folder import ServedFolder

from tuning.errors import DefinitionError, MissingError, NotAllowedError, RefusedChangeError
from tuning.service.client import TuningClient
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs
from tuning.service.states import RunState


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    made = ServedFolder(tmp_path_factory.mktemp("served"), "--mlflow", "none")
    (made.folder / "data" / "tiny.csv").write_text("a,b,c,y\n1,2,3,4\n")
    yield made
    assert made.end() == 0


@pytest.fixture
def client(served: ServedFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[TuningClient]:
    monkeypatch.setenv("TUNING_CONFIG", served.environment["TUNING_CONFIG"])
    with TuningClient(served.url) as made:  # it finds the token
        yield made


@pytest.fixture(scope="module")
def submitted(served: ServedFolder) -> subprocess.CompletedProcess[str]:
    """A command that has waited for its run."""
    return served.command("submit", str(served.definition), "--server", served.url, "--key", "once", "--wait")


@pytest.mark.usefixtures("client")
def test_submit_and_wait_ends_as_run_does(served: ServedFolder, submitted: subprocess.CompletedProcess[str]) -> None:
    done = submitted
    assert done.returncode == 3, done.stderr  # a customer has no model
    assert done.stdout.splitlines() == ["queued", "running", "finished 3 of 4 customers have a model"]
    assert f"more: {served.url}/runs/" in done.stderr
    (run,) = json.loads(tuning("status", "--server", served.url, "--output", "json").stdout)
    assert (run["state"], run["name"]) == ("finished", "shops")
    head, row = tuning("status", "--server", served.url).stdout.splitlines()
    assert head.split() == ["run", "name", "submitted", "(UTC)", "state", "reason"]
    assert row.split()[:2] == [run["id"], "shops"]
    assert tuning("status", "--server", served.url, "--state", "queued").stderr.startswith("no run is queued; ")
    wrong = tuning("submit", served.definition, "--server", served.url, "--wait", "--set", "target=z")
    assert wrong.exit_code == 2
    assert "no customer has a column 'z'" in wrong.stdout
    assert str(served.folder) not in wrong.stdout


def test_the_client_submits_once_waits_and_reads_the_leaderboard(
    served: ServedFolder, client: TuningClient, submitted: subprocess.CompletedProcess[str]
) -> None:
    run = client.submit(served.definition, key="once")
    assert f"{served.url}/runs/{run.id}" in submitted.stderr  # the command's
    states = [event.data["state"] for event in run.events() if event.kind == "state"]
    assert states == ["queued", "running", "finished"]
    ended = run.wait(60)
    assert ended.state is RunState.FINISHED
    board = ended.leaderboard()
    assert sorted(board["customer"]) == ["c0000", "c0001", "c0002", "tiny"]
    shown = run._repr_html_()
    assert "finished" in shown
    assert "tiny" in shown
    assert "rmse" not in shown
    assert "r2, larger is better" in shown
    rows = pd.read_csv(served.folder / "data" / "c0000.csv").drop(columns="y")[:3]
    predicted = ended.predict(rows.set_axis([7, 8, 9]), "c0000")
    assert list(predicted.index) == [7, 8, 9]
    assert list(predicted["prediction"]) == pytest.approx(list(ended.model("c0000").predict(rows)))
    with pytest.raises(RefusedChangeError, match="finished"):
        ended.stop()


def test_the_first_answer_after_a_runs_end_has_its_result(client: TuningClient, served: ServedFolder) -> None:
    run = client.submit(served.definition, name="looked at", trials=20)
    for event in run.events():
        if event.kind != "state":
            with contextlib.suppress(RefusedChangeError, MissingError):  # before its first customer
                run.leaderboard()  # one of a running run, which may be kept for a while
    ended = client.run(run.id)
    assert ended.progress is not None
    board = run.leaderboard()
    assert ended.state is RunState.FINISHED
    assert board["trials"].sum() == ended.progress["done_trials"] == 3 * 20
    assert set(board.loc[board["reason"] == "", "customer"]) == {"c0000", "c0001", "c0002"}


@pytest.mark.slow
def test_a_stopped_run_goes_on_where_it_was(served: ServedFolder, client: TuningClient) -> None:
    run = client.submit(served.definition, name="stopped", trials=300)
    wait_for(lambda: client.run(run.id).progress is not None, 120)
    run.stop()
    assert run.wait(75).state is RunState.STOPPED
    assert run.resume().wait(240).state is RunState.FINISHED
    assert "finished" in run._repr_html_()  # asked for while the run waited, shown as it is now


def test_what_is_wrong_is_said_as_errors_of_ours(served: ServedFolder, client: TuningClient) -> None:
    with pytest.raises(DefinitionError, match="trials"):
        client.submit({"data": "data/*.csv", "target": "y", "trials": 0})
    with pytest.raises(MissingError, match="no run"):
        client.run("0" * 24)
    with TuningClient(served.url, token="nonsense") as stranger, pytest.raises(NotAllowedError) as unknown:
        list(stranger.runs())
    assert "no such token" in str(unknown.value)
    assert "Set TUNING_TOKEN" in str(unknown.value)
    refused = tuning("status", "0", "--server", served.url)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: there is no run")


def test_a_schedule_is_told_listed_and_ended(served: ServedFolder, client: TuningClient) -> None:
    at = ("--server", served.url)
    options = ("--schedule", "0 3 * * 1", "--time-zone", "Europe/Berlin", "--set", "name=weekly")
    done = tuning("submit", served.definition, *options, *at)
    run, name = done.stdout.split()[:2]
    client.run(run).cancel()
    (found,) = client.schedules()
    assert (name, found["name"], client.run(run).schedule) == ("weekly", "weekly", found["id"])
    assert f"UTC, then by '0 3 * * 1' in Europe/Berlin (schedule {found['id']})" in done.stderr
    head, row = tuning("schedule", "list", *at).stdout.splitlines()
    assert head.split()[:3] == ["schedule", "name", "cron"]
    assert row.split()[:2] == [found["id"], "weekly"]
    assert tuning("schedule", "end", found["id"], *at).exit_code == 0
    assert tuning("schedule", "list", *at).stderr.startswith("no schedule; ")
    again = tuning("schedule", "end", found["id"], *at)
    assert (again.exit_code, again.stderr.startswith("error: there is no schedule")) == (1, True)


def test_a_client_hears_of_every_change_once_also_when_the_server_is_killed_and_follows_itself(
    served: ServedFolder, client: TuningClient
) -> None:
    run, heard, begun = (
        client.submit(served.definition, name="heard", trials=30_000, slots=1),
        list[str](),
        threading.Event(),
    )

    def listen() -> None:
        for event in run.events():
            if event.kind == "state":
                heard.append(event.id)
                if event.data["state"] == "running":
                    begun.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert begun.wait(120)
    before = {each.id for each in client.runs()}
    served.end(signal.SIGKILL)
    database = Database(served.database)
    Runs(database).change(run.id, RunState.STOPPING, time.time(), ending="stopped", stop_asked=time.time())
    served.start()
    assert {each.id for each in client.runs()} == before
    listener.join(240)
    told = Runs(database).events(run.id)
    assert [event.state for event in told] == ["queued", "running", "stopping", "stopped"]
    assert heard == [str(event.id) for event in told]
    database.close()
