"""Two short editorial notes in Chinese, no language model: what an editor asks for is found, once, with its days."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from recalld.actors.filters import MemoryFilters
from recalld.daemon.lifecycle import open_service
from recalld.daemon.settings_table import Settings

from .conftest import Bank

NOTES = (
    "林岚是我们开源栏目的编辑。她写开源文章之前一定先在沙盒里把软件跑一遍，不会只是照着 README 翻译。"
    "文章里的截图一律用 1440x900。上周的稿子写的是一个日志工具。",
    "团队一直用 Postgres，不想再装一个向量库。下周的选题是备份工具和终端录屏。",
)
WORDINGS = (
    "编辑要求：开源文章必须先在沙箱里试用软件再动笔，不接受直接翻译 README。截图尺寸 1440x900。",
    "这个团队用 Postgres，明确不要向量数据库。上周的稿子已经发布，下周的选题还没定。",
)


@pytest.fixture
async def bank(tmp_path: Path) -> AsyncIterator[Bank]:
    home = tmp_path / "home"
    opened = await open_service(replace(Settings(), home=home, runtime="inline", extraction_provider="local"))
    yield Bank(opened, "b")
    await opened.close()


async def retain(bank: Bank, notes: tuple[str, ...]) -> None:
    for number, note in enumerate(notes):
        stamp = "2026-10-01T10:00:00+08:00"
        await bank.retain({"content": note, "timestamp": stamp, "document_id": f"note {number}"})


@pytest.mark.parametrize("notes", [NOTES, WORDINGS], ids=["prose", "rules"])
@pytest.mark.parametrize("question", ["这位编辑对开源文章有什么要求？", "编辑对开源文章的要求是什么"])
async def test_what_the_editor_requires_comes_first(bank: Bank, notes: tuple[str, ...], question: str) -> None:
    await retain(bank, notes)
    texts = await bank.texts(question)
    assert re.search("沙[盒箱]", texts[0])
    assert any("1440x900" in text for text in texts[:3])


@pytest.mark.parametrize("notes", [NOTES, WORDINGS], ids=["prose", "rules"])
async def test_each_thing_is_kept_once_with_its_days_and_its_not(bank: Bank, notes: tuple[str, ...]) -> None:
    await retain(bank, notes)
    answer = await bank.service.list_memories("default", bank.id, MemoryFilters())
    texts = [item["text"] for item in answer["items"]]
    for words in ("README", "1440x900", "Postgres", "稿子", "选题"):
        assert sum(words in text for text in texts) == 1
    said = "".join(texts)
    assert "上周" not in said and "下周" not in said
    assert "2026年9月21日至27日的稿子" in said and "2026年10月5日至11日的选题" in said
    assert re.search("不(?:想再装一个|要)向量", said) and re.search("不(?:会|接受)[^。]*翻译", said)
