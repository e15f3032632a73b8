"""Deleting a run: what makes it one goes first, and who owned it last, so that a deletion that was cut off goes on.

The process that deletes a run owns it meanwhile, as one that goes on with it would: nobody alive loses a run, and
nobody starts in the folder before it is empty. Without its plan a run is none: from the first step on nobody reads from
what is left, and `tuning delete` goes on there.
"""

from __future__ import annotations

from tuning.basics.timing import USUAL, Timing
from tuning.errors import RunOwnedError
from tuning.records.lease import Lease, last_heartbeat, wait_until_dead
from tuning.records.ownership import LEASES, PLAN_FOLDER, RECORDS, TERMS, claim, newest_claimed
from tuning.storage.run_directory import RunDirectory

OF_THE_OWNER = frozenset({TERMS, LEASES})


def delete_run(directory: RunDirectory, timing: Timing = USUAL) -> bool:
    """Delete a run directory; False where there is none, and nothing was deleted.

    Raises:
        RunOwnedError: somebody works on the run; nothing was deleted.
        StorageError: something could not be deleted; the same again goes on.
    """
    owner = newest_claimed(directory)
    if owner is None:
        left = directory.entries()
        if not left or not OF_THE_OWNER.issuperset(left):
            return False
        directory.delete()  # of a deletion that was cut off at its last step
        return True
    wait_until_dead(directory, owner, timing)
    spent = owner.seconds + last_heartbeat(directory, owner).seconds  # of a run that is resumed all the same
    term = claim(directory, owner.number + 1, (), owner.trials, spent)
    lease = Lease(directory, term, timing).hold()
    try:
        # Without a plan it is no run; while there are records, no new one begins in the folder.
        left = [name for name in directory.entries() if name not in OF_THE_OWNER]
        for name in sorted(left, key=lambda name: (name != PLAN_FOLDER, name == RECORDS)):
            if lease.taken_by:
                raise RunOwnedError(
                    f"{lease.taken_by} has taken {directory.shown} over, which was being deleted. What is left is kept."
                )
            directory.delete(name)
        directory.delete(TERMS)
    finally:
        lease.release()  # which writes nothing any more once the terms are gone
    directory.delete()
    return True
