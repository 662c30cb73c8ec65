"""A backup and a restored home are on the disk before they have their names."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from recalld.daemon import archive
from recalld.storage.home import Home


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files and folders that were brought to the disk, in order."""
    names: list[str] = []
    fsync = os.fsync

    def note(handle: int) -> None:
        names.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    return names


def test_a_backup_and_a_restored_home_survive_a_power_cut(tmp_path: Path, synced: list[str]) -> None:
    Home.create(tmp_path / "home", 1, partitions=4)
    scratch, target, home = tmp_path / "scratch", tmp_path / "kept" / "home.tar", tmp_path / "new"
    (scratch / archive.PARTITIONS / "0001").mkdir(parents=True)
    (scratch / archive.PARTITIONS / "0001" / "data.mdb").write_bytes(b"pages")
    target.parent.mkdir()
    archive._pack(tmp_path / "home" / "home.json", scratch, target)
    assert synced[-2:] == ["backup.tar", "kept"]
    synced.clear()
    archive.restore(home, target)
    assert {"home.json", "data.mdb", "0001", "partitions"} <= set(synced)
    assert synced[-1] == tmp_path.name  # the name of the home itself, after all that is in it
    assert stat.S_IMODE((home / "partitions" / "0001" / "data.mdb").stat().st_mode) == 0o600
