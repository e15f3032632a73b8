"""Why a run has no pool, or the pool has no say in a customer's model."""

from tuning.notes.note import NoteCode


class PoolCode(NoteCode):
    """A note on the pool."""

    POOL_NOT_ASKED = "the pool is not asked here: {why}"
    POOL_TYPICAL_UNIT = (
        "fewer than {least} targets are known, so the pool's numbers are in the typical customer's unit, and may be of "
        "another height than this one's"
    )

    # Why a run has none.
    POOL_WITHOUT_ENSEMBLES = "its models are no ensembles"
    POOL_ALL_FIXED = "the configurations of all customers are known, and it is a member of none"
    POOL_SMALL_RUN = "{customers:of customer}, fewer than {least}"
    POOL_MANY_ROWS = "half of its customers have more than {rows} rows"
    POOL_FEW_CUSTOMERS = "{customers:of customer} with the same columns and classes, fewer than {least}"
    POOL_TOOK_LONGER = "training it took longer than {limit:seconds}"
    POOL_ENDED_WORKER = "training it has ended its worker {times:of time}: {cause}"
    POOL_DATA_ENDED_WORKER = "reading the data of {customers:of customer} has ended its worker: {cause}"

    # Why a customer is left out.
    POOL_OTHER_ROWS = "it was fitted on other rows of this customer, or on other folds"
    POOL_OTHER_TARGET = "the target is of another kind, or has other classes, than most customers' targets"
    POOL_OTHER_COLUMNS = "the customer has other columns than most customers: {why}"
    POOL_OTHER_CLASSES = "the target holds classes that the pool does not know; it knows {classes:names}"
    POOL_NO_SPREAD = "the middle half of the targets is {spread:.6g} wide, which measures nothing"
    NO_POOL_MEMBER = "the configuration has the run's pool as a member, and this run has none{why:then : }"
    POOL_READING_ENDED_WORKER = "its data, or a first trial on it, has ended a worker: {cause}"
