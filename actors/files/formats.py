"""Texts out of the formats that need no library: plain text, Markdown, CSV, JSON, HTML. And which format a file has."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from html.parser import HTMLParser
from typing import Final

from recalld.storage.errors import FileUnreadable

TEXT, CSV, JSON, HTML = "text", "csv", "json", "html"
PDF, DOCX, PPTX, XLSX = "pdf", "docx", "pptx", "xlsx"
OWN: Final = (TEXT, CSV, JSON, HTML)
BY_LIBRARY: Final = (PDF, DOCX, PPTX, XLSX)

_SUFFIXES: Final = {
    **dict.fromkeys(("txt", "text", "md", "markdown", "rst", "log", "org", "tex", "yaml", "yml", "toml", "ini"), TEXT),
    **dict.fromkeys(("srt", "vtt", "py", "js", "ts", "java", "go", "rs", "c", "h", "cpp", "sh", "sql", "xml"), TEXT),
    **dict.fromkeys(("csv", "tsv"), CSV),
    **dict.fromkeys(("json", "jsonl", "ndjson"), JSON),
    **dict.fromkeys(("html", "htm", "xhtml"), HTML),
    **{one: one for one in BY_LIBRARY},
}
_TYPES: Final = {
    "text/csv": CSV,
    "text/tab-separated-values": CSV,
    "application/json": JSON,
    "application/x-ndjson": JSON,
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "application/pdf": PDF,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": DOCX,
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": PPTX,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": XLSX,
}
_IN_ZIP: Final = ((b"word/", DOCX), (b"ppt/", PPTX), (b"xl/", XLSX))
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Those that files still come in; among look-alikes (cp1250, mac_roman) a guess on a short text would be a toss.
_ENCODINGS: Final = ["cp1252", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1251"]
UNKNOWN_KIND: Final = (
    "Files of this kind are not read here; text, Markdown, HTML, CSV, JSON, PDF, DOCX, PPTX and XLSX are."
)


def format_of(name: str, content_type: str, head: bytes, entries: bytes = b"") -> str:
    """The format of a file: by its first bytes where they tell, else by its name, else by what the sender says.

    `entries` are the names inside a zip. Raises `FileUnreadable` for a kind nobody reads here.
    """
    if head.startswith(b"%PDF-"):
        return PDF
    if head.startswith(b"PK\x03\x04"):
        for mark, found in _IN_ZIP:
            if mark in entries:
                return found
        raise FileUnreadable("A zip archive is not read here; send the files in it.")
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    named = _SUFFIXES.get(suffix) or _TYPES.get(content_type.partition(";")[0].strip().lower())
    if named is not None and named in BY_LIBRARY:
        raise FileUnreadable(f"This is no {named.upper()} file, whatever its name says; it may be damaged.")
    if named is None and _is_binary(head):
        raise FileUnreadable(UNKNOWN_KIND)
    if named in (None, TEXT) and re.match(rb"\s*(?:<!doctype html|<html[\s>])", head[:200], re.IGNORECASE):
        return HTML
    return named or TEXT


def _is_binary(head: bytes) -> bool:
    if any(head.startswith(bom) for bom, _ in _BOMS):
        return False
    odd = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return odd > len(head) * 0.1


def decode(data: bytes) -> str:
    """Bytes as text: by their mark, as UTF-8, else by the best guess. Raises `FileUnreadable`."""
    for bom, name in _BOMS:
        if data.startswith(bom):
            return data.decode(name, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if not _is_binary(data[:4096]):
        try:
            from charset_normalizer import from_bytes
        except ImportError:
            raise FileUnreadable("The text is not UTF-8; save it as UTF-8, or install recalld[files].") from None
        best = from_bytes(data[:200_000], cp_isolation=_ENCODINGS).best()
        if best is not None:
            return data.decode(best.encoding, "replace")
    raise FileUnreadable("This is not text in an encoding that can be told; save it as UTF-8.")


def from_own(kind: str, text: str) -> str:
    """The text to retain of a file in a format of ours."""
    if kind == CSV:
        return from_csv(text)
    if kind == HTML:
        return from_html(text)
    return text.lstrip("\ufeff")


# -- CSV -------------------------------------------------------------------------------------------------------------


def from_csv(text: str) -> str:
    """Each row as a line that stands alone, with the names of its columns. Raises `FileUnreadable`."""
    csv.field_size_limit(10_000_000)
    sample = text[:20_000]
    try:
        dialect: type[csv.Dialect] | str = csv.Sniffer().sniff(sample, ",;\t|")
    except csv.Error:
        dialect = "excel"
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), dialect) if any(cell.strip() for cell in row)]
    except csv.Error:
        raise FileUnreadable("The table cannot be read; a quotation mark may be missing.") from None
    if not rows:
        return ""
    names = [" ".join(cell.split()) or f"column {place}" for place, cell in enumerate(rows[0], 1)]
    if len(rows) == 1:
        return ", ".join(names)
    return "\n".join(_row(names, row) for row in rows[1:])


def _row(names: list[str], row: list[str]) -> str:
    named = [*names, *(f"column {place}" for place in range(len(names) + 1, len(row) + 1))]
    cells = ((name, " ".join(cell.split())) for name, cell in zip(named, row, strict=False))
    return "- " + "; ".join(f"{name} = {cell}" for name, cell in cells if cell)


# -- HTML ------------------------------------------------------------------------------------------------------------

_SILENT: Final = frozenset(
    ("script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head", "select")
)
_BLOCKS: Final = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset"),
        *("figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "p", "pre", "section"),
        *("summary", "table", "tbody", "td", "th", "thead", "tr", "ul"),
    )
)
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}


class _Reader(HTMLParser):
    """Collects the visible text, with headings, lists, tables and links as Markdown has them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._silent = 0
        self._title = False
        self.title = ""
        self._pre = 0
        self._links: list[tuple[str, int]] = []
        self._lists: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._title = True
        if tag in _SILENT:
            self._silent += 1
        elif tag == "body":
            self._silent = 0  # a head that was never closed
        if self._silent:
            return
        if tag in _HEADINGS:
            self.out.append("\n\n" + _HEADINGS[tag])
        elif tag == "br":
            self.out.append("\n")
        elif tag in ("ul", "ol"):
            self._lists.append(1 if tag == "ol" else 0)
            self.out.append("\n")
        elif tag == "li":
            depth = max(0, len(self._lists) - 1)
            number = self._lists[-1] if self._lists else 0
            self.out.append("\n" + "  " * depth + (f"{number}. " if number else "- "))
            if number:
                self._lists[-1] += 1
        elif tag in ("td", "th"):
            self.out.append(" | ")
        elif tag == "tr":
            self.out.append("\n")
        elif tag == "a":
            self._links.append((dict(attrs).get("href") or "", len(self.out)))
        elif tag in _BLOCKS:
            self._pre += tag == "pre"
            self.out.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._title = False
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
            return
        if self._silent:
            return
        if tag in _HEADINGS or (tag in _BLOCKS and tag not in ("td", "th", "tr")):
            if tag in ("ul", "ol") and self._lists:
                self._lists.pop()
            self._pre -= tag == "pre" and self._pre > 0
            self.out.append("\n\n")
        elif tag == "a" and self._links:
            target, start = self._links.pop()
            shown = "".join(self.out[start:]).strip()
            if target.startswith(("http://", "https://")) and shown and shown != target:
                self.out[start:] = [f"[{shown}]({target})"]

    def handle_data(self, data: str) -> None:
        if self._title:
            self.title += data
        elif self._pre and not self._silent:
            self.out.append(data)
        elif not self._silent:
            shown = re.sub(r"\s+", " ", data)
            begins = not self.out or self.out[-1][-1:] in "\n "
            self.out.append(shown.lstrip(" ") if begins else shown)


def from_html(text: str) -> str:
    """The visible text of a page as Markdown; its title is the first heading."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    body = re.sub(r"[ \t]+\n", "\n", "".join(reader.out))
    body = re.sub(r"\n{3,}", "\n\n", body).strip()
    title = " ".join(reader.title.split())
    return f"# {title}\n\n{body}" if title and not body.startswith("# ") else body


def check_json(text: str) -> None:
    """Raises `FileUnreadable` when neither the whole nor each line is JSON: a damaged file must not pass for prose."""
    try:
        json.loads(text)
        return
    except ValueError:
        pass
    except RecursionError:
        raise FileUnreadable("The JSON is nested too deeply.") from None
    try:
        for line in text.splitlines():
            if line.strip():
                json.loads(line)
    except (ValueError, RecursionError):
        raise FileUnreadable("This is neither JSON nor JSON lines; the file may be cut off.") from None
