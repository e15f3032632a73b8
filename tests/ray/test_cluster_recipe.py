"""The recipe of docs/cluster.md as it is written, on a machine where Ray ran before and has left a token."""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from builders import write_customers
from paths import ROOT

REFUSED = "refuses the token of this process, or it has sent none. Set RAY_AUTH_MODE=token"
CPUS = 3  # of the cluster: not those of a machine that tests run on


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a node: a head and a second node that were started by the page's commands."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("home")
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text(secrets.token_hex(32))
    node = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"}
    node |= {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    page = (ROOT / "docs" / "cluster.md").read_text()
    head, other = (command.split() for command in re.findall(r"`(ray start [^`]+)`", page))
    with_token = {**node, "RAY_AUTH_MODE": "token"}
    small = ["--object-store-memory=80000000", "--block"]
    temp = f"--temp-dir=/tmp/cluster-{port}"  # sockets need a short path
    head = [*(part.replace("6379", str(port)) for part in head), f"--num-cpus={CPUS - 1}", "--include-dashboard=false"]
    other = [part.replace("HEAD:6379", f"127.0.0.1:{port}") for part in other]
    started = []
    try:
        for command in ([*head, temp], [*other, "--num-cpus=1"]):
            # No RAY_AUTH_MODE for the head: this is how Ray takes a token of its own accord.
            environment = node if command[2] == "--head" else with_token
            quiet = subprocess.DEVNULL
            started.append(subprocess.Popen([*command, *small], env=environment, stdout=quiet, stderr=quiet))
            node_count = (
                f"import ray; ray.init(address='127.0.0.1:{port}', log_to_driver=False); print(len(ray.nodes()))"
            )
            for _ in range(60):
                answer = subprocess.run(
                    [sys.executable, "-c", node_count], env=with_token, capture_output=True, text=True
                )
                if answer.stdout.strip() == str(len(started)):
                    break
        yield {**node, "RAY_ADDRESS": f"127.0.0.1:{port}"}
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def tuning(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tuning.cli", *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a definition that names no `slots`."""
    write_customers(tmp_path / "customers", 2)
    fields = {"data": "customers/*.csv", "target": "y", "search_space": "ridge", "trials": 2, "mlflow": False}
    (tmp_path / "churn.yaml").write_text(yaml.safe_dump(fields))
    return tmp_path


def test_a_refused_token_is_named_as_that_at_once(cluster: dict[str, str], folder: Path) -> None:
    for command in (["doctor"], ["plan", "churn.yaml"], ["run", "churn.yaml"]):
        answer = tuning(cluster, folder, *command)
        assert answer.returncode == 1
        assert REFUSED in answer.stdout + answer.stderr, command
        assert "busy" not in answer.stdout + answer.stderr
    assert not (folder / "runs").exists()


def test_with_the_token_every_node_is_looked_at_and_gives_its_slots(cluster: dict[str, str], folder: Path) -> None:
    told = {**cluster, "RAY_AUTH_MODE": "token"}
    answer = tuning(told, folder, "doctor")
    assert f"2 nodes, {CPUS} CPUs" in answer.stdout
    assert "\nwrong" not in answer.stdout, answer.stdout
    assert f"on {CPUS} slots" in tuning(told, folder, "plan", "churn.yaml").stdout
    run = tuning(told, folder, "run", "churn.yaml", "--run-dir", "runs/week", "--progress=none")
    assert run.returncode == 0, run.stderr
