"""Which runs releases need, so that nobody deletes these, and what may go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc
import pyarrow.fs

from tuning.basics.timing import USUAL, Timing
from tuning.basics.wording import amount
from tuning.errors import RunError, RunOwnedError, StorageError
from tuning.runs.deletion import delete_run
from tuning.serving.answers import FOLDER as ANSWERS
from tuning.serving.champion import HERE
from tuning.serving.references import marked_by
from tuning.serving.release import Release
from tuning.serving.releases import Releases, runs_in
from tuning.storage.run_directory import RunDirectory

KEPT = 4  # newest releases whose models nobody deletes
RUNS = "runs"  # in the champions' folder: those that refreshes have made, each named after its release's number


def runs_of(releases: Releases, release: Release) -> set[str]:
    """The runs that a release needs, as it names them."""
    return runs_in(releases.champions(release))


def refusal(directory: RunDirectory, keep: int = KEPT, besides: Releases | None = None) -> str:
    """Why a run must not be deleted, as a sentence; empty where no release needs it.

    keep: the newest releases of each name that count. besides: a name whose releases are not asked.
    """
    try:
        folders = marked_by(directory)
    except StorageError:
        raise
    except RunError as error:
        return str(error)
    for folder in folders:
        if besides is not None and folder.uri == besides.directory.uri:
            continue
        releases = Releases.of_folder(folder)
        for release in releases.last(keep):
            if any(releases.run_directory(run).uri == directory.uri for run in runs_of(releases, release)):
                return (
                    f"release {release.number} of the champions {releases.name} needs models of {directory.shown}, and "
                    f"the newest {amount(keep, 'release')} can be used at any time. When it is older than these, "
                    f"`{releases.command('prune', releases.name)}` deletes the run."
                )
    return ""


def delete_unneeded(directory: RunDirectory, keep: int = KEPT, timing: Timing = USUAL) -> bool:
    """As `delete_run`; `RunError` where one of the newest releases of any champions needs the run."""
    if said := refusal(directory, keep):
        raise RunError(f"{said} Nothing was deleted.")
    return delete_run(directory, timing)


@dataclass(frozen=True)
class Pruned:
    """What became of a run, or a file of answers, that no kept release needs.

    what: it is, as a user would type it. size: in bytes, freed. kept: why it is still there; empty where it is not.
    """

    what: str
    size: int
    kept: str = ""


def prunable(releases: Releases, keep: int = KEPT) -> list[str]:
    """Return the runs, as releases name them, that releases have needed and the newest ones do not."""
    kept, every = (list(releases.last(count)) for count in (keep, len(releases.numbers())))
    found = {run for release in every for run in runs_of(releases, release)}
    for name in {name.split("/")[1] for name in releases.directory.list(RUNS)}:  # some came to nothing
        number = re.match(r"\d{6,}", name)
        if kept and number and int(number[0]) <= kept[0].number:
            found.add(f"{RUNS}/{name}")
    found -= {run for release in kept for run in runs_of(releases, release)}
    return [run for run in sorted(found) if releases.run_directory(run).entries()]


def prune_runs(releases: Releases, keep: int = KEPT, timing: Timing = USUAL) -> Iterator[Pruned]:
    """Delete these, and files of answers that only older releases name.

    What another name needs stays. The releases themselves stay, too, as the history.
    """
    for run in prunable(releases, keep):
        directory = releases.run_directory(run)
        size = _size(directory, directory.root)
        why = refusal(directory, besides=releases)
        try:
            if not why and delete_run(directory, timing):
                yield Pruned(directory.shown, size)
        except RunOwnedError as error:
            why = str(error)
        if why:
            yield Pruned(directory.shown, 0, why)
    needed = {pack for release in releases.last(keep) for pack in _packs(releases, release)}
    older = {pack for release in releases.last(len(releases.numbers())) for pack in _packs(releases, release)}
    for pack in sorted(older - needed):
        if size := _size(releases.directory, releases.directory.path(pack)):
            releases.directory.delete(pack)
            yield Pruned(releases.directory.display(pack), size)


def _packs(releases: Releases, release: Release) -> set[str]:
    """Return the files in which a release's answers lie that no run has."""
    table, others = releases.champions(release), releases.others(release)
    paths = table["model_path"].filter(pc.equal(table["run"], HERE)).drop_null().to_pylist()
    if others is not None and others.model_path is not None:
        paths.append(others.model_path)
    return {"/".join(path.split("/")[:2]) for path in paths if path.startswith(f"{ANSWERS}/")}


def _size(directory: RunDirectory, path: str) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    selector = pyarrow.fs.FileSelector(path, recursive=True, allow_not_found=True)
    there = directory.filesystem.get_file_info(path)
    below = [there] if there.type == pyarrow.fs.FileType.File else directory.filesystem.get_file_info(selector)
    return sum(int(each.size or 0) for each in below)
