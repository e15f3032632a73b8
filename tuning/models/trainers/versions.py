"""Whether the Ray Train that is installed has what a trial's controller extends."""

from __future__ import annotations

from importlib.metadata import version


def unsuitable() -> str:
    """Why Ray Train cannot work here, as a sentence; else empty."""
    try:
        from tuning.models.trainers import controller
    except ImportError as error:
        return (
            f"trainers of Ray Train work with Ray 2.60, and {version('ray')} is installed ({error}): "
            "pip install 'ray[train]==2.60.*'."
        )
    needed = {
        controller.TrainController: ("_poll_workers", "worker_group_cls"),
        controller.WorkerGroup: ("_create_placement_group", "_create_workers"),
    }
    missing = [name for kind, names in needed.items() for name in names if not hasattr(kind, name)]
    if missing:
        return (
            f"trainers of Ray Train work with Ray 2.60, and {version('ray')} is installed, which has no {missing[0]}: "
            "pip install 'ray[train]==2.60.*'."
        )
    return ""
