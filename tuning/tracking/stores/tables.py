"""The tables of an MLflow database that the bulk writer uses, as MLflow's own SQLAlchemy models describe them.

Importing MLflow's models costs 2 seconds of CPU, on a machine whose cores are busy with fits; these cost nothing.
`tests/services/test_mlflow_tables.py` compares both: names, columns, keys and lengths, and that no column that we
leave out must have a value. They are used for the schema revisions in `bulk.TESTED_REVISIONS` only.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, MetaData, String, Table, Text

METADATA = MetaData()
KEY = String(250)
FIGURE = Float(53)

EXPERIMENTS = Table(
    "experiments",
    METADATA,
    Column("experiment_id", Integer, primary_key=True),
    Column("name", String(256), nullable=False),
    Column("artifact_location", String(256)),
    Column("lifecycle_stage", String(32)),
    Column("creation_time", BigInteger),
    Column("last_update_time", BigInteger),
    Column("workspace", String(63), nullable=False),
)
EXPERIMENT_TAGS = Table(
    "experiment_tags",
    METADATA,
    Column("key", KEY, primary_key=True),
    Column("value", Text),
    Column("experiment_id", Integer, primary_key=True),
)
RUNS = Table(
    "runs",
    METADATA,
    Column("run_uuid", String(32), primary_key=True),
    Column("name", String(250)),
    Column("source_type", String(20)),
    Column("source_name", String(500)),
    Column("entry_point_name", String(50)),
    Column("user_id", String(256)),
    Column("status", String(20)),
    Column("start_time", BigInteger),
    Column("end_time", BigInteger),
    Column("source_version", String(50)),
    Column("lifecycle_stage", String(20)),
    Column("artifact_uri", String(200)),
    Column("experiment_id", Integer),
)
PARAMS = Table(
    "params",
    METADATA,
    Column("key", KEY, primary_key=True),
    Column("value", String(8000), nullable=False),
    Column("run_uuid", String(32), primary_key=True),
)
METRICS = Table(
    "metrics",
    METADATA,
    Column("key", KEY, primary_key=True),
    Column("value", FIGURE, primary_key=True),
    Column("timestamp", BigInteger, primary_key=True),
    Column("run_uuid", String(32), primary_key=True),
    Column("step", BigInteger, primary_key=True),
    Column("is_nan", Boolean, primary_key=True),
)
LATEST = Table(
    "latest_metrics",
    METADATA,
    Column("key", KEY, primary_key=True),
    Column("value", FIGURE, nullable=False),
    Column("timestamp", BigInteger),
    Column("step", BigInteger, nullable=False),
    Column("is_nan", Boolean, nullable=False),
    Column("run_uuid", String(32), primary_key=True),
)
TAGS = Table(
    "tags",
    METADATA,
    Column("key", KEY, primary_key=True),
    Column("value", String(8000)),
    Column("run_uuid", String(32), primary_key=True),
)
