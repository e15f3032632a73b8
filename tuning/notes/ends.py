"""Why a trial, a study or a last fit ended as it did."""

from tuning.notes.note import NoteCode, Shown


class EndCode(NoteCode):
    """A reason in the records of trials and studies."""

    RAISED = (
        "{error}",
        "Run one of these customers alone, with --customer and --in-process: that prints the traceback.",
        Shown.CUSTOMER,
        True,
    )

    # Of trials: what their schedulers and stopping rules have decided.
    RUNG_CUTOFF = "{subject}: rung {rung:g}, score {score:.6g} is worse than the cutoff {cutoff:.6g}"
    MEDIAN_CUTOFF = (
        "{subject}: step {step}, best score {score:.6g} is worse than the median {median:.6g} of {others} others' "
        "averages"
    )
    NOT_AMONG_BEST = "{subject}: rung {step}, score {score:.6g} not among the best {kept}"
    NOT_AMONG_BEST_OF = (
        "{subject}: rung {step}, score {score:.6g} not among the best {kept} (the last of them has {worst:.6g})"
    )
    SCORE_NOT_FINITE = "{subject}: score {score} at step {step} is not a finite number"
    STUDY_PLATEAU = "{subject}: nothing better than {best:.6g} in the last {trials:of trial}"
    STUDY_TIME = "{subject}: the budget of {seconds:g} s is spent"
    TARGET_REACHED = "{subject}: trial {trial} reached {score:.6g} (target {target:.6g})"
    TRIAL_PLATEAU = "{subject}: nothing better than {best:.6g} since step {step}"
    STOPPED_AT_STEP = "{subject} stopped it after step {step}"
    PAUSED_FOR_GOOD = "{subject} paused it after step {step} for good"

    # Of trials: how they failed.
    NO_STEP = "training ended without a single step"
    NON_FINITE_METRIC = "the score is {score} at step {step}"
    TOOK_LONGER = "it took longer than limits.{subject}: {limit:g}"
    TOOK_LONGER_WITHOUT_STEP = (
        "it took longer than limits.{subject}: {limit:g}, and it reported no step that could end it"
    )
    STUDY_TOOK_LONGER_WITHOUT_STEP = (
        "its study took longer than limits.{subject}: {limit:g}, and the trial reported no step that could end it"
    )
    HANG = "it made no step for {seconds:of second}, which is taken for a hang; limits.trial_seconds sets another"
    WORKER_COULD_NOT_WORK = "its worker could not work: {error}"

    # Of studies: why they ended, or have no model.
    ALL_TRIALS_DONE = "all {trials:of trial} are done"
    NO_CONFIGURATION_LEFT = "the algorithm has no configuration after {trials:of trial}"
    PART_FAILED = "the {subject} failed while {doing}: {error}"
    OBJECTIVE_NOT_LOADED = (
        "the objective cannot be loaded in a worker: {error}. Install its package there, or define it in the script or "
        "notebook itself.",
        "Install the objective's package on the machines of the workers.",
    )
    TRAINER_NOT_ANNOUNCED = (
        "the objective gives back a {subject}, and nobody knows before what its workers take. Let its parameter say "
        "so: `{example}`, and hand it on to the trainer."
    )
    TRAINER_TOO_LARGE = (
        "the objective gives back a {subject} with {asked}, and its trials have room for {room}. Hand the parameter "
        "`{parameter}` on to the trainer."
    )
    STATE_OF_ENDED_TRIAL = "a trial that has ended cannot pass its model to another trial."
    NO_STATE = (
        "the training code of family {subject!r} gives no `Step.get_state`, so that trial {trial} cannot pass its "
        "model to another trial; use a scheduler that needs no state (docs/schedulers.md)."
    )
    STATE_FAILED = "`Step.get_state` of trial {trial} failed at step {step}: {error}"
    PAUSED_IN_TURN = "{subject} paused trial {trial}, but trials run one after another here."
    REPORT_NOT_SENT = "what trial {trial} reports cannot be sent: {error}"
    OTHER_SUGGESTION = (
        "trial {trial} was suggested as {config}, now comes {now}: the definition, the data or a library has changed "
        "since; run the study anew."
    )
    STOPS_EARLIER = (
        "trial {trial} went on after step {step}, now its scheduler stops it there: the definition, the data or a "
        "library has changed since; run the study anew."
    )
    NEEDS_ALL_TRIALS = "a scheduler that pauses trials needs all of them: such a study restarts whole."
    MORE_STEPS = (
        "the objective yields step {step}, but a full trial has `steps: {steps:g}`, at which other trials end. Set "
        "`steps` to the number of steps that it yields."
    )
    NO_TRIAL_RUN = "no trial was run."
    NO_TRIAL_FINISHED = (
        "no trial finished, of {trials} ({failed} failed, {stopped} stopped){most_often:then ; most often: }",
        "The search ran, but no trial did to its end. The trials' own reasons are in the records.",
    )
    TRIALS_RUN = "{run} of {trials:of trial} were run"
    UNSAVED_MODEL = (
        "the model could not be saved: {error}. Remove the cause, or set `save_models: false`, and resume the run.",
        "Remove the cause, or set save_models: false; then resume the run.",
    )
    QUARANTINED = (
        "{subject} has ended its worker {times:of time}: {cause}. Reproduce it with: {command}",
        "The study is set aside. The command in the reason runs it in a debugger.",
    )
    CUSTOMER_LACKS = "customer {subject!r} has no {what}: {why}."
    NOT_SAVED = "models were not saved (save_models: false)", "Start a new run with save_models: true."
    OBJECTIVE_TUNED = "an objective was tuned; result.best_config() is what won, and result.trials() the search"
    LOOKS_AT_NO_COLUMN = "it is a constant, which looks at no column"
    BEST_SO_FAR = "{why}; best so far {best}"
    NOT_FINISHED_YET = "not finished yet"
    NOT_FINISHED = "not finished yet: resume the run", "Resume the run."
    TIME_BUDGET_SPENT = (
        "not finished: the time budget ({budget}) is spent; resume with a larger one",
        "Resume the run with a larger time_budget.",
    )
    NO_PLACE = (
        "{subject}: it takes {takes}, for which the machines that are there have no room, and none has joined them "
        "within {seconds:g} s; add one, then resume the run{more:then  with more }",
        "Add a machine that is large enough, or ask for less; then resume the run.",
    )
    WORKER_DIED = "its worker died: a crash, a time limit or too much memory"
