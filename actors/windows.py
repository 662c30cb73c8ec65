"""Which tokens go through the model together: a text behind its context, or a long text in overlapping windows.

Pure arithmetic on token counts. A model takes `capacity` tokens at once (its own marks, prefix and date taken off).
A text that fits is one window, with as much of the end of its context in front as still fits. A longer text is cut
into windows of equal size that overlap by a quarter of the capacity; the first has a quarter of context in front.
Every token of the text belongs to exactly one window, the one in which it stands farthest from a cut.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Window", "plan"]


@dataclass(frozen=True, slots=True)
class Window:
    """One pass: context tokens `[context_from:]`, own tokens `[start:stop]`; `[keep_from:keep_to]` belong to it."""

    context_from: int
    start: int
    stop: int
    keep_from: int
    keep_to: int


def plan(own: int, context: int, capacity: int) -> list[Window]:
    """The windows for `own` tokens behind `context` tokens; never empty, also when `own` is 0."""
    if own <= capacity:
        kept = min(context, capacity - own)
        return [Window(context - kept, 0, own, 0, own)]
    overlap = capacity // 4
    lead = min(context, overlap)
    total = own + lead
    count = 1 + -(-(total - capacity) // (capacity - overlap))
    size = min(capacity, -(-(total + (count - 1) * overlap) // count))
    # Positions count from the first context token in front, so window 0 starts at 0 and the last ends at `total`.
    starts = [round(i * (total - size) / (count - 1)) for i in range(count)]
    cuts = [lead, *((starts[i] + size + starts[i + 1]) // 2 for i in range(count - 1)), total]
    windows = []
    for i, start in enumerate(starts):
        context_from = context - lead if i == 0 else context
        windows.append(
            Window(context_from, max(start, lead) - lead, start + size - lead, cuts[i] - lead, cuts[i + 1] - lead)
        )
    return windows
