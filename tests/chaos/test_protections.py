"""The suite proves itself: with a protection switched off, the test that is there for it fails.

The table says what is protected, how the protection is switched off and which test then fails. The tests of the table
are run within this process, where what is switched off is off for them too; the three at the end need workers of
their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lone_worker import lone_workers
from paths import ROOT, TESTS
from protections import Patch, Protection, setting
from service_protections import SERVICE


def all_parts(directory: Any, term: Any) -> list[str]:
    return list(directory.list("records"))


def in_place(target: str, pieces: Iterable[bytes]) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as stream:
        stream.writelines(pieces)
        stream.flush()
        os.fsync(stream.fileno())


def unchecked_pages(patch: Patch) -> None:
    import pyarrow.parquet as pq

    real = pq.ParquetFile
    patch.setattr(pq, "ParquetFile", lambda source, page_checksum_verification=False: real(source))


def any_type(content: bytes) -> list[str]:
    import skops.io

    return list(skops.io.get_untrusted_types(data=content))


def unchecked(directory: Any, name: str, sha256: str | None) -> bytes:
    return bytes(directory.read(name))


def loaded(self: Any, name: str, content: bytes) -> Any:
    import cloudpickle

    return cloudpickle.loads(content)


def put(uri: str, path: str, data: bytes) -> None:
    from tuning.storage.s3 import client

    bucket, _, key = path.partition("/")
    client(uri).put_object(Bucket=bucket, Key=key, Body=data)


def as_if_damaged(self: Any, name: str, done: str, error: OSError) -> OSError:
    return error


def written_over(patch: Patch) -> None:
    from tuning.storage.run_directory import RunDirectory

    patch.setattr(RunDirectory, "claim", RunDirectory.write)


def live_forever(patch: Patch) -> None:
    from tuning.records.lease import Heartbeat

    patch.setattr("tuning.records.lease.last_heartbeat", lambda directory, term: Heartbeat())


def open_path(self: Any, name: str) -> str:
    return f"{self.root}/{name}"


def looked_up_again(patch: Patch) -> None:
    """A file is checked, and then opened by its name."""
    from tuning.storage.data_roots import DataRoots

    found = DataRoots.found

    @contextmanager
    def opened(roots: DataRoots, path: str) -> Iterator[str]:
        with found(roots, path):
            yield path

    patch.setattr(DataRoots, "found", opened)


slow = (pytest.mark.slow,)
TABLE = [
    Protection(
        "a recorded trial is not run again",
        setting(tuning__execution__packed__recorded=lambda *_: ({}, set())),
        "runs/test_resume.py::test_recorded_trials_are_replayed_not_run",
    ),
    Protection(
        "what is recorded is handed to the next owner",
        setting(tuning__runs__begin__hand_over=lambda *_: None),
        "runs/test_resume.py::test_recorded_trials_are_replayed_not_run",
    ),
    Protection(
        "a reader keeps one row per trial",
        setting(tuning__records__parts__distinct=lambda table, _: table),
        "unit/records/test_records.py::test_reading_keeps_one_row_per_key_in_order",
    ),
    Protection(
        "a term lists the parts that it accepts",
        setting(tuning__runs__results__accepted=all_parts),
        "unit/records/test_ownership.py::test_whatever_an_old_owner_writes_is_never_read",
        slow,
    ),
    Protection(
        "a term is claimed by one on a local disk",
        written_over,
        "services/test_storage.py::test_of_many_that_claim_a_file_one_gets_it[local]",
    ),
    Protection(
        "a term is claimed by one on S3",
        setting(tuning__storage__s3__put_new=put),
        "services/test_storage.py::test_of_many_that_claim_a_file_one_gets_it[s3]",
    ),
    Protection(
        "the lease is looked at",
        live_forever,
        "unit/records/test_ownership.py::test_an_owner_that_counts_is_left_alone",
    ),
    Protection(
        "an owner looks whether it was replaced",
        setting(tuning__records__lease__Lease___look=lambda self: None),
        "chaos/test_stopping.py::test_an_owner_that_was_replaced_stops_and_says_so",
        slow,
    ),
    Protection(
        "files are placed whole",
        setting(tuning__storage__local_disk___place=in_place),
        "services/test_storage.py::test_a_file_is_there_whole_or_not_at_all",
    ),
    Protection(
        "files are durable before they count",
        setting(tuning__storage__local_disk___make_durable=lambda folder: None),
        "services/test_storage.py::test_a_file_is_durable_before_anybody_relies_on_it",
    ),
    Protection(
        "a part's name has the digest of its content",
        setting(tuning__records__parts__intact=lambda directory, name: directory.read(name)),
        "unit/records/test_records.py::test_a_flipped_bit_is_found_before_its_content_is_believed",
    ),
    Protection(
        "a customer whose data has changed starts again",
        setting(tuning__data__fingerprints__differ=lambda there, here: np.zeros(len(here), dtype=bool)),
        "runs/test_changed_data.py::test_an_objective_sees_new_rows_from_the_first_trial",
    ),
    Protection(
        "what other libraries have begun starts again",
        setting(tuning__runs__begin__with_libraries_now=lambda directory, before, budget, state: state),
        "runs/test_changed_data.py::test_what_other_libraries_have_begun_is_searched_anew",
        slow,
    ),
    Protection(
        "a copy of code has the digest of its content in its name",
        setting(tuning__user_code___copy=lambda file, directory: directory.read(file)),
        "runs/test_changed_data.py::test_code_of_a_run_that_is_not_what_the_run_wrote_is_never_run",
        slow,
    ),
    Protection(
        "pages have checksums",
        unchecked_pages,
        "unit/records/test_records.py::test_page_checksums_find_damaged_data_without_the_name",
    ),
    Protection(
        "a damaged part costs its trials only",
        setting(tuning__runs__resume___times=lambda studies, wanted: pa.array([1_000_000] * len(wanted))),
        "runs/test_resume.py::test_a_damaged_part_costs_its_trials_only_and_a_resume_brings_them_back",
        slow,
    ),
    Protection(
        "what the storage refuses is tried again",
        setting(tuning__storage__retrying__with_retries=lambda action, pause: action()),
        "services/test_storage.py::test_a_fault_that_passes_is_ridden_out[503]",
    ),
    Protection(
        "a storage that refuses is not taken for damage",
        setting(tuning__storage__run_directory__RunDirectory___error=as_if_damaged),
        "services/test_storage_runs.py::test_a_storage_that_refuses_is_no_damage_and_no_success[records]",
    ),
    Protection(
        "a bucket that vanished is not an empty folder",
        setting(tuning__storage__object_storage__ObjectStorage__check_present=lambda self: None),
        "services/test_storage.py::test_a_bucket_that_vanishes_is_an_error_and_not_an_empty_run",
    ),
    Protection(
        "a study is recorded after its model",
        setting(tuning__storage__background__BackgroundWriter__flush=lambda self: None),
        "unit/storage/test_background.py::test_without_its_model_a_study_is_not_recorded",
    ),
    Protection(
        "signals are heard",
        setting(tuning__driver__signals__Signals___handle=lambda self, number, frame: None),
        "chaos/test_stopping.py::test_the_first_signal_is_a_wish_the_second_an_order_and_the_third_an_exception",
    ),
    Protection(
        "a run has a budget of time",
        setting(tuning__driver__runner__RunSession___seconds_left=lambda self: None),
        "chaos/test_stopping.py::test_a_used_up_budget_leaves_reasons_and_the_rest_for_a_resume",
        slow,
    ),
    Protection(
        "a changed definition is refused",
        setting(tuning__runs__begin__merge=lambda directory, before, now: now),
        "runs/test_resume.py::test_any_other_change_is_refused_with_a_diff[seed-]",
    ),
    Protection(
        "no customer's id is a path",
        setting(tuning__storage__names__slug=lambda name: name),
        "docs/test_security.py::test_no_customers_id_leaves_the_run_or_meets_another_one",
        slow,
    ),
    Protection(
        "no name leaves the run",
        setting(tuning__storage__run_directory__RunDirectory__path=open_path),
        "docs/test_security.py::test_no_name_leads_out_of_the_run",
        slow,
    ),
    Protection(
        "a run is its owner's only",
        setting(tuning__storage__local_disk___make_folder=lambda folder: os.makedirs(folder, 0o755, exist_ok=True)),
        "docs/test_security.py::test_a_run_is_its_owners_only",
    ),
    Protection(
        "YAML has no aliases, tags or depths",
        setting(search_spaces__yaml_text___refuse=lambda text: None),
        "docs/test_security.py::test_yaml_that_explodes_is_refused[merge]",
    ),
    Protection(
        "no key that Ray executes",
        setting(search_spaces__values___RESERVED={}),
        "docs/test_security.py::test_what_ray_would_execute_is_refused[{'eval': 'MARK'}]",
    ),
    Protection(
        "model files hold listed types only",
        setting(tuning__models__skops_format___check_types=any_type),
        "docs/test_security.py::test_a_model_file_cannot_name_its_own_types",
    ),
    Protection(
        "pickled models need the user's word",
        setting(tuning__models__own__OwnFamily__load=loaded),
        "docs/test_security.py::test_a_pickled_model_needs_the_users_word[True]",
    ),
    Protection(
        "models have digests",
        setting(
            tuning__models__model_files__read_checked=unchecked,
            tuning__models__customer_model__read_checked=unchecked,
        ),
        "docs/test_security.py::test_a_model_is_checked_before_it_is_looked_at",
    ),
    Protection(
        "secrets in URIs are masked",
        setting(tuning__storage__names__mask=lambda uri: uri),
        "unit/storage/test_secrets.py::test_secrets_in_uris_are_masked",
    ),
    Protection(
        "records hold no secrets",
        setting(tuning__records__tables__mask_in=lambda text: text),
        "services/test_secrets.py::test_no_secret_is_in_logs_records_reasons_or_mlflow",
        slow,
    ),
    Protection(
        "where a link leads is looked at before a file is opened",
        setting(tuning__storage__data_roots__DataRoots___holds=lambda roots, path: True),
        "unit/data/test_data_roots.py::test_links_are_followed_within_the_root_alone",
    ),
    Protection(
        "what was looked at is what is opened",
        looked_up_again,
        "unit/data/test_data_roots.py::test_what_was_checked_is_what_is_read",
    ),
    Protection(
        "a run is deleted by its owner alone",
        setting(tuning__runs__deletion__wait_until_dead=lambda *_: None),
        "unit/runs/test_deletion.py::test_a_run_that_another_process_works_on_is_left_as_it_is",
    ),
    *SERVICE,
]


class Verdicts:
    """A plugin that notes how the tests ended: `failed` in a call is what counts, `error` before it is not."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.failed:
            self.ended.append(report.outcome if report.when == "call" else f"error in {report.when}")


def ends(test: str) -> list[str]:
    """How a test ends, run here and now."""
    verdicts = Verdicts()
    quiet = ["no:cacheprovider", "no:timeout", "no:faulthandler", "no:terminalreporter"]
    options = [option for plugin in quiet for option in ("-p", plugin)]
    name = ".".join(TESTS.joinpath(test.partition("::")[0]).relative_to(ROOT).with_suffix("").parts)
    before = sys.modules.pop(name, None)  # it is imported again: what it takes over by name is then switched off too
    try:
        pytest.main(
            [str(TESTS / test), "-s", "-c", os.devnull, "--rootdir", str(ROOT), "--import-mode=importlib", *options],
            plugins=[verdicts],
        )
    finally:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
    return verdicts.ended


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.what, marks=entry.marks) for entry in TABLE])
def test_without_its_protection_a_test_fails(entry: Protection) -> None:
    with pytest.MonkeyPatch.context() as patch:
        entry.off(patch)
        assert set(ends(entry.test)) == {"failed"}


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.what) for entry in TABLE])
def test_a_protection_can_be_switched_off(entry: Protection) -> None:
    """What the table names is still there; some of its tests are slow."""
    with pytest.MonkeyPatch.context() as patch:
        entry.off(patch)


def test_a_test_passes_with_its_protection_on() -> None:
    """Or failing would prove nothing; the others pass in the suite itself."""
    assert ends(TABLE[2].test) == ["passed"]


# --- workers of their own -----------------------------------------------------------------------


@pytest.mark.slow
def test_without_quarantine_poison_ends_one_worker_after_the_other(tmp_path: Path) -> None:
    result = lone_workers(tmp_path / "on", "exit")
    assert result is not None
    assert set(result.leaderboard()["status"]) == {"quarantined"}
    off = "import tuning.execution.packed; tuning.execution.packed.Batch._condemned = lambda self, position: None"
    result = lone_workers(tmp_path / "off", "exit", off)
    assert result is not None
    assert result.study_records == []


@pytest.mark.slow
def test_without_a_limit_of_time_a_loop_never_ends(tmp_path: Path) -> None:
    limits = {"trial_seconds": 1.0, "crashes_before_quarantine": 1}
    result = lone_workers(tmp_path / "on", "loop_in_c", limits=limits)
    assert result is not None
    assert "it ran longer than its time limit" in result.leaderboard()["reason"][0]
    off = "import faulthandler; faulthandler.dump_traceback_later = lambda *_, **__: None"
    assert lone_workers(tmp_path / "off", "loop_in_c", off, seconds=30.0, limits=limits) is None


@pytest.mark.slow
def test_without_a_limit_of_memory_a_trial_takes_what_it_wants(tmp_path: Path) -> None:
    fields = {"objective": "lone_worker:hunger", "steps": 3, "limits": {"memory_gb": 1.0}}
    result = lone_workers(tmp_path / "on", "none", **fields)
    assert result is not None
    assert {str(record.reason or "") for record in result.trial_records} == {"", "MemoryError"}
    off = "import resource; resource.setrlimit = lambda *_: None"
    result = lone_workers(tmp_path / "off", "none", off, **fields)
    assert result is not None
    assert {str(record.reason or "") for record in result.trial_records} == {""}
