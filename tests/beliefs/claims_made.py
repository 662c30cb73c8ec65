"""A labelled set of facts of which two in five repeat another in other words: (text, number of its claim)."""

from __future__ import annotations

import random

FIELDS = {
    name: tuple(values.split("/"))
    for name, values in (
        (
            "p",
            "Ana/Ben/Cleo/Dario/Elif/Farid/Greta/Hugo/Ines/Jonas/Katya/Leon/Mira/Nils/Olga/Pavel/Quinn/Rosa/Sven/Tara"
            "/Umar/Vera/Wanda/Xenia/Yusuf/Zora/Amir/Bela/Carla/Dmitri/Edda/Fiona/Goran/Hilde/Ivan/Jana/Karim/Lena"
            "/Marek/Nadia/Oskar/Petra/Rafael/Selma/Timo/Ursula/Viktor/Wilma/Yvonne/Zeno",
        ),
        ("city", "Lyon/Porto/Graz/Bergen/Ghent/Turin/Malaga/Leeds/Krakow/Tartu/Brno/Aarhus/Utrecht/Lucca/Basel/Cork"),
        ("firm", "Nordwind/Calyx/Brightmoor/Tessera/Halden/Quayside/Orbix/Lumenta/Farrow/Kestrelworks"),
        ("food", "peanuts/shellfish/lactose/gluten/strawberries/walnuts/eggs/soy/sesame/mustard"),
        ("pet", "dog named Rex/cat named Miso/parrot named Kiwi/rabbit named Bruno/tortoise named Otto"),
        ("sport", "climbing/rowing/fencing/badminton/archery/judo/sailing/bouldering"),
        ("tool", "Helix/Blender/Ansible/Krita/Obsidian/Inkscape/Terraform/Grafana"),
        ("month", "January/February/March/April/May/June/July/August/September/October/November"),
        ("language", "Basque/Finnish/Tagalog/Welsh/Swahili/Korean/Hungarian/Catalan"),
        ("instrument", "cello/oboe/harp/accordion/trumpet/banjo/viola/clarinet"),
        ("course", "botany/statistics/pottery/astronomy/accounting/calligraphy/carpentry/genetics"),
        ("n", "/".join(map(str, range(3, 90)))),
    )
}

# Each claim has several wordings, one a line; `{p}` is a person. What the fields mean is drawn once for a claim.
_WORDINGS = """\
{p} moved to {city} in {month} 2025.
In {month} 2025 {p} relocated to {city}.
{p} made the move to {city} in {month} 2025.

{p} works at {firm}.
{p} is employed by {firm}.
{p} has a job at {firm}.

{p} is allergic to {food}.
{p} has an allergy to {food}.
{food} give {p} an allergic reaction.

{p} has a {pet}.
{p} owns a {pet}.
{p} keeps a {pet} at home.

{p} goes {sport} every weekend.
Every weekend {p} goes {sport}.
{p} spends each weekend {sport}.

{p} uses {tool} for daily work.
For daily work {p} relies on {tool}.
{p} works with {tool} every day.

{p} does not use {tool} any more.
{p} no longer uses {tool}.
{p} has stopped using {tool}.

{p} is learning {language}.
{p} is studying {language}.
{p} takes lessons in {language}.

{p} plays the {instrument}.
{p} is a player of the {instrument}.
The {instrument} is what {p} plays.

{p} paid {n} euros for the {pet}.
For the {pet} {p} paid {n} euros.
The {pet} cost {p} {n} euros.

{p} lives in {city} with two sisters.
{p} shares a home in {city} with two sisters.
With two sisters, {p} lives in {city}.

{p} finished a course in {course} in {month} 2024.
In {month} 2024 {p} completed a {course} course.
{p} completed a course in {course} in {month} 2024.

{p} wants to open a bakery in {city}.
{p} hopes to open a bakery in {city}.
{p} dreams of opening a bakery in {city}.

{p} leads the team of {n} people at {firm}.
At {firm}, {p} leads a team of {n} people.
{p} is the head of a team of {n} at {firm}."""
FORMS = tuple(tuple(form.splitlines()) for form in _WORDINGS.split("\n\n"))


def labelled(count: int, repeats: float = 0.4, seed: int = 7) -> list[tuple[str, int]]:
    """`count` facts, `repeats` of which say again, worded otherwise, what another says. In random order."""
    chance = random.Random(seed)
    claims = count - int(count * repeats)
    worded: list[list[str]] = []
    seen: set[str] = set()
    while len(worded) < claims:
        forms = list(chance.choice(FORMS))
        fields = {name: chance.choice(values) for name, values in FIELDS.items()}
        key = forms[0].format(**fields)
        if key in seen:
            continue
        seen.add(key)
        chance.shuffle(forms)
        worded.append([form.format(**fields) for form in forms])
    facts = [(forms[0], number) for number, forms in enumerate(worded)]
    spare = [(form, number) for number, forms in enumerate(worded) for form in forms[1:]]
    chance.shuffle(spare)
    facts += spare[: count - claims]
    chance.shuffle(facts)
    return [(text[0].upper() + text[1:], number) for text, number in facts]


def pairs_agree(found: list[list[int]], labels: dict[int, int]) -> tuple[float, float]:
    """(precision, recall) of pairs of facts that stand in one group. `labels` gives the claim of each fact."""
    together = [(labels[a], labels[b]) for group in found for i, a in enumerate(group) for b in group[i + 1 :]]
    right = sum(one == other for one, other in together)
    sizes: dict[int, int] = {}
    for claim in labels.values():
        sizes[claim] = sizes.get(claim, 0) + 1
    all_right = sum(size * (size - 1) // 2 for size in sizes.values())
    return (right / len(together) if together else 1.0), (right / all_right if all_right else 1.0)
