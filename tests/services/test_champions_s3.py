"""Releases on S3: promoted, read elsewhere, rolled back, pruned; of two at once one is made; no secret is kept."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from s3_server import SECRET, Bucket
from shops import run_of, write_shops

from tuning import RunResult
from tuning.errors import RunOwnedError
from tuning.models.customer_model import load_model
from tuning.serving.champion import champions_of, table_of
from tuning.serving.kept_runs import prune_runs, refusal
from tuning.serving.promoting import promote_run
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases
from tuning.serving.rollback import roll_back
from tuning.storage.run_directory import RunDirectory


@pytest.fixture
def storage(bucket: Bucket, tmp_path: Path) -> str:
    """The URI of a folder with the run `monday` in it."""
    write_shops(tmp_path / "data")
    run_of(tmp_path / "data", tmp_path / "monday")
    for file in (tmp_path / "monday").rglob("*"):
        if file.is_file():
            bucket.put(f"runs/monday/{file.relative_to(tmp_path / 'monday')}", file.read_bytes())
    return bucket.uri("runs")


def run_uri(storage: str, name: str) -> str:
    path, mark, options = storage.partition("?")
    return f"{path}/{name}{mark}{options}"


def test_a_name_s_whole_life_on_s3(storage: str, bucket: Bucket) -> None:
    releases, monday = Releases("shops", storage), RunDirectory(run_uri(storage, "monday"))
    first = promote_run(RunResult(monday), releases).release
    found = {each.customer: each for each in champions_of(Releases("shops", storage).champions(first))}
    for name in ("good", "few"):
        directory = releases.run_directory(found[name].run)
        assert load_model(directory, str(found[name].model_path), found[name].model_sha256).customer == name
    assert "release 1 of the champions shops needs models of" in refusal(monday)
    others = [replace(each, run=".", rows=7) for each in found.values()]
    releases.place(Release(2, 1, REFRESH), table_of(others))
    assert roll_back(releases)[0].equals == 1
    assert releases.champion(releases.current(), "good") == found["good"]
    assert refusal(monday, keep=1)
    roll_back(releases, 2)
    freed = list(prune_runs(releases, keep=1))
    assert [each.what.partition("?")[0].rpartition("/")[2] for each in freed] == ["monday"]
    assert freed[0].size > 1000
    assert not monday.entries()
    keys = [each["Key"] for each in bucket.client.list_objects_v2(Bucket=bucket.name)["Contents"]]
    assert all(
        SECRET.encode() not in bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read() for key in keys
    )


def test_of_two_releases_at_once_one_is_made(storage: str) -> None:
    start, ends = threading.Barrier(2), []

    def run() -> None:
        releases = Releases("shops", storage)
        start.wait()
        try:
            releases.place(Release(1, None, REFRESH), table_of([]))
            ends.append("made")
        except RunOwnedError:
            ends.append("second")

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["made", "second"]
    assert Releases("shops", storage).numbers() == [1]
