"""Which scheduler goes with which algorithm: asked of the specs, and shown as the table in docs/schedulers.md.

python -m schedulers.compatibility     # prints the tables
"""

from __future__ import annotations

from collections.abc import Collection

from schedulers.registry import specs
from schedulers.spec import SchedulerSpec
from schedulers.stopping.registry import rules


def check(spec: SchedulerSpec, algorithm: str, unlearning: Collection[str]) -> str | None:
    """Why this pair cannot be used, as a sentence that names the way out; None if it can.

    unlearning: the algorithms that learn nothing from trials. They alone go with a scheduler that mutates: a score says
    nothing about a trial's first configuration once the trial has taken over another one's model.
    """
    able = unlearning if spec.mutates else spec.algorithms
    if able is None or algorithm in able:
        return None
    return (
        f"scheduler {spec.name} cannot be used with algorithm {algorithm}: {spec.why}; "
        f"use algorithm {' or '.join(sorted(able))}, or another scheduler"
    )


def scheduler_table() -> str:
    """One Markdown row per scheduler."""
    lines = [
        "| scheduler | what it does | pauses trials | needs their state | algorithms |",
        "|---|---|---|---|---|",
    ]
    for name, spec in specs().items():
        named = "all" if spec.algorithms is None else ", ".join(sorted(spec.algorithms))
        algorithms = "those that learn from nothing" if spec.mutates else named
        needs = f"{_yes(spec.pauses)} | {_yes(spec.needs_state)}"
        lines.append(f"| `{name}` | {spec.summary} | {needs} | {algorithms} |")
    return "\n".join(lines)


def option_table() -> str:
    """One Markdown row per option of a scheduler."""
    lines = ["| scheduler | option | default |", "|---|---|---|"]
    for name, spec in specs().items():
        lines += [f"| `{name}` | `{option}` | {_default(f)} |" for option, f in spec.model_fields.items()]
    return "\n".join(lines)


def rule_table() -> str:
    """One Markdown row per stopping rule."""
    lines = ["| rule | what it does | options |", "|---|---|---|"]
    for name, rule in rules().items():
        options = ", ".join(f"`{option}`" for option in rule.model_fields)
        lines.append(f"| `{name}` | {rule.summary} | {options} |")
    return "\n".join(lines)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _default(field: object) -> str:
    value = getattr(field, "default", None)
    return "from the length of a trial" if value is None else str(value).lower()


if __name__ == "__main__":
    print(scheduler_table(), option_table(), rule_table(), sep="\n\n")  # noqa: T201  # this is a program
