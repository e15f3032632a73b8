"""What the process that drives a run on Ray loads, and what it leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from builders import definition, write_customers
from chaos import environment, wait_for

# Workers are processes of Ray's, and those without work are called so.
SCRIPT = """
import os, sys, time
from pathlib import Path
from tuning import TuneRunner
from tuning.errors import TuningError

def processes(name=b""):
    found = {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if file.read_bytes().startswith(name) and ours(int(file.parent.name)):
                found[file.parent.name] = True
        except OSError:
            pass
    return list(found)

def ours(pid):
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return parent == os.getpid() or (parent > 1 and ours(parent))

runner = TuneRunner.from_yaml("d.yaml")
try:
    TuneRunner.from_yaml("d.yaml", target="none").run("refused", progress=False)
except TuningError:
    assert "ray" not in sys.modules
sys.ps1 = ">>> "
assert runner.run("run", progress=False).summary()["succeeded"] == 2
assert "mlflow" not in sys.modules
assert "RAY_TUNE_CALLBACKS" not in os.environ
while len(processes(b"ray::IDLE")) < 2:
    time.sleep(0.1)
print(*processes())
"""


def test_a_run_on_ray_loads_no_mlflow_and_leaves_workers_for_the_next_cell(tmp_path: Path) -> None:
    """Before it is refused, it does not load Ray either."""
    write_customers(tmp_path / "data", 2)
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(definition(tmp_path / "data", trials=2)))
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=200)
    assert ended.returncode == 0, ended.stderr
    processes = ended.stdout.split()
    assert len(processes) > 5  # of Ray
    wait_for(lambda: not any(Path("/proc", pid).exists() for pid in processes), 60, what="the end of Ray")
