"""The JSON that goes with an upload: one entry a file, and who converts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from recalld.actors.retain.canonical import parse_timestamp
from recalld.actors.retain.items import RetainItem
from recalld.daemon.wire.base import RequestModel, ResponseModel, Tags
from recalld.daemon.wire.requests import MAX_ID_CHARS
from recalld.storage.errors import BadRequest, Unprocessable

PARSERS = ("markitdown",)
"""Who can be named: formats of its own are read by recalld itself, whoever is named."""
_OF_A_FILE = ("document_id", "context", "metadata", "tags", "timestamp", "strategy", "trust")

Parser = str | list[str] | None


class FileMetadata(RequestModel):
    """What is known of one file."""

    document_id: str | None = Field(None, max_length=MAX_ID_CHARS)
    context: str | None = None
    metadata: dict[str, str] | None = None
    tags: Tags | None = None
    timestamp: str | None = None
    parser: Parser = None
    strategy: str | None = None
    # beyond the contract
    trust: Literal["trusted", "normal", "untrusted"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _replaces(cls, value: Any) -> Any:
        if isinstance(value, dict) and "update_mode" in value:
            raise ValueError("update_mode is not taken for files: a file replaces the document it names")
        return value

    @field_validator("timestamp")
    @classmethod
    def _readable(cls, value: str | None) -> str | None:
        if value is None or not value.strip():
            return None
        parse_timestamp(value)
        return value.strip()


class FileRetainRequest(RequestModel):
    """`files_metadata` has one entry a file, in their order; `parser` is one name or a chain of them."""

    parser: Parser = None
    files_metadata: list[FileMetadata] | None = None

    @model_validator(mode="before")
    @classmethod
    def _in_their_place(cls, value: Any) -> Any:
        if isinstance(value, dict):
            if "update_mode" in value:
                raise ValueError("update_mode is not taken for files: a file replaces the document it names")
            for name in _OF_A_FILE:
                if name in value:
                    raise ValueError(f"{name} belongs to a file: put it into its entry of files_metadata")
        return value

    def items(self, count: int) -> list[RetainItem]:
        """An item for each file, without its text. Raises `BadRequest` for an unknown parser, `Unprocessable`."""
        entries = self.files_metadata or [FileMetadata.model_validate({}) for _ in range(count)]
        found = []
        for number, entry in enumerate(entries):
            _check_parser(self.parser)
            _check_parser(entry.parser)
            fields = entry.model_dump(exclude={"parser"}, exclude_none=True)
            try:
                found.append(RetainItem.parse({**fields, "content": "-"}))
            except ValueError as error:
                raise Unprocessable(f"files_metadata[{number}]: {error}") from None
        return found


def _check_parser(parser: Parser) -> None:
    for name in [parser] if isinstance(parser, str) else parser or ():
        if name not in PARSERS:
            raise BadRequest(f"There is no parser {name[:60]!r}; there is {', '.join(PARSERS)}.")


class FileRetainResponse(ResponseModel):
    operation_ids: list[str]
