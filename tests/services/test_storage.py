"""The run directory: the same promises on a local disk and on S3 (moto on loopback)."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from chaos import Crash
from s3_server import SECRET, Bucket, S3Server, impatient

from tuning.basics.timing import Timing
from tuning.errors import RunOwnedError, StorageError
from tuning.records.ownership import claim, newest_claimed
from tuning.storage import retrying
from tuning.storage.run_directory import RunDirectory

AT_ONCE = Timing(storage_pause_s=0.0)  # no pauses between attempts


@pytest.fixture(params=["local", "s3"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> RunDirectory:
    """An empty run directory."""
    if request.param == "local":
        made = RunDirectory(str(tmp_path / "run"))
    else:
        made = RunDirectory(request.getfixturevalue("bucket").uri("runs/weekly"))
    made.create()
    return made


def test_what_is_written_is_read_listed_and_removed(directory: RunDirectory) -> None:
    for number in (2, 1):
        directory.write(f"records/0001-a/trials-{number}.parquet", b"x" * number)
    directory.write("empty", b"")
    assert list(directory.list("records")) == [f"records/0001-a/trials-{number}.parquet" for number in (1, 2)]
    assert list(directory.list("records/0001")) == []  # a folder, not a prefix
    assert list(directory.list("nowhere")) == []
    assert directory.read("records/0001-a/trials-2.parquet") == b"xx"
    assert directory.read("empty") == b""
    assert directory.exists("records/0001-a/trials-1.parquet")
    assert directory.exists("records/0001-a")
    assert not directory.exists("records/0002-a")
    with pytest.raises(FileNotFoundError):
        directory.read("nowhere/file")
    directory.remove("empty")
    directory.remove("empty")
    assert not directory.exists("empty")
    directory.write("records/0001-a/trials-1.parquet", b"again")
    assert RunDirectory(directory.uri).read("records/0001-a/trials-1.parquet") == b"again"


def test_of_many_that_claim_a_file_one_gets_it(directory: RunDirectory) -> None:
    start, won = threading.Barrier(8), []

    def run(number: int) -> None:
        start.wait()
        try:
            RunDirectory(directory.uri).claim("terms/0001.json", b"%d" % number)
            won.append(b"%d" % number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [directory.read("terms/0001.json")]
    with pytest.raises(RunOwnedError):
        claim_term(directory)


def claim_term(directory: RunDirectory) -> None:
    """A term that can be read, and then the same once more."""
    directory.remove("terms/0001.json")
    term = claim(directory, 1, (), 1, 0.0)
    assert newest_claimed(directory) == term
    claim(directory, 1, (), 1, 0.0)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a\0b"])
def test_no_name_leaves_the_run(directory: RunDirectory, name: str) -> None:
    for action in (directory.read, directory.exists, directory.remove, lambda name: directory.write(name, b"")):
        with pytest.raises(StorageError, match="is not a file name inside a run directory"):
            action(name)


# --- S3 only ------------------------------------------------------------------------------------


def test_an_upload_that_never_ended_is_not_there(bucket: Bucket) -> None:
    directory = RunDirectory(bucket.uri("run"))
    directory.write("records/e/trials-1", b"whole")
    upload = bucket.client.create_multipart_upload(Bucket=bucket.name, Key="run/records/e/trials-2")["UploadId"]
    bucket.client.upload_part(
        Bucket=bucket.name, Key="run/records/e/trials-2", UploadId=upload, PartNumber=1, Body=b"half" * 10
    )
    assert list(directory.list("records")) == ["records/e/trials-1"]
    assert not directory.exists("records/e/trials-2")


def test_markers_of_folders_are_no_files(bucket: Bucket) -> None:
    bucket.put("run/records/", b"")
    bucket.put("run/records/e/", b"")
    bucket.put("run/records/e/trials-1", b"x")
    assert list(RunDirectory(bucket.uri("run")).list("records")) == ["records/e/trials-1"]


@pytest.mark.parametrize("status", [500, 503, 0])
def test_a_fault_that_passes_is_ridden_out(bucket: Bucket, status: int) -> None:
    directory = impatient(RunDirectory(bucket.uri("run"), AT_ONCE))
    for action in (lambda: directory.write("a", b"1"), lambda: directory.claim("b", b"2"), lambda: directory.read("a")):
        with bucket.server.failing(lambda _: True, status, most=2) as failed:
            action()
        assert len(failed) == 2
    assert (directory.read("a"), directory.read("b")) == (b"1", b"2")


def test_one_that_lasts_ends_after_a_few_attempts_and_says_so(bucket: Bucket) -> None:
    directory = impatient(RunDirectory(bucket.uri("run"), AT_ONCE))
    for action in (lambda: directory.write("a", b"1"), lambda: directory.claim("b", b"2")):
        with (
            bucket.server.failing(lambda _: True, 503) as failed,
            pytest.raises(
                StorageError, match=r"could not be written: the object storage is overloaded.*resume the run"
            ),
        ):
            action()
        assert len(failed) == retrying.ATTEMPTS
    with bucket.server.failing(lambda _: True, 503), pytest.raises(StorageError, match="could not be listed"):
        list(directory.list("records"))
    with bucket.server.failing(lambda _: True, 503), pytest.raises(StorageError, match="could not be read"):
        directory.read("a")


@pytest.mark.parametrize(
    ("status", "said"), [(403, "access is denied: check the credentials"), (404, "the bucket does not exist")]
)
def test_what_will_not_pass_is_not_tried_again(bucket: Bucket, status: int, said: str) -> None:
    directory = RunDirectory(bucket.uri("run", credentials=True))
    for action in (lambda: directory.write("a", b"1"), lambda: directory.claim("b", b"2")):
        with (
            bucket.server.failing(lambda _: True, status) as failed,
            pytest.raises(StorageError, match=said) as refusal,
        ):
            action()
        assert len(failed) == 1
        assert SECRET not in str(refusal.value)


def test_a_claim_whose_answer_was_lost_is_ours(bucket: Bucket) -> None:
    directory = RunDirectory(bucket.uri("run"), AT_ONCE)
    with bucket.server.failing(lambda _: True, 500, most=1, done=True) as failed:
        directory.claim("terms/0001.json", b"me")
    assert len(failed) == 1
    assert directory.read("terms/0001.json") == b"me"
    with pytest.raises(FileExistsError):
        directory.claim("terms/0001.json", b"you")


def test_a_bucket_that_vanishes_is_an_error_and_not_an_empty_run(s3_server: S3Server) -> None:
    bucket = s3_server.bucket()
    directory = RunDirectory(bucket.uri("run"))
    directory.write("records/e/trials-1", b"x")
    bucket.remove()
    with pytest.raises(StorageError, match=r"'b-.*' does not exist"):
        list(directory.list("records"))
    for action in (directory.read, directory.exists):
        with pytest.raises(StorageError, match=r"the bucket 'b-.*' does not exist"):
            action("records/e/trials-1")
    with pytest.raises(StorageError, match="the bucket does not exist"):
        directory.write("records/e/trials-2", b"x")
    with pytest.raises(StorageError, match="the bucket does not exist"):
        directory.claim("terms/0001.json", b"x")


def test_a_sector_that_cannot_be_read_is_damage_a_disk_that_refuses_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory(str(tmp_path), AT_ONCE)
    directory.write("records/e/trials-1", b"x")

    class Broken:
        def __init__(self, number: int) -> None:
            self.number = number

        def open_input_stream(self, path: str) -> None:
            raise OSError(self.number, os.strerror(self.number), path)

    monkeypatch.setattr(directory.storage, "filesystem", Broken(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        directory.read("records/e/trials-1")
    monkeypatch.setattr(directory.storage, "filesystem", Broken(errno.EACCES))
    with pytest.raises(StorageError, match=r"could not be read: .*[Pp]ermission denied"):
        directory.read("records/e/trials-1")


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends while the content is on its way to the disk."""
    directory = RunDirectory(str(tmp_path / "run"))
    directory.write("plan/old", b"old")

    def end(descriptor: int) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", end)
        for name in ("plan/old", "plan/new"):
            with pytest.raises(Crash):
                directory.write(name, b"new")
        with pytest.raises(Crash):
            directory.claim("plan/claimed", b"new")
    assert {name: directory.read(name) for name in directory.list("plan")} == {"plan/old": b"old"}


def test_a_file_is_durable_before_anybody_relies_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content, then name, then folder: in this order they survive a power failure."""
    directory = RunDirectory(str(tmp_path / "run"))
    directory.write("plan/first", b"")
    events = []
    for name in ("fsync", "replace", "link"):
        real = getattr(os, name)

        def noted(*arguments: object, name: str = name, real: object = real) -> object:
            folder = name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
            events.append("folder" if folder else name)
            return real(*arguments)

        monkeypatch.setattr(os, name, noted)
    directory.write("plan/second", b"content")
    assert events == ["fsync", "replace", "folder"]
    events.clear()
    directory.claim("plan/third", b"content")
    assert events == ["fsync", "link", "folder"]
    events.clear()
    directory.write("new/file", b"content")
    assert events == ["folder", "fsync", "replace", "folder"]  # the new folder's name is in the one above
