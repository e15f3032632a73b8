"""What passes by itself is waited out, each time a little longer."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tuning.basics.timing import Timing
from tuning.errors import StorageError
from tuning.storage.run_directory import RunDirectory


def test_pauses_grow_fourfold_from_the_first_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    directory = RunDirectory(str(tmp_path / "run"), Timing(storage_pause_s=100.0))
    directory.create()

    def refused(target: str, data: bytes) -> None:
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(directory.storage, "put", refused)
    with pytest.raises(StorageError, match=r"could not be written: .*busy"):
        directory.write("a", b"1")
    assert [round(pause / 100, 0) for pause in pauses] == [1, pytest.approx(4, abs=1), pytest.approx(16, abs=4)]


def test_of_a_folder_that_cannot_be_made_nobody_is_told_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As below `/proc`, which says that it can be written."""
    directory = RunDirectory(str(tmp_path / "run"))

    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no")

    for function in ("create", "put"):
        monkeypatch.setattr(directory.storage, function, refused)
    with pytest.raises(
        StorageError, match=r"could not be made: .* Free or repair the storage, or name another folder\.$"
    ):
        directory.create()
    with pytest.raises(
        StorageError, match=r"then resume the run or repeat the command; nothing recorded so far is lost"
    ):
        directory.write("a", b"1")
