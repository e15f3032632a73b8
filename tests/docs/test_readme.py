"""Everything the README shows is run here, on small data."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from tuning.cli.demo_customers import make_customer, write_customers

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.M | re.S)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the README's customers and its `churn.yaml`."""
    write_customers(tmp_path / "customers", customers=6)
    (tmp_path / "churn.yaml").write_text(blocks("yaml")[0].replace("trials: 20", "trials: 4"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_blocks_run(ray_cluster: None, folder: Path) -> None:
    import numpy as np

    rows = make_customer(np.random.default_rng(0), 5)
    shown = {"new_accounts": rows.drop(columns="churned")}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), shown)  # the README's own code, in order
    assert len(shown["result"].trials()) == 30


@pytest.mark.ray
def test_console_blocks_run(folder: Path) -> None:
    """Each `$ tuning …` line in a process of its own, with the exit code that the README states."""
    commands = [line[2:].split("#")[0].strip() for block in blocks("console") for line in block.splitlines()]
    ours = [command for command in commands if command.startswith("tuning ")]
    assert len(ours) == 4
    for command in ours:
        code = "import sys; from tuning.cli.program import main; sys.argv[0] = 'tuning'; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *shlex.split(command)[1:]], capture_output=True, text=True, check=False
        )
        expected = 3 if command.split()[1] in ("run", "resume") else 0
        assert done.returncode == expected, f"{command}\n{done.stderr[-2000:]}"
        assert "customer" in done.stdout


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert re.search(rf"^{target}:", makefile, flags=re.M)


def test_links_lead_somewhere() -> None:
    missing = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if not (ROOT / link).exists()]
    assert missing == []


def test_every_key_of_a_definition_is_listed() -> None:
    from tuning.definition.definition import Definition

    table = TEXT.split("## The definition")[1].split("\n\nAn unknown key")[0]
    listed = set(re.findall(r"`([a-z_]+)`", table.replace("`{", "{")))
    assert set(Definition.model_fields) - listed == set()
