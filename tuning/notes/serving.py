"""Which model serves a customer and why, and what a refresh has met in its data."""

from tuning.notes.note import NoteCode


class ServingCode(NoteCode):
    """A note in a release."""

    # Why a model serves.
    WINNER = "the winner of its search"
    BETTER = (
        "the winner of its search: better on the hold-out, {metric} {score}, the configuration of before {other_score}"
    )
    NEWEST = "the winner of its newest search, by the rule"
    REPLACED = "the winner of its search: the configuration of before could not be fitted again: {why}"
    POOL_ANSWER = "the model of all customers"
    CONSTANT_ANSWER = "{what}"
    CONSTANT_OF_KNOWN = "{what} of {customers:of customer} that are known"
    NO_CONSTANT = "there is no constant either: {why}"
    NOT_READ_AGAIN = "its rows are not read again"
    NO_TARGETS = "no customer's rows have a target"
    NOT_IN_PLAN = "it is not in the run's plan"
    NO_TARGET_COLUMN = "the target {subject!r} is not among the columns"
    NO_TARGET = "no row has a target"
    NO_MODEL = "no model: {why}"
    NO_CHAMPION = "customer {subject!r} has no champion: {why:all}"
    WORSE_THAN_CONSTANT = (
        "its {model} is worse than a constant on the hold-out rows ({metric} {score}, {constant_score} of a constant)"
    )
    CANNOT_SERVE = "the model of before cannot serve: {why}"
    NEEDS_COLUMN = "it needs the column {subject!r}"
    FOR_LATER_CUSTOMERS = "for customers that came later"

    # What the newest refresh of a customer has met.
    STAYS = (
        "its search found nothing better on the hold-out: {metric} {other_score}, the configuration that serves {score}"
    )
    NOT_COMPARED = "its search found another model, and no hold-out compares both"
    NO_WINNER = "its search found no model of its own"
    NOT_FITTED = "not fitted again, so the model of before stays: {why}"
    FEWER_ROWS = (
        "{rows:of row}, were {before}: more than a third is missing",
        "Is a part of the data missing? Go back with `tuning rollback`, mend the data, and refresh again.",
    )
    COLUMNS_GONE = (
        "the model does without {columns:names}, which the one of before looked at",
        "Was a column renamed, or is it of another type? Go back with `tuning rollback`, and refresh again.",
    )
    COLUMNS_NEW = "the model looks at {columns:names}, which the one of before did not"
    OTHER_TYPE = (
        "the column {subject!r} holds {now:kind}, and held {before:kind}",
        "Go back with `tuning rollback`, mend the data, and refresh again.",
    )
    DAMAGED = "the model of before was not what had been written: {why}"
