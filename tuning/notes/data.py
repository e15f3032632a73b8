"""What is wrong with a customer's rows and columns, or was left out of them."""

from tuning.notes.note import NoteCode, Shown

MORE_ROWS = "There is nothing to learn yet. Leave these customers out, or wait for more rows."
OTHER_SPLIT = "Choose another split, or wait for more rows."
MAKE_FINITE = "Make the values finite, or leave their rows out with prepare."
CORRECT_BASELINE = "Correct this column of predictions, or leave the rows out with prepare."

_BASELINE = "the baseline's column {subject!r} holds {first!r} (in {wrong} of {rows:of row}, first in row {row:d}), "


class DataCode(NoteCode):
    """A note on data, or the reason why a customer has no model."""

    # Of all of it.
    DATA_CHANGED = (
        "the data has changed since the run was planned: resume the run, which tunes it anew.",
        "Resume the run: it takes the new rows.",
    )
    FILE_GONE = (
        "the data has changed since the run was planned: {subject} is not there any more. Bring it back, and resume "
        "the run.",
        "Put the file back, or correct data; then resume the run.",
    )
    OVER_LIMIT = (
        "{what} has {count:d} {unit}, more than limits.{subject}: {most:d}; {way_out}.",
        "Raise the limit that is named, if the machines have the memory.",
        Shown.CUSTOMER,
        True,
    )
    AT_LEAST_OVER_LIMIT = (
        "{what} has at least {count:d} {unit}, more than limits.{subject}: {most:d}; {way_out}.",
        "Raise the limit that is named, if the machines have the memory.",
        Shown.CUSTOMER,
        True,
    )

    # Of the target.
    TOO_FEW_ROWS = (
        "{rows:of row} with a target, fewer than min_rows: {least:d}{without:then ; without one: }.",
        "Bring more rows; or lower min_rows, when so few are worth a model.",
    )
    TARGET_CONSTANT = "the target {subject!r} is constant ({value}): there is nothing to predict.", MORE_ROWS
    TARGET_TOO_LARGE = "the target {subject!r} holds {value:g}: beyond {most:g} a square is infinite.", MAKE_FINITE
    TARGET_OF_TEXT = (
        "the target {subject!r} holds text, regression needs numbers: {wrong} of its {count:of value} are none, the "
        "first is {first!r} in row {row:d}; up to {most:.0%} would be left out as missing.{seeming:then  They seem to "
        "be }",
        "Convert the target with prepare, or set task to one of classes.",
    )
    TARGET_CELLS = (
        "{wrong} of {rows:of row} are left out, since their target is no number: the first is {first!r} in row {row:d}"
    )
    FAR_TARGET = (
        "a target of {value} is far from all others (half of the others are {low} to {high}): correct it, or cap it "
        "with prepare",
        "",
        Shown.END,
    )
    NOT_BINARY = (
        "the target {subject!r} holds {count:of class} ({classes:names 4}), the task is binary.",
        "Set task: multiclass, or make two classes of them with prepare.",
    )
    MANY_CLASSES = (
        "the target {subject!r} holds {count:of class} in {rows:of row}: is it a number to predict (task: regression), "
        "or an id?"
    )
    NO_POSITIVE = (
        "the positive class {positive!r} is not among the classes of the target {subject!r}: {classes:names}.",
        "Correct positive, or leave these customers out.",
    )
    OTHER_POSITIVE = "the positive class is {positive!r} here, as there is no {wanted!r}"
    CLASSES_ABSENT = "class_weight names {classes:names}, which this customer does not have"
    BEYOND_BOUNDS = "{count:of target} of {rows} lie beyond `bounds`, which no prediction does"

    # Of any column with a role.
    INFINITE = "the {role} {subject!r} holds {count:of infinite value}.", MAKE_FINITE
    LISTS = "the column {subject!r} holds lists or the like; numbers or text are needed."
    WRONG_WEIGHTS = (
        "the weights {subject!r} are missing, negative, infinite or no numbers in {rows:of row} (first in row {row:d})."
    )
    NO_WEIGHT = "the weights {subject!r} are all 0."
    TIME_EMPTY = "the time column {subject!r} is empty in {rows:of row}; every row needs a moment."
    TIME_UNDECIDED = (
        "the time column {subject!r} holds dates whose day and month cannot be told apart; set `dates: day_first` or "
        "`dates: month_first`."
    )
    TIME_NO_DATE = (
        "the time column {subject!r} holds {value!r}, which is no date such as 2024-03-31; set `dates` to how its "
        "dates are written."
    )
    BASELINE_EMPTY = (
        "the baseline's column {subject!r} is empty in {missing} of {rows:of row} with a target (first in row "
        "{row:d}): each of these rows needs a prediction.",
        CORRECT_BASELINE,
    )
    BASELINE_NO_NUMBER = _BASELINE + "which is no number.", CORRECT_BASELINE
    BASELINE_NO_PROBABILITY = _BASELINE + "and not the probability of {positive!r}, from 0 to 1.", CORRECT_BASELINE
    BASELINE_NEITHER = (
        _BASELINE + "which is no class of the target here ({classes:names}), nor the probability of {positive!r}, from "
        "0 to 1.",
        CORRECT_BASELINE,
    )
    BASELINE_NO_CLASS = _BASELINE + "which is no class of the target here ({classes:names}).", CORRECT_BASELINE

    # Of features.
    NO_FEATURE = (
        "no usable feature: {columns:all}.",
        "The columns are empty, constant or ids. Bring others, or derive them with prepare.",
    )
    NO_COLUMN = "no usable feature: there is no other column.", "Bring columns, or derive them with prepare."
    LEFT_OUT = "left out: {columns:all}"
    EMPTY_OR_CONSTANT = "{subject} (empty or constant)"
    COMPLEX = "{subject} (complex numbers)"
    OF_LISTS = "{subject} (holds lists or the like)"
    OF_BYTES = "{subject} (holds bytes that are no text)"
    UNDECIDED = (
        "{subject} (dates whose day and month cannot be told apart; set `dates: day_first` or `dates: month_first`)"
    )
    NAMES_ROWS = "{subject} (nearly every value is unique: list it in `features` to use it anyway)"
    SEEMING = "{subject} ({seeming})"
    TAKEN_AS_TEXT = "{subject}: taken as text; it seems to hold {seeming}"
    TAKEN_AS_MISSING = "{subject}: {count:of value} other than {kind:kind}, taken as missing ({example!r})"
    SEVERAL_ROWS = (
        "prepare makes {columns:names} of more than one row: scores are too good where hold-out rows have a part in "
        "them, and a prediction depends on the rows that it is made with",
        "",
        Shown.END,
    )

    # What text seems to be.
    NUMBERS_AS_TEXT = "numbers such as {example!r}: in a CSV set {csv:settings}, else convert them"
    AMOUNTS_AS_TEXT = "amounts such as {example!r}: have `prepare` make numbers of them"
    DATES_AS_TEXT = "dates: have `prepare` make numbers of them, such as the days since another date"
    DATES_IN_NOTATIONS = "dates in several notations: write them in one, or convert them with `prepare`"

    # Of new rows.
    COLUMNS_ABSENT = "columns are missing: {columns:names}; the model was fitted with them."
    COLUMN_CHANGED = (
        "column {subject!r} held {before:kind} when the model was fitted, now it holds {now:kind}{example:then , such "
        "as }."
    )
    COLUMN_NO_TEXT = (
        "column {subject!r} held text when the model was fitted, now it holds {now:kind} ({dtype}); convert it, for "
        "example with .astype(str)."
    )

    # Why a task or a positive class is guessed.
    TASK_GUESS = "{whys:all ; }"
    BY_NUMBERS = "numbers, {distinct} different ones in {rows:of row}"
    BY_COUNTS = "whole numbers, {distinct} different ones in {rows:of row}: counts more often than classes"
    BY_WHOLE_NUMBERS = "whole numbers with {distinct} different values ({labels:all})"
    BY_CLASSES = "text or classes with {distinct} different values ({labels:all}){seeming:then ; these seem to be }"
    ODD_VALUES = "customer {subject!r} has {count:of value} other than a number, such as {example!r}"
    OTHER_TASK = "{subject!r} alone is {task} ({why})"
    POSITIVE_BY_NAME = "by its name, beside {other!r}"
    POSITIVE_BY_RARITY = "it is the rarer class, {share:.3g} % of {rows:of row}, beside {other!r}"

    # Of the order of rows.
    ROWS_SORTED = "the rows are sorted by {subject!r}{follow:then  and }"
    ROWS_FOLLOW = (
        "the target follows that of the row before{by:after , in the order of } (lag-1 autocorrelation "
        "{correlation:.2f} of a plain model's errors)"
    )
    OF_CUSTOMERS = "for {found} of the {looked_at:of customer} looked at, {what}"

    # Of the hold-out and the folds.
    HOLD_OUT_LEAVES = (
        "the hold-out leaves too few {subject} for the search: {left:d}; at least 2 are needed.",
        OTHER_SPLIT,
    )
    TOO_FEW_PARTS = (
        "{count:d} different {subject}; a split needs at least 3: to learn from, to validate on, and to hold out.",
        OTHER_SPLIT,
    )
    ONE_CLASS = "the rows of the search hold a single class; at least two are needed.", MORE_ROWS
    CLASS_OF_ONE_ROW = (
        "a class has a single row in the search; at least 2 are needed to validate on it.",
        MORE_ROWS,
    )
    FEWER_FOLDS = "{folds:of fold} in place of {wanted:d}: too few rows, classes, groups or moments"
    FOLDS_UNDEFINED = "{metric} is not defined in {count} of {folds:of fold}, which are left out"
    SPLIT_AT_RANDOM = "split at random, not by {subject!r}: {why}"
    STABLE_SHARE = (
        "{held} of {rows:of row} are held out, where `split.test` is {share:.0%}: under `type: stable` hashes say "
        "which, and of few rows these may be few or many"
    )
    STABLE_MOVED = (
        "{moved} of {rows:of row} are not in the part that their hashes say, for lack of rows to hold out or of a "
        "class to learn from; they may move as rows come"
    )

    # Of the metric.
    UNDEFINED = (
        "{metric} is not defined in any of the {folds:of fold}: their rows are too few, of too few classes, all alike "
        "or without weight. Choose another metric or split."
    )
    ZERO_TARGETS = (
        "{metric} divides by the target, which is 0 or nearly 0 in {wrong} of {rows:of row}: take mae or rmse."
    )
    NO_LOGARITHM = (
        "{metric} takes the logarithm of 1 + the target, which is -1 or less in {wrong} of {rows:of row}: take rmse or "
        "mae."
    )
    NEGATIVE_TARGETS = (
        "{metric} is for targets of at least 0, and the target is less in {wrong} of {rows:of row}: take rmse or mae."
    )
    NO_POSITIVE_TARGETS = (
        "{metric} is for targets above 0, and the target is 0 or less in {wrong} of {rows:of row}: take "
        "mean_poisson_deviance, where no target is below 0, or rmse."
    )
