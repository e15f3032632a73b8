"""A benchmark's results for people: tables in Markdown, a plot, the machine that they come from."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.contenders import contenders
from benchmarks.results import TierResult, as_plain
from benchmarks.workload import FIXED


def write(folder: Path, results: list[TierResult], scaled: dict[str, Any] | None) -> None:
    """`results.json` (every single run), `results.md` (the tables), `results.png` (the plot)."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {"machine": machine(), "results": as_plain(results), "scaling": scaled}
    (folder / "results.json").write_text(json.dumps(values, indent=1))
    (folder / "results.md").write_text(text(results, scaled) + "\n")
    plot(results, folder / "results.png")


def text(results: list[TierResult], scaled: dict[str, Any] | None) -> str:
    """All tables, with the machine above them."""
    parts = [machine_text()]
    for result in results:
        parts += [heading(result), table(result)]
        if result.search == FIXED:
            parts += filter(None, [goals(result)])
        if phases := result.by_phase():
            parts.append(f"Core-ms per customer: {', '.join(f'{name} {ms:.2f}' for name, ms in phases.items())}.")
        parts += without_model(result)
        if result.skipped:
            parts.append("Skipped: " + "; ".join(result.skipped) + ".")
    if scaled:
        parts.append(f"1 → 2 cores at {scaled['tier']}: {scaled['speedup_1_to_2']:.2f}×")
    return "\n\n".join(parts)


def heading(result: TierResult) -> str:
    kind = (
        "one fixed list of full-length configurations"
        if result.search == FIXED
        else "each with its own search and scheduler"
    )
    lines = [f"### Tier {result.tier}, {kind}", f"{result.customers} customers × {result.trials} trials"]
    if result.pure:
        plain, prepared, own = (1000 * result.pure[kind] for kind in ("plain", "prepared", "own"))
        lines[1] += (
            f"; pure fits {plain:.2f} core-ms per trial plain, {prepared:.2f} prepared, {own:.2f} by our families"
        )
    return f"{lines[0]}\n\n{lines[1]}; {result.cores} cores."


def table(result: TierResult) -> str:
    """One row per contender; medians over its runs."""
    lines = [
        "| contender | runs | ms per trial | core-ms per trial | core-ms per customer | η | ours is … × as fast "
        "| start-up s | finish s | validation score | hold-out score |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, contender in contenders().items():
        if name not in result.runs:
            continue

        def value(figure: str, name: str = name) -> float:
            return result.figure(name, figure) or 0.0

        lines.append(
            f"| {contender.title} | {len(result.runs[name])} | {1000 * value('seconds'):.2f} "
            f"| {1000 * value('core_seconds'):.2f} | {result.core_ms_per_customer(name) or 0:.1f} "
            f"| {result.eta(name) or 0:.2f} | {result.against(name) or 0:.2f} | {value('startup'):.1f} "
            f"| {value('finish'):.1f} | {value('score'):.4f} | {value('test_score'):.4f} |"
        )
    return "\n".join(lines)


def without_model(result: TierResult) -> list[str]:
    """Which contender left customers without any full-length trial: one scheduler for all of them does that."""
    titles = {name: contender.title for name, contender in contenders().items()}
    counts = {titles[name]: [run.details.get("without_model", 0) for run in runs] for name, runs in result.runs.items()}
    found = [f"{title} {max(missing)}" for title, missing in counts.items() if any(missing)]
    return [f"Customers without a single full-length trial: {'; '.join(found)}."] if found else []


def goals(result: TierResult) -> str:
    """Figures of the command line's JSON object, and MLflow's share with its interval."""
    names = ("eta", "eta_prepared", "overhead_core_ms", "driver_mb_per_10k_trials", "startup_s", "vs_ray_tasks")
    bins = ("vs_ray_tasks_64_bins", "vs_ray_tasks_own_defaults")
    summary = result.summary()
    told = [f"`{name}` {summary[name]}" for name in (*names, *bins) if summary[name] is not None]
    if share := result.mlflow_share():
        told.append(
            f"MLflow's copy takes {share} of the core-seconds; its pairs differ by {result.mlflow_share_of_pairs()}"
        )
    return "; ".join(told) + "." if told else ""


def plot(results: list[TierResult], path: Path) -> None:
    """Milliseconds per trial by contender and tier, on a log scale; the line is the pure fits over the cores."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    fixed = [result for result in results if result.search == FIXED]
    figure, axes = pyplot.subplots(1, len(fixed), figsize=(4.5 * len(fixed) + 1.5, 4), squeeze=False, sharey=True)
    known = {name: each for name, each in contenders().items() if any(name in result.runs for result in fixed)}
    places = {name: place for place, name in enumerate(known)}
    axes[0][0].set_yticks(list(places.values()), [each.title for each in known.values()])
    axes[0][0].invert_yaxis()
    for axis, result in zip(axes[0], fixed, strict=True):
        seconds = {name: 1000 * (result.figure(name, "seconds") or 0.0) for name in known if name in result.runs}
        colours = ["tab:blue" if name.startswith("ours") else "tab:grey" for name in seconds]
        bars = axis.barh([places[name] for name in seconds], list(seconds.values()), color=colours)
        axis.bar_label(
            bars,
            [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in seconds.values()],
            padding=3,
            fontsize=8,
        )
        axis.axvline(1000 * result.pure["plain"] / result.cores, color="black", linestyle="--", linewidth=1)
        axis.set_xscale("log")
        axis.margins(x=0.2)
        axis.set_title(f"Tier {result.tier}: {1000 * result.pure['plain']:.1f} core-ms of fits")
        axis.set_xlabel("wall ms per trial (dashed: pure fits)")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def machine() -> dict[str, Any]:
    """The machine's shape and the versions that the figures depend on."""
    memory = re.search(r"MemTotal:\s+(\d+)", _read("/proc/meminfo"))
    model = re.search(r"model name\s+:\s+(.+)", _read("/proc/cpuinfo"))
    packages = ("ray", "mlflow", "optuna", "scikit-learn", "xgboost", "joblib", "numpy", "pandas", "pyarrow")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model.group(1) if model else platform.processor(),
        "memory_gb": round(int(memory.group(1)) / 1e6, 1) if memory else None,
        "kernel": platform.release(),
        "load_before": round(os.getloadavg()[2], 2),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def machine_text() -> str:
    facts = machine()
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return (
        f"{facts['date']}: {facts['cores']} cores ({facts['cpu']}), {facts['memory_gb']} GB, Linux {facts['kernel']}, "
        f"load average of the last 15 minutes {facts['load_before']}. Python {facts['python']}, {versions}."
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
