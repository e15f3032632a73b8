"""What a plan says of a run before it begins."""

from tuning.notes.note import NoteCode, Shown


class PlanCode(NoteCode):
    """A note of a plan."""

    def __init__(self, text: str, advice: str = "", shown: Shown = Shown.PLAN) -> None:
        super().__init__(text, advice, shown)

    POOL_HINT = (
        "`pool: auto` would let each model learn from the rows of all customers, too: with as many customers and as "
        "few rows the typical error became 0 to 20 % smaller, by data set. It is off unless you ask for it, since it "
        "is for customers who may learn from each other's data."
    )
    POOL_OFF_HERE = "pool: {pool} is off here: {why}."
    POOL_TRAINED = (
        "pool: before the studies, one model is trained of the rows of up to {customers:of customer}, those with the "
        "same columns and classes{alike} (at most {most_each} of each and {most} in all; by one worker, while the "
        "others wait, for {limit:seconds} at most). It is a member of a customer's ensemble where that is better on "
        "the customer's own folds."
    )


OF_POOL = (PlanCode.POOL_OFF_HERE, PlanCode.POOL_TRAINED)
