"""Commands about memories: retain and recall."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recalld.daemon.commands.common import (
    USAGE,
    CommandError,
    ConfigOption,
    HomeOption,
    JsonOption,
    UrlOption,
    check_readable,
    read_text,
    settings_of,
)

if TYPE_CHECKING:
    from recalld.daemon.commands.connection import Connection

UPLOADED = frozenset((".html", ".htm", ".xhtml", ".csv", ".tsv", ".pdf", ".docx", ".pptx", ".xlsx"))
BATCH = 64  # items of one call: large enough for one flush among many, small enough for a progress bar that moves

BankArgument = Annotated[str, typer.Argument(metavar="BANK", help="Bank; any text. Made when it is new.")]


def retain(
    bank: BankArgument,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What to remember; - reads standard input.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Remember the text of this file; HTML, CSV, PDF, DOCX ... are converted."),
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option(
            "--jsonl", help='Many items, one JSON object a line: {"content": ..., "timestamp": ...}; - is stdin.'
        ),
    ] = None,
    timestamp: Annotated[str | None, typer.Option(help="When it was said, ISO 8601; without an offset UTC.")] = None,
    context: Annotated[str | None, typer.Option(help="The situation, or who speaks.")] = None,
    document_id: Annotated[str | None, typer.Option(help="Document it belongs to; replaces that document.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Add to the document instead of replacing it.")] = False,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Tag; may be repeated.")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", metavar="NAME=VALUE", help="Kept with it; may be repeated.")
    ] = None,
    background: Annotated[
        bool, typer.Option("--async", help="Return before extraction is done, where a daemon runs to do it.")
    ] = False,
    home: HomeOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remember a text, a file or many items.

    What was acknowledged survives a crash.

    Examples:

      recalld retain notes "Ana moved to Porto last May." --timestamp 2026-02-01

      recalld retain notes --file meeting.md --document-id meeting-7 --tag work

      recalld retain notes --jsonl items.jsonl
    """
    from recalld.daemon.commands import output
    from recalld.daemon.commands.connection import connect

    if sum(one is not None for one in (text, file, lines)) != 1:
        raise CommandError("Give one of: a text, --file, or --jsonl.", USAGE)
    common: dict[str, Any] = {
        "timestamp": timestamp,
        "context": context,
        "document_id": document_id,
        "update_mode": "append" if append else None,
        "tags": tag or None,
        "metadata": _pairs(metadata or []) or None,
    }
    common = {name: value for name, value in common.items() if value is not None}
    upload = file is not None and is_upload(file)
    if upload and append:
        raise CommandError("--append takes text files only: other files replace the document they name.", USAGE)
    if upload:
        assert file is not None
        check_readable(file)
        items: list[dict[str, Any]] = [{}]
    elif lines is not None:
        items = by_document([common | item for item in read_items(lines)])
    else:
        items = [{"content": _content(text, file)} | common]
    settings = settings_of(home, config)

    async def work() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        async with connect(settings, url=url, create=True, work=background or upload, seconds=3600) as link:
            if upload:
                assert file is not None
                found = await link.client.retain_files(bank, [file], files_metadata=[common])
                answer = {"success": True, "bank_id": bank, "items_count": 1, **found}
            else:
                answer = await send(link)
            if link.url is not None and (background or not upload):
                return answer, []
            # Nothing runs on when this process ends, so it ends when they have.
            waits = [link.client.wait_operation(bank, one, within=3600) for one in _operations(answer)]
            return answer, await asyncio.gather(*waits)

    async def send(link: Connection) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "success": True,
            "bank_id": bank,
            "items_count": 0,
            "operation_ids": [],
            "receipt": [],
        }
        with output.progress("Retaining", len(items), quiet=as_json or len(items) == 1) as advance:
            for start, stop in batches(items):
                part = await link.client.retain_batch(bank, items[start:stop], asynchronous=background)
                if stop - start == len(items):
                    return part
                answer["items_count"] += part["items_count"]
                answer["operation_ids"] += _operations(part)
                answer["receipt"] += part.get("receipt") or []
                advance(stop - start)
        return answer

    done, ended = asyncio.run(work())
    if as_json:
        output.print_json(done)
    else:
        operations = _operations(done)
        said = ""
        if operations:
            said = ", extraction runs on"
            if ended:
                said = "" if upload else "; no daemon runs, so extraction was waited for"
        print(f"Retained {output.plural(done['items_count'], 'item')} in {bank}{said}.")
        for line in output.receipt_lines(done.get("receipt") or ()):
            print(line)
        for operation in operations:
            print(f"operation {operation}")
    for one in ended:
        if one["status"] != "completed":
            why = one.get("error_message") or "no reason is recorded."
            raise CommandError(f"Operation {one['operation_id']} {one['status']}: {why}")


def _operations(answer: dict[str, Any]) -> list[str]:
    """The operations a retain was turned into."""
    return answer.get("operation_ids") or ([answer["operation_id"]] if answer.get("operation_id") else [])


def recall(
    bank: Annotated[str, typer.Argument(metavar="BANK", help="Bank to search.")],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Question, or words.")],
    types: Annotated[
        list[str] | None, typer.Option("--type", help="world, experience, opinion or observation; may be repeated.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="How widely to look: low, mid or high.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens the memories may have together.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Memories printed; --json prints all.")] = 20,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only memories with a tag; may be repeated.")] = None,
    tags_match: Annotated[str | None, typer.Option(help="any, all, any_strict, all_strict or exact.")] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="When the question is asked; anchors words such as 'last week'.")
    ] = None,
    as_of: Annotated[str | None, typer.Option(help="What the bank knew at that time.")] = None,
    valid_at: Annotated[str | None, typer.Option(help="What was true at that time.")] = None,
    max_ms: Annotated[int | None, typer.Option(help="Deadline in milliseconds.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show which arms found each memory.")] = False,
    why_not: Annotated[
        list[str] | None, typer.Option("--why-not", help="Memory id to explain the absence of; may be repeated.")
    ] = None,
    home: HomeOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what matters to a question.

    Calls no language model.

    Examples:

      recalld recall notes "Where does Ana live?"

      recalld recall notes "What happened last week?" --timestamp 2026-03-02 --trace

      recalld recall notes "deadline" --tag work --max-tokens 512 --json
    """
    from recalld.daemon.commands import output
    from recalld.daemon.commands.connection import connect

    settings = settings_of(home, config)
    options: dict[str, Any] = {
        "types": types or None,
        "budget": budget,
        "max_tokens": max_tokens,
        "tags": tag or None,
        "tags_match": tags_match,
        "query_timestamp": timestamp,
        "as_of": as_of,
        "valid_at": valid_at,
        "max_ms": max_ms,
        "trace": True if trace or why_not else None,
        "why_not": why_not or None,
    }

    async def work() -> dict[str, Any]:
        async with connect(settings, url=url) as link:
            return await link.client.recall(bank, query, **options)

    answer = asyncio.run(work())
    if as_json:
        output.print_json(answer)
        return
    results = answer["results"]
    out = output.console()
    for unit, gate in ((answer.get("trace") or {}).get("why_not") or {}).items():
        out.print(f"{unit}: {gate['gate']}: {gate['reason']}.", markup=False, soft_wrap=True)
    if not results:
        print("Nothing found.")
        return
    arms = output.arms_of(answer.get("trace")) if trace else None
    out.print(output.memories(results[:limit], arms=arms))
    if len(results) > limit:
        out.print(f"... and {len(results) - limit} more; see --limit and --max-tokens.")


def read_items(path: Path) -> list[dict[str, Any]]:
    """Items out of a file of JSON lines. Raises a usage error that names the line which is not one."""
    found = []
    text = _standard_input() if str(path) == "-" else read_text(path)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError:
            raise CommandError(f"{path}, line {number}: this is not JSON.", USAGE) from None
        if not isinstance(item, dict) or "content" not in item:
            raise CommandError(f'{path}, line {number}: an item is an object with a "content".', USAGE)
        found.append(item)
    if not found:
        raise CommandError(f"{path} holds no items.", USAGE)
    return found


def is_upload(file: Path) -> bool:
    """Whether a file is sent as it is, for the daemon to convert; text is sent as text."""
    return file.suffix.lower() in UPLOADED


def _content(text: str | None, file: Path | None) -> str:
    if file is not None:
        content = read_text(file)
    else:
        assert text is not None
        content = _standard_input() if text == "-" else text
    if not content.strip():
        raise CommandError("There is nothing to remember: the text is blank.", USAGE)
    return content


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise CommandError("Standard input is not UTF-8 text.", USAGE) from None


def _pairs(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CommandError(f"--metadata {pair!r} is not NAME=VALUE.", USAGE)
        found[name] = value
    return found


def by_document(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items with those of one document next to each other, else in their order."""
    places: dict[str, int] = {}
    for place, item in enumerate(items):
        if item.get("document_id") is not None:
            places.setdefault(item["document_id"], place)
    order = sorted(range(len(items)), key=lambda at: places.get(items[at].get("document_id") or "", at))
    return [items[at] for at in order]


def batches(items: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Bounds of the calls. The items of one document stay in one call, since a second call would replace the first."""
    start = 0
    while start < len(items):
        stop = min(len(items), start + BATCH)
        document = items[stop - 1].get("document_id")
        while document is not None and stop < len(items) and items[stop].get("document_id") == document:
            stop += 1
        yield start, stop
        start = stop


__all__ = ["batches", "by_document", "read_items", "recall", "retain"]
