"""A folder beside the definition that has the name of a package is not taken for it by workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from builders import definition, write_customers
from chaos import environment

from tuning import RunResult


@pytest.mark.slow
def test_folders_called_like_our_packages_are_left_alone_by_workers(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(definition(tmp_path / "data", trials=2, slots=1)))
    for name in ("tuning", "schedulers", "search_spaces", "numpy", "pyarrow"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError('the local {name}')\n")
    # As the installed command, whose own folder and not the current one is in its path.
    start = "import sys; sys.path.remove(''); sys.argv[0] = '/usr/bin/tuning'; from tuning.cli import main; main()"
    command = [sys.executable, "-c", start, "run", "d.yaml", "--run-dir", "run", "--progress=none"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "the local" not in ended.stderr
    assert RunResult(str(tmp_path / "run")).summary()["succeeded"] == 2
