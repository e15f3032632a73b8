"""What the API takes and answers, beside definitions and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tuning.service.extract_child import RowCell
from tuning.service.states import RunState

WITHOUT_NUL = r"^[^\x00]*$"  # of a text that is looked for in the database: PostgreSQL takes no other
RUN_ID = "5f0c9f3ab2d44e10a7c1b2d3"
MOST_TRIALS, MOST_SLOTS = 1_000_000, 100_000  # that a resume may ask for
Id = Annotated[str, Field(examples=[RUN_ID], max_length=64)]


class _Message(BaseModel):
    #: Also of a row of the database, in which times are seconds since 1970.
    model_config = ConfigDict(frozen=True, from_attributes=True)


class ProgressMessage(_Message):
    """How far a run says it is."""

    customers: int = Field(description="Customers that the run has.", examples=[1000])
    studies: int = Field(examples=[1000])
    done_studies: int = Field(examples=[412])
    trials: int = Field(description="Expected number; a study that ends early lowers it.", examples=[20000])
    done_trials: int = Field(examples=[8240])
    failed_trials: int = Field(description="Trials that raised or crashed.", examples=[3])
    without_model: int = Field(description="Studies that ended without a model.", examples=[2])
    share: float = Field(description="The work that is done, from 0 to 1.", examples=[0.41])
    seconds: float = Field(description="Since the run's work began.", examples=[312.5])
    seconds_left: float | None = Field(description="At the latest pace; null until it is known.", examples=[448.0])
    median_gain: float | None = Field(description="Of the models over the baseline, on hold-out rows.", examples=[0.07])
    best: float | None = Field(description="The best score so far, of a run of one study.", examples=[None])
    doing: str = Field(description="What takes its time before the next result.", examples=[""])
    line: str = Field(description="The same for people.", examples=["412/1000 customers, 8240 trials, 7 min left"])
    updated: AwareDatetime = Field(description="When the run said so.")


class RunMessage(_Message):
    """A submitted run."""

    id: Id
    name: str = Field(examples=["churn"])
    team: str = Field(examples=["retention"])
    state: RunState = Field(examples=["running"])
    reason: str = Field(description="Why it is in that state.", examples=[""])
    place: int | None = Field(description="In the queue of all teams, from 1; null unless it waits.", examples=[None])
    priority: int = Field(description="Among the team's runs; the highest is first.", examples=[0])
    slots_asked: int | None = Field(description="null for the team's share.", examples=[None])
    slots: int = Field(description="Those that it has now.", examples=[4])
    attempts: int = Field(description="How often it was resumed after the machine had failed.", examples=[0])
    submitted: AwareDatetime
    started: AwareDatetime | None
    ended: AwareDatetime | None
    not_before: AwareDatetime | None = Field(description="When the next try may begin; null for at once.")
    submitted_by: str | None = Field(
        description="The name of the token that has; null of a schedule's later runs.", examples=["alice"]
    )
    schedule: str | None = Field(description="The schedule that has submitted it.", examples=[None])
    progress: ProgressMessage | None = Field(
        description="null before the run has said how far it is, and in lists unless it works."
    )
    outcome: Mapping[str, object] | None = Field(description="What the run said at its end.")
    definition: Mapping[str, object] | None = Field(
        description="As it was accepted; null in lists.", examples=[{"data": "churn.csv", "target": "churned"}]
    )
    links: Mapping[str, str] = Field(
        description="Where to look further.",
        examples=[{"self": f"/api/v1/runs/{RUN_ID}", "events": f"/api/v1/runs/{RUN_ID}/events"}],
    )


class RunPage(_Message):
    """A page of a team's runs, the newest first."""

    runs: list[RunMessage]
    next: str | None = Field(description="The cursor of the next page; null at the end.", examples=[None])


class EventMessage(_Message):
    """A change of a run's state."""

    id: int = Field(examples=[17])
    run: Id
    at: AwareDatetime
    state: RunState
    reason: str


class ResumeMessage(BaseModel):
    """What a resume may change; without these the run goes on as it was."""

    model_config = ConfigDict(extra="forbid")

    trials: int | None = Field(None, ge=1, le=MOST_TRIALS, description="Number of trials per study.", examples=[40])
    slots: int | None = Field(None, ge=1, le=MOST_SLOTS, description="Slots that it asks for.", examples=[4])


class LeaderboardMessage(_Message):
    """A page of a run's leaderboard."""

    rows: list[Mapping[str, object]] = Field(
        description="One per customer, by column name, as `tuning leaderboard --output json` prints them.",
        examples=[[{"customer": "acme", "status": "ok", "model": "catboost", "test_score": 0.91}]],
    )
    found: int = Field(description="Customers that `search` and `status` leave, on all pages.", examples=[1])
    customers: int = Field(description="All customers of the run.", examples=[1000])
    written: AwareDatetime | None = Field(description="When the rows were so.")


class CustomerMessage(_Message):
    """One customer of a run."""

    row: Mapping[str, object] = Field(description="Its row of the leaderboard.", examples=[{"customer": "acme"}])
    studies: list[Mapping[str, object]] = Field(description="Records of its studies (docs/records.md).")
    trials: list[Mapping[str, object]] | None = Field(
        description="Records of its trials; null where the run has too many to be kept for pages."
    )
    written: AwareDatetime | None = Field(description="When this was so.")


class PredictionsMessage(_Message):
    """Rows with predictions."""

    rows: list[Mapping[str, RowCell]] = Field(
        description="As they were sent, with the new columns; null where there is no prediction.",
        examples=[[{"region": "north", "age": 41, "prediction": "no", "probability_no": 0.83}]],
    )
    column: str = Field(description="That of the predictions, one that no row had.", examples=["prediction"])
    without: Mapping[str, Mapping[str, object]] = Field(
        description="Customers without a prediction, and why: `code`, `subject`, `values` and `text`.", examples=[{}]
    )
    held_back: int = Field(description="Predictions that went beyond `bounds`, and were held there.", examples=[0])
    without_interval: int = Field(
        description="Predictions without the interval that was asked for: the pool's, and those of models that were "
        "fitted without a search.",
        examples=[0],
    )
    pooled: list[str] = Field(
        description="Customers without a model of their own, whose rows the run's pool predicts.", examples=[[]]
    )
    unseen: Mapping[str, int] = Field(
        description="By column the rows with a text that no training row of their model had.", examples=[{"region": 1}]
    )


class PlanMessage(_Message):
    """A plan that was asked for."""

    id: Id
    state: str = Field(description="waiting, planning, planned, or refused.", examples=["planned"])
    result: Mapping[str, object] | None = Field(
        description="As `tuning plan --output json` prints it.", examples=[{"customers": 1000, "trials": 20000}]
    )
    problem: str | None = Field(description="Why there is no plan.", examples=[None])
    code: str | None = Field(description="The kind of the problem, for programs.", examples=[None])
    values: Mapping[str, object] = Field(description="The problem's figures, names and notes.", examples=[{}])
    at: AwareDatetime = Field(description="When it was asked for.")
    links: Mapping[str, str]


class ScheduleMessage(_Message):
    """A definition that is submitted again and again."""

    id: Id
    name: str = Field(examples=["churn"])
    cron: str = Field(examples=["0 3 * * 1"])
    time_zone: str = Field(examples=["Europe/Berlin"])
    next: AwareDatetime = Field(description="When it is submitted next.")
    last: AwareDatetime | None = Field(description="When it was planned for the last time.")
    problem: str | None = Field(description="Why the last time made no run.", examples=[None])
    definition: Mapping[str, object]
    links: Mapping[str, str]


class SchedulePage(_Message):
    """A team's schedules."""

    schedules: list[ScheduleMessage]


class HealthMessage(_Message):
    """Whether the server works."""

    status: str = Field(examples=["ok"])
