"""The wheel holds exactly our three packages, the command, and all that the command needs of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from paths import ROOT

from tuning.cli.demo import make_demo
from tuning.cli.program import COMMANDS


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that have the wheel's files, and nothing of this repository."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_the_wheel_installs_three_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"tuning", "search_spaces", "schedulers"}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    assert "tuning = tuning.cli:main" in entry
    assert wheel.name.startswith("tuning_service-")


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    ours = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "tuning", "search_spaces", "schedulers"]
    listed = subprocess.run(ours, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    there = {name for name in listed if (ROOT / name).exists()}
    assert there - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_every_command_can_be_loaded_from_the_wheel(installed: dict[str, str], tmp_path: Path) -> None:
    code = "import tuning, sys; from tuning.cli.program import main; print(tuning.__file__)\n"
    code += "for name in main.list_commands(None): print(main.get_command(None, name).name)"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=installed, check=True, capture_output=True, text=True
    )
    place, *names = answer.stdout.splitlines()
    assert place.startswith(installed["PYTHONPATH"])
    assert names == sorted(COMMANDS)


@pytest.mark.ray
def test_the_demo_runs_from_the_wheel(installed: dict[str, str], tmp_path: Path) -> None:
    """With fewer customers and trials than it has, and no copy in MLflow; `make fresh` runs the whole of it."""
    definition = make_demo(tmp_path / "demo", zones=2)
    definition.write_text(definition.read_text().replace("trials: 8", "trials: 1") + "mlflow: false\n")
    answer = subprocess.run(
        [sys.executable, "-m", "tuning.cli", "demo", "--progress", "none", "--output", "csv"],
        cwd=tmp_path, env=installed, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.returncode == 3, answer.stderr[-4000:]
    _, *rows = answer.stdout.splitlines()
    assert [row.split(",")[1] for row in rows] == ["ok"] * 2 + ["no_model"] * 3
    (report,) = (tmp_path / "demo" / "runs").glob("*/report.html")
    assert "midtown-center" in report.read_text(encoding="utf-8")
