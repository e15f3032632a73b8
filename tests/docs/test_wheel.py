"""The wheel holds exactly our three packages, and the command."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from paths import ROOT


def test_the_wheel_installs_three_packages_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"tuning", "search_spaces", "schedulers"}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    assert "tuning = tuning.cli:main" in entry
    assert wheel.name.startswith("tuning_service-")
