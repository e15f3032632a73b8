"""What is wrong with a customer's data, or was left out of it."""

from tuning.notes.note import NoteCode


class DataCode(NoteCode):
    """A note on data, or the reason why a customer has no model."""

    OVER_LIMIT = (
        "{what} has {count:d} {unit}, more than limits.{subject}: {most:d}; {way_out}.",
        "Raise the limit that is named, if the machines have the memory.",
    )
    AT_LEAST_OVER_LIMIT = (
        "{what} has at least {count:d} {unit}, more than limits.{subject}: {most:d}; {way_out}.",
        "Raise the limit that is named, if the machines have the memory.",
    )
    DATA_CHANGED = (
        "the data has changed since the run was planned: resume the run, which tunes it anew.",
        "Resume the run: it takes the new rows.",
    )
    FILE_GONE = (
        "the data has changed since the run was planned: {subject} is not there any more. Bring it back, and resume "
        "the run.",
        "Put the file back, or correct data; then resume the run.",
    )
