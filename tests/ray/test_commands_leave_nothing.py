"""When a command returns, no process of ours or of Ray's is left, whatever it has started; until then all listen on
loopback only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from builders import definition, objective_definition, write_customers
from chaos import environment
from listening import everywhere, listening

from tuning import TuneRunner
from tuning.serving.promoting import promote_run
from tuning.serving.releases import Releases

SEARCH = ("--progress", "none")
ALGORITHMS = ("--algorithms", "random,sobol", "--seeds", "1")
COMMANDS: dict[str, tuple[str, ...]] = {
    "doctor": ("doctor",),
    "resume": ("resume", "run", "--set", "trials=3", *SEARCH),
    "predict": ("predict", "run", "--customer", "c0000", "--data", "data/c0001.csv"),
    "compare": ("compare", "d.yaml", *ALGORITHMS, "--run-dir", "compared", *SEARCH),
    "demo": ("demo", "demo", *SEARCH),
    "refresh": ("refresh", "shops", "d.yaml", "--storage", ".", "--set", "placement=auto", *SEARCH),
}
ON_RAY = {"doctor", "resume", "compare"}  # of the others that run something forks do the work
SLOW = {"compare", "doctor", "demo", "predict"}


@pytest.mark.parametrize("name", [pytest.param(each, marks=[pytest.mark.slow] * (each in SLOW)) for each in COMMANDS])
def test_no_process_is_left_when_a_command_returns(name: str, tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    resumed = name == "resume"  # of a function, whose worker needs no library of models
    given = objective_definition(tmp_path, trials=2, slots=1) if resumed else definition(tmp_path / "data", trials=2)
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(given))
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "demo.yaml").write_text(yaml.safe_dump({**given, "placement": "auto"}))
    if "run" in COMMANDS[name] or name == "refresh":
        result = TuneRunner(given).run(tmp_path / "run", in_process=True, progress=False)
    if name == "refresh":
        promote_run(result, Releases("shops", tmp_path))
        grown = tmp_path / "data" / "c0000.csv"
        grown.write_text(grown.read_text() + grown.read_text().splitlines()[-1] + "1\n")
    ours = environment() | {"TUNING_TEST": str(tmp_path)}
    command = [sys.executable, "-m", "tuning.cli", *COMMANDS[name]]
    started = subprocess.Popen(
        command, cwd=tmp_path, env=ours, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        seen, listens = dict[int, str](), set[tuple[str, int]]()
        while started.poll() is None:
            seen |= (there := processes(started.pid, tmp_path))
            listens |= listening(there)
            assert everywhere(there) == set()
            try:
                started.communicate(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue
        left, (said, _) = processes(started.pid, tmp_path), started.communicate()
    finally:
        for process in processes(started.pid, tmp_path):
            os.kill(process, signal.SIGKILL)
    assert started.returncode == 0, said[-3000:]
    assert left == {}
    assert any("raylet" in each for each in seen.values()) or name not in ON_RAY, "there was nothing to be ended"
    assert listens or name not in ON_RAY


def processes(session: int, folder: Path) -> dict[int, str]:
    """Command lines by number: of all processes of a session, or that have inherited where they were started."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            inherited = f"TUNING_TEST={folder}".encode() in (entry / "environ").read_bytes().split(b"\0")
            own = inherited or os.getsid(int(entry.name)) == session
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if own and words:  # one that has ended and is still to be waited for has no words
            found[int(entry.name)] = words
    return found
