"""What a plan says of a run before it begins."""

from tuning.notes.note import NoteCode, Shown


class PlanCode(NoteCode):
    """A note of a plan. Codes come in the order of their worth to the reader, in which plans show them."""

    def __init__(self, text: str, advice: str = "", shown: Shown = Shown.PLAN) -> None:
        super().__init__(text, advice, shown)

    # Why nothing would come of the run, or of some customers, on this machine.
    RESOURCES_TOO_LARGE = (
        "resources.{subject}{customers:after  of }: {asked} is more than there is here: {have}. Request less, or run "
        "it where there is a larger machine."
    )
    GROUP_TOO_LARGE = (
        "a trial{subject:then  of } takes {cpus:of CPU} with its {workers}, more than the {slots:of slot}: take fewer "
        "{workers}, or more `slots`."
    )
    GROUP_WITHOUT_GPUS = (
        "a trial{subject:then  of } takes {asked:of GPU} with its {workers}, more than this machine has: {have}."
    )
    SHADOWED_PACKAGE = (
        "{subject} in the current folder has the name of a package, and workers of the cluster would import it: rename "
        "it."
    )

    # What is not in the data as the definition has it.
    NOT_SAMPLED = "customer {subject!r} was not sampled: {why}."
    FILES_LEFT_OUT = (
        "data: {files:of file} left out, of no known format or below a name that begins with `_`: {first:names 3}."
    )
    TABLES_APART = (
        "each of the {tables:of file} is a table of its own; give the folder instead of a pattern to take them as one."
    )
    COLUMN_MISSING = "{key}: {lacking} of the {customers:of customer} looked at have no column {subject!r}."
    CLASS_MISSING = (
        "{subject}: no class {label!r} in the target of the {customers:of customer} looked at; there are "
        "{classes:names}."
    )
    METRIC_UNDEFINED = "metric, of {lacking} of the {customers:of customer} looked at ({subject!r}): {why}."
    CUSTOMERS_TOO_SMALL = (
        "{customers:of customer} with fewer rows than min_rows ({least}) will have no model of their own: "
        "{first:names 3}."
    )
    LOOK_ALIKES = (
        "{groups:of group} of customers differ only in case, blanks or Unicode form, such as {pairs:spelled}: each "
        "gets a model of its own."
    )
    TEXT_LIKE_VALUES = "column {subject!r} seems to hold {what}."

    # What was guessed.
    ROWS_IN_ORDER = (
        "{why}. Are later rows to be predicted from earlier ones? `split: {{type: time, column: {subject}}}`; if not, "
        "`split: {shuffled}`."
    )
    SPLIT_BY_TIME = "split by time, the latest rows by {subject!r} held out: {why}; `split: {shuffled}` if not meant."
    BINARY_GUESSED = (
        "task 'binary' with positive class {positive!r} is guessed from {customers:count customer}: {why}; set `task` "
        "and `positive` to choose."
    )
    TASK_GUESSED = "task {subject!r} is guessed from {customers:count customer}: {why}; set `task` to choose."
    POSITIVE_GUESSED = "positive class {positive!r} is guessed: {why}; set `positive` to choose."

    # What a search does not do although the definition names it.
    MODEL_FOR_OTHER_TASKS = "{subject!r} is left out: it is for {tasks}, the task is {task}."
    MODEL_WITHOUT_PROBABILITIES = (
        "{subject!r} is left out: it has no probabilities, which {metric!r} needs. Choose accuracy or f1_macro"
        "{constant:then , or add to its space the constant }."
    )
    MODEL_NOT_TRIED = "the model {subject!r} could not be tried before the run: {why}."
    PORTFOLIO_LEFT_OUT = (
        "portfolio: {left_out} of {configurations:of configuration} are not in the search space, such as {example}: "
        "{why}."
    )
    RANDOM_SEARCH = (
        "{subject} is random search here: it proposes nothing before {start:of trial} have ended, and a study has "
        "{trials}; raise trials{option:then  or lower }."
    )
    ALL_KNOWN = (
        "all {trials:of trial} of a study come from {sources}, so the algorithm proposes none: raise trials to have it "
        "search."
    )
    DEAF_TO_STOPPED = (
        "{subject} ({options}) learns from full trials only, and {scheduler} stops most: take scheduler: fifo, or "
        "another algorithm."
    )
    DEAF_TO_SCORES = "warm_start: {subject} learns nothing from known scores."
    GRID_CUT = "{subject} has {configurations:of configuration}, and a study tries {trials}: raise trials to try all."
    NEVER_IN_TIME = (
        "scheduler {subject}: {option} {value} is not below the {steps:of step} of a full trial{models:after  of }, so "
        "none of these is ever {then}."
    )
    POOL_OFF_HERE = "pool: {pool} is off here: {why}."

    # What the run could do faster.
    SLOTS_IDLE = (
        "only {studies} of {slots:of slot} work, as a study under {subject} is one process{lacking:then  without }: "
        "`scheduler: asha` uses all slots."
    )
    MANY_SLOTS = "slots: {slots:of trial} at once on the {cpus:of CPU} of this machine slow each other down."
    SMALL_WITH_WORKERS = (
        "{small} of {studies:of study} have {rows} rows or fewer, which one process trains faster than several. A "
        "manifest gives actors to single customers."
    )
    MANY_FOLDERS = "loggers: {trials:of trial} are as many folders; TensorBoard shows some thousand."
