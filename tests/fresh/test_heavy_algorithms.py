"""What needs PyTorch, which `make test` does not install: some algorithms, a trainer. Needs a package index."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from xml.etree import ElementTree

import pytest
from paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

# As docs/algorithms.md says. Where the index has this PyTorch as a build for CPUs too, pip takes that.
LIBRARIES = ["torch==2.13.0", "ax-platform==1.2.4", "pymoo==0.6.1.5", "GPy", "gpytorch", "catboost", "disjoint-set"]
WITHOUT_DEPENDENCIES = ["HEBO==0.3.6"]  # they ask for a numpy of 2022


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python that has what this one has, and the libraries."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "environment")], check=True)
    found = tmp_path / "environment" / "bin" / "python"
    ask = [str(found), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    own = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    Path(own, "this.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [str(found), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    for packages in (LIBRARIES, ["--no-deps", *WITHOUT_DEPENDENCIES]):
        done = subprocess.run([*install, *packages], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
    return found


def test_what_needs_pytorch_is_tested_where_it_is(python: Path, tmp_path: Path) -> None:
    variants = ("ax", "hebo", "optuna-gp", "torch")
    files = ("tests/contracts/test_spaces.py", "tests/docs/test_schedulers_table.py", "tests/ray/test_ray_train.py")
    report = tmp_path / "report.xml"
    done = subprocess.run(
        [
            *(str(python), "-m", "pytest", *files, "-k", " or ".join(variants)),
            *("-n", "2", "--timeout", "900", "-p", "no:cacheprovider", f"--junitxml={report}"),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    cases = list(ElementTree.parse(report).iter("testcase"))
    assert [case.get("name") for case in cases if case.find("skipped") is not None] == []
    for variant in variants:
        assert any(variant in str(case.get("name")) for case in cases), f"no test of {variant} ran"
