"""`make demo` and `make test` on a machine with Python and make, but without a compiler. Needs a package index."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|c89|c99|cpp|gcc|g\+\+|clang|clang\+\+|ld|as|tcc|icc)(-[\d.]+)?")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The programs of this machine but compilers, and no wheel that was compiled here before."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in sorted(Path(folder).iterdir()):
            if not COMPILERS.fullmatch(program.name) and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS")}
    return {**kept, "PATH": str(programs), "CC": "/bin/false", "CXX": "/bin/false", "PIP_NO_CACHE_DIR": "1"}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The project's files as they are now, and nothing else."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    )
    for name in listed.stdout.decode().splitlines():
        if (ROOT / name).is_file():
            (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "clone" / name)
    return tmp_path / "clone"


def test_two_commands_are_enough_without_a_compiler(clone: Path, environment: dict[str, str]) -> None:
    python = Path(sys.base_prefix, "bin", "python3")

    def call(*command: str | Path, **more: str) -> str:
        done = subprocess.run(command, cwd=clone, env={**environment, **more}, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def make(target: str, **more: str) -> str:
        return call("make", target, f"PYTHON={python}", **more)

    assert shutil.which("gcc", path=environment["PATH"]) is None
    assert re.search(r"^midtown-center +ok ", make("demo"), flags=re.M)
    # All tests are found, so what they import is there. Those of BOHB run: its library is the reason for this test.
    assert "test_spaces.py" in make("test", PYTEST_ADDOPTS="--collect-only -q")
    bohb = ("-m", "pytest", "-q", "-k", "bohb", "tests/unit/spaces", "tests/contracts/test_spaces.py")
    assert " passed" in call(clone / ".venv" / "bin" / "python", *bohb)
