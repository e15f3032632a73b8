"""All releases of one name: `<storage>/champions/<name>/`.

A release exists once its file is there, which is placed last and by a conditional put: whatever crashes, each customer
has the champion of the newest release, and of two who make one at once, one is told that the other was first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tuning.basics.wording import command, shorten
from tuning.definition.fields import NAME
from tuning.errors import DefinitionError, RunError, RunOwnedError, UnknownCustomerError
from tuning.records.tables import encode_table
from tuning.serving.champion import HERE, Champion, champions_of, from_json
from tuning.serving.references import joined, last_part, mark, opened, way
from tuning.serving.release import RELEASES, Release, decoded, digest_of, file_of, table_name
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory

FOLDER = "champions"


class Releases:
    """The releases of a name. Read again at each call, so that it is the same here and elsewhere.

    storage: the folder or URI below which `champions/` lies. refused: releases that are not what was written, by their
    number, with what is wrong; the newest one before them is in force.
    """

    def __init__(self, name: str, storage: str | Path = "runs") -> None:
        if not re.fullmatch(NAME, name):
            raise DefinitionError(
                f"{shorten(repr(name))} is no name of champions: it must begin with a letter or digit and have at most "
                "100 letters (a to z, A to Z), digits, spaces, '.', '_' and '-'."
            )
        self.name = name
        self.directory = RunDirectory(joined(str(storage), f"{FOLDER}/{name}"))
        self.refused: dict[int, str] = {}
        self._tables: dict[str, pa.Table] = {}

    @classmethod
    def of_folder(cls, directory: RunDirectory) -> Releases:
        """Return those of a folder."""
        return cls(last_part(directory.uri), joined(directory.uri, "../.."))

    def __repr__(self) -> str:
        return f"Releases({self.name!r}: {self.directory.shown})"

    def command(self, *words: str) -> str:
        """Return a command about these champions."""
        return command(*words, "--storage", mask(self.storage))

    def numbers(self) -> list[int]:
        """Return the numbers of all releases, in order."""
        found = (re.fullmatch(r"(\d{6,})\.json", name.rpartition("/")[2]) for name in self.directory.list(RELEASES))
        return sorted(int(each[1]) for each in found if each)

    def newest(self) -> Release | None:
        """Return the release in force: the newest one that is what was written, with its table. None without any.

        `RunError` where there are releases, and none is.
        """
        for release in self.last(1):
            return release
        if self.refused:
            raise RunError(next(iter(self.refused.values())))
        return None

    def current(self) -> Release:
        """Return the same; `RunError` where there is none."""
        release = self.newest()
        if release is None:
            raise RunError(
                f"there are no champions called {self.name!r} in {mask(self.storage)!r}. Make the first release of a "
                f"run: {self.command('promote', 'RUN', '--as', self.name)}"
            )
        return release

    def at(self, number: int) -> Release:
        """Return a release by its number; `RunError` where it is not there, or not what was written."""
        try:
            return decoded(self.directory.read(file_of(number)))
        except FileNotFoundError as error:
            raise RunError(
                f"{self.name} has no release {number}. All: {self.command('serving', self.name, '--releases')}"
            ) from error
        except (OSError, ValueError) as error:
            raise self._changed(file_of(number), error) from error

    def champions(self, release: Release) -> pa.Table:
        """Return the table of a release; `RunError` where it is not what was written."""
        sha256 = release.table
        assert sha256 is not None
        if sha256 not in self._tables:
            name = table_name(sha256)
            try:
                data = self.directory.read(name)
                if digest_of(data) != sha256:
                    raise ValueError("its SHA-256 is not the one that the release names")
                self._tables[sha256] = pq.ParquetFile(pa.BufferReader(data)).read()
            except FileNotFoundError as error:
                raise self._changed(name, "it is not there") from error
            except (OSError, ValueError) as error:
                raise self._changed(name, error) from error
        return self._tables[sha256]

    def champion(self, release: Release, customer: str) -> Champion:
        """Return a customer's champion; `UnknownCustomerError` where it has none."""
        for champion in self._of_customer(release, customer):
            return champion
        raise UnknownCustomerError(f"no customer {customer!r} in release {release.number} of {self.name}.")

    def _of_customer(self, release: Release, customer: str) -> list[Champion]:
        table = self.champions(release)
        return champions_of(table.filter(pc.equal(table["customer"], customer)))

    def others(self, release: Release) -> Champion | None:
        """Return what answers customers that are not among a release's champions; None where nothing does."""
        return None if release.others is None else from_json(release.others)

    def state(self, release: Release | None) -> dict[str, Champion]:
        """Return who serves, by customer; nobody without a release."""
        return {} if release is None else {each.customer: each for each in champions_of(self.champions(release))}

    def history(self, customer: str) -> list[tuple[Release, Champion]]:
        """Return each release that changed a customer's champion, with the new one, the first one first.

        Releases that are not what was written are left out, and are in `refused`.
        """
        found: list[tuple[Release, Champion]] = []
        for release in [*self.last(len(self.numbers()))][::-1]:
            for champion in self._of_customer(release, customer):
                if not found or found[-1][1] != champion:
                    found.append((release, champion))
        if not found:
            raise UnknownCustomerError(f"no customer {customer!r} in the releases of {self.name}.")
        return found

    def next_number(self) -> int:
        """Return the number of the release that `place` may make now."""
        return max(self.numbers(), default=0) + 1

    def place(self, draft: Release, table: pa.Table | str) -> Release:
        """Make a release: first its runs are marked as needed, then its table is written, at last its file.

        What answers others stays as it was before where the draft has nothing else. `RunOwnedError` where there is a
        release of that number by now; then nothing has changed.

        draft: without a table. Its number is `next_number`, asked for before its parent, the `newest` one, was looked
        up. table: of champions; one that an earlier release has may be given by its SHA-256.
        """
        if draft.others is None and draft.parent is not None:
            draft = replace(draft, others=self.at(draft.parent).others)
        if isinstance(table, pa.Table):
            for run in sorted(runs_in(table)):
                mark(self.directory, self.run_directory(run))
            sha256 = digest_of(data := encode_table(table))
            self.directory.write(table_name(sha256), data)
        else:
            sha256 = table
        release = replace(draft, table=sha256)
        try:
            self.directory.claim(release.name, release.encoded())
        except FileExistsError:
            raise RunOwnedError(
                f"somebody else has made release {release.number} of {self.name} meanwhile, so this one was not made. "
                f"Look at it: {self.command('serving', self.name)}. Then try again."
            ) from None
        return release

    def last(self, count: int) -> Iterator[Release]:
        """Yield the newest intact ones, at most so many, the newest first."""
        for number in reversed(self.numbers()):
            if count <= 0:
                return
            try:
                release = self.at(number)
                self.champions(release)
            except RunError as error:
                self.refused[number] = str(error)
            else:
                count -= 1
                yield release

    def run_directory(self, reference: str) -> RunDirectory:
        """Return the directory that a champion's `run` names."""
        return opened(self.directory, reference)

    def reference(self, directory: RunDirectory) -> str:
        """Return how releases name a run: by the way from the champions' folder where it lies in the same storage,
        which may be moved as a whole, else by its full path or URI.

        `RunError` for a URI with secrets in another storage.
        """
        found = way(self.directory, directory, within=self.storage)
        if found is not None:
            return found
        if mask(directory.uri) != directory.uri:
            raise RunError(
                f"{directory.shown} has secrets in its URI, which no release may hold. Promote it into the storage "
                "that it lies in: --storage with the folder above it."
            )
        return directory.uri

    @property
    def storage(self) -> str:
        """The folder or URI above `champions/`."""
        return joined(self.directory.uri, "../..")

    def _changed(self, name: str, error: Exception | str) -> RunError:
        return RunError(
            f"{self.directory.display(name)} is not what was written: {error}. Bring it back from a copy; until then "
            "the newest release before it is in force."
        )


def runs_in(table: pa.Table) -> set[str]:
    """Return the runs that a table's models lie in, as releases name them, without the champions' own folder."""
    return {*pc.unique(table["run"].filter(table["model_path"].is_valid())).to_pylist()} - {HERE}
