"""`tuning serve` as a process, asked by the client and the commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from builders import write_customers
from chaos import wait_for

from tuning.errors import DefinitionError, MissingError, NotAllowedError
from tuning.service.client import TuningClient
from tuning.service.states import RunState


class ServedFolder:
    """A server on loopback with its data, and the environment in which its user's commands find their token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_customers(folder / "data", 3)
        (folder / "data" / "tiny.csv").write_text("a,b,c,y\n1,2,3,4\n")
        self.definition = folder / "shops.yaml"
        given = {"data": "data/*.csv", "target": "y", "metric": "r2", "search_space": "ridge", "trials": 2}
        self.definition.write_text(yaml.safe_dump({**given, "split": {"folds": 2}}))
        self.environment = {**os.environ, "TUNING_CONFIG": str(folder / "config")}
        self.process, self.url = self.start()

    def start(self) -> tuple[subprocess.Popen[str], str]:
        with (self.folder / "served.txt").open("a") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "tuning.cli", "serve", "--port", "0", "--slots", "2"],
                cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tuning.cli", *words], env=self.environment, capture_output=True, text=True,
            check=False, timeout=240,
        )  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    made = ServedFolder(tmp_path_factory.mktemp("served"))
    yield made
    made.process.send_signal(signal.SIGTERM)
    made.process.wait(60)


@pytest.fixture
def client(served: ServedFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[TuningClient]:
    monkeypatch.setenv("TUNING_CONFIG", served.environment["TUNING_CONFIG"])
    with TuningClient(served.url) as made:
        yield made


def test_submit_and_wait_ends_as_run_does(served: ServedFolder) -> None:
    done = served.command("submit", str(served.definition), "--server", served.url, "--wait")
    assert done.returncode == 3, done.stderr  # a customer has no model
    assert "3 of 4 customers have a model" in done.stdout
    listed = served.command("status", "--server", served.url, "--output", "json")
    (run,) = json.loads(listed.stdout)
    assert (run["state"], run["name"]) == ("finished", "shops")


def test_the_client_submits_once_waits_and_reads_the_leaderboard(served: ServedFolder, client: TuningClient) -> None:
    run = client.submit(served.definition, key="once", name="by-client")
    assert client.submit(served.definition, key="once", name="by-client").id == run.id
    states = [event.data["state"] for event in client.events(run.id) if event.kind == "state"]
    assert states == ["queued", "running", "finished"]
    ended = run.wait(60)
    assert ended.state is RunState.FINISHED
    board = ended.leaderboard()
    assert sorted(board["customer"]) == ["c0000", "c0001", "c0002", "tiny"]
    assert "by-client" in ended._repr_html_()
    assert "tiny" in ended._repr_html_()


def test_a_stopped_run_goes_on_where_it_was(served: ServedFolder, client: TuningClient) -> None:
    run = client.submit(served.definition, name="stopped", trials=300)
    wait_for(lambda: client.run(run.id).progress is not None, 120)
    run.stop()
    assert client.wait(run.id, 75).state is RunState.STOPPED
    assert client.resume(run.id).wait(240).state is RunState.FINISHED


def test_what_is_wrong_is_said_as_errors_of_ours(served: ServedFolder, client: TuningClient) -> None:
    with pytest.raises(DefinitionError, match="trials"):
        client.submit({"data": "data/*.csv", "target": "y", "trials": 0})
    with pytest.raises(MissingError, match="no run"):
        client.run("0" * 24)
    with TuningClient(served.url, token="nonsense") as stranger, pytest.raises(NotAllowedError, match="not valid"):
        list(stranger.runs())
    refused = served.command("status", "0", "--server", served.url)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: there is no run")


def test_a_second_server_on_the_database_is_refused_and_one_after_a_kill_is_not(
    served: ServedFolder, client: TuningClient
) -> None:
    second = served.command("serve", "--port", "0", "--database", f"sqlite:///{served.folder}/service/service.db")
    assert second.returncode == 1
    assert str(served.process.pid) in second.stderr
    before = {run.id for run in client.runs()}
    served.process.kill()
    served.process.wait(60)
    served.process, served.url = served.start()
    with TuningClient(served.url, token=kept(served)) as again:
        assert {run.id for run in again.runs()} == before


def kept(served: ServedFolder) -> str:
    """The first token, which belongs to the server's database whatever its port."""
    tokens = json.loads((served.folder / "config" / "service-tokens.json").read_text())
    (token,) = tokens.values()
    return str(token)
