"""What workers note of where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuning.execution.crash_log import FOLDER, Crash, Nodes, ProgressMarker, crashes, forget_helpers
from tuning.records.ownership import Term
from tuning.storage.run_directory import RunDirectory


def test_what_dead_helpers_of_a_batch_have_noted_goes_and_what_others_have_stays(tmp_path: Path) -> None:
    directory, term = RunDirectory(str(tmp_path)), Term(1, "0001-a")
    for batch, of_helper in ((3, True), (3, True), (3, False), (4, True)):
        ProgressMarker(directory, term, batch, of_helper=of_helper)
    forget_helpers(directory, term, 3)
    left = [path.name for path in (tmp_path / FOLDER / term.folder).iterdir()]
    assert sorted(name.partition("-")[0] for name in left) == ["b00003", "b00003", "h00004", "h00004"]


def test_how_long_a_dead_worker_took_to_load_its_libraries_counts_on_its_machine_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, term = RunDirectory(str(tmp_path)), Term(1, "0001-a")
    marker = ProgressMarker(directory, term, 3)
    marker.at(5, 2)
    assert crashes(directory, term, 3, "") == [Crash(5, 2)]
    marker.loaded(1.5)
    assert crashes(directory, term, 3, "") == [Crash(5, 2, loading=1.5)]
    monkeypatch.setattr("socket.gethostname", lambda: "another")
    (there,) = crashes(directory, term, 3, "", Nodes(fetch=lambda node, path: Path(path).read_bytes()))
    assert there == Crash(5, 2)
