"""A worker's way to the Encoder: bounded calls, and texts that end its process find out who they are.

Many texts go there in pieces, one after the other: what nobody wants any more ends with the piece under way, the texts
of others come between, and neither side holds more than a piece in a message.

When the Encoder dies under a call, any text of any running call may be the reason. Each request is then sent again
with no other suspect beside it; one under which the Encoder dies again is refused, and the others go through.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from recalld.actors.encoder_messages import EmbeddedTexts, EmbedQuery, EmbedTexts, ModelDescription, ModelInfo
from recalld.actors.runtime import ActorRef
from recalld.storage.errors import TooManyRequests, Unavailable, Unprocessable

START_SECONDS = 300.0
CALL_SECONDS = 60.0
CHARACTERS_A_SECOND = 500
"""A tenth of what one slow core embeds: beyond this a call does not work but hang."""
BACK_SECONDS = 60.0
BACK_WAIT = 0.1
ALONE_ATTEMPTS = 2
PIECE_TEXTS = 32
PIECE_CHARACTERS = 8000
"""A piece ends at so many texts, or characters, for each thread of the Encoder: a fraction of a second."""

Text = tuple[str, str, str]
"""A text, the text before it, its date."""
Wanted = Callable[[int], bool]
"""Whether the text of an index is to be embedded still."""
NOTHING = EmbeddedTexts(0, (), (), (), (), (), ())


def _every(_: int) -> bool:
    return True


class EncoderClient:
    """Sends texts to the Encoder. `back_seconds` is how long one that died may take to come back."""

    def __init__(self, encoder: ActorRef, back_seconds: float = BACK_SECONDS) -> None:
        self._encoder = encoder
        self._back_seconds = back_seconds
        self._lost = False
        self._threads = 1
        self._alone = asyncio.Lock()

    async def describe(self) -> ModelDescription:
        description: ModelDescription = await self._encoder.call(ModelInfo(), timeout=START_SECONDS)
        self._threads = max(1, description.threads)
        return description

    async def embed_query(self, text: str) -> dict[str, Any]:
        """The embedding of a query, as the fields of a recall. Raises `Unavailable`, `DeadlineExceeded`."""
        embedded: dict[str, Any] = await self._encoder.call(EmbedQuery(text), timeout=CALL_SECONDS)
        return embedded

    async def embed(self, texts: Sequence[Text], wanted: Wanted = _every) -> EmbeddedTexts:
        """In place of a text that was not wanted when its turn came stands nothing (`b""`).

        Raises `Unavailable` when the Encoder died, `DeadlineExceeded`, `TooManyRequests` when it stays away.
        """
        return await self._in_pieces(texts, wanted, self._send)

    async def embed_alone(self, texts: Sequence[Text], wanted: Wanted = _every) -> EmbeddedTexts:
        """`embed` for texts under which the Encoder died. Raises `Unprocessable` when it dies of them again."""
        return await self._in_pieces(texts, wanted, self._send_alone)

    async def _in_pieces(
        self, texts: Sequence[Text], wanted: Wanted, send: Callable[[Sequence[Text]], Awaitable[EmbeddedTexts]]
    ) -> EmbeddedTexts:
        found: list[tuple[Any, ...]] = [(b"", b"", b"", b"", 0, 0)] * len(texts)
        dim, start = 0, 0
        while start < len(texts):
            indices, start = self._piece(texts, wanted, start)
            if indices:
                part = await send([texts[index] for index in indices])
                dim = part.dim
                columns = (part.vectors, part.scales, part.token_vectors, part.token_ids, part.tokens, part.windows)
                for index, *row in zip(indices, *columns, strict=True):
                    found[index] = tuple(row)
        return EmbeddedTexts(dim, *zip(*found, strict=True)) if found else NOTHING

    def _piece(self, texts: Sequence[Text], wanted: Wanted, start: int) -> tuple[list[int], int]:
        """The next texts that are wanted, and where to go on."""
        indices: list[int] = []
        characters = 0
        for index in range(start, len(texts)):
            if len(indices) >= PIECE_TEXTS * self._threads or characters >= PIECE_CHARACTERS * self._threads:
                return indices, index
            if wanted(index):
                indices.append(index)
                characters += len(texts[index][0]) + len(texts[index][1])
        return indices, len(texts)

    async def _send(self, texts: Sequence[Text]) -> EmbeddedTexts:
        if self._lost:
            await self._until_back()
        own, befores, dates = zip(*texts, strict=True)
        seconds = CALL_SECONDS + sum(map(len, own)) / CHARACTERS_A_SECOND
        try:
            request = EmbedTexts(tuple(own), tuple(befores), tuple(dates))
            answer: EmbeddedTexts = await self._encoder.call(request, timeout=seconds)
        except Unavailable:
            self._lost = True
            raise
        return answer

    async def _send_alone(self, texts: Sequence[Text]) -> EmbeddedTexts:
        async with self._alone:
            for _ in range(ALONE_ATTEMPTS):
                try:
                    return await self._send(texts)
                except Unavailable:
                    continue
        raise Unprocessable(
            "The process that embeds texts ended each time it was given this request, so nothing of it was stored."
            " Send its items one by one to find the text it cannot take."
        )

    async def _until_back(self) -> None:
        end = time.monotonic() + self._back_seconds
        wait = BACK_WAIT
        while not await self._encoder.alive():
            if time.monotonic() > end:
                raise TooManyRequests("The process that embeds texts does not come back; see the log.", retry_after=10)
            await asyncio.sleep(wait)
            wait = min(2 * wait, 2.0)
        self._lost = False
