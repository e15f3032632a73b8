"""Going back: a new release that equals an old one, for all customers or for one of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from tuning.champions.champion import HERE, Champion
from tuning.champions.kept_runs import runs_of
from tuning.champions.release import OF_CUSTOMERS, OTHERS, ROLLBACK, Release, TableFile
from tuning.champions.releases import Releases
from tuning.errors import RunError, UnknownCustomerError
from tuning.models.model_files import saved_files
from tuning.records.ownership import begun_term

_STATE = (*OF_CUSTOMERS, OTHERS)


def roll_back(releases: Releases, to: int | None = None, customer: str | None = None) -> tuple[Release, bool]:
    """The release that is in force afterwards, and whether it was made for this; False where all is so already.

    Raises:
        RunError: there is nothing to go back to, or its models are not there any more.
        RunOwnedError: somebody else has made a release meanwhile.

    to: number of the release that comes back; by default the one before the newest, of one customer the newest in which
    another champion served it. Not guessed after a rollback, so that the same command again goes no further back.
    """
    number, current = releases.next_number(), releases.current()
    if to is None:
        if current.why == ROLLBACK and current.customer == customer:
            raise RunError(
                f"release {current.number} of {releases.name} is a rollback already: it equals release "
                f"{current.equals}{_of(customer)}. Name the release to go back to: --to N. There are: "
                + releases.command("champions", releases.name, "--releases")
            )
        to = _before(releases, current) if customer is None else _other(releases, current, customer)
    target = releases.at(to)
    draft = Release(
        number, current.number, ROLLBACK, definition=target.definition, equals=target.number, customer=customer
    )
    tables: dict[str, pa.Table | TableFile]
    if customer is None:
        _check_runs(releases, target, runs_of(releases, target))
        tables, now = (
            {kind: each.tables[kind] for kind in _STATE if kind in each.tables} for each in (target, current)
        )
        same = now == tables
    else:
        there = releases.champion(target, customer)
        same = there == _champion(releases, current, customer)
        if there.model_path is not None and not same:
            _check_runs(releases, target, {there.run} - {HERE})
            for _ in saved_files(releases.run_directory(there.run), there.model_path, there.model_sha256):
                pass  # each one's digest is checked
        tables = {
            kind: _with_rows_of(releases.table(current, kind), releases.table(target, kind), customer)
            for kind in OF_CUSTOMERS
            if kind in current.tables or kind in target.tables
        }
    return (current, False) if same else (releases.place(draft, tables), True)


def _of(customer: str | None) -> str:
    return "" if customer is None else f" for {customer!r}"


def _before(releases: Releases, current: Release) -> int:
    if current.parent is None:
        raise RunError(f"release {current.number} of {releases.name} is the first one: there is none to go back to.")
    return current.parent


def _other(releases: Releases, current: Release, customer: str) -> int:
    """The newest release in which another champion served a customer."""
    now = releases.champion(current, customer)
    earlier = [release.number for release, champion in releases.history(customer) if champion != now]
    if not earlier:
        raise RunError(f"{customer!r} has had no other champion in {releases.name}.")
    return earlier[-1]


def _champion(releases: Releases, release: Release, customer: str) -> Champion | None:
    try:
        return releases.champion(release, customer)
    except UnknownCustomerError:
        return None


def _with_rows_of(now: pa.Table | None, then: pa.Table | None, customer: str) -> pa.Table:
    """A table with a customer's rows of another one in place of its own."""
    parts = [] if now is None else [now.filter(pc.not_equal(now["customer"], customer))]
    parts += [] if then is None else [then.filter(pc.equal(then["customer"], customer))]
    return pa.concat_tables(parts, promote_options="default").combine_chunks()


def _check_runs(releases: Releases, release: Release, runs: Iterable[str]) -> None:
    """`RunError` where a run that a release needs is not there any more."""
    for run in sorted(runs):
        directory = releases.run_directory(run)
        try:
            begun_term(directory)
        except RunError as error:
            raise RunError(
                f"release {release.number} of {releases.name} cannot come back, since its models are gone: {error}"
            ) from error
