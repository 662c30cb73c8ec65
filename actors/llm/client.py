"""`ModelClient`: the `Llm` over any provider. The one retry layer, the walk down the modes, and reading the answer.

An attempt is one call of the provider under one permit. Between attempts nothing is held. What an attempt ends in is
recorded each time, so that a ledger sees every call that reached for a provider.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from recalld.actors.llm.base import CallRecord, Limits, LlmAnswer, LlmRequest, Observer, ToolCall, Usage
from recalld.actors.llm.counting import count_call, count_tokens
from recalld.actors.llm.faults import GARBLED, SERVER_ERROR, TIMEOUT, Fault, Judgement, Verdict, detail, judge
from recalld.actors.llm.gate import Endpoint, Gate
from recalld.actors.llm.modes import TEXT, Habits, Memory, with_schema
from recalld.actors.llm.parsing import candidates, clean, without_reasoning
from recalld.actors.llm.provider import Call, Provider, RawToolCall, Reply
from recalld.actors.llm.shapes import Misfit, fit, read_answer
from recalld.storage.errors import (
    ModelAnswerUnusable,
    ModelOverflow,
    ModelRefused,
    RecalldError,
)

_OUTCOMES = {
    Verdict.AGAIN: "model_unavailable",
    Verdict.SLOWER: "model_rate_limited",
    Verdict.MODE: "schema_mode",
    Verdict.PARAMETER: "parameter",
    Verdict.OVERFLOW: "model_overflow",
    Verdict.REFUSED: "model_refused",
}
_REFUSALS = {
    "content_policy": "The language model refused this text (content policy). Other texts are not affected.",
    "unauthorized": "The model provider does not accept the key; set llm.api_key to a valid one.",
    "forbidden": "The model provider does not let this key use the model; see the provider's console.",
    "payment_required": "The model provider wants to be paid first; see the provider's console.",
    "quota": "The quota of the model provider's account is used up; see the provider's console.",
    "model_not_found": "The model provider has no such model; set llm.model to one it has.",
    "not_found": "The model provider knows no such address or model; see llm.base_url and llm.model.",
    "bad_request": "The model provider refused the request as wrong; `recalld doctor` shows what it said.",
}
_STUMBLES = (SERVER_ERROR, GARBLED)
_MOST_ADAPTATIONS = 6
_ASKED_AGAIN = 1


@dataclass(slots=True)
class _Run:
    """One `complete` on its way."""

    request: LlmRequest
    until: float
    modes: list[str]
    skip: set[str] = field(default_factory=set)
    usage: Usage = field(default_factory=Usage)
    attempts: int = 0
    failures: int = 0
    adaptations: int = 0
    slips: int = 0
    left_modes: list[str] = field(default_factory=list)
    call: Call = field(default_factory=lambda: Call(()))
    answers_before: int = 0
    blamed: bool = False

    @property
    def mode(self) -> str:
        return self.modes[0]


class ModelClient:
    """One model, asked through `complete`. Clients of a process share `gate` and `memory`."""

    def __init__(
        self,
        provider: Provider,
        gate: Gate,
        memory: Memory,
        limits: Limits,
        observe: Observer | None = None,
        count: Callable[[str], int] = count_tokens,
    ) -> None:
        self._provider, self._gate, self._limits = provider, gate, limits
        self._observe, self._count = observe, count
        where = (provider.choice.base_url, provider.choice.model)
        self._habits: Habits = memory.of(where)
        self._endpoint: Endpoint = gate.endpoint(*where)

    @property
    def provider(self) -> str:
        return self._provider.choice.provider

    @property
    def model(self) -> str:
        return self._provider.choice.model

    @property
    def habits(self) -> Habits:
        """What this model was seen to refuse; `doctor` shows it."""
        return self._habits

    async def known(self) -> bool | None:
        """Whether the provider says it has the model; None when it cannot tell. Raises `Fault`."""
        await self._provider.open()
        return await self._provider.known()

    async def close(self) -> None:
        await self._provider.close()

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """The answer. Raises what `base` says, and nothing else."""
        deadline = self._limits.deadline if request.deadline is None else request.deadline
        await self._provider.open()
        modes = [""] if request.schema is None else self._habits.open_modes(self._provider.modes)
        run = _Run(request, self._gate.monotonic() + deadline, modes, answers_before=self._endpoint.answers)
        while True:
            try:
                answer = await self._attempt(run)
            except Fault as fault:
                await self._adapt(run, fault)
                continue
            except ModelAnswerUnusable:
                if not self._ask_again(run):
                    raise
                continue
            if run.mode:
                self._habits.worked(run.mode)
                for mode in run.left_modes:
                    self._habits.passed_over(mode)
            return answer

    # -- one attempt ---------------------------------------------------------------------------------------------------

    async def _attempt(self, run: _Run) -> LlmAnswer:
        """Send once and read what comes. Raises `Fault`, and the errors that end a call or ask for another."""
        call = run.call = self._call(run)
        async with self._gate.attempt(
            self._endpoint, run.request.operation, run.until, self._limits.backoff_max
        ) as probe:
            run.attempts += 1
            started = time.perf_counter()
            own_input = count_call(call.messages, call.schema, call.tools)
            usage, outcome, said = Usage(own_input=own_input), "cancelled", ""
            try:
                reply = await self._send(call)
                self._endpoint.succeeded()
                run.answers_before += 1
                usage = replace(
                    reply.usage,
                    own_input=own_input,
                    own_output=self._count(reply.text) + _count_tools(reply, self._count),
                )
                run.usage += usage
                answer = self._read(run, reply)
                outcome = "ok"
                return answer
            except Fault as fault:
                run.usage += usage
                judged = judge(fault, call.mode, call.max_tokens)
                outcome, said = _OUTCOMES[judged.verdict], detail(fault, self._provider.choice.key)
                if judged.verdict is Verdict.AGAIN:
                    # One text that a server stumbles over again and again is no sign that it is down: once is enough.
                    if probe or not run.blamed or judged.cause not in _STUMBLES:
                        self._endpoint.failed(judged.cause, probe)
                    run.blamed = True
                else:
                    self._endpoint.succeeded()
                    run.answers_before += 1
                raise
            except RecalldError as error:
                outcome = error.code
                said = error.detail if isinstance(error, ModelRefused) else ""
                raise
            finally:
                milliseconds = (time.perf_counter() - started) * 1000
                self._record(run, usage, milliseconds, outcome, said)

    async def _send(self, call: Call) -> Reply:
        try:
            async with asyncio.timeout(call.timeout):
                return await self._provider.send(call)
        except TimeoutError:
            raise Fault(None, TIMEOUT, f"no answer within {call.timeout:g} s") from None
        except (Fault, RecalldError):
            raise
        except Exception as error:
            # What an SDK or a reader trips over is an answer out of order, like any other.
            raise Fault(None, GARBLED, type(error).__name__) from error

    def _call(self, run: _Run) -> Call:
        request = run.request
        messages = tuple(replace(one, content=clean(one.content)) for one in request.messages)
        native = run.mode not in ("", TEXT)
        if run.mode == TEXT and request.schema is not None:
            messages = with_schema(messages, request.schema)
        most = request.max_tokens
        if self._habits.output_limit is not None and most is not None:
            most = min(most, self._habits.output_limit)
        limits, temperature, timeout = self._limits, request.temperature, request.timeout
        if temperature is None:
            temperature = limits.temperatures.get(request.operation)
        if timeout is None:
            timeout = limits.timeouts.get(request.operation, limits.timeout)
        return Call(
            messages=messages,
            mode=run.mode,
            schema=request.schema if native else None,
            schema_name=request.schema_name,
            max_tokens=None if "max_tokens" in run.skip else most,
            temperature=temperature,
            tools=request.tools,
            tool_choice=request.tool_choice,
            skip=frozenset(self._habits.parameters | run.skip),
            timeout=max(0.001, min(timeout, run.until - self._gate.monotonic())),
        )

    def _record(self, run: _Run, usage: Usage, milliseconds: float, outcome: str, said: str) -> None:
        if self._observe is not None:
            request = run.request
            self._observe(
                CallRecord(
                    request.operation,
                    request.bank,
                    self.provider,
                    self.model,
                    usage,
                    milliseconds,
                    outcome,
                    run.attempts,
                    said,
                )
            )

    # -- reading -------------------------------------------------------------------------------------------------------

    def _read(self, run: _Run, reply: Reply) -> LlmAnswer:
        if reply.refusal is not None:
            raise ModelRefused(_REFUSALS["content_policy"], cause="content_policy", detail=reply.refusal[:300])
        answer = LlmAnswer(
            text=clean(without_reasoning(reply.text)).strip(),
            usage=run.usage,
            finish_reason=reply.finish_reason,
            model=reply.model or self.model,
            provider=self.provider,
            mode=run.mode,
            attempts=run.attempts,
        )
        cut = reply.finish_reason == "length"
        if run.request.schema is not None:
            return self._read_schema(run, answer, reply.text, cut)
        if reply.tool_calls:
            if cut:
                raise ModelOverflow("The language model's answer was cut off; ask for less.", kind="output")
            calls = tuple(self._tool_call(run, one) for one in reply.tool_calls)
            return replace(answer, tool_calls=calls, finish_reason="tool_calls")
        if not answer.text.strip():
            if cut:
                raise ModelOverflow("The language model used up its tokens before it answered.", kind="output")
            raise ModelAnswerUnusable("The language model gave an empty answer; it may be asked again.")
        return answer

    def _read_schema(self, run: _Run, answer: LlmAnswer, text: str, cut: bool) -> LlmAnswer:
        assert run.request.schema is not None
        try:
            read = read_answer(text, run.request.schema)
        except Misfit as misfit:
            if cut:
                raise ModelOverflow("The language model's answer was cut off; split the text.", kind="output") from None
            raise ModelAnswerUnusable(
                f"The language model's answer cannot be used: {misfit}. It may be asked again."
            ) from None
        answer = replace(answer, parsed=read.value, rejected=read.rejected, repairs=read.repairs)
        if cut or not read.complete:
            raise ModelOverflow(
                "The language model's answer was cut off; split the text.",
                kind="output",
                answer=replace(answer, finish_reason="length"),
            )
        return answer

    def _tool_call(self, run: _Run, raw: RawToolCall) -> ToolCall:
        arguments = raw.arguments
        if isinstance(arguments, str):
            found = candidates(arguments) if arguments.strip() else []
            if arguments.strip() and (not found or not found[0].complete):
                raise ModelAnswerUnusable("The language model called a tool with arguments that cannot be read.")
            arguments = found[0].value if found else {}
        tool = next((one for one in run.request.tools if one.name == raw.name), None)
        if not isinstance(arguments, dict):
            arguments = {} if arguments is None else {"value": arguments}
        if tool is not None:
            try:
                arguments = fit(clean(arguments), tool.parameters).value
            except Misfit as misfit:
                raise ModelAnswerUnusable(f"The language model called {tool.name} wrongly: {misfit}.") from None
        return ToolCall(raw.id, raw.name, arguments, raw.signature)

    # -- between attempts ----------------------------------------------------------------------------------------------

    async def _adapt(self, run: _Run, fault: Fault) -> None:
        """Make ready for another attempt, waiting where that helps. Raises the error the call ends in."""
        judged = judge(fault, run.call.mode, run.call.max_tokens)
        if judged.verdict in (Verdict.MODE, Verdict.PARAMETER):
            run.adaptations += 1
            if run.adaptations <= _MOST_ADAPTATIONS and self._bend(run, judged):
                return
            judged = Judgement(Verdict.REFUSED, "bad_request")
        if judged.verdict is Verdict.OVERFLOW:
            raise ModelOverflow("The text is too long for the language model's window; split it.", kind="input")
        if judged.verdict is Verdict.REFUSED:
            message = _REFUSALS.get(judged.cause, _REFUSALS["bad_request"])
            raise ModelRefused(message, cause=judged.cause, detail=detail(fault, self._provider.choice.key))
        await self._wait(run, fault, judged)

    def _bend(self, run: _Run, judged: Judgement) -> bool:
        """Leave out what the server does not take; False when there is nothing more to leave out."""
        if judged.verdict is Verdict.MODE:
            if judged.lasting:
                self._habits.refused(run.mode)
            if len(run.modes) == 1:
                return False
            run.modes.pop(0)
            return True
        # What the failed call itself left out counts: another call may have learnt the same in the meantime.
        if judged.limit is not None:
            self._habits.refused_parameter(judged.parameter, judged.limit)
            return run.call.max_tokens is None or run.call.max_tokens > judged.limit
        if judged.parameter in run.call.skip:
            return False
        if judged.lasting:
            self._habits.refused_parameter(judged.parameter, None)
        else:
            run.skip.add(judged.parameter)
        return True

    async def _wait(self, run: _Run, fault: Fault, judged: Judgement) -> None:
        """Wait as long as was asked for, or as grows from failure to failure. Raises when that is too long."""
        run.failures += 1
        gate, limits = self._gate, self._limits
        grown = min(limits.backoff_max, limits.backoff * 2 ** (run.failures - 1)) * (0.5 + gate.chance() / 2)
        spent = run.failures > limits.retries
        if judged.verdict is Verdict.SLOWER:
            seconds = fault.retry_after or grown
            self._endpoint.pause(seconds)
            if spent or seconds > limits.backoff_max:
                raise self._endpoint.rate_limited(seconds)
            return
        seconds = max(grown, fault.retry_after or 0.0)
        if spent and judged.cause in _STUMBLES and self._endpoint.answers > run.answers_before:
            raise ModelAnswerUnusable(
                f"The language model {self.model} fails on this text ({judged.cause}) and answers on others. "
                "It may be asked again."
            )
        if spent or self._endpoint.down or gate.monotonic() + seconds > run.until or seconds > limits.backoff_max:
            self._endpoint.cause = judged.cause
            raise self._endpoint.unavailable(max(seconds, self._endpoint.open_until - gate.monotonic()))
        await gate.sleep(seconds)

    def _ask_again(self, run: _Run) -> bool:
        """Whether an answer nobody can read is asked for once more: in a weaker mode where this one never worked."""
        if run.mode not in ("", TEXT) and self._habits.spoken != run.mode and len(run.modes) > 1:
            run.left_modes.append(run.modes.pop(0))
            return True
        run.slips += 1
        return run.slips <= _ASKED_AGAIN and self._gate.monotonic() < run.until


def _count_tools(reply: Reply, count: Callable[[str], int]) -> int:
    return sum(count(f"{one.name} {one.arguments}") for one in reply.tool_calls)
