"""What words claim which attribute, as tables. How they are read is `attributes.py`.

A rule is: key, head words in every form, the words between head and value, the kind of value, and marks. A key that
ends in a colon takes the value behind it, because one may like, own or use many things at once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NAME, PHRASE, ANY, NONE = "name", "phrase", "any", "none"
"""Kinds of value: a name with a capital, a phrase of a few words, the rest of the clause, no value of its own."""


class Rule(NamedTuple):
    """One way to say an attribute. `says` stands as the value of a keyed attribute; `past`: an event in the past is the
    present state (`moved to`); `denies`: the verb itself ends the state (`quit`)."""

    key: str
    heads: str
    between: str
    value: str
    says: str = ""
    past: bool = False
    denies: bool = False


_DET = r"(?:(?:a|an|the|my|our|his|her|their|some|any|more|both|this|that) )?"

ENGLISH: tuple[Rule, ...] = (
    Rule(
        "lives_in",
        "live lives living reside resides",
        r"(?:now |currently |together |alone |here )*(?:in|at|near) ",
        PHRASE,
    ),
    Rule("lives_in", "based", r"(?:in|at) ", PHRASE),
    Rule(
        "lives_in",
        "moved relocated",
        r"(?:back |over |away )?(?:from \S+(?: [A-Z]\S+)? )?(?:back )?to ",
        NAME,
        past=True,
    ),
    Rule(
        "works_at",
        "work works working employed",
        r"(?:now |currently |full[- ]time |part[- ]time |remotely )*(?:at|for|by) ",
        PHRASE,
    ),
    Rule("works_at", "joined", "", NAME, past=True),
    Rule("works_at", "started", r"(?:working |work |a (?:new )?job |my (?:new )?job )?at ", NAME, past=True),
    Rule(
        "works_at",
        "got landed took",
        r"(?:a|an|my|the) (?:\w+ ){0,3}(?:job|position|role|offer) (?:at|with) ",
        NAME,
        past=True,
    ),
    Rule(
        "works_at",
        "quit left resigned",
        r"(?:(?:my|his|her|the|their) (?:job|position|post) (?:at|with) |from )",
        NAME,
        past=True,
        denies=True,
    ),
    Rule("role", "work works working", r"as " + _DET, PHRASE),
    Rule("role", "became become", r"(?:a|an|the|our|their) ", PHRASE, past=True),
    Rule("role", "promoted", r"to " + _DET, PHRASE, past=True),
    Rule("leads:", "lead leads leading head heads manage manages managing", _DET, PHRASE),
    Rule("responsible_for:", "responsible", r"for ", PHRASE),
    Rule("responsible_for:", "charge", r"of ", PHRASE),
    Rule("from", "from", "", NAME),
    Rule("from", "come comes", r"(?:originally )?from ", NAME),
    Rule("born_in", "born", r"(?:and raised )?in ", NAME, past=True),
    Rule("birthday", "born", r"on ", ANY, past=True),
    Rule("allergic_to:", "allergic", r"to ", PHRASE),
    Rule("married_to", "married", r"(?:to )?", NAME, past=True),
    Rule("engaged_to", "engaged", r"to ", NAME, past=True),
    Rule("speaks:", "speak speaks speaking", r"(?:fluent |some |a little |a bit of |only |also )*", NAME),
    Rule("studies", "study studies studying", "", PHRASE),
    Rule("studies_at", "study studies studying", r"(?:\w+ ){0,2}at ", NAME),
    Rule("studies", "major majoring majors", r"in ", PHRASE),
    Rule("plays:", "play plays playing", _DET, PHRASE),
    Rule("owns:", "own owns", _DET, PHRASE),
    Rule("owns:", "bought adopted", r"(?:a|an|my|our) (?:new |used |second-hand |old )*", PHRASE, past=True),
    Rule("owns:", "sold", r"(?:my|our|his|her|their|the) (?:old )?", PHRASE, past=True, denies=True),
    Rule("uses:", "use uses using", _DET, PHRASE),
    Rule("uses:", "switched migrated", r"(?:over )?(?:from \S+(?: \S+){0,2}? )?to ", PHRASE, past=True),
    Rule("eats:", "eat eats eating", _DET, PHRASE),
    Rule("drinks:", "drink drinks drinking", _DET, PHRASE),
    Rule("smokes", "smoke smokes smoking", "", NONE, says="yes"),
    Rule("drives:", "drive drives driving", r"(?:a|an|my) ", PHRASE),
    Rule(
        "likes:",
        "like likes liking love loves loving enjoy enjoys enjoying adore adores prefer prefers",
        _DET,
        PHRASE,
        says="likes",
    ),
    Rule("likes:", "fond", r"of ", PHRASE, says="likes"),
    Rule("likes:", "into", _DET, PHRASE, says="likes"),
    Rule("likes:", "fan", r"of ", PHRASE, says="likes"),
    Rule(
        "likes:",
        "hate hates hating dislike dislikes despise despises detest detests loathe loathes",
        _DET,
        PHRASE,
        says="dislikes",
    ),
    Rule("likes:", "stand", _DET, PHRASE, says="dislikes"),
    Rule(
        "scheduled",
        "scheduled rescheduled postponed moved pushed",
        r"(?:up |back )?(?:for|to|on|until) ",
        ANY,
        past=True,
    ),
)

ROLES = (
    "engineer|developer|programmer|designer|architect|analyst|scientist|researcher|manager|director|lead|head|"
    "chief|officer|ceo|cto|cfo|coo|founder|co-founder|owner|president|assistant|secretary|accountant|auditor|lawyer|"
    "attorney|judge|doctor|physician|surgeon|nurse|dentist|vet|veterinarian|therapist|psychologist|pharmacist|"
    "teacher|professor|lecturer|tutor|student|intern|trainee|apprentice|principal|librarian|writer|author|editor|"
    "journalist|reporter|translator|photographer|artist|painter|musician|singer|actor|actress|dancer|chef|cook|baker|"
    "waiter|waitress|barista|bartender|driver|pilot|mechanic|electrician|plumber|carpenter|builder|farmer|gardener|"
    "soldier|officer|firefighter|paramedic|salesperson|consultant|contractor|freelancer|coach|trainer|athlete|"
    "administrator|admin|maintainer|tester|operator|technician|coordinator|recruiter|marketer|vegetarian|vegan"
)
IS_A = re.compile(
    rf"(?:(?:now|currently|still|actually|also) )*(?:a|an|the|our|their|his|her"
    rf"|my)? ?(?P<v>(?:[\w-]+ ){{0,3}}(?:{ROLES}))"
    r"(?P<rest> (?:at|of|for|in|on) [^,;.!?]+)?(?=[,;.!?]|$| (?:and|but|who|since|now|here|there|by)\b)",
    re.IGNORECASE,
)
DIETS = ("vegetarian", "vegan", "pescatarian")
PETS = (
    "dog|cat|puppy|kitten|horse|rabbit|bunny|parrot|hamster|turtle|snake|guinea pig|pup|kitty|car|bike|bicycle|"
    "motorcycle|house|flat|apartment|boat|piano|guitar|violin"
)
HAS_A = re.compile(rf"(?:a|an|two|three|four|my own) (?P<v>(?:[\w-]+ ){{0,2}}(?:{PETS})s?)\b", re.IGNORECASE)
HAS_ALLERGY = re.compile(r"(?:a|an) (?:[\w-]+ )?(?P<v>\w+) (?:allergy|intolerance)\b", re.IGNORECASE)
AGE = re.compile(r"(?P<v>\d{1,3})(?: years old| years of age)?(?=[,;.!?]| (?:and|but|now|today)\b|$)")

FAVOURITE = re.compile(
    r"(?:all[- ]time )?favou?rite (?P<k>[\w-]+(?: [\w-]+){0,3}?)(?: (?:right now|now|at the moment|these days"
    r"|of all time))? "
    r"(?:is|are|was|used to be|has (?:always )?been|would be)(?: (?:now|currently|still|definitely|probably|always"
    r"|called))* (?P<v>[^,;.!?]+)",
    re.IGNORECASE,
)
IS_FAVOURITE = re.compile(
    r"(?P<v>[^,;.!?]+?) (?:is|are)(?: (?:now|still|definitely|currently))* (?P<s>my|our|his|her|their|[A-Z]\w+'s) "
    r"(?:all[- ]time |new )?favou?rite (?P<k>[\w-]+(?: [\w-]+)?)(?=[,;.!?]|$| (?:now|of|ever)\b)"
)
OWNED = (
    "name|birthday|job|hometown|address|e-?mail(?: address)?|phone(?: number)?|number|wife|husband|partner"
    "|girlfriend|boyfriend|"
    "boss|manager|mother|father|mom|mum|dad|sister|brother|son|daughter|dog|cat|car|major|nickname|goal|hobby|role|"
    "title|nationality|native language|mother tongue|blood type|shoe size|size|time ?zone|salary|surname|maiden name|"
    "first name|last name|middle name|age|star sign|religion|diet"
)
"""What somebody has one of: `my X is Y` sets it."""
OWNED_KEYS = {
    "name": "name",
    "e-mail": "email",
    "email address": "email",
    "e-mail address": "email",
    "phone number": "phone",
    "wife": "married_to",
    "husband": "married_to",
    "job": "role",
    "title": "role",
    "hometown": "from",
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "mother tongue": "native_language",
    "native language": "native_language",
    "time zone": "timezone",
    "number": "phone",
}
IS_OWNED = re.compile(
    rf"(?P<k>{OWNED})(?:'s name)? (?:is|are)(?: (?:now|currently|actually|called|named|on"
    rf"|in))* (?P<v>[^,;!?]+?)(?=[,;!?]|\.(?:\s|$)|$)",
    re.IGNORECASE,
)
THINGS = (
    "deadline|due date|meeting|call|standup|stand-up|review|demo|launch|release|wedding|party|flight|appointment|"
    "exam|interview|concert|conference|workshop|trip|match|game|kick-?off|audit|migration|go-live|ceremony|dinner|"
    "lunch|retro|sync|budget|price|cost|port|host|version|limit|timeout|password|username|region|address|owner|"
    "colou?r|name|status|size|resolution|rate|salary|rent|quota|capacity|temperature|capital|url|endpoint|"
    "branch|plan|goal|target|priority|estimate|database|editor|framework|language|stack"
)
"""Things of which the text says what they are, by their last word."""
IS_THING = re.compile(
    rf"^(?:the|our|my|its|their|this|his|her)? ?(?P<k>(?:[\w-]+ ){{0,3}}(?:{THINGS})(?: (?:date"
    rf"|time))?)(?P<of> (?:for|of|in|with) [\w -]+?)? "
    r"(?:(?:is|are)(?: (?:now|currently|actually|still|set|scheduled|due))*(?: (?:on|at|for|to|by|in|until))?"
    r"|(?:changed|moved|went up|went down|dropped|rose|grew|was (?:moved|changed|raised|lowered|cut|set|rescheduled"
    r"|postponed|pushed))"
    r"(?: (?:from [^,;]+? )?to| for| until)) (?P<v>[^,;!?]+?)(?P<end>[,;!?]|\.(?:\s|$)|$| (?:and|but|because|instead"
    r"|now)\b)",
    re.IGNORECASE,
)
STATES = (
    "broken|down|up|fine|fixed|working|ok|okay|done|finished|ready|blocked|open|closed|live|online|offline|resolved|"
    "merged|deployed|released|cancelled|canceled|delayed|available|unavailable|slow|fast|stable|unstable|green|red|"
    "full|empty|free|busy|pregnant|engaged|married|single|divorced|retired|unemployed|sick|ill|healthy|on leave|"
    "on vacation|on holiday|complete|completed|failing|passing|approved|rejected|pending|enabled|disabled|installed|"
    "out of stock|in stock|sold out|correct|wrong|obsolete|deprecated"
)
IS_STATE = re.compile(
    rf"(?:(?:now|currently|still|already|all|back|completely|finally|actually|again) )*(?P<v>{STATES})"
    r"(?: (?:again|now|already|today|anymore|any more|any longer))*(?=[,;.!?…]|$| (?:and|but|because|since|until|for"
    r"|in|on|after)\b)",
    re.IGNORECASE,
)
MARITAL = frozenset(["engaged", "married", "single", "divorced", "widowed"])
