"""What went wrong with one attempt, and what to do about it. Pure.

A provider raises `Fault` with what the other side said; `judge` turns it into one of six verdicts. All knowledge of how
the servers of this world word their errors stands here.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from recalld.actors.llm.modes import JSON_OBJECT, JSON_SCHEMA

CONNECTION, TIMEOUT, GARBLED = "connection", "timeout", "garbled"
OVERLOADED, SERVER_ERROR = "overloaded", "server_error"


class Fault(Exception):
    """One attempt failed. `status` is the HTTP status, None when none came back; `said` the other side's own words.

    `code` is a machine word: the provider's, or `connection`, `timeout`, `garbled`. `retry_after` is in seconds.
    """

    def __init__(
        self, status: int | None, code: str = "", said: str = "", param: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(code or str(status))
        self.status, self.code, self.said, self.param = status, code, said, param
        self.retry_after = retry_after


class Verdict(Enum):
    AGAIN = auto()  # passing: try again after a wait
    SLOWER = auto()  # too many calls: everybody waits
    MODE = auto()  # this way of sending a schema is not understood
    PARAMETER = auto()  # a parameter is not understood, or its value is too large
    OVERFLOW = auto()  # the prompt does not fit
    REFUSED = auto()  # it will not change its mind


@dataclass(frozen=True, slots=True)
class Judgement:
    """`cause` is a short word for people; `parameter` the one to leave out, or to lower to `limit`.

    `lasting` says that the server would answer so every time, whatever the prompt.
    """

    verdict: Verdict
    cause: str
    parameter: str = ""
    limit: int | None = None
    lasting: bool = True


_OVERFLOW = re.compile(
    r"context.?(length|window|size|limit)|exceed_context_size|maximum context|prompt is too long|"
    r"input is too long|input token count|too many (input )?tokens|request_too_large|reduce the length|"
    r"number of input tokens|longer than the model|exceeds? the (maximum|available) (context|number of tokens)",
    re.IGNORECASE,
)
_MODE = re.compile(
    r"response[_ ]?format|json_?schema|json_?object|json mode|structured.?output|output_config|output_format|"
    r"response_?(json_?)?schema|response_?mime_?type|grammar|guided|invalid schema|tool_choice|input_schema|"
    r"(does not|doesn't|not) support(ed)?[^.]{0,30}(schema|json)",
    re.IGNORECASE,
)
_OUTPUT_LIMIT = re.compile(r"max_?(completion|output|new)?_?tokens", re.IGNORECASE)
_TOO_LARGE = re.compile(
    r"too large|at most|maximum allowed|maximum value|less than or equal|must be (<|≤)|exceed|>", re.IGNORECASE
)
_UNSUPPORTED = re.compile(
    r"unsupported|not support|does not support|unknown|unrecognized|unexpected|not permitted|extra (inputs|fields)|"
    r"deprecated|only the default|invalid",
    re.IGNORECASE,
)
_OPTIONAL = ("temperature", "max_tokens", "max_completion_tokens", "reasoning_effort", "tool_choice")
_QUOTA = re.compile(r"insufficient_quota|insufficient.?balance|billing|credit balance|exceeded your current quota")
_POLICY = re.compile(
    r"content_?(filter|policy|management)|safety (system|filter|policy|reason)|moderation|responsible_?ai|prohibited",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"model.{0,80}(not found|does not exist|not exist|unknown|no such)|model_not_found", re.I | re.S)
_BAD_KEY = re.compile(r"api.?key (is )?(not valid|invalid|missing|expired)|invalid.{0,10}api.?key", re.IGNORECASE)
_TOO_LARGE_FOR_RATE = re.compile(r"request too large|tokens must be reduced", re.IGNORECASE)
_SLIPPED = re.compile(r"json_validate_failed|failed to (generate|validate) json", re.IGNORECASE)
_COMPLETION = re.compile(r"in the completion|completion tokens|max_tokens|output tokens", re.IGNORECASE)
_LOADING = re.compile(r"loading model|model is loading|overloaded|warming", re.IGNORECASE)

_CAUSES = {400: "bad_request", 401: "unauthorized", 402: "payment_required", 403: "forbidden", 404: "not_found"}


def judge(fault: Fault, mode: str, max_tokens: int | None) -> Judgement:
    """What to do after `fault`, which a call in `mode` (a word of `modes`) asking for `max_tokens` ran into."""
    status, words = fault.status, f"{fault.code} {fault.param} {fault.said}"
    if status is None:
        return Judgement(Verdict.AGAIN, fault.code or CONNECTION)
    if status == 429:
        if _TOO_LARGE_FOR_RATE.search(words):
            return Judgement(Verdict.OVERFLOW, "request_too_large")
        # An account that is empty has no time to name; a quota of a minute or a day has.
        empty = fault.retry_after is None and _QUOTA.search(words)
        return Judgement(Verdict.REFUSED, "quota") if empty else Judgement(Verdict.SLOWER, "rate_limited")
    if status in (400, 413, 422, 500) and _OVERFLOW.search(words):
        if max_tokens and _COMPLETION.search(words):
            return Judgement(Verdict.PARAMETER, "output_limit", "max_tokens", lasting=False)
        return Judgement(Verdict.OVERFLOW, "context_length")
    if status in (400, 422) and _POLICY.search(words):
        return Judgement(Verdict.REFUSED, "content_policy")
    if status in (400, 404, 422, 500, 501) and not _NO_MODEL.search(words):
        found = _parameter(fault, words, max_tokens)
        if found is not None:
            return found
        if mode in (JSON_SCHEMA, JSON_OBJECT) and _SLIPPED.search(words):
            return Judgement(Verdict.MODE, "schema_missed", lasting=False)
        if mode in (JSON_SCHEMA, JSON_OBJECT) and _MODE.search(words):
            return Judgement(Verdict.MODE, "schema_mode")
    if status == 413:
        return Judgement(Verdict.OVERFLOW, "request_too_large")
    if status in (408, 409, 425) or status >= 500 or (status == 404 and _LOADING.search(words)):
        return Judgement(Verdict.AGAIN, OVERLOADED if status in (502, 503, 504, 529) else SERVER_ERROR)
    if _NO_MODEL.search(words):
        return Judgement(Verdict.REFUSED, "model_not_found")
    if _BAD_KEY.search(words):
        return Judgement(Verdict.REFUSED, "unauthorized")
    return Judgement(Verdict.REFUSED, _CAUSES.get(status, "bad_request"))


def _parameter(fault: Fault, words: str, max_tokens: int | None) -> Judgement | None:
    """The optional parameter that a server does not take, or takes only up to a limit."""
    if max_tokens and _OUTPUT_LIMIT.search(words):
        numbers = [int(one) for one in re.findall(r"\d{2,7}", fault.said.replace(",", ""))]
        below = [one for one in numbers if one < max_tokens]
        if below and _TOO_LARGE.search(words):
            return Judgement(Verdict.PARAMETER, "output_limit", "max_tokens", max(below))
        if _UNSUPPORTED.search(words):
            other = "max_tokens" if fault.param != "max_completion_tokens" else "max_completion_tokens"
            return Judgement(Verdict.PARAMETER, "unsupported", other)
    if not _UNSUPPORTED.search(words):
        return None
    for name in _OPTIONAL:
        if fault.param == name or (not fault.param and re.search(rf"\b{name}\b", fault.said)):
            return Judgement(Verdict.PARAMETER, "unsupported", name)
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a response asks to be left alone: `retry-after-ms`, `Retry-After` in seconds or as an HTTP date.

    A date is measured from the response's own `Date`, so that clocks that differ do no harm. None when nothing readable
    is said. Header names are taken in any case.
    """
    told = {key.lower(): value.strip() for key, value in headers.items()}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        if name in told:
            try:
                seconds = float(told[name]) / scale
            except ValueError:
                continue
            return seconds if math.isfinite(seconds) and seconds >= 0 else None
    until, since = _http_date(told.get("retry-after", "")), _http_date(told.get("date", ""))
    return None if until is None or since is None else max(0.0, until - since)


def _http_date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def from_body(status: int, body: Any, headers: Mapping[str, str]) -> Fault:
    """The fault in an error response of any of the APIs; `body` is its decoded JSON, or its text."""
    error: Any = body
    if isinstance(body, list) and body:
        error = body[0]
    if isinstance(error, Mapping):
        error = error.get("error", error.get("detail", error))
    wait = retry_after(headers)
    if isinstance(error, Mapping):
        words = [error.get(key) for key in ("code", "type", "status")]
        code = " ".join(dict.fromkeys(str(one) for one in words if isinstance(one, str) and one))
        said = error.get("message") or error.get("error") or ""
        param = error.get("param") if isinstance(error.get("param"), str) else ""
        if wait is None:
            wait = _retry_delay(error.get("details"))
        return Fault(status, code, str(said)[:2000], str(param or ""), wait)
    said = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
    return Fault(status, "", said[:2000], "", wait)


def _retry_delay(details: Any) -> float | None:
    """Google's `RetryInfo`: `{"retryDelay": "37s"}` among an error's details."""
    for one in details if isinstance(details, list) else ():
        delay = one.get("retryDelay") if isinstance(one, Mapping) else None
        if isinstance(delay, str) and re.fullmatch(r"\d{1,6}(\.\d+)?s", delay):
            return float(delay[:-1])
    return None


def detail(fault: Fault, secret: str | None) -> str:
    """A fault in one line, for eyes on this machine: status, code, the other side's words; never the key."""
    words = " ".join(f"{fault.status or ''} {fault.code} {fault.said}".split())
    if secret:
        words = words.replace(secret, "***")
        # Providers quote a wrong key with its middle left out.
        words = re.sub(re.escape(secret[:6]) + r"\S*", "***", words) if len(secret) > 8 else words
    return words[:300]
