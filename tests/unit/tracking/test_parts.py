"""In which order a run's records are copied."""

from __future__ import annotations

from pathlib import Path

from tuning.records.ownership import Term
from tuning.records.parts import kind_of, part_name
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.follow import parts_of


def test_a_copy_meets_trials_just_before_their_studies(tmp_path: Path) -> None:
    """Else a resumed run's copy would hold all studies in memory until their trials come."""
    directory, earlier = RunDirectory(str(tmp_path)), []
    for term in ("0001-a", "0002-b"):
        for number in range(3):
            for kind in ("trials", "studies"):
                name = part_name(term, 1 - number % 2, kind, f"{term} {number} {kind}".encode())
                directory.write(name, b"rows")
                if term == "0001-a":
                    earlier.append(name)
    parts = parts_of(directory, Term(2, "0002-b", accepts=tuple(sorted(earlier))), summary=True)
    assert [kind_of(part) for part in parts] == ["trials", "studies"] * 6
    assert len(set(parts)) == 12
    assert all("0001-a" in part for part in parts[:6])
