"""What libraries say during a run is in its log file, and nowhere else."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from threading import Thread

import pytest

from tuning.driver.chatter import log_file, stdout_logged
from tuning.storage.run_directory import RunDirectory


def test_chatter_is_in_the_log_and_our_own_warnings_are_seen_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a program that sets up no logging
    late = logging.StreamHandler(sys.stderr)
    with log_file(RunDirectory(tmp_path)):
        logging.getLogger("ray").handlers.clear()  # as `ray.init` does
        logging.getLogger("ray.tune").warning("Ray's word on s3://key:secret@host/bucket?password=secret")
        logging.getLogger("optuna").addHandler(late)  # as Optuna does when it is loaded
        logging.getLogger("optuna").warning("Optuna's word")
        warnings.warn("Python's word", UserWarning, stacklevel=1)
        with stdout_logged():
            print("Tune's word")
            other = Thread(target=print, args=("the user's own word",))
            other.start()
            other.join()
        logging.getLogger("tuning.driver").warning("our word")
    seen, log = capsys.readouterr(), (tmp_path / "log.txt").read_text()
    assert (seen.out, seen.err) == ("the user's own word\n", "our word\n")
    for word in ("Ray's word", "Optuna's word", "Python's word", "Tune's word", "our word"):
        assert word in log
    assert "secret" not in log
    assert late in logging.getLogger("optuna").handlers
    logging.getLogger("optuna").removeHandler(late)


def test_a_second_run_in_the_folder_goes_on_at_the_end_of_the_log(tmp_path: Path) -> None:
    for word in ("first", "second"):
        with log_file(RunDirectory(tmp_path)):
            logging.getLogger("ray").error(word)
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["first", "second"]


def test_where_nobody_says_anything_there_is_no_log_and_a_folder_that_is_gone_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with log_file(RunDirectory(tmp_path)):
        pass
    assert not (tmp_path / "log.txt").exists()
    with log_file(RunDirectory(tmp_path / "gone")):
        logging.getLogger("ray").error("lost")
    assert capsys.readouterr().err == ""
