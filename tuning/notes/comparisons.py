"""What readers of a comparison must know: what was matched, left out or failed, and what cannot be concluded."""

from tuning.notes.note import NoteCode


class ComparisonCode(NoteCode):
    """A note on a comparison. Codes come in the order in which comparisons show them. noun: what a task is called."""

    REPETITIONS_DIFFER = (
        "A/A check FAILED, do not trust the p-values: the {repetitions:of repetition} of {subject}, compared as if "
        "each were an algorithm, differ (p = {p:.2g}). Either {noun}s depend on each other, such as copies, or the "
        "repetitions were not run alike."
    )
    ONE_TASK = (
        "One {noun}: nothing can be concluded about other {noun}s. The tests below compare {seeds:of seed} and hold "
        "for this {noun} alone."
    )
    ONE_SEED = (
        "One seed: every figure of a single {noun} includes the luck of one search, and the A/A check is not "
        "possible. Use 5 seeds or more."
    )
    TOO_FEW = (
        "{blocks:of {unit}}: no difference can be significant at {alpha:g} (the smallest possible p is "
        "{smallest:.3g}); it takes at least {needed:of {unit}}."
    )
    TOO_FEW_FOR_SO_MANY = (
        "{blocks:of {unit}}: no difference can be significant at {alpha:g} (the smallest possible p is "
        "{smallest:.3g}, times {family} for as many comparisons); it takes at least {needed:of {unit}}. Fewer "
        "algorithms, or a named baseline, need fewer."
    )
    FAILED_ON = "{subject} failed on {failed} of {tasks:of {noun}} and counts as worst there: {names:places}."
    SEARCHES_FAILED = (
        "{searches:of further search} of {subject} finished no trial and counts as worst of its {noun} and seed."
    )
    TRIALS_FAILED = "Failed trials: {counts:all}."
    FAILED_EVERYWHERE = "Left out, since every algorithm failed there: {names:places}."
    FEWER_SEEDS = (
        "{subject} has fewer seeds than other algorithms on {fewer} of {tasks:of {noun}}; its means are over those "
        "that there are."
    )
    GRID_INCOMPLETE = "Left out, without a complete grid: {names:places}."
    SAME_TRIALS = (
        "{methods:all  and } have the same score in every single trial: they tried the same configurations. A "
        "model-based algorithm starts at random; give it more trials, or a shorter start."
    )
    UNEQUAL_TRIALS = (
        "Unequal numbers of trials on {unequal} of {tasks:of task}: on {subject!r} {method} has {least}, the longest "
        "{most}. Every method is judged at the number that all of them reached."
    )
    ON_HOLD_OUT = (
        "On hold-out rows that no search has seen, {tasks:of {noun}}: mean ranks {ranks:all}. Against {subject}: "
        "{pairs:all ; }."
    )
    PAIR_ON_HOLD_OUT = "{subject} better on {wins}, worse on {losses} (p = {p:.2g}, uncorrected)"
    REPETITIONS_ALIKE = (
        "A/A check: the {repetitions:of repetition} of {subject}, compared as if each were an algorithm, differ no "
        "more than by luck (p = {p:.2g})."
    )
