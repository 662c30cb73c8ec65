"""The patterns the reading of attributes goes by: contractions, subjects, what stands around them, ends of values."""

from __future__ import annotations

import re

from recalld.actors.retain.lexicon import word_set

HELPS = word_set(
    """
    am is are was were be been do does did has have had will would can could may might must shall should not never
    no longer also still really now currently just always actually already absolutely truly usually often sometimes
    both all recently finally once only used to hardly rarely barely started start stopped stop quit gave given up
    kept keep keeps got get going want wants wanted plan plans planning planned hope hopes hoping try trying tried a
    an the big huge great totally much very originally mostly mainly even ever since then definitely certainly
    probably maybe perhaps possibly newly happily in living so too being anymore officially temporarily who which
    that
    """
)
"""Words that may stand between a subject and the word that says the attribute."""
DENIES = word_set("not never stopped stop quit hardly rarely barely")
WEAKENS = word_set("would could may might should maybe perhaps possibly")
AHEAD = word_set("will going want wants wanted plan plans planning planned hope hopes hoping try trying tried shall")
PAST_HELP = word_set("was were did had")
BE = word_set("am is are was were")
HAVE = word_set("have has had got")
NO_SUBJECT = word_set("there here what who how why when where which that this it not no as like and but or")
NO_VALUE = word_set("it them him her me us you this that there here what how")
APOSTROPHE = re.compile("[’‘]")
CONTRACTIONS = tuple(
    (re.compile(pattern, re.IGNORECASE), full)
    for pattern, full in (
        (r"\bcan't\b", "can not"),
        (r"\bcannot\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"\bain't\b", "is not"),
        (r"n't\b", " not"),
        (r"\b(i)'?m\b", r"\1 am"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"\b(i|we|you|they|he|she|it)'d\b", r"\1 would"),
        (r"\b(he|she|it|that|there|here|what|who)'s\b", r"\1 is"),
        (r"\bgonna\b", "going to"),
        (r"\bwanna\b", "want to"),
    )
)
PREFACE = re.compile(
    r"^\W*(?:(?:well|yeah|yes|yep|no|nope|oh|ah|so|and|but|hi|hey|hello|wow|ok|okay|right|actually|btw|by the way"
    r"|honestly|personally|"
    r"also|now|today|currently|these days|nowadays|lately|recently|fun fact|fyi|update|correction|note|sorry|anyway|"
    r"i mean|you know|as you know|i (?:think|guess|believe|suppose|know|said|told you|mentioned)(?: that)?|"
    r"it turns out(?: that)?|turns out(?: that)?|remember(?: that)?|for (?:your|the) (?:information|record)|in fact|"
    r"as of (?:today|now)|from now on)[,:.…!]* +)+",
    re.IGNORECASE,
)
REPORTED = re.compile(
    r"^(?P<who>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?|he|she|they|(?:my|our) \w+) (?:(?:has |have )?(?:said|says|told (?:me"
    r"|us)|tells (?:me|us)|mentioned|"
    r"mentions|thinks|believes|claims|claimed|wrote|writes|added|explained|announced|confirmed|replied))(?: that)? ",
)
SUBJECT = re.compile(
    r"(?:(?P<pronoun>I|i|[Ww]e|[Hh]e|[Ss]he|[Tt]hey|[Ii]t|[Yy]ou)"
    r"|(?P<kin>(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir|[A-Z][\w-]+'s?)(?: [\w-]+){1,3})"
    r"|(?P<name>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?[A-Z][\w.'-]*(?: (?:(?:van|von|de|da|di"
    r"|del) )?[A-Z][\w'-]*){0,3}(?: \([A-Z][\w .'-]+\))?)"
    r"|(?P<thing>(?:[Tt]he|[Tt]his|[Tt]hat|[Tt]hese|[Ee]very|[Aa]ll|[Ee]ach) [\w-]+(?: [\w-]+){0,3}"
    r"|[\w-]+(?: [\w-]+)?))"
)
OPENING = re.compile(
    r"(?:(?P<pronoun>I|[Ww]e|[Hh]e|[Ss]he|[Tt]hey)|(?P<kin>(?:[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir"
    r"|[A-Z][\w-]+'s) (?:[\w-]+ ){0,2}?[\w-]+)"
    r"|(?P<name>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?[A-Z][\w-]+(?: (?:(?:van|von|de|da|di"
    r"|del) )?[A-Z][\w-]+){0,2}(?: \([A-Z][\w .'-]+\))?))"
    r" (?=(?:am|is|are|was|were|has|have|had|will|would|can|could|may|might|must|shall|should|do|does|did|not|never"
    r"|no longer|used|also|still|"
    r"just|really|always|[a-z]+(?:ed|s)|went|got|took|made|saw|met|gave|came|ran|bought|began|told|said|felt|found"
    r"|lost|"
    r"won|left|spent|sent|wrote|ate|drove|flew|rode|held|heard|taught|thought|brought|built|chose|kept|led|paid|sold"
    r"|slept|"
    r"sang|spoke|threw|quit|like|love|hate|live|work|use|prefer|want|need|know|think|own|play|speak|drink|eat|drive"
    r"|enjoy)\b)"
)
PAST = re.compile(
    r"\b(?:was|were|did|had|went|got|took|made|saw|met|gave|came|ran|bought|began|told|said|felt|found|lost|won|left"
    r"|spent|"
    r"sent|wrote|ate|drove|flew|rode|held|heard|taught|thought|brought|built|chose|led|paid|sold|slept|sang|spoke|"
    r"(?!need|need|speed|feed)[a-z]{3,}ed)\b"
)
UNREAL = re.compile(
    r"^\W*(?:if|unless|suppose|supposing|imagine|assuming|in case|what if|were i|had i|should you|provided(?: that)?|"
    r"wenn|falls|si|cuando|if only|i wish|wish)\b|\b(?:would have|could have|should have|might have)\b"
    r"|\b(?:i|we|he|she|they|it) would (?!like\b|love to see|say\b|argue\b)|^[^,]*\bwould (?:be|love|like|rather"
    r"|have)\b|\bif (?:i|we|you|he|she|they|it|the)\b"
    r"|^(?:如果|假如|要是|倘若|若是)|たら、|ならば|もし",
    re.IGNORECASE,
)
NAMED = re.compile(
    r"[A-Z0-9\u00c0-\u00de\u0386-\u042f][\w&.'’+#-]*(?: (?:(?:of|de|the|la|del|du|and|&) )?[A-Z0-9][\w&.'’+#-]*)*"
)
STOPS = re.compile(
    r"[,;:!?()\[\]\"“”\n…]|\.(?:\s|$)| - | – | — |\s(?:and|but|or|because|since|when|while|whereas|so|with|after"
    r"|before|until|if|though|"
    r"although|as|which|who|that|than|over|to|too|for|from|on|in|at|these days|now|right now|nowadays|anymore"
    r"|any more|any longer|"
    r"at all|a lot|very much|so much|every|most|together|again|instead|daily|since|once|during|recently|lately|"
    r"yesterday|today|tomorrow|last|next|this|rather|not|is|are|was|were|has|have|will|would|every|either|anyway"
    r"|please)\b"
)
DETERMINER = re.compile(
    r"^(?:a|an|the|my|our|his|her|their|some|any|more|both|this|that|all|own|new|really|to|very) ", re.I
)
