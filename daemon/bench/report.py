"""A benchmark's result: numbers for programs, tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from recalld.daemon.commands import output


@dataclass(slots=True)
class Report:
    """`data` is the whole result; `tables` are (title, header, rows) made from it; `lines` follow them as they are."""

    data: dict[str, Any]
    tables: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.tables.append((title, list(header), [[cell(value) for value in row] for row in rows]))


def cell(value: Any) -> str:
    """A figure as people read it: shares and scores with three digits, milliseconds with one or two."""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def show(report: Report, as_json: bool) -> None:
    if as_json:
        output.print_json(report.data)
        return
    out = output.console()
    for title, header, rows in report.tables:
        table = Table(title=f"[bold]{title}[/]", title_justify="left", box=None, pad_edge=False)
        for place, name in enumerate(header):
            table.add_column(name, justify="left" if place == 0 else "right", no_wrap=place == 0)
        for row in rows:
            table.add_row(*row)
        out.print(table)
        out.print()
    for line in report.lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def times(name: str, summary: Mapping[str, float]) -> list[Any]:
    """A row of a latency table."""
    return [name, summary["p50"], summary["p95"], summary["p99"], summary["per_second"], int(summary["calls"])]


TIMES = ["", "p50 ms", "p95 ms", "p99 ms", "per second", "calls"]
