"""What a log says of an unexpected exception."""

from __future__ import annotations

from recalld.storage.faults import origin


def broken(text: str) -> None:
    try:
        int(text)
    except ValueError as error:
        raise RuntimeError(f"cannot read {text}") from error


def test_the_origin_of_an_exception_names_types_and_frames_and_quotes_nothing() -> None:
    try:
        broken(" ".join(("my", "diary")))
    except RuntimeError as error:
        found = origin(error)
    assert "builtins.RuntimeError" in found and "builtins.ValueError" in found and "in broken" in found
    assert "my diary" not in found
