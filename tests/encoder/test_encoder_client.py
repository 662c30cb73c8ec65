"""Many texts reach the Encoder in pieces, of which what nobody wants is left out."""

from __future__ import annotations

from typing import Any

from recalld.actors.encoder_client import PIECE_CHARACTERS, PIECE_TEXTS, EncoderClient
from recalld.actors.encoder_messages import EmbeddedTexts, EmbedTexts


class Ref:
    """An Encoder that answers each text with itself."""

    name = "encoder"

    def __init__(self) -> None:
        self.pieces: list[tuple[str, ...]] = []

    async def call(self, message: EmbedTexts, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        self.pieces.append(message.texts)
        told = tuple(text.encode() for text in message.texts)
        lengths = tuple(map(len, told))
        return EmbeddedTexts(3, told, told, told, told, lengths, lengths)

    def tell(self, message: Any) -> None:
        raise NotImplementedError

    async def alive(self) -> bool:
        return True


async def test_pieces_are_bounded_and_answers_stay_in_order() -> None:
    ref = Ref()
    texts = [f"text {n}" for n in range(3 * PIECE_TEXTS + 1)]
    answer = await EncoderClient(ref).embed([(text, "", "") for text in texts])
    assert [len(piece) for piece in ref.pieces] == [PIECE_TEXTS] * 3 + [1]
    assert [vector.decode() for vector in answer.vectors] == texts
    assert answer.dim == 3


async def test_long_texts_make_short_pieces() -> None:
    ref = Ref()
    long = "a" * PIECE_CHARACTERS
    await EncoderClient(ref).embed([(long, "", ""), (long, "", ""), ("b", long, ""), ("c", "", "")])
    assert [len(piece) for piece in ref.pieces] == [1, 1, 1, 1]


async def test_what_is_not_wanted_any_more_is_left_out() -> None:
    ref = Ref()
    count = 4 * PIECE_TEXTS
    texts = [(f"{n}", "", "") for n in range(count)]

    def wanted(index: int) -> bool:
        return not ref.pieces or index % 2 == 0

    for embed in (EncoderClient(ref).embed, EncoderClient(ref).embed_alone):
        ref.pieces.clear()
        answer = await embed(texts, wanted)
        assert answer.vectors[:PIECE_TEXTS] == tuple(f"{n}".encode() for n in range(PIECE_TEXTS))
        assert answer.vectors[PIECE_TEXTS + 1] == b""
        assert answer.vectors[PIECE_TEXTS + 2] == f"{PIECE_TEXTS + 2}".encode()
        assert sum(map(len, ref.pieces)) == PIECE_TEXTS + (count - PIECE_TEXTS) // 2


async def test_nothing_is_asked_for_nothing() -> None:
    ref = Ref()
    client = EncoderClient(ref)
    assert (await client.embed([])).vectors == ()
    assert (await client.embed([("a", "", "")], lambda _: False)).vectors == (b"",)
    assert ref.pieces == []
