"""The doctor's checks: what each calls well, and that it says what to do when it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recalld.daemon import doctor
from recalld.daemon.settings import Settings, load

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
/dev/sdb1 /mnt/with\\040space xfs rw 0 0
sshfs /mnt/ssh fuse.sshfs rw 0 0
"""


def settings_for(home: Path, **flags: object) -> Settings:
    return load({}, None, {"home": home, **flags})


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/ana/.recalld", "ext4"),
        ("/mnt/nfs/memory", "nfs4"),
        ("/mnt/nfsother", "ext4"),
        ("/mnt/with space/home", "xfs"),
        ("/mnt/ssh", "fuse.sshfs"),
    ],
)
def test_the_deepest_mount_decides_the_file_system(folder: str, kind: str) -> None:
    assert doctor.file_system_of(Path(folder), MOUNTS) == kind


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "file_system_of", lambda folder: "nfs4")
    check = doctor.check_file_system(settings_for(tmp_path))
    assert check.outcome == "fail"
    assert check.advice


def test_a_home_others_can_read_is_named_with_the_cure(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "home.json").write_text("{}")
    (home / "home.json").chmod(0o600)
    assert doctor.check_rights(settings_for(home)).outcome == "ok"
    (home / "home.json").chmod(0o644)
    check = doctor.check_rights(settings_for(home))
    assert check.outcome == "warn"
    assert "chmod" in check.advice
    assert "home.json" in check.found


def test_a_damaged_home_is_told_from_a_new_one(tmp_path: Path) -> None:
    assert doctor.check_home(settings_for(tmp_path / "none")).outcome == "warn"
    assert doctor.check_home(settings_for(tmp_path)).outcome == "warn"
    (tmp_path / "partitions").mkdir()
    assert doctor.check_home(settings_for(tmp_path)).outcome == "fail"
    for text in ("not json", "[]", "{}"):
        (tmp_path / "home.json").write_text(text)
        check = doctor.check_home(settings_for(tmp_path))
        assert check.outcome == "fail"
        assert "backup" in check.advice
    (tmp_path / "home.json").write_text(json.dumps({"format": 1, "partitions": 4, "created_at": 1}))
    check = doctor.check_home(settings_for(tmp_path))
    assert check.outcome == "ok"
    assert "partitions 4" in check.found


def test_a_folder_of_other_things_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    (tmp_path / "letters.txt").chmod(0o644)
    check = doctor.check_home(settings_for(tmp_path))
    assert check.outcome == "fail"
    assert "another folder" in check.advice
    assert not doctor.check_rights(settings_for(tmp_path)).advice
    file = doctor.check_home(settings_for(tmp_path / "letters.txt"))
    assert file.outcome == "fail"
    assert "is a file" in file.found


async def test_a_home_that_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "home.json").write_text(json.dumps({"format": 99, "partitions": 4, "created_at": 1}))
    checks = await doctor.examine(settings_for(tmp_path, port=0))
    home = next(check for check in checks if check.name == "home")
    assert home.outcome == "fail"
    assert "Update recalld" in home.advice
    assert [check.name for check in checks if check.outcome == "fail"] == ["home"]
    assert "see home" in next(check for check in checks if check.name == "store").found


@pytest.mark.parametrize(
    ("sockets", "outcome"),
    [
        (["127.0.0.1:8888", "[::1]:9", "[::ffff:127.0.0.1]:10"], "ok"),
        (["127.0.0.1:8888", "0.0.0.0:9"], "warn"),
        (["[::ffff:10.0.0.1]:9"], "warn"),
    ],
)
def test_only_what_others_reach_is_called_reachable(
    sockets: list[str], outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "find_owner", lambda home: doctor.Owner(1, 1.0, "127.0.0.1", 8888))
    monkeypatch.setattr(doctor, "listening", lambda pid: sockets)
    assert doctor.check_port(settings_for(tmp_path)).outcome == outcome


def test_a_home_of_another_model_fails_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "home.json").write_text(
        json.dumps({"format": 1, "partitions": 4, "model": {"name": "other-model", "sha256": "00", "tokenizer": "",
                    "dim": 8, "pooling": "mean", "projection": "", "max_tokens": 1}})
    )  # fmt: skip
    check = doctor.check_embedding(settings_for(tmp_path))
    assert check.outcome == "fail"
    assert "other-model" in check.found
    assert "embedding.model" in check.advice


def test_the_shipped_model_and_the_date_parser_are_well(tmp_path: Path) -> None:
    check = doctor.check_embedding(settings_for(tmp_path))
    assert check.outcome == "ok"
    assert "384 dimensions" in check.found
    assert doctor.check_dates(settings_for(tmp_path)).outcome == "ok"


async def test_a_broken_check_is_a_failed_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(settings: Settings) -> doctor.Check:
        raise RuntimeError("out of order")

    broken.__name__ = "check_disk"
    monkeypatch.setattr(doctor, "check_disk", broken)
    checks = await doctor.examine(settings_for(tmp_path / "none", port=0))
    disk = next(check for check in checks if check.name == "disk")
    assert disk.outcome == "fail"
    assert "out of order" in disk.found
    assert all(check.advice for check in checks if check.outcome == "fail")
