"""A built wheel in a new environment, far from this repository and without a compiler. Needs a package index."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_every_command_works_with_the_wheel_alone(tmp_path: Path) -> None:
    """`--only-binary`: nothing is compiled, or the install fails. Prints the seconds and the size."""
    environment, python = tmp_path / "environment", tmp_path / "environment" / "bin" / "python"
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def call(*command: str | Path, code: int = 0) -> str:
        started = time.monotonic()
        done = subprocess.run([*map(str, command)], cwd=tmp_path, env=kept, capture_output=True, text=True)
        print(f"{time.monotonic() - started:.0f} s: {' '.join(Path(word).name for word in map(str, command[:3]))}")
        assert done.returncode == code, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def tuning(*arguments: str | Path, code: int = 0) -> str:
        return call(environment / "bin" / "tuning", *arguments, code=code)

    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    call(Path(sys.base_prefix, "bin", "python3"), "-m", "venv", environment)
    constraints = ROOT / "constraints.txt"
    call(python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "-c", constraints, wheel)
    size = sum(path.stat().st_size for path in environment.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{size / 1e9:.1f} GB")

    board = tuning("demo", "--output", "csv", code=3)
    assert sum(line.split(",")[1] == "ok" for line in board.splitlines()[1:]) == 40
    (run,) = (tmp_path / "demo" / "runs").iterdir()
    definition, rows = tmp_path / "demo" / "demo.yaml", tmp_path / "demo" / "customers" / "midtown-center.csv"
    assert "target: minutes" in tuning("init", rows, "--target", "minutes")
    assert "43" in tuning("plan", definition)
    assert "broken-three-rows" in tuning("validate", definition, "--all", code=3)
    changes = ("--set", "trials=2", "--set", "search_space=ridge", "--set", "baseline=null")
    quick = ("--customer", "midtown-center", *changes)
    tuning("run", definition, *quick, "--run-dir", "one", "--in-process")
    tuning("resume", "one", "--in-process", "--set", "trials=3")
    tuning("compare", definition, *quick, "--algorithms", "random,optuna", "--seeds", "2", "--run-dir", "compared")
    assert run.name in tuning("runs", "demo/runs")
    assert "midtown-center" in tuning("leaderboard", run)
    assert "midtown-center" in tuning("show", run, "midtown-center")
    assert "miles" in tuning("explain", run, "--customer", "midtown-center")
    assert "prediction" in tuning("predict", run, "--customer", "midtown-center", "--data", rows)
    tuning("report", run)
    tuning("mlflow", "sync", run)
    tuning("doctor")
    assert "target" in tuning("schema")
    assert "_TUNING_COMPLETE" in tuning("completion", "bash")
    tuning("tabulate", "--help")  # it needs a grid of hours
