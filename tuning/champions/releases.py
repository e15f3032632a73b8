"""All releases of one name: `<storage>/champions/<name>/`.

A release exists once its file is there, which is placed last and by a conditional put: whatever crashes, each customer
has the champion of the newest release, and of two who make one at once, one is told that the other was first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import command, shorten
from tuning.champions.champion import HERE, Challenger, Champion, rows_of
from tuning.champions.references import joined, last_part, mark, opened, way
from tuning.champions.release import (
    CHALLENGERS,
    CHAMPIONS,
    OTHERS,
    PAST,
    RELEASES,
    Release,
    TableFile,
    decoded,
    decoded_table,
    encoded_table,
    file_of,
)
from tuning.definition.fields import NAME
from tuning.errors import DefinitionError, RunError, RunOwnedError, UnknownCustomerError
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
        """Those whose folder this is."""
        return cls(last_part(directory.uri), joined(directory.uri, "../.."))

    def __repr__(self) -> str:
        return f"Releases({self.name!r}: {self.directory.shown})"

    def command(self, *words: str) -> str:
        """A command about these champions."""
        return command(*words, "--storage", mask(self.storage))

    def numbers(self) -> list[int]:
        """The numbers of all releases, in order."""
        found = (re.fullmatch(r"(\d{6,})\.json", name.rpartition("/")[2]) for name in self.directory.list(RELEASES))
        return sorted(int(each[1]) for each in found if each)

    def newest(self) -> Release | None:
        """The release that is in force: the newest one that is what was written, with its champions. None without any.

        `RunError` where there are releases, and none is.
        """
        for release in self.last(1):
            return release
        if self.refused:
            raise RunError(next(iter(self.refused.values())))
        return None

    def current(self) -> Release:
        """The same; `RunError` where there is none."""
        release = self.newest()
        if release is None:
            raise RunError(
                f"there are no champions called {self.name!r} in {mask(self.storage)!r}. Make the first release of a "
                f"run: {self.command('promote', 'RUN', '--as', self.name)}"
            )
        return release

    def at(self, number: int) -> Release:
        """A release by its number; `RunError` where it is not there, or not what was written."""
        try:
            return decoded(self.directory.read(file_of(number)))
        except FileNotFoundError as error:
            raise RunError(
                f"{self.name} has no release {number}. All: {self.command('champions', self.name, '--releases')}"
            ) from error
        except (OSError, ValueError) as error:
            raise self._changed(file_of(number), error) from error

    def table(self, release: Release, kind: str) -> pa.Table | None:
        """A table of a release; None where it has none of that kind. `RunError` where it is not what was written."""
        file = release.tables.get(kind)
        if file is None:
            return None
        if file.sha256 not in self._tables:
            try:
                self._tables[file.sha256] = decoded_table(file, self.directory.read(file.name))
            except FileNotFoundError as error:
                raise self._changed(file.name, "it is not there") from error
            except (OSError, ValueError) as error:
                raise self._changed(file.name, error) from error
        return self._tables[file.sha256]

    def champions(self, release: Release) -> pa.Table:
        """The table of a release's champions."""
        table = self.table(release, CHAMPIONS)
        assert table is not None
        return table

    def champion(self, release: Release, customer: str) -> Champion:
        """A customer's champion; `UnknownCustomerError` where it has none."""
        rows = self.rows_of_customer(release, CHAMPIONS, customer)
        if rows is None or not len(rows):
            raise UnknownCustomerError(f"no customer {customer!r} in release {release.number} of {self.name}.")
        return rows_of(rows, Champion)[0]

    def others(self, release: Release) -> Champion | None:
        """What answers customers that are not among a release's champions; None where nothing does."""
        table = self.table(release, OTHERS)
        return None if table is None else rows_of(table, Champion)[0]

    def state(self, release: Release | None) -> tuple[dict[str, Champion], dict[str, Challenger]]:
        """Who serves and who stands against them, by customer; nobody without a release."""
        if release is None:
            return {}, {}
        standing = self.table(release, CHALLENGERS)
        return (
            {each.customer: each for each in rows_of(self.champions(release), Champion)},
            {} if standing is None else {each.customer: each for each in rows_of(standing, Challenger)},
        )

    def history(self, customer: str) -> list[tuple[Release, Champion]]:
        """Each release that changed a customer's champion, with the new one, the first one first.

        Releases that are not what was written are left out, and are in `refused`.
        """
        found: list[tuple[Release, Champion]] = []
        for number in self.numbers():
            try:
                release = self.at(number)
                rows = self.rows_of_customer(release, CHAMPIONS, customer)
            except RunError as error:
                self.refused[number] = str(error)
                continue
            for champion in [] if rows is None else rows_of(rows, Champion):
                if not found or found[-1][1] != champion:
                    found.append((release, champion))
        if not found:
            raise UnknownCustomerError(f"no customer {customer!r} in the releases of {self.name}.")
        return found

    def next_number(self) -> int:
        """The number of the release that `place` may make now."""
        return max(self.numbers(), default=0) + 1

    def place(self, draft: Release, tables: Mapping[str, pa.Table | TableFile]) -> Release:
        """Make a release: first its runs are marked as needed, then its tables are written, at last its file.

        What answers others, and which rows are past, stays as it was before where no table is given for it.
        `RunOwnedError` where there is one of that number by now; then nothing has changed.

        draft: without tables. Its number is `next_number`, asked for before its parent, the `newest` one, was looked
        up. tables: by kind; one that is as before may be given by its file.
        """
        before = {} if draft.parent is None else self.at(draft.parent).tables
        tables = {kind: file for kind, file in before.items() if kind in (OTHERS, PAST)} | dict(tables)
        for run in sorted({run for each in tables.values() if isinstance(each, pa.Table) for run in runs_in(each)}):
            mark(self.directory, self.run_directory(run))
        files = {
            kind: each if isinstance(each, TableFile) else self._placed(kind, each) for kind, each in tables.items()
        }
        release = replace(draft, tables=files)
        try:
            self.directory.claim(release.name, release.encoded())
        except FileExistsError:
            raise RunOwnedError(
                f"somebody else has made release {release.number} of {self.name} meanwhile, so this one was not made. "
                f"Look at it: {self.command('champions', self.name)}. Then try again."
            ) from None
        return release

    def last(self, count: int) -> Iterator[Release]:
        """The newest intact ones, at most so many, the newest first."""
        for number in reversed(self.numbers()):
            if count <= 0:
                return
            try:
                release = self.at(number)
                self.table(release, CHAMPIONS)
            except RunError as error:
                self.refused[number] = str(error)
            else:
                count -= 1
                yield release

    def _placed(self, kind: str, table: pa.Table) -> TableFile:
        file, data = encoded_table(kind, table)
        self.directory.write(file.name, data)
        return file

    def rows_of_customer(self, release: Release, kind: str, customer: str) -> pa.Table | None:
        """A customer's rows in a table of a release; None where the release has no such table."""
        table = self.table(release, kind)
        return None if table is None else table.filter(pc.equal(table["customer"], customer))

    def run_directory(self, reference: str) -> RunDirectory:
        """The directory that a champion's `run` names."""
        return opened(self.directory, reference)

    def reference(self, directory: RunDirectory) -> str:
        """How releases name a run: by the way from the champions' folder where it lies in the same storage, which may
        be moved as a whole, else by its full path or URI.

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
    """The runs that a table's models lie in, as releases name them, without the champions' own folder."""
    if "model_path" not in table.column_names:
        return set()
    return {*pc.unique(table["run"].filter(table["model_path"].is_valid())).to_pylist()} - {HERE}
