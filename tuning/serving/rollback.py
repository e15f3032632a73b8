"""Going back: a new release that equals an old one, for all customers or for one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tuning.errors import RunError
from tuning.models.model_files import saved_files
from tuning.records.ownership import begun_term
from tuning.serving.champion import HERE, table_of
from tuning.serving.release import ROLLBACK, Release
from tuning.serving.releases import Releases, runs_in


def roll_back(releases: Releases, to: int | None = None, customer: str | None = None) -> tuple[Release, bool]:
    """Return the release that is in force afterwards, and whether it was made for this; False where all is so already.

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
                + releases.command("serving", releases.name, "--releases")
            )
        to = _before(releases, current) if customer is None else _other(releases, current, customer)
    target = releases.at(to)
    draft = Release(number, current.number, ROLLBACK, equals=target.number, customer=customer, others=target.others)
    if customer is None:
        table = releases.champions(target)
        _check_runs(releases, target, runs_in(table))
        same = (current.table, current.others) == (target.table, target.others)
        assert target.table is not None
        return (current, False) if same else (releases.place(draft, target.table), True)
    there = releases.champion(target, customer)
    champions = releases.state(current)
    if champions.get(customer) == there:
        return current, False
    if there.model_path is not None:
        _check_runs(releases, target, {there.run} - {HERE})
        for _ in saved_files(releases.run_directory(there.run), there.model_path, there.model_sha256):
            pass  # each one's digest is checked
    champions[customer] = there
    return releases.place(replace(draft, others=current.others), table_of(champions.values())), True


def _of(customer: str | None) -> str:
    return "" if customer is None else f" for {customer!r}"


def _before(releases: Releases, current: Release) -> int:
    if current.parent is None:
        raise RunError(f"release {current.number} of {releases.name} is the first one: there is none to go back to.")
    return current.parent


def _other(releases: Releases, current: Release, customer: str) -> int:
    """Return the newest release in which another champion served a customer."""
    now = releases.champion(current, customer)
    earlier = [release.number for release, champion in releases.history(customer) if champion != now]
    if not earlier:
        raise RunError(f"{customer!r} has had no other champion in {releases.name}.")
    return earlier[-1]


def _check_runs(releases: Releases, release: Release, runs: Iterable[str]) -> None:
    """Raise `RunError` where a run that a release needs is not there any more."""
    for run in sorted(runs):
        directory = releases.run_directory(run)
        try:
            begun_term(directory)
        except RunError as error:
            raise RunError(
                f"release {release.number} of {releases.name} cannot come back, since its models are gone: {error}"
            ) from error
