"""What was found out about a customer's models: how they were chosen, and what speaks against them."""

from tuning.notes.note import NoteCode, Shown


class FitCode(NoteCode):
    """A note on a model."""

    # What speaks against it.
    CONTRADICTED = (
        "the hold-out contradicts the folds ({metric} {test} there, {cv} on the folds, {constant} of a constant)",
        "Look at the rows with the largest errors in the customer's own report, before the model is used: whether the "
        "target has moved or has a trend, and whether a column goes beyond what the search rows hold.",
        Shown.END,
    )
    LEAK = (
        "tells the target of every row: {columns:names}; leave out what is not known before the target: {drop}",
        "Leave the columns out with drop, unless they are known before the target.",
        Shown.END,
        True,
    )
    TOO_GOOD = (
        "{metric} is exactly {score} on every fold: a column may tell the target",
        "Find the column, and leave it out with drop.",
        Shown.END,
    )
    HELD_IN_BOUNDS = "{families:names} went beyond `bounds` on {held} of {rows} hold-out rows, and was held there"

    # How it was chosen.
    CONSTANT_MODEL = (
        "the model is a constant, {what}: on the folds it scores {own}, the best that was found {other}",
        "",
        Shown.END,
    )
    FIRST_ALONE = "{subject} was kept: no other trial finished"
    FIRST_KEPT = "{subject} was kept: on the folds it scores {own}, the best of the others {other}"
    FIRST_IS_SIMPLER = (
        "{subject} was kept: on the folds it scores {own}, within one standard error of the best of the others, {other}"
    )
    FEW_OF_CLASS = (
        "the choice between trials rests on {rows:of row} of the class {label!r}{metric:then ; members of the ensemble "
        "are compared by }"
    )
    REFIT_FAILED = "trial {trial} ({family}) is left out of the ensemble, its refit failed: {error}"
    LAST_REFIT_FAILED = (
        "trial {trial} ({family}) is left out of the ensemble, its refit on all rows failed; test_score is with it: "
        "{error}"
    )
    ALONG_SCHEDULE = "the winner was refitted along the {stages:of stage} of its schedule"
    NOT_SEARCHED = "the configuration was known, so no trial was run"

    # What it is compared with.
    NO_TEST_SCORE = "{metric} is not defined on the hold-out ({rows:of row})"
    NO_TEST_SCORE_HERE = "the hold-out ({rows:of row}) cannot be scored: {error}"
    NO_GAIN_OVER_CONSTANT = "there is no gain: {metric} is not defined for a constant"
    NO_GAIN = "there is no gain: {subject} cannot be scored: {error}"
    NO_GAIN_OVER_TRIAL = "there is no gain: the baseline (trial 0) {state}: {why}"
