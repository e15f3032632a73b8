"""What libraries say during a run is in its log file, and nowhere else."""

from __future__ import annotations

import inspect
import logging
import logging.config
import sys
import warnings
from pathlib import Path
from threading import Thread

import pytest

from tuning import TuneRunner
from tuning.driver.log_capture import RAYS_THREAD, held_messages, log_file, stdout_logged
from tuning.errors import StorageError
from tuning.storage.run_directory import RunDirectory


def test_what_libraries_say_is_in_the_log_and_our_own_warnings_are_seen_too(
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
            rays = Thread(target=print, args=("(raylet) A worker died",), name=RAYS_THREAD)
            for thread in (other, rays):
                thread.start()
                thread.join()
        logging.getLogger("tuning.driver").warning("our word")
    seen, log = capsys.readouterr(), (tmp_path / "log.txt").read_text()
    assert (seen.out, seen.err) == ("the user's own word\n", "our word\n")
    for word in ("Ray's word", "Optuna's word", "Python's word", "Tune's word", "A worker died", "our word"):
        assert word in log
    assert "secret" not in log
    assert late in logging.getLogger("optuna").handlers
    logging.getLogger("optuna").removeHandler(late)


def test_a_library_that_configures_logging_while_it_is_loaded_breaks_nothing(tmp_path: Path) -> None:
    with log_file(RunDirectory(tmp_path)):
        logging.config.dictConfig({"version": 1, "disable_existing_loggers": False, "loggers": {"optuna": {}}})
    before = list(logging.getLogger("optuna").handlers)
    with log_file(RunDirectory(tmp_path)):
        logging.getLogger("optuna").warning("a word after it")
    assert "a word after it" in (tmp_path / "log.txt").read_text()
    assert logging.getLogger("optuna").handlers == before


def test_ray_still_has_the_thread_in_which_it_prints() -> None:
    from ray._private import worker

    assert f'target=listen_error_messages,\n            name="{RAYS_THREAD}"' in inspect.getsource(worker.connect)


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


LOUD = """
import logging, warnings
logging.getLogger("ray").addHandler(logging.StreamHandler())  # as Ray does when it is loaded
logging.getLogger("ray.train").warning("Ray's word")
warnings.warn("a library's word", stacklevel=1)

def loss(config):
    return config["x"]
"""


def test_a_full_disk_costs_the_words_of_libraries_and_hides_no_error(tmp_path: Path) -> None:
    """What could not be written is tried once more when the file is closed."""
    (tmp_path / "log.txt").symlink_to("/dev/full")

    def work() -> None:
        with log_file(RunDirectory(tmp_path)):
            logging.getLogger("ray").error("Ray's word")
            raise StorageError("no space is left")

    with pytest.raises(StorageError, match="no space"):
        work()


@pytest.fixture
def loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuneRunner:
    """A runner whose objective is in a file that loads what says a lot."""
    monkeypatch.setattr(logging.getLogger("ray"), "handlers", [])
    (tmp_path / "mine.py").write_text(f"# {tmp_path}\n{LOUD}")  # no file that was loaded before
    space = {"x": {"type": "float", "low": 0, "high": 1}}
    return TuneRunner(objective=f"{tmp_path}/mine.py:loss", search_space=space, mode="min", trials=1, mlflow=False)


def test_a_plan_shows_nothing_of_what_is_said_while_user_code_is_loaded(
    loud: TuneRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    assert loud.plan().n_trials == 1
    assert capfd.readouterr() == ("", "")
    logging.getLogger("ray").warning("later")
    assert capfd.readouterr().err == "later\n"


def test_a_run_that_is_not_planned_before_has_it_in_its_log(
    loud: TuneRunner, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    loud.run(tmp_path / "run", progress=False, in_process=True)
    assert capfd.readouterr() == ("", "")
    log = (tmp_path / "run" / "log.txt").read_text()
    assert "Ray's word" in log
    assert "a library's word" in log


def test_two_threads_that_listen_at_once_leave_the_logger_as_it_was(tmp_path: Path) -> None:
    """A plan goes on while a run beside it begins and ends."""
    logger = logging.getLogger("ray")
    before, propagate, late = list(logger.handlers), logger.propagate, logging.NullHandler()
    for first, second in (
        (held_messages(), log_file(RunDirectory(tmp_path))),
        (log_file(RunDirectory(tmp_path)), held_messages()),
    ):
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        logger.error("to the second")
        second.__exit__(None, None, None)
        assert (logger.handlers, logger.propagate) == (before, propagate)
    assert "to the second" in (tmp_path / "log.txt").read_text()
    with held_messages():
        logger.addHandler(late)
    assert logger.handlers == [*before, late]
    logger.removeHandler(late)
    logger.propagate = propagate
