"""What was found out about a customer's models: how they were chosen, and what speaks against them."""

from tuning.notes.note import NoteCode, Shown

_AGAINST = "the hold-out contradicts the folds ({metric} {test} there, {cv} on the folds, {constant} of a constant): "


class FitCode(NoteCode):
    """A note on a model."""

    # What speaks against it.
    CONTRADICTED_BY_COLUMN = (
        _AGAINST + "{subject!r} goes beyond what the search rows hold, {at} and not {low} to {high}, where the error "
        "is largest",
        "See whether the column wraps, as a clock does at midnight, or means something else there. Derive a difference "
        "with prepare, or leave the column out with drop.",
        Shown.END,
    )
    CONTRADICTED_BY_DATES = (
        _AGAINST + "{subject!r} goes beyond what the search rows hold where the error is largest",
        "See whether these dates are right. Derive a difference with prepare, or leave the column out with drop.",
        Shown.END,
    )
    CONTRADICTED_BY_TREND = (
        _AGAINST + "the errors have a trend, from {first} to {last} along the hold-out rows",
        "The target goes where no row has been. Predict its change, or its ratio to an earlier value, with prepare.",
        Shown.END,
    )
    CONTRADICTED_BY_TARGET = (
        _AGAINST + "a target of {at} where the search rows have {low} to {high}",
        "See whether this target is right. If so, cap it with prepare, or take a metric that one row does not decide, "
        "such as mae.",
        Shown.END,
    )
    CONTRADICTED_BY_SHIFT = (
        _AGAINST + "the target has moved, its mean is {now} there and {before} in the search rows",
        "These rows are of another time, or of another kind. Split by time, and search again with the newest rows.",
        Shown.END,
    )
    CONTRADICTED_BY_LEAK = (
        _AGAINST + "a column may tell the target",
        "Leave the column out with drop, unless it is known before the target.",
        Shown.END,
    )
    CONTRADICTED_BY_FEW_ROWS = (
        _AGAINST + "few rows, {search} to learn from and {held} held out",
        "Bring more rows; until then a constant is safer.",
        Shown.END,
    )
    CONTRADICTED = (
        _AGAINST + "nothing in the columns tells why",
        "Look at the rows with the largest errors in the customer's own report, before the model is used.",
        Shown.END,
    )
    LEAK = (
        "alone as good as the whole model: {columns:names}; leave out what is not known before the target: {drop}",
        "Leave the columns out with drop, unless they are known before the target.",
        Shown.END,
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


CONTRADICTIONS = (
    FitCode.CONTRADICTED_BY_COLUMN,
    FitCode.CONTRADICTED_BY_DATES,
    FitCode.CONTRADICTED_BY_TREND,
    FitCode.CONTRADICTED_BY_TARGET,
    FitCode.CONTRADICTED_BY_SHIFT,
    FitCode.CONTRADICTED_BY_LEAK,
    FitCode.CONTRADICTED_BY_FEW_ROWS,
    FitCode.CONTRADICTED,
)
