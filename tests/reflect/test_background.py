"""The background of a bank: merged by rules or by a model, the newest wins, the former one is kept."""

from __future__ import annotations

import json

import pytest
from llm.model_server import Heard, Say

from recalld.actors.reflect.background import about_itself, first_person, merged

from .conftest import BANK, World, told

MERGES = [
    ("", "You are a gardener.", "I am a gardener."),
    ("I am a gardener.", "You are a gardener.", "I am a gardener."),
    ("I am a gardener.", "I like figs", "I am a gardener. I like figs."),
    ("My name is Ada. I like figs.", "Your name is Bo.", "My name is Bo. I like figs."),
    ("I live in Porto. I like figs.", "I live in Lyon.", "I live in Lyon. I like figs."),
    ("I was born in Texas.", "You were born in Colorado.", "I was born in Colorado."),
    ("My favourite colour is red.", "Your favourite colour is blue", "My favourite colour is blue."),
    ("I am 3 years old.", "You are 4 years old.", "I am 4 years old."),
    ("I work at Acme.", "I work for Bolt and help people.", "I work for Bolt and help people."),
]


@pytest.mark.parametrize(("former", "new", "after"), MERGES)
def test_the_newest_wins_and_the_rest_is_kept(former: str, new: str, after: str) -> None:
    assert merged(former, new) == after
    assert merged(after, new) == after


def test_words_to_the_agent_become_its_own() -> None:
    assert first_person("you help your users and they trust you") == "I help my users and they trust me"
    assert first_person("people ask you for advice") == "People ask me for advice"


def test_only_lasting_words_about_itself_are_taken_from_a_talk() -> None:
    talk = "user: I am a nurse.\nassistant: I am a travel planner. I am looking for flights.\nassistant: I am sorry!"
    assert about_itself(talk) == "I am a travel planner."


async def test_by_rules_the_disposition_stays_and_the_answer_says_so(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(
        llm_reflect_provider=None, llm_reflect_model=None, llm_reflect_base_url=None, llm_reflect_api_key=None
    )
    for content in ("You are a gardener. Your name is Ada.", "Your name is Bo."):
        found = await world.send("POST", BANK + "/background", {"content": content})
    assert found["background"] == found["mission"] == "I am a gardener. My name is Bo."
    assert found["disposition"]["skepticism"] == 3 and "stays" in found["note"]
    found = await world.send("POST", BANK + "/background", {"content": "I like figs.", "update_disposition": False})
    assert found["note"] is None
    assert (await world.send("GET", BANK + "/profile"))["mission"] == "I am a gardener. My name is Bo. I like figs."
    await world.send("POST", BANK + "/background", {"content": " "}, 422)


async def test_former_versions_stay_in_the_audit_log(world: World) -> None:
    world.script(lambda heard: Say(text='{"background": "I am Ada."}'))
    await world.send("POST", BANK + "/background", {"content": "You are Ada."})
    world.script(lambda heard: Say(text='{"background": "I am Bo."}'))
    await world.send("POST", BANK + "/background", {"content": "You are Bo."})
    page = await world.send("GET", BANK + "/audit-logs?action=background_merged")
    told_ = [one["metadata"] for one in page["items"]]
    assert [(one["former"], one["background"]) for one in told_] == [("I am Ada.", "I am Bo."), ("", "I am Ada.")]


async def test_a_model_merges_and_moves_the_disposition(world: World) -> None:
    said = {"background": "I am a careful nurse.", "skepticism": 4, "literalism": 2, "empathy": 5}
    world.script(lambda heard: Say(text=json.dumps(said)))
    found = await world.send("POST", BANK + "/background", {"content": "You are a careful nurse."})
    assert found["background"] == "I am a careful nurse." and found["note"] is None
    assert found["disposition"] == {"skepticism": 4, "literalism": 2, "empathy": 5}
    assert 'kind="background"' in told(world.bodies[-1])
    page = await world.send("GET", BANK + "/llm-requests?operation=background")
    assert page["total"] == 1


async def test_an_update_of_the_disposition_can_be_left_out(world: World) -> None:
    def answer(heard: Heard) -> Say:
        assert "skepticism" not in json.dumps(heard.body)
        return Say(text='{"background": "I am a nurse."}')

    world.script(answer)
    found = await world.send("POST", BANK + "/background", {"content": "A nurse.", "update_disposition": False})
    assert found["disposition"] == {"skepticism": 3, "literalism": 3, "empathy": 3}


async def test_a_retain_tells_of_the_agent_where_the_bank_wants_it(open_world) -> None:  # type: ignore[no-untyped-def]
    world: World = await open_world(
        llm_reflect_provider=None, llm_reflect_model=None, llm_reflect_base_url=None, llm_reflect_api_key=None
    )
    talk = "user: Who are you?\nassistant: I am a travel planner for slow trains."
    await world.retain(talk)
    assert (await world.send("GET", BANK + "/profile"))["mission"] == ""
    await world.send("PATCH", BANK + "/config", {"updates": {"background_from_retain": True}})
    await world.retain(talk)
    assert (await world.send("GET", BANK + "/profile"))["mission"] == "I am a travel planner for slow trains."
