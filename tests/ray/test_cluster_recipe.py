"""The recipe of docs/cluster.md as it is written, on a machine where Ray ran before and has left a token."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from builders import write_customers
from chaos import wait_for
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
    temp = f"/tmp/cluster-{port}"  # sockets need a short path
    head = [*(part.replace("6379", str(port)) for part in head), f"--num-cpus={CPUS - 1}", "--include-dashboard=false"]
    other = [part.replace("HEAD:6379", f"127.0.0.1:{port}") for part in other]
    started: list[subprocess.Popen[str]] = []
    try:
        for command in ([*head, f"--temp-dir={temp}"], [*other, "--num-cpus=1"]):
            # No RAY_AUTH_MODE for the head: this is how Ray takes a token of its own accord.
            environment = node if command[2] == "--head" else with_token
            log = (home / f"node-{len(started)}").open("w+")
            started.append(subprocess.Popen([*command, *small], env=environment, stdout=log, stderr=log))
            wait_for(lambda log=log: "Ray runtime started" in Path(log.name).read_text(), 120, "a node")
        yield {**node, "RAY_ADDRESS": f"127.0.0.1:{port}"}
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
        shutil.rmtree(temp, ignore_errors=True)


COMMANDS = """
import json, sys
from click.testing import CliRunner
from tuning.cli.program import main

for command in json.loads(sys.argv[1]):
    answer = CliRunner().invoke(main, command)
    print("ANSWER", json.dumps([answer.exit_code, answer.output]))
"""


def tuning(environment: dict[str, str], folder: Path, *commands: list[str]) -> list[tuple[int, str]]:
    """The exit code and the output of each command, one after the other in a new process: Ray reads a token once."""
    start = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    done = subprocess.run(start, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    answers = [json.loads(text) for text in re.findall(r"^ANSWER (.*)$", done.stdout, flags=re.M)]
    assert len(answers) == len(commands), done.stderr
    return [(code, output) for code, output in answers]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a definition that names no `slots`."""
    write_customers(tmp_path / "customers", 1)
    fields = {"data": "customers/*.csv", "target": "y", "search_space": "ridge", "trials": 2, "mlflow": False}
    (tmp_path / "churn.yaml").write_text(yaml.safe_dump(fields))
    return tmp_path


@pytest.mark.slow
def test_a_refused_token_is_named_as_that_at_once(cluster: dict[str, str], folder: Path) -> None:
    for code, output in tuning(cluster, folder, ["doctor"], ["plan", "churn.yaml"], ["run", "churn.yaml"]):
        assert code == 1
        assert REFUSED in output
        assert "busy" not in output
    assert not (folder / "runs").exists()


def test_with_the_token_every_node_is_looked_at_and_gives_its_slots(cluster: dict[str, str], folder: Path) -> None:
    run = ["run", "churn.yaml", "--run-dir", "runs/week", "--progress=none"]
    doctor, plan, ran = tuning({**cluster, "RAY_AUTH_MODE": "token"}, folder, ["doctor"], ["plan", "churn.yaml"], run)
    assert f"2 nodes, {CPUS} CPUs" in doctor[1]
    assert "\nwrong" not in doctor[1], doctor[1]
    assert f"on {CPUS} slots" in plan[1]
    assert ran[0] == 0, ran[1]
