"""Accepting a proposal of a refresh: its challengers serve, as a new release."""

from __future__ import annotations

from tuning.champions.champion import Challenger, Champion, table_of
from tuning.champions.proposal import Proposal
from tuning.champions.release import CHALLENGERS, CHAMPIONS, DECISIONS, PROMOTE, Release
from tuning.champions.releases import Releases
from tuning.errors import RunError

FOLDER = "proposals"  # in the champions' folder, one file for each refresh that proposed somebody


def accept(proposal: Proposal, releases: Releases) -> Release:
    """The release in which the proposed challengers serve.

    Raises:
        RunError: another release is in force by now, or a challenger does not stand any more.
        RunOwnedError: somebody else has made a release meanwhile.
    """
    number, current = releases.next_number(), releases.current()
    if current.number != proposal.parent:
        raise RunError(
            f"the proposal is for release {proposal.parent} of {releases.name}, and release {current.number} is in "
            "force. Refresh again for a new one."
        )
    champions, challengers = releases.state(current)
    for decision in proposal.decisions:
        challenger = challengers.pop(decision.customer, None)
        if challenger is None:
            raise RunError(f"no challenger of {decision.customer!r} stands in release {current.number}.")
        champions[decision.customer] = champions[decision.customer].replaced_by(challenger, decision.reason, number)
    tables = {**current.tables, CHAMPIONS: table_of(champions.values(), Champion)}
    tables.pop(DECISIONS, None)
    tables.pop(CHALLENGERS, None)
    if challengers:
        tables[CHALLENGERS] = table_of(challengers.values(), Challenger)
    return releases.place(Release(number, current.number, PROMOTE, definition=current.definition), tables)
