"""Which runs there are in a folder, the newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import pyarrow.fs

from tuning.errors import StorageError, TuningError
from tuning.records.ownership import TERMS
from tuning.records.schema import RUNNING, UNFINISHED
from tuning.runs.outcome_file import read_outcome
from tuning.runs.results import RunResult
from tuning.storage.backend import open_filesystem
from tuning.storage.names import mask

FINISHED, DAMAGED = "finished", "damaged"


@dataclass(frozen=True)
class ListedRun:
    """A run directory.

    Attributes:
        path: as a command takes it.
        worked: when somebody began to work on it last, in local time.
    """

    path: str
    worked: datetime

    def outcome(self) -> dict[str, object]:
        """Return what came of it: `state`, `customers`, how many `succeeded`, `trials`, `wall_seconds`, and the
        `reason` of an end before its time; of a damaged one `state` and `reason`."""
        try:
            result = RunResult(self.path)
            counts, state, reason = result.summary(), FINISHED, ""
            if result.unfinished:
                state, ended = RUNNING if result.goes_on else UNFINISHED, read_outcome(result.directory)
                if ended is not None and ended["state"] != FINISHED:  # else a part of the records is lost
                    state, reason = ended["state"], ended["reason"]
        except TuningError as error:
            return {"state": DAMAGED, "reason": str(error)}
        return {
            "state": state,
            "customers": counts["customers"],
            "succeeded": counts["succeeded"],
            "trials": counts["trials"],
            "wall_seconds": counts["wall_seconds"],
            "reason": reason,
        }


def runs_in(storage: str) -> list[ListedRun]:
    """Return the runs in a folder or under a URI, the last one that was worked on first; [] without a folder."""
    filesystem, root = open_filesystem(storage)
    try:
        folders = filesystem.get_file_info(pyarrow.fs.FileSelector(root, allow_not_found=True))
        found = [
            ListedRun(f"{storage.rstrip('/')}/{folder.base_name}", worked)
            for folder in folders
            if folder.type == pyarrow.fs.FileType.Directory
            for worked in _worked(filesystem, folder.path)
        ]
    except OSError as error:
        raise StorageError(f"{mask(storage)} could not be listed: {error}.") from error
    return sorted(found, key=lambda run: (run.worked, run.path), reverse=True)


def _worked(filesystem: pyarrow.fs.FileSystem, folder: str) -> Iterator[datetime]:
    """Yield when the newest term of a run was claimed; nothing where the folder is no run."""
    files = filesystem.get_file_info(pyarrow.fs.FileSelector(f"{folder}/{TERMS}", allow_not_found=True))
    times = [file.mtime for file in files if file.base_name.endswith(".json")]
    if times:
        yield max(times).astimezone()
