"""`tuning demo`: what it makes, what it leaves alone, what it refuses."""

from __future__ import annotations

from pathlib import Path

import make_taxi_sample
import pandas as pd
import pytest
from commands import tuning
from paths import shared_data

from tuning.cli.demo import TRIPS, make_demo


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_the_definition_is_one_that_every_command_takes(tmp_path: Path) -> None:
    definition = make_demo(tmp_path / "new" / "demo")
    answer = tuning("validate", definition, "--all")
    assert answer.exit_code == 3, answer.output
    for customer in ("broken-file", "broken-target", "broken-three-rows"):
        assert customer in answer.stdout
    assert "midtown-center" not in answer.stdout
    planned = tuning("plan", definition)
    assert planned.exit_code == 0, planned.output
    assert "customers   43\n" in planned.stdout


def test_two_demos_have_the_same_customers(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make_demo(tmp_path / "empty")
    make_demo(tmp_path / "new")
    assert files(tmp_path / "empty") == files(tmp_path / "new")


def test_a_demo_that_is_there_stays_as_it_was_changed(tmp_path: Path) -> None:
    definition = make_demo(tmp_path)
    definition.write_text(definition.read_text().replace("trials: 8", "trials: 1"))
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


def test_the_sample_is_small_and_has_no_absurd_trip() -> None:
    trips = pd.read_csv(TRIPS)
    assert TRIPS.stat().st_size <= 300_000
    assert trips["zone"].nunique() == make_taxi_sample.ZONES
    assert trips["minutes"].between(0, make_taxi_sample.LONGEST).all()
    assert not trips.drop(columns="to").isna().any(axis=None)  # some end in no zone


def test_the_script_makes_the_sample_that_ships() -> None:
    if (real := shared_data()) is None:
        pytest.skip("shared/data with the trips is not here")
    given = [make_taxi_sample.read(str(real / "nyc-taxi" / name)) for name in ("trips.csv", "zones.csv")]
    assert make_taxi_sample.sample(*given).to_csv(index=False) == TRIPS.read_text(encoding="utf-8")
