"""What the process that drives a run on Ray loads, and what it leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from builders import definition, write_customers
from chaos import environment, wait_for

from tuning import RunResult, TuneRunner
from tuning.runs.outcome_file import read_outcome
from tuning.storage.run_directory import RunDirectory

PROCESSES = """
import os, signal, sys, threading, time
from pathlib import Path
from tuning import TuneRunner
from tuning.errors import TuningError

def processes(name=b""):
    found = {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if (said := file.read_bytes()) and said.startswith(name) and ours(int(file.parent.name)):
                found[file.parent.name] = True
        except OSError:
            pass
    return list(found)

def ours(pid):
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return parent == os.getpid() or (parent > 1 and ours(parent))
"""
CELLS = """
runner = TuneRunner.from_yaml("d.yaml")
try:
    TuneRunner.from_yaml("d.yaml", target="none").run("refused", progress=False)
except TuningError:
    assert "ray" not in sys.modules
sys.ps1 = ">>> "
assert runner.run("run", progress=False, background=True).wait().summary()["succeeded"] == 2
assert "mlflow" not in sys.modules
assert "RAY_TUNE_CALLBACKS" not in os.environ
while not processes(b"ray::IDLE"):  # what workers without work are called
    time.sleep(0.1)
ready = processes(b"ray::IDLE")
TuneRunner(
    objective="trials.py:pids", search_space={"x": {"type": "float", "low": 0, "high": 1}}, metric="loss", mode="min",
    trials=2, mlflow=False, placement="packed",
).run("second", progress=False)
assert {*Path("pids").read_text().split()} <= {*ready}, "processes that stood ready do the work of the second cell"
print(*processes())
"""
TRIALS = """
import os

def pids(config):
    with open("pids", "a") as file:
        print(os.getpid(), file=file)
    return config["x"]
"""
INTERRUPTED = """
from tuning.errors import RunInterrupted

def press_twice():
    while not processes():
        time.sleep(0.01)
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

threading.Thread(target=press_twice, daemon=True).start()
try:
    TuneRunner.from_yaml("d.yaml").run("run", progress=False)
except RunInterrupted:
    print(*processes())
"""


@pytest.mark.slow
def test_a_run_on_ray_loads_no_mlflow_and_leaves_workers_for_the_next_cell(tmp_path: Path) -> None:
    """Beside the cell, too. Before it is refused, it loads no Ray; with its process, all of Ray ends."""
    processes = _shown(tmp_path, CELLS)
    assert len(processes) > 5  # of Ray
    wait_for(lambda: not any(Path("/proc", pid).exists() for pid in processes), 60, what="the end of Ray")


def test_of_a_ray_that_is_interrupted_while_it_starts_nothing_is_left(tmp_path: Path) -> None:
    """Also where the process goes on, as a notebook does."""
    assert _shown(tmp_path, INTERRUPTED) == []


def _shown(folder: Path, script: str) -> list[str]:
    write_customers(folder / "data", 2)
    (folder / "trials.py").write_text(TRIALS)
    (folder / "d.yaml").write_text(yaml.safe_dump(definition(folder / "data", trials=2, slots=1)))
    command = [sys.executable, "-c", PROCESSES + script]
    ended = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


EXITS = """
import os

from sklearn.metrics import mean_absolute_error


def score(y_true, y_pred):
    if max(y_true) == 99:
        os._exit(0)
    return mean_absolute_error(y_true, y_pred)
"""


@pytest.mark.slow
def test_a_quiet_exit_costs_its_customer_alone_and_of_ray_nothing_is_left(tmp_path: Path) -> None:
    """In forks first, and then on Ray, whose processes have ended when the command has.

    Of a metric here: chaos/test_process_ends.py has all code of a user, and every way to end.
    """
    write_customers(tmp_path / "data", 3)
    file = tmp_path / "data" / "c0000.csv"
    file.write_text(file.read_text() + "0,0,0,99\n" * 5)
    (tmp_path / "mine.py").write_text(EXITS)
    given = definition(Path("data"), trials=2, placement="auto", metric="mine.py:score", mode="min")
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(given))
    command = [sys.executable, "-m", "tuning.cli", "run", "d.yaml", "--run-dir", "run", "--progress", "none"]
    ours = {"TUNING_TEST": str(tmp_path)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment() | ours, capture_output=True, text=True)
    assert _left(tmp_path) == []
    assert ended.returncode == 3, ended.stderr
    board = RunResult(tmp_path / "run").leaderboard().set_index("customer")
    assert dict(board["status"]) == {"c0000": "quarantined", "c0001": "ok", "c0002": "ok"}
    assert "has ended its worker 2 times" in board["reason"]["c0000"]


KILLS_HEAD = """
import os, signal
from pathlib import Path

def kills(config):
    if config["x"] > 0 and not Path("killed").exists():
        Path("killed").touch()
        driver = parent(os.getppid())
        for child in Path(f"/proc/{driver}/task/{driver}/children").read_text().split():
            if b"gcs_server" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)
    return config["x"]

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
"""


def test_a_ray_whose_head_is_killed_ends_the_run_with_a_sentence_and_a_resume_goes_on(tmp_path: Path) -> None:
    """Ray itself would end the process after a minute, with words of its own."""
    (tmp_path / "mine.py").write_text(KILLS_HEAD)
    space = {"x": {"type": "float", "low": -1.0, "high": 1.0, "default": -0.5}}
    given = {"objective": "mine.py:kills", "search_space": space, "metric": "loss", "mode": "min", "trials": 6}
    given |= {"placement": "packed", "mlflow": False, "report": False, "slots": 1}
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(given))
    command = [sys.executable, "-m", "tuning.cli", "run", "d.yaml", "--run-dir", "run", "--progress", "none"]
    command += ["--output", "json"]
    ours = environment() | {"TUNING_TEST": str(tmp_path)}
    ended = subprocess.run(command, cwd=tmp_path, env=ours, capture_output=True, text=True)
    wait_for(lambda: _left(tmp_path) == [], 10, what="the end of Ray's agents, which look for their Ray for a minute")
    assert ended.returncode == 1
    assert ended.stderr.strip().startswith("error: the head of this run's Ray (gcs_server) has ended")
    assert ended.stderr.endswith(f"Resume with: tuning resume {tmp_path / 'run'}\n")
    outcome = read_outcome(RunDirectory(tmp_path / "run"))
    assert outcome is not None
    assert (outcome["state"], outcome["exit_code"], outcome["code"]) == ("failed", 1, "head_lost")
    assert json.loads(ended.stdout) == {name: outcome[name] for name in json.loads(ended.stdout)}  # who has started it
    result = TuneRunner.resume(tmp_path / "run", in_process=True, progress=False)
    assert len(result.trial_records) == 6


def _left(folder: Path) -> list[bytes]:
    """The command lines of all processes that were started for a folder; one that has ended has none."""
    found = [pid for pid in Path("/proc").glob("[0-9]*") if str(folder).encode() in _read(pid / "environ")]
    return [words for pid in found if (words := _read(pid / "cmdline"))]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # the process has ended, or is somebody else's
        return b""
