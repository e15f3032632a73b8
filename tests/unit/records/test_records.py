"""The record schema: what is written comes back, once, and the published page is true."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from builders import reason

from tuning.records.parts import intact, part_name, parts_before_trials, parts_without_studies, read_trials
from tuning.records.schema import StepRecord, StudyRecord, TrialRecord
from tuning.records.tables import decode, encode
from tuning.storage.run_directory import RunDirectory


def trial(number: int = 0, study: str = "acme") -> TrialRecord:
    return TrialRecord(
        run="r1",
        study=study,
        customer=study,
        trial=number,
        attempt=1,
        suggested=2 * number,
        told=2 * number + 1,
        config={"model": "ridge", "alpha": 0.1, "flag": True, "none": None, "n": 3, "ü": "€"},
        family="ridge",
        algorithm="optuna",
        scheduler="asha",
        metric="r2",
        mode="max",
        state="finished",
        reason=None,
        steps=[StepRecord(1, 0.5, 0.01, {"extra": 2.0}), StepRecord(2, 0.75, 0.02)],
        best_step=2,
        score=0.75,
        fold_scores=[0.7, 0.8],
        metrics={"extra": 2.0},
        study_seed=2**62,
        seed=5,
        started=1_795_174_070.25,
        seconds=0.02,
        fit_seconds=0.015,
        suggest_seconds=0.001,
        worker="host:1",
        versions="python 3.11",
    )


def study(name: str = "acme") -> StudyRecord:
    return StudyRecord(
        run="r1",
        study=name,
        customer=name,
        algorithm="optuna",
        scheduler="asha",
        study_seed=7,
        status="no_model",
        reason=reason("3 rows"),
        task="regression",
        metric="r2",
        mode="max",
        family=None,
        trial=None,
        best_step=None,
        config=None,
        cv_score=None,
        cv_error=None,
        test_score=None,
        baseline_cv_score=None,
        baseline_test_score=None,
        gain=None,
        trials=0,
        stopped=0,
        failed=0,
        rows=3,
        test_rows=0,
        features=0,
        started=1_795_174_070.25,
        seconds=0.1,
        fit_seconds=0.1,
        model_path=None,
        model_sha256=None,
        worker="host:1",
        versions="python 3.11",
    )


@pytest.mark.parametrize("record", [trial(), study()])
def test_a_record_comes_back_as_it_was_written(record: TrialRecord | StudyRecord) -> None:
    assert decode(encode([record])) == [record]


def test_scores_that_are_no_numbers_survive() -> None:
    steps = [StepRecord(1, math.nan), StepRecord(2, math.inf), StepRecord(3, -math.inf)]
    back = decode(encode([replace(trial(), steps=steps, score=None, state="failed", reason=reason("NaN"))]))[0]
    assert math.isnan(back.steps[0].score)
    assert [step.score for step in back.steps[1:]] == [math.inf, -math.inf]


def test_reading_keeps_one_row_per_key_in_order(tmp_path: Path) -> None:
    directory, first, again = RunDirectory(str(tmp_path)), trial(1), replace(trial(1), attempt=2)
    names = []
    for records in ([first, trial(0, "b")], [again, trial(0)]):
        names.append(part_name("0001-a", 0, "trials", encode(records)))
        directory.write(names[-1], encode(records))
    assert read_trials(directory, names) == [trial(0), first, trial(0, "b")]
    assert read_trials(directory, names[::-1]) == [trial(0), again, trial(0, "b")]


def test_a_flipped_bit_is_found_before_its_content_is_believed(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    data = encode([trial(number) for number in range(50)])
    name = part_name("0001-aaaa", 0, "trials", data)
    directory.write(name, data)
    assert len(decode(intact(directory, name))) == 50
    for position in range(0, len(data), max(1, len(data) // 200)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        directory.write(name, bytes(damaged))
        with pytest.raises(ValueError, match="damaged"):
            decode(intact(directory, name))


def test_page_checksums_find_damaged_data_without_the_name(tmp_path: Path) -> None:
    data = encode([trial(number) for number in range(50)])
    found = 0
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for position in range(4, footer, max(1, footer // 200)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        try:
            back = decode(bytes(damaged))
        except (OSError, ValueError):
            found += 1
        else:
            assert back == [trial(number) for number in range(50)]  # a byte of a page header that nobody reads
    assert found > 100


def test_parts_without_a_study_hold_everything_else_and_the_first_ones_stay(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    both = encode([trial(0, "acme"), trial(0, "beta"), trial(1, "beta")])
    names = [part_name("0001-a", 0, "trials", data) for data in (both, encode([trial(0, "gamma")]))]
    for name, data in zip(names, (both, encode([trial(0, "gamma")])), strict=True):
        directory.write(name, data)
    (tmp_path / names[1]).write_bytes(b"damaged")
    kept = parts_without_studies(directory, names, {"acme"})
    assert [record.key for record in read_trials(directory, kept[:1])] == [("beta", 0), ("beta", 1)]
    assert kept[1] == names[1]  # whoever reads it says so
    assert decode(intact(directory, names[0])) == decode(both)
    assert parts_without_studies(directory, kept, {"acme", "beta"}) == [names[1]]
    assert parts_without_studies(directory, names, set()) == names


def test_parts_until_a_trial_hold_those_before_it_and_everything_of_others(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    parts = [("trials", [trial(0), trial(1), trial(1, "beta")]), ("trials", [trial(2)]), ("studies", [study()])]
    names = []
    for kind, records in parts:
        names.append(part_name("0001-a", 0, kind, encode(records)))
        directory.write(names[-1], encode(records))
    kept = parts_before_trials(directory, names, {"acme": 1})
    assert [record.key for record in read_trials(directory, kept)] == [("acme", 0), ("beta", 1)]
    assert kept[-1] == names[-1]  # what a study has come to counts until it comes to something else
    assert parts_before_trials(directory, names, {}) == names
