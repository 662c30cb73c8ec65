"""Keys order as their numbers do, keep banks apart, and never pass what LMDB takes, whatever a user's string holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recalld.storage import keys

U32 = st.integers(0, 2**32 - 1)


@given(bank=U32, number=U32, name=st.text(max_size=2000))
def test_every_key_is_short_and_begins_with_its_bank(bank: int, number: int, name: str) -> None:
    term = keys.name_key(name)
    built = (
        keys.number(bank, keys.UNIT, number),
        keys.named(bank, keys.DOCUMENT_ID, name),
        keys.chunk(bank, number, number),
        keys.posting(bank, term, number),
        keys.container(bank, keys.SET_TAG, term, number & 0xFFFF),
        keys.follower(bank, number, number),
        keys.operation_key(bank, keys.OPERATION, name),
    )
    assert all(len(key) <= keys.MAX_KEY and key.startswith(keys.bank_prefix(bank)) for key in built)
    assert len(keys.bank_name(name, name)) <= keys.MAX_KEY


@given(a=U32, b=U32)
def test_keys_order_as_their_numbers_do(a: int, b: int) -> None:
    assert (a < b) == (keys.number(1, keys.UNIT, a) < keys.number(1, keys.UNIT, b))
    assert (a < b) == (keys.number(a, keys.UNIT, 0) < keys.number(b, keys.UNIT, 0))
    assert keys.trailing_u32(keys.number(1, keys.UNIT, a)) == a
