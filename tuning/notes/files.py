"""What is wrong with a file, with the rows that are read from it, or with what `prepare` makes of them."""

from tuning.notes.note import NoteCode, Shown

REPAIR_FILE = "Repair the file, or set csv and encoding as it is written; then resume the run."
MEND_PREPARE = "Mend prepare, and start a new run. `tuning validate` tries it on every customer."


class FileCode(NoteCode):
    """A reason why rows cannot be had."""

    # Of a file.
    FILE_EMPTY = "the file {subject} is empty.", "Fill the file or take it away; then resume the run."
    FILE_NOT_THERE = "the file {subject} is not there.", "Put the file back, or correct data; then resume the run."
    FILE_NAME_NOT_UTF8 = "the file {subject} is not there. Its name is not UTF-8; rename it."
    FILE_FORBIDDEN = (
        "the file {subject} may not be read: permission denied.",
        "Let the user who runs this read the file; then resume the run.",
    )
    FILE_NOT_ENCODED = "the file {subject} is not {encoding} text ({error}); set `encoding`."
    FILE_UNREADABLE = "the file {subject} cannot be read: {error}.", REPAIR_FILE
    FILE_OF_OTHER_KIND = "the file {subject} holds {kind} and no text: {way_out}."
    ONE_COLUMN = "the file {subject} has one column, and more fields in its rows.{csv:separator}"
    WIDER_ROWS = "its rows have more fields than its header; quote fields that hold the separator."
    NO_FILE = "{subject} is {kind}, a file is expected."
    OUTSIDE_ROOTS = "{subject!r} is not below what may be read here ({places:places}). Name a file or folder there."
    LINK_OUTSIDE_ROOTS = (
        "{subject} is a link, or below one, that leads out of what may be read here ({places:places}). Put the file "
        "itself there."
    )
    OTHER_COUNT = (
        "{rows:of row} read, but {counted} counted when customers were found. Start a new run where the data has "
        "changed; else write the key columns as text, so that a key is spelt in one way."
    )
    FILES_WANTED = (
        "the objective takes `files`, and this customer's rows are in the same file as others'; take `data` instead."
    )

    # Of the names of its columns.
    DOUBLED_COLUMN = "{what} has the column {subject!r} twice; rename one."
    NAMELESS_COLUMN = "column {number:d} of {what} has no name; give it one."
    COLUMN_ABSENT = (
        "the {role} {subject!r} is not among the columns: {columns:names}.{csv:separator}",
        "Rename the column in this customer's file, or derive it with prepare.",
    )

    # Of rows in memory.
    UNWRITABLE = "the frame cannot be written: {error}.", "Make the values of a usual type with prepare."
    NO_ROWS = "there are no rows to predict."
    NO_FRAME = (
        "new rows are a pandas DataFrame with the columns by name ({columns:names}){width:then , or an array with a "
        "width of }; this is an array of the shape {shape}."
    )
    OF_CUSTOMER = "customer {subject!r}: {why}."
    PREDICTIONS_STOPPED = "the predictions were stopped."
    OTHER_PREDICTIONS = "its model gave {predictions:of prediction} for {rows:of row}."

    # Of what `prepare` does.
    PREPARE_FAILED = "prepare failed: {error}{csv:separator}", MEND_PREPARE, Shown.CUSTOMER, True
    PREPARE_NO_FRAME = "prepare gave back a {subject}, a DataFrame is expected.", MEND_PREPARE
    PREPARE_LEVELS = (
        "prepare gave back {subject} with labels of {levels:of level} (a MultiIndex); one each is expected.",
        MEND_PREPARE,
    )
    PREPARE_DROPS_ROWS = (
        "prepare returned {rows:of row} for {given}; to predict, it must keep every row. Let it empty the target of "
        "rows that are of no use: the search leaves these out."
    )
    PREPARE_REORDERS = (
        "prepare gives the rows an order and an index of its own, so nobody can tell which is which. Leave out its "
        "reset_index (or ignore_index): predictions are then brought into the order of the rows."
    )
    PREPARE_VARIES = "prepare gave {rows:of row} this time, and {before} before.", MEND_PREPARE
    PREPARE_NEEDS = "columns are missing: {columns:names}; without them {why}."
    PREPARE_MAKES_OTHERS = "prepare does not make {columns:names} as it did"

    # Of a look at them before the run, in a process of its own.
    LOOK_TOOK_LONGER = "{subject} took longer than {seconds:seconds}"
    LOOK_ENDED_PROCESS = "{subject} has ended its process ({end})"
    NOT_FOR_A_PROCESS = "{subject} cannot be passed to a process of its own: {error}"
