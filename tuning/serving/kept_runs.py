"""Which runs releases need, so that nobody deletes these, and what may go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from tuning.basics.timing import USUAL, Timing
from tuning.basics.wording import amount
from tuning.errors import RunError, RunOwnedError, StorageError
from tuning.runs.deletion import delete_run
from tuning.serving.answers import FOLDER as ANSWERS
from tuning.serving.champion import HERE
from tuning.serving.references import marked_by
from tuning.serving.releases import Releases, runs_in
from tuning.storage.run_directory import RunDirectory

KEPT = 4  # newest releases whose models nobody deletes
RUNS = "runs"  # in the champions' folder: those that refreshes have made, each named after its release's number


def refusal(directory: RunDirectory, keep: int = KEPT, besides: Releases | None = None) -> str:
    """Return why a run must not be deleted, as a sentence; empty where no release needs it.

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
            if any(releases.run_directory(run).uri == directory.uri for run in runs_in(releases.champions(release))):
                return (
                    f"release {release.number} of the champions {releases.name} needs models of {directory.shown}, and "
                    f"the newest {amount(keep, 'release')} can be used at any time. When it is older than these, "
                    f"`{releases.command('prune', releases.name)}` deletes the run."
                )
    return ""


def delete_unneeded(directory: RunDirectory, keep: int = KEPT, timing: Timing = USUAL) -> bool:
    """Delete a run as `delete_run`; `RunError` where one of the newest releases of any champions needs it."""
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
    found = _needed(releases, len(releases.numbers()))[0]
    oldest = min((release.number for release in releases.last(keep)), default=0)
    for name in {name.split("/")[1] for name in releases.directory.list(RUNS)}:  # some came to nothing
        number = re.match(r"\d{6,}", name)
        if number and int(number[0]) <= oldest:
            found.add(f"{RUNS}/{name}")
    found -= _needed(releases, keep)[0]
    return [run for run in sorted(found) if releases.run_directory(run).entries()]


def prune_runs(releases: Releases, keep: int = KEPT, timing: Timing = USUAL) -> Iterator[Pruned]:
    """Delete these, and files of answers that only older releases name.

    What another name needs stays. The releases themselves stay, too, as the history.
    """
    for run in prunable(releases, keep):
        directory = releases.run_directory(run)
        size = directory.size()
        why = refusal(directory, besides=releases)
        try:
            if not why and delete_run(directory, timing):
                yield Pruned(directory.shown, size)
        except RunOwnedError as error:
            why = str(error)
        if why:
            yield Pruned(directory.shown, 0, why)
    for pack in sorted(_needed(releases, len(releases.numbers()))[1] - _needed(releases, keep)[1]):
        if size := releases.directory.size(pack):
            releases.directory.delete(pack)
            yield Pruned(releases.directory.display(pack), size)


def _needed(releases: Releases, newest: int) -> tuple[set[str], set[str]]:
    """Return the runs, and the files with answers that no run has, which so many of the newest releases need."""
    runs, paths = set[str](), list[str | None]()
    for release in releases.last(newest):
        table, others = releases.champions(release), releases.others(release)
        runs |= runs_in(table)
        paths += table["model_path"].filter(pc.equal(table["run"], HERE)).to_pylist()
        paths.append(None if others is None else others.model_path)
    return runs, {"/".join(path.split("/")[:2]) for path in paths if path and path.startswith(f"{ANSWERS}/")}
