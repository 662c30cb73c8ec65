"""The error tree. Every failure a caller can see is one of these, with an HTTP status, a stable code and a sentence.

    RecalldError                       500 internal
    ├── BadRequest                     400 bad_request
    ├── Unprocessable                  422 unprocessable
    │   ├── ModelUnusable              422 model_unusable    (a model file that is named cannot be found or used)
    │   ├── ModelRefused               422 model_refused     (a language model said no; asking again does not help)
    │   ├── ModelOverflow              422 model_overflow    (too long for the model; split, then ask again)
    │   ├── CapReached                 422 cap_reached       (a request's own cap on model calls or money)
    │   ├── Redacted                   422 redacted          (a policy refuses what a text holds)
    │   └── FileUnreadable             422 file_unreadable   (an upload cannot be turned into text)
    ├── Unauthorized                   401 unauthorized
    ├── Forbidden                      403 forbidden
    ├── NotFound                       404 not_found
    │   └── BankNotFound               404 bank_not_found
    ├── Conflict                       409 conflict
    │   ├── OperationIdTaken           409 operation_id_taken
    │   └── Superseded                 409 superseded         (internal: the plan is stale, plan again)
    ├── TooManyRequests                503 busy               (carries retry_after seconds)
    │   ├── Unavailable                503 unavailable        (a shard is restarting)
    │   │   └── BankCold               503 unavailable        (internal: load the bank, then ask again)
    │   ├── Quarantined                503 quarantined        (a bank takes no writes until it is released)
    │   ├── ModelRateLimited           503 model_rate_limited (a model provider asks for patience)
    │   ├── ModelUnavailable           503 model_unavailable  (a model provider is down or out of reach)
    │   └── BudgetExhausted            429 budget_exhausted   (a cap on model calls, tokens or money is reached)
    ├── Gone                           410 gone               (an operation that is no longer offered)
    ├── TooLarge                       413 too_large
    ├── DeadlineExceeded               504 deadline
    ├── ClientClosed                   499 client_closed
    ├── DiskFull                       507 disk_full
    ├── ModelMismatch                  409 model_mismatch
    ├── HomeInUse                      409 home_in_use
    ├── ModelAnswerUnusable            502 model_answer_unusable (no repair makes sense of a model's answer)
    ├── NoAnswer                       500 no_answer         (a reflect whose model gave no text)
    ├── DateParseError                 500 date_parser        (internal: recall marks its temporal arm as failed)
    ├── StoreCorrupt                   500 store_corrupt
    └── CodecError                     500 codec            (internal: a message that cannot cross)

The HTTP layer has no other mapping. A message never carries text from the store or from a library's exception.
"""

from __future__ import annotations

from typing import Any, ClassVar


class RecalldError(Exception):
    """Base of every error the project raises on purpose."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str = "Something went wrong inside recalld; the daemon's log has the details.") -> None:
        super().__init__(message)
        self.message = message

    def to_wire(self) -> dict[str, Any]:
        """Plain data that crosses between processes; `from_wire` is its inverse."""
        return {"code": self.code, "message": self.message, "retry_after": getattr(self, "retry_after", None)}


class BadRequest(RecalldError):
    status, code = 400, "bad_request"


class Unprocessable(RecalldError):
    status, code = 422, "unprocessable"


class ModelUnusable(Unprocessable):
    """A model file in the settings cannot be found or used; the message says what to give instead."""

    code = "model_unusable"


class ModelRefused(Unprocessable):
    """A language model or its provider said no, and will again: a refusal, a wrong key, a model that is not there.

    `cause` is a short word for what it was (`content_policy`, `unauthorized`, `bad_request` ...). `detail` is what the
    provider wrote, for eyes on this machine; like every attribute but the message it does not cross to a client.
    """

    code = "model_refused"

    def __init__(
        self, message: str = "The language model refused.", *, cause: str = "refused", detail: str = ""
    ) -> None:
        super().__init__(message)
        self.cause, self.detail = cause, detail


class ModelOverflow(Unprocessable):
    """A call did not fit: `kind` is `input` (prompt above the model's window) or `output` (answer cut off).

    `answer` is what a cut-off answer still held (an `LlmAnswer` with whole items alone), or None.
    """

    code = "model_overflow"

    def __init__(
        self,
        message: str = "The text is too long for the language model; split it.",
        *,
        kind: str = "input",
        answer: Any = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.answer = kind, answer


class Unauthorized(RecalldError):
    status, code = 401, "unauthorized"


class Forbidden(RecalldError):
    status, code = 403, "forbidden"


class NotFound(RecalldError):
    status, code = 404, "not_found"


class BankNotFound(NotFound):
    code = "bank_not_found"

    @classmethod
    def named(cls, bank_id: str) -> BankNotFound:
        return cls(f"Bank '{bank_id}' not found")


class Conflict(RecalldError):
    status, code = 409, "conflict"


class OperationIdTaken(Conflict):
    code = "operation_id_taken"


class Superseded(Conflict):
    """The bank changed under a prepared write; the caller plans and prepares it again."""

    code = "superseded"
    retryable = True


class ModelMismatch(Conflict):
    code = "model_mismatch"


class HomeInUse(Conflict):
    code = "home_in_use"


class TooManyRequests(RecalldError):
    """A lane is full, or a part is restarting; `retry_after` is in whole seconds."""

    status, code = 503, "busy"
    retryable = True

    def __init__(self, message: str = "The daemon is busy; try again shortly.", retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(TooManyRequests):
    """A part is away and expected back: what was asked may simply be asked again."""

    code = "unavailable"


class BankCold(Unavailable):
    """The bank's caches must be loaded first, which the thread that asked may not do."""


class Quarantined(TooManyRequests):
    """A bank that ended its shard again and again takes no writes; asking again soon does not help."""

    code = "quarantined"

    def __init__(self, message: str = "The bank is quarantined; run `recalld doctor`.", retry_after: int = 60) -> None:
        super().__init__(message, retry_after)


class ModelRateLimited(TooManyRequests):
    """A model provider wants fewer calls, for `retry_after` seconds."""

    code = "model_rate_limited"


class ModelUnavailable(TooManyRequests):
    """A model provider does not answer, or answers that it cannot; work that can wait is tried again later."""

    code = "model_unavailable"


class BudgetExhausted(TooManyRequests):
    """A cap of the day on calls, tokens or money keeps a model call from being made; the day ends in `retry_after`."""

    status, code = 429, "budget_exhausted"


class ModelAnswerUnusable(RecalldError):
    """A language model answered, and no repair makes sense of it; another try may fare better."""

    status, code = 502, "model_answer_unusable"
    retryable = True


class CapReached(Unprocessable):
    """The cap a request set itself keeps its next model call from being made; the same request ends so again."""

    code = "cap_reached"


class NoAnswer(RecalldError):
    """A language model was asked all it may be asked and gave no answer; no placeholder stands in for one."""

    status, code = 500, "no_answer"


class Redacted(Unprocessable):
    """The policy `block` refuses an item; the message names kinds and places, never what was found."""

    code = "redacted"


class FileUnreadable(Unprocessable):
    """A file is of a kind nobody reads here, damaged, or takes more time or memory than it may."""

    code = "file_unreadable"


class Gone(RecalldError):
    status, code = 410, "gone"


class TooLarge(RecalldError):
    status, code = 413, "too_large"


class DeadlineExceeded(RecalldError):
    status, code = 504, "deadline"
    retryable = True


class ClientClosed(RecalldError):
    status, code = 499, "client_closed"


class DiskFull(RecalldError):
    status, code = 507, "disk_full"
    retryable = True


class DateParseError(RecalldError):
    """The date words of a question could not be read because a parser broke; the other arms go on without it."""

    code = "date_parser"

    def __init__(self, message: str = "The date parser failed; `recalld doctor` checks it.") -> None:
        super().__init__(message)


class StoreCorrupt(RecalldError):
    status, code = 500, "store_corrupt"


class CodecError(RecalldError):
    """A value that cannot cross between processes, or bytes that this version cannot read."""

    status, code = 500, "codec"


def _tree(root: type[RecalldError]) -> dict[str, type[RecalldError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        # A class without a code of its own is its parent to whoever reads it on the other side.
        for code, kind in _tree(child).items():
            found.setdefault(code, kind)
    return found


def from_wire(data: dict[str, Any]) -> RecalldError:
    """The error that `to_wire` described; an unknown code becomes a plain `RecalldError`."""
    kind = _tree(RecalldError).get(data["code"], RecalldError)
    if issubclass(kind, TooManyRequests):
        return kind(data["message"], data.get("retry_after") or 1)
    return kind(data["message"])
