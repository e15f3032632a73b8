"""What was found out about a customer's models: how they were chosen, and what speaks against them."""

from tuning.notes.note import NoteCode, Shown


class FitCode(NoteCode):
    """A note on a model."""

    CONTRADICTED = "{text}", "", Shown.END
    LEAK = "{text}", "", Shown.END
    CONSTANT_MODEL = (
        "the model is a constant, {what}: on the folds it scores {own}, the best that was found {other}",
        "",
        Shown.END,
    )
