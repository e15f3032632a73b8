"""Plots of a run's leaderboard for the summary run: what tuning gained, customer by customer.

Drawn as SVG text: importing matplotlib and pandas would cost a second of CPU at the end of every run.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

UP, DOWN = "#2a7f9e", "#b5523b"
WIDTH, HEIGHT = 800, 450
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 40, 55
TICKS = 5
MOST_BARS = WIDTH - LEFT - RIGHT  # a bar for each pixel; more customers are drawn as quantiles

Row = tuple[str, float, float]


def leaderboard_plots(board: bytes) -> dict[str, bytes]:
    """name → SVG: the gain of every customer, and tuned against default scores; {} when nothing was scored.

    board: the leaderboard as CSV.
    """
    scored = list(_scored(board))
    if not scored:
        return {}
    metric = scored[0][0]
    gains = sorted((_gain(row) for row in csv.DictReader(io.StringIO(board.decode()))), key=lambda gain: -gain)
    plots = {"plots/default-and-tuned.svg": _scores(scored, metric)}
    gains = [gain for gain in gains if math.isfinite(gain)]
    if gains:
        plots["plots/gain.svg"] = _gains(gains, metric)
    return {name: text.encode() for name, text in plots.items()}


def _scored(board: bytes) -> Iterator[Row]:
    for row in csv.DictReader(io.StringIO(board.decode())):
        tuned, default = _number(row.get("test_score")), _number(row.get("default_test_score"))
        if math.isfinite(tuned) and math.isfinite(default):
            yield row.get("metric") or "score", default, tuned


def _gain(row: dict[str, str]) -> float:
    gain = _number(row.get("gain"))
    return gain if math.isfinite(gain) else -math.inf


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


@dataclass(frozen=True)
class _Axes:
    """Data coordinates → pixels."""

    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        return LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def down(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM)


def _gains(gains: Sequence[float], metric: str) -> str:
    count = min(len(gains), MOST_BARS)
    shown = [gains[position * len(gains) // count] for position in range(count)]
    axes = _Axes((0.5, len(gains) + 0.5), _span([0.0, *gains]))
    width, zero = (WIDTH - LEFT - RIGHT) / count, axes.down(0.0)
    bars = []
    for position, gain in enumerate(shown):
        end = axes.down(gain)
        bars.append(
            f'<rect x="{LEFT + position * width:.2f}" y="{min(zero, end):.2f}" width="{width:.2f}" '
            f'height="{abs(zero - end):.2f}" fill="{UP if gain > 0 else DOWN}"/>'
        )
    bars.append(_line(LEFT, zero, WIDTH - RIGHT, zero))
    title = f"Tuning helped {sum(gain > 0 for gain in gains)} of {len(gains)} customers"
    label = f"gain over the default configuration ({metric}, hold-out)"
    return _figure(axes, bars, title, "customers, the largest gain first", label, whole=True)


def _scores(scored: Sequence[Row], metric: str) -> str:
    span = _span([value for _, default, tuned in scored for value in (default, tuned)])
    axes = _Axes(span, span)
    dots = [_line(axes.across(span[0]), axes.down(span[0]), axes.across(span[1]), axes.down(span[1]))]
    dots += [
        f'<circle cx="{axes.across(default):.1f}" cy="{axes.down(tuned):.1f}" r="3.5" fill="{UP}" fill-opacity="0.7"/>'
        for _, default, tuned in scored
    ]
    title = "One dot per customer; on the line nothing has changed"
    return _figure(axes, dots, title, f"default configuration ({metric}, hold-out)", f"tuned ({metric}, hold-out)")


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or max(abs(high), 1.0) * 0.04
    return low - margin, high + margin


def _ticks(low: float, high: float, whole: bool) -> Iterator[float]:
    """Round numbers inside a span, about five."""
    step = 10.0 ** math.floor(math.log10((high - low) / TICKS))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= TICKS)
    step = max(1.0, step) if whole else step
    first = math.ceil(low / step)
    for number in range(first, math.floor(high / step) + 1):
        yield number * step


def _figure(axes: _Axes, content: list[str], title: str, across: str, down: str, whole: bool = False) -> str:
    bottom, middle = HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        *content,
        f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="black"/>',
    ]
    lines += [_text(axes.across(tick), bottom + 18, f"{tick:.6g}") for tick in _ticks(*axes.x, whole)]
    lines += [_text(LEFT - 8, axes.down(tick) + 4, f"{tick:.6g}", "end") for tick in _ticks(*axes.y, False)]
    lines += [
        _text(middle, 24, title, size=15),
        _text(middle, HEIGHT - 12, across),
        f'<g transform="translate(18 {(TOP + bottom) / 2}) rotate(-90)">{_text(0, 0, down)}</g>',
        "</svg>",
    ]
    return "\n".join(lines)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="black" stroke-width="0.8"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
