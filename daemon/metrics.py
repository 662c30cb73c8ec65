"""Prometheus metrics. Every label value comes from the code (routes, phases, lanes), so their number is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from recalld.daemon.admission import Lane

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.004, 0.006, 0.008, 0.012, 0.02, 0.035, 0.06, 0.1, 0.2, 0.5, 1, 2, 5, 15, 60)

_PARTS = {"banks_by_state": "state", "operations_by_status": "status"}
_ALWAYS = ("flushes_total", "retained_items_total", "date_parser_failures_total")


class Metrics:
    """The daemon's metrics: what the edge counts itself, and the service's snapshot taken at each scrape."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "recalld_http_requests",
            "Requests by route and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "recalld_operation_seconds",
            "Time to answer, by operation.",
            ("operation",),
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._lanes: list[Lane] = []

    def watch(self, lane: Lane) -> None:
        """Show a lane's figures from now on."""
        self._lanes.append(lane)

    def request(self, route: str, method: str, status: int, operation: str, seconds: float) -> None:
        """Count one answered request. `route` is a template and `method` a known one, never a caller's text."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def render(self, snapshot: Mapping[str, Any]) -> bytes:
        """The page: the edge's own figures, the lanes', and those of `snapshot`."""
        page = CollectorRegistry()
        page.register(_Fixed([*_lane_metrics(self._lanes), *snapshot_metrics(snapshot)]))
        return generate_latest(self.registry) + generate_latest(page)


class _Fixed(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _lane_metrics(lanes: list[Lane]) -> Iterator[Metric]:
    running = GaugeMetricFamily("recalld_lane_in_flight", "Requests running, by lane.", labels=("lane",))
    waiting = GaugeMetricFamily("recalld_lane_waiting", "Requests waiting for their turn, by lane.", labels=("lane",))
    refused = CounterMetricFamily("recalld_lane_refused", "Requests answered 503, by lane.", labels=("lane",))
    for lane in lanes:
        running.add_metric((lane.name,), lane.in_flight)
        waiting.add_metric((lane.name,), lane.waiting)
        refused.add_metric((lane.name,), lane.refused)
    yield from (running, waiting, refused)


def snapshot_metrics(snapshot: Mapping[str, Any]) -> Iterator[Metric]:
    """The service's snapshot as metric families; what is no finite number of a plain name is left out."""
    phases = SummaryMetricFamily("recalld_recall_phase_seconds", "Time inside a recall, by phase.", labels=("phase",))
    for phase, figures in sorted((snapshot.get("phases") or {}).items()):
        phases.add_metric((phase,), figures["count"], figures["seconds"])
    yield phases
    for name, label in _PARTS.items():
        family = GaugeMetricFamily(f"recalld_{name}", name.replace("_", " ").capitalize() + ".", labels=(label,))
        for word, count in sorted((snapshot.get(name) or {}).items()):
            family.add_metric((word,), count)
        yield family
    for name in sorted({*_ALWAYS, *snapshot}):
        value = snapshot.get(name, 0)
        if name in _PARTS or not isinstance(value, (int, float)) or not name.isidentifier():
            continue
        text = name.removesuffix("_total").replace("_", " ").capitalize() + "."
        if name.endswith("_total"):
            yield CounterMetricFamily(f"recalld_{name.removesuffix('_total')}", text, value=value)
        else:
            yield GaugeMetricFamily(f"recalld_{name}", text, value=value)
