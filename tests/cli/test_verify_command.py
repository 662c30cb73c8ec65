"""`recalld verify` says ok with 0, names what is off with 1, and knows no bank that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import lmdb
import pytest

from recalld.daemon.cli import run
from recalld.daemon.commands.common import FAILURE, NOT_FOUND
from recalld.storage import keys


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECALLD_URL", "RECALLD_HOME", "RECALLD_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def test_verify_says_ok_names_a_row_that_is_off_and_ends_with_the_codes_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    at = ["--home", str(home)]
    assert run(["retain", "notes", "Ana Lima moved to Porto.", *at]) == 0
    assert run(["retain", "a/b", "Ben Ode sails.", *at]) == 0
    capsys.readouterr()
    assert run(["verify", *at]) == 0
    said = capsys.readouterr().out
    assert "notes: ok (" in said and "a/b: ok (" in said and "1 units" in said
    assert run(["verify", "--bank", "nobody", *at]) == NOT_FOUND
    for partition in sorted((home / "partitions").iterdir()):
        _drop_a_unit_id(partition)
    capsys.readouterr()
    assert run(["verify", "--bank", "notes", "--json", *at]) == FAILURE
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"] and [bank["bank_id"] for bank in found["banks"]] == ["notes"]
    assert found["banks"][0]["problems"][0]["table"] == "ids"
    assert run(["verify", *at]) == FAILURE
    assert "is not found by its id" in capsys.readouterr().out


def _drop_a_unit_id(partition: Path) -> None:
    with lmdb.open(str(partition), map_size=1 << 28) as store, store.begin(write=True) as txn:
        for key in list(txn.cursor().iternext(values=False)):
            if len(key) == 21 and key[4] == keys.UNIT_ID:
                txn.delete(key)
