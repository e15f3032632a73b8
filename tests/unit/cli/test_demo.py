"""`tuning demo`: what it makes, what it leaves alone, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import tuning

from tuning.cli.demo import make_demo


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_the_definition_is_one_that_every_command_takes(tmp_path: Path) -> None:
    definition = make_demo(tmp_path / "new" / "demo")
    answer = tuning("validate", definition, "--all")
    assert answer.exit_code == 3, answer.output
    for customer in ("customer-broken", "customer-loyal", "customer-tiny"):
        assert customer in answer.stdout
    assert "customer-01" not in answer.stdout
    planned = tuning("plan", definition)
    assert planned.exit_code == 0, planned.output
    assert "customers   24\n" in planned.stdout


def test_two_demos_have_the_same_customers(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make_demo(tmp_path / "empty")
    make_demo(tmp_path / "new")
    assert files(tmp_path / "empty") == files(tmp_path / "new")


def test_a_demo_that_is_there_stays_as_it_was_changed(tmp_path: Path) -> None:
    definition = make_demo(tmp_path)
    definition.write_text(definition.read_text().replace("trials: 12", "trials: 1"))
    before = files(tmp_path)
    assert make_demo(tmp_path) == definition
    assert files(tmp_path) == before


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    answer = tuning("demo", tmp_path)
    assert answer.exit_code == 2
    assert "holds other files and no demo.yaml. Name a new or an empty folder" in answer.stderr
    assert files(tmp_path) == {"thesis.txt": b"mine"}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = tuning("demo", tmp_path / "file" / "demo")
    assert answer.exit_code == 2
    assert "cannot be written: Not a directory. Name another folder." in answer.stderr
