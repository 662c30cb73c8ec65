"""What kind of thing a name names: evidence from all sides, weighed together.

The words around a name, its own words, the lists of names and the model each give points to kinds; the kind with most
points wins. No source decides alone: a given name behind "works at" is a firm, a town that "says" something a person.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from recalld.actors.retain import name_lists
from recalld.actors.retain.lexicon import (
    LEGAL_FORMS,
    ORG_ENDS,
    ORG_STARTS,
    PEOPLES,
    PERSON_STARTS,
    PLACE_ENDS,
    PLACE_STARTS,
    PRODUCT_ENDS,
)
from recalld.actors.retain.ner import KINDS, Tagged

PERSON, ORG, LOCATION, PRODUCT = "PERSON", "ORG", "LOCATION", "PRODUCT"
SURE = 1.5
"""Points from which a stretch of text is taken for a name of its kind."""
_MODEL: Final = {"": 2.2, "es": 0.4, "de": 0.4}
"""What the model's word is worth by language: it has read English only."""
_NUMBERED: Final = re.compile(r"[A-Z]{1,3}-?\d{1,4}[A-Za-z]?")
_OTHER_NAME: Final = r"[^\W\d_a-z][\w.+'’-]*(?: [^\W\d_a-z][\w.+-]*| \d+)?"
_DETERMINERS: Final = "the|an?|my|our|his|her|their|el|la|los|las|una?|mi|der|die|das|den|dem|eine[mn]?|ein"
_Cues = tuple[tuple[str, float, re.Pattern[str]], ...]


def _before(*rows: tuple[str, float, str], bare: bool = False) -> _Cues:
    """The words right before a name, with an article (unless `bare`) and other names of the same list between."""
    article = (
        ""
        if bare
        else r"(?:(?:the|a|an|my|our|his|her|their|el|la|los|las|un|una|mi|der|die|das|den|dem|einem|einen|eine|ein) )?"
    )
    listed = rf"(?:(?-i:{_OTHER_NAME})(?:,| and| or|, and| y| o| und| oder) )*"
    return tuple(
        (kind, weight, re.compile(rf"(?<![\w-])(?:{words}) {article}{listed}[\"“‘']?$", re.IGNORECASE))
        for kind, weight, words in rows
    )


def _behind(*rows: tuple[str, float, str]) -> _Cues:
    return tuple((kind, weight, re.compile(words)) for kind, weight, words in rows)


_KIN_EN: Final = (
    r"(?:step|grand|great-?)?(?:sister|brother|mother|father|son|daughter|child|parent|nephew|niece)(?:-in-law)?|mom"
    r"|mum"
    r"|dad|wife|husband|spouse|fiancée?|friend|cousin|aunt|uncle|colleague|coworker|co-worker|boss|manager|neighbou?r"
    r"|girlfriend|boyfriend|partner|roommate|flatmate|housemate|classmate|teammate|lead|supervisor|assistant|intern"
    r"|mentor|tutor|teacher|professor|coach|trainer|therapist|doctor|dentist|nurse|lawyer|accountant|plumber"
    r"|electrician"
    r"|hairdresser|landlady|landlord|tenant|babysitter|nanny|guide|guest|host|candidate|speaker|contact|director"
    r"|chairman|chairwoman|chair|president|secretary|engineer|designer|developer|analyst|author|artist|singer|poet"
    r"|painter|pastor|priest|rabbi|imam|baby|twins?|kid"
)
_THINGS_EN: Final = (
    r"app|application|tool|tracker|library|framework|database|warehouse|editor|browser|language|plugin|phone|tablet"
    r"|laptop"
    r"|computer|printer|camera|watch|headphones|earbuds|speaker|tv|console|bike|car|van|truck|scooter|drone|robot"
    r"|vacuum"
    r"|oven|fridge|dishwasher|router|modem|monitor|keyboard|mouse|software|service|platform|game|engine|system|package"
    r"|device|model|server|api|sdk|db|cli|dashboard|script|extension|chatbot|assistant app|newsletter|program|font"
    r"|theme"
)
_FIRMS_EN: Final = (
    r"company|firm|startup|start-up|bank|airline|agency|insurer|supplier|vendor|publisher|employer|competitor"
    r"|retailer|shop"
    r"|store|brand|charity|ngo|club|newspaper|magazine|station|university|school|hospital|clinic|studio|lab|contractor"
    r"|landlord company|manufacturer|distributor|provider|consultancy|law firm|brewery|bakery|restaurant|chain|client"
)
_PLACES_EN: Final = (
    r"town|city|village|hamlet|river|lake|mountain|island|region|province|state|country|suburb|neighbou?rhood"
    r"|district|port"
    r"|valley|coast|beach|peninsula|peak|volcano|park|resort|county|capital|street|square|canyon|bay"
)
_LEFT_EN: Final = _before(
    (
        ORG,
        3,
        r"(?:team|people|guys|staff|folks|everyone|engineers?|office|friends?|buddies) (?:over )?at"
        r"|(?:flew|fly|flying|booked|insured|bank|banks|signed)\b[^.!?]{0,30}\bwith"
        r"|(?:work(?:s|ed|ing)?|jobs?|position|role|employed|intern(?:s|ed|ing|ship)?|consult\w*|career|volunteer\w*"
        r"|freelanc\w+|last day|first day|colleagues?|apprentice\w*|studie[sd]|studying|enrolled|lectur\w+|offer)"
        r" (?:\w+ )?(?:at|for|from)"
        r"|join(?:s|ed|ing)?|rejoined|(?:co-)?found(?:ed|s)|employed by|resigned from|acquired|acquires|hired by"
        r"|fired by"
        r"|(?:ceo|cto|founder|chief|director|chairman|president|owner|employee|subsidiary|customer|client) (?:of|at)"
        r"|(?:contract|deal|invoice|membership|account|lease|policy|flight|partnership|loan"
        r"|tender"
        r"|subscription|order|parcel|refund|quote|bill|letter|email) (?:is |was |signed )?(?:with|from|at|by)"
        r"|not at|no longer at|head of [^,.]{1,20},|of [^,.]{1,16},|interned at|treated at|ordered (?:\w+ )?from"
        r"|bank with"
        r"|(?:vendor|supplier|courier|employer|insurer|publisher|carrier|agency|distributor|retailer|airline|company"
        r"|firm"
        r"|startup|start-up|bank|client|customer|competitor|contractor|sponsor)(?:[,:]| is| called)?",
    ),
    (
        PRODUCT,
        3,
        r"(?:us(?:e|es|ed|ing)|install(?:s|ed|ing)?|deploy(?:s|ed|ing)?(?: to| on)?|migrat\w+ (?:from|to)|runs? on"
        r"|running on|host\w* (?:\w+ )?on|built (?:with|on)|written in|everything to"
        r"|(?:images|data|files|backups|logs|it|them) (?:on|in|to)|proposed:|decision:|lease|leased|upgrad\w+ to"
        r"|switch\w* from|(?:switch|migrat)\w* (?:over )?(?:from \S+(?: \S+)? )?to|deployed \S+ (?:on|to)"
        r"|deploys go through|sign\w* up for|subscrib\w+ to|log\w* in(?:to| to)|driv(?:e|es|ing) an?|presented|launched"
        r"|released|our (?:\w+ )?(?:tool|database|editor|tracker) is|instead of using|downloaded|wrote the parser for"
        r"|replac(?:e|ed|ing|es)(?: [\w.]+ (?:with|by))?|(?:app|tool|software|database|editor|laptop|phone|car|bike"
        r"|camera"
        r"|printer|library|framework|plugin|console) (?:is|was|called)(?: now)? an?|(?:version|release) of|plugin for"
        r"|(?:keep|kept|track|log|store|stored|wrote|drew|edit|manage|plan)\w*\b[^.!?,]{1,30}\bin|automat\w+ \w+ with)",
    ),
    (
        PERSON,
        3,
        rf"(?:my|our|his|her|their|your|the|a|new|old|best|[a-z]+ing)(?: \w+)? (?:{_KIN_EN})(?:,| is| was)?"
        rf"|(?:{_KIN_EN})(?:,|:| is called| called| named)?|named|is called|was called|dear|nicknamed",
    ),
    (
        PERSON,
        2.2,
        r"(?:met|meet|meets|marry|marries|married|hire|hired|ask|asks|asked|tell|tells|told|phoned|phone|call|called"
        r"|email|emailed|interviewed|invite|invited|remind|thank|thanked|miss|trust|babysat"
        r"|(?:signed|written|led|run|painted|repaired|designed|reviewed|approved|chaired|taught|coached|built|composed"
        r"|cooked|organi[sz]ed|drawn|fixed|made) by"
        r"|(?:plays?|played|playing|dinner|lunch|breakfast|coffee|walk|walked|danced?|chess|tennis|lives?|living"
        r"|travel\w*"
        r"|spoke|talked|argued|chatted|living|hiked|trained|studied|worked|met|meeting up) (?:\w+ )?with"
        r"|engaged to|dating|divorced|thanks to|belong(?:s|ed)? to"
        r"|(?:sold|gave|sent|lent|showed|handed|paid|spoke|talked|wrote|introduced|goes"
        r"|report\w*)\b[^.!?]{0,40}\b(?:to)"
        r"|favou?rite (?:writer|player|singer|actor|actress|author|artist|band|teacher|footballer|composer|painter)"
        r" (?:is|was|used to be)(?: now)?)",
    ),
    (
        LOCATION,
        2.4,
        r"(?:bridge|harbou?r|station|farm|lighthouse|ruins|castle|beach|camp|border|coast|lake|trail|town|city|village"
        r"|river|island|province|region|suburb|outskirts|north|south|east|west|centre|center|map|mayor|streets)"
        r" (?:at|in|near|of)|(?:river|lake|island|mount)|(?:along|across|crossed|banks of)"
        r"|(?:liv(?:e|es|ed|ing)|born|grew up|growing up|raised|based|stay\w*|holidays?|vacation|weekend|flat|house"
        r"|home"
        r"|apartment|gallery|workshop|conference|concert|wedding|office|branch|plant|studio|restaurant|bakery|is|was"
        r"|are)"
        r" (?:back )?(?:in|near)"
        r"|(?:mov(?:e|es|ed|ing)|trips?|flew|fly|flies|drove|drive|drives|travel\w*|went|go|goes|going|ferry|train"
        r"|trains"
        r"|flights?|bus|sail\w*|relocat\w+|walked|hiked|cycled|return\w*|back|commutes?|emigrated|get|got|way|road"
        r"|transferred) (?:\w+ )?(?:from \S+ )?to"
        r"|(?:sailed|flew|train|flight|ferry|bus|travel\w*|drove|walked|moved|fled|emigrated|far|away|hails?) from"
        r"|based in|been to|island of|visit(?:s|ed|ing)?",
    ),
    (
        ORG,
        2.4,
        r"(?:internet|electricity|power|phone|delivery|order|parcel|offer|letter|bill|plumber|cheque|email|call"
        r"|furniture"
        r"|bread|food|catering|flowers|salary|money|savings) (?:is|was|came|comes|are|were)? ?(?:from|to|with)"
        r"|(?:transferred|moved) (?:my|our|the) (?:savings|money|account|mortgage) to|listen(?:s|ed|ing)? to"
        r"|(?:bought|ordered|got) (?:it|them|this|these|that) (?:at|from)",
    ),
    (
        PERSON,
        2.6,
        r"(?:book|song|film|movie|painting|novel|poem|album|play|photo|essay|article|talk|lecture) (?:by|from)",
    ),
    (PERSON, 1.5, r"(?:interview|appointment|meeting|date|call|chat|session|walk|trip) with"),
    (
        LOCATION,
        2.4,
        r"(?:spent|spend|nights?|days?|weeks?|months?|years?|summer|winter|easter|christmas|holiday|weekend|stop"
        r"|stopover)\b"
        r"[^.!?,]{0,20} (?:in|on|at)|from (?-i:[A-Z])\w+(?: (?-i:[A-Z])\w+)? to",
    ),
    (LOCATION, 1.5, r"in|near|around|outside|towards?|via|inside"),
    (LOCATION, 1.2, r"(?:comes?|came|is|are|was|\w+s) (?:\w+ )?from"),
    (ORG, 1.2, r"at|from [^.!?]{0,20}\bat"),
    (ORG, 0.8, r"for|by|with"),
    (PERSON, 0.8, r"with|by|about|to|for|not"),
    (PRODUCT, 1.2, r"prefers?|preferred|over|than|versus|vs\.?|beats|tried|buying|bought an?|recommended the|is an?"),
)
_LEFT_ES: Final = _before(
    (
        ORG,
        3,
        r"(?:trabaj\w+|trabajo|empleo|prácticas|puesto) (?:\w+ )?(?:en|para)|emplead[oa] (?:en|de)|director\w* de"
        r"|contrat\w* (?:\w+ )?(?:con|a|de)|(?:vol\w+|vuelo) con|factura de|(?:empresa|compañía|proveedor\w*|cliente"
        r"|banco"
        r"|aerolínea|aseguradora|editorial)(?: nuev[oa])?(?: es|:|,)?|fund[óé]|dirige|cuenta en|estudi\w+ en la"
        r"|trabaj\w+ con [^.,]{2,30} en",
    ),
    (
        PRODUCT,
        3,
        r"us(?:o|a|as|an|é|ó|amos|aba|ando)|utiliz\w+|instal\w+|prob(?:é|ó|amos|ando)|migr\w+ (?:de \S+ )?a"
        r"|cambi(?:é|ó|amos|ar) (?:de|de \S+ a|a)|descarg\w+|conduzco un|(?:regal[óé]|compr[éóo]) un[oa]?|aplicación"
        r"|programa",
    ),
    (
        PERSON,
        3,
        r"(?:herman[oa]|hij[oa]|prim[oa]|tí[oa]|amig[oa]|madre|padre|abuel[oa]|novi[oa]|espos[oa]|marido|mujer"
        r"|sobrin[oa]"
        r"|suegr[oa]|cuñad[oa]|niet[oa]|bebé|jef[ea]|doctora?|profesora?|maestr[oa]|veci[nñ][oa]|compañer[oa]|colega"
        r"|señora?"
        r"|soci[oa]|entrenadora?|abogad[oa]|médic[oa]|dentista|don|doña),?|casa de|llamad[oa]|(?:se|me) llam[ao]"
        r"|hablé con"
        r"|(?:cen|quedé|com|habl|vivo|reunión|cita|casó|fui)\w*(?: \w+)? con|(?:conocí|llamé|visité|vi) a",
    ),
    (
        LOCATION,
        2.4,
        r"(?:viv\w+|nac\w+|crec\w+|oficina|casa|piso|está|estoy|estamos|concierto|boda|casaron) (?:\w+ )?(?:en|de)"
        r"|(?:viaj|vol|mud|fui|voy|va|vamos|ir|lleg|regres|emigr|huy)\w*(?: con \S+)? a|(?:viene|vengo|vino) de|hacia"
        r"|desde"
        r"|hasta|río|lago|ciudad(?: de)?|pueblo(?: de)?|isla(?: de)?|provincia de|playa de|puerto de|calle|mudó a"
        r"|es de",
    ),
    (ORG, 1.5, r"dejé|dejó|dejamos|renunció a|entré en"),
    (LOCATION, 1.6, r"en"),
    (LOCATION, 0.8, r"a|de|por"),
    (PERSON, 0.8, r"con|a|para|de"),
)
_LEFT_DE: Final = _before(
    (
        ORG,
        3,
        r"(?:arbeit\w*|jobb\w*|anfang\w*|angefangen|angestellt|praktikum|ausbildung|stelle) (?:\w+ )?(?:bei|für)"
        r"|(?:firma|unternehmen|lieferant\w*|kunde|hersteller|arbeitgeber|bank|fluglinie|versicherung|verlag)(?::"
        r"| ist)?"
        r"|(?:flieg\w*|geflogen|vertrag) mit|leitet|gründete|kunde bei|rechnung von",
    ),
    (
        PRODUCT,
        3,
        r"(?:be)?nutz\w*|verwend\w*|install\w*|setzen auf|läuft auf|umgestiegen auf|umgestellt auf|auf \S+ auf"
        r"|(?:von|statt) \S+ auf|wir sind von|gekauft|fahre ein(?:en)?|(?:auto|handy|laptop|rechner|drucker"
        r"|rad) ist ein|app",
    ),
    (
        PERSON,
        3,
        r"(?:(?:schwieger|groß|stief|ur|enkel|paten)?(?:bruder|schwester|sohn|tochter|mutter|vater|kind)|onkel|tante"
        r"|cousin|cousine|freund|freundin|kollegen?|kollegin|chef|chefin|nachbarn?|nachbarin|oma|opa|frau|herrn?|mann"
        r"|neffen?"
        r"|nichte|partner|partnerin|trainer|trainerin|lehrer|lehrerin|arzt|ärztin|enkelin|vermieter|vermieterin|baby"
        r"|mitbewohner|mitbewohnerin|doktor|professor),?|heißt|heiße|namens|(?:besuche|besuchen|kenne|traf|treffe"
        r"|rufe|frag)"
        r"|(?:gesprochen|termin|treffen|verabredet|telefoniert|zusammen|verheiratet|habe) mit",
    ),
) + _before(
    (
        LOCATION,
        2.6,
        r"(?:wohn\w*|leb\w*|lebe|geboren|aufgewachsen|büro|wohnung|haus|werk|konzert|war|ist|sind|urlaub) (?:\w+ )?in"
        r"|(?:wohn\w*|leb\w*|war|waren|bin|sind|urlaub) (?:\w+ )?auf"
        r"|nach|(?:kommt|komme|kommen|stammt|stamme|ist|bin|sind) aus|insel|stadt|dorf|fluss|am fluss|richtung",
    ),
    (LOCATION, 2, r"in|aus"),
    (LOCATION, 0.8, r"von|bis|über|auf|an der|am"),
    (ORG, 1.6, r"bei"),
    (PERSON, 1.0, r"mit|von|für|und"),
    bare=True,
)
_LEFT: Final = {"": _LEFT_EN, "es": _LEFT_ES, "de": _LEFT_DE}

_PERSON_VERBS_EN: Final = (
    r"plays?|played|handles|writes|wrote|runs|ran|repair(?:ed|s)|planted|phoned|stud(?:ies|ied)|adopted|wants|plans"
    r"|passed|proposed|suggested|offered|train(?:s|ed)|retired|coordinates|teaches|taught|drives|drove|eats|drinks"
    r"|speaks|spoke|sings|sang|cooks|cooked|cleans|forgot|forgets|remembers|remembered|signed|moved|does the|counts"
    r"|left"
    r"|got (?:the|a|an|married|sick|engaged)|resigned|said|says|told|tells|asked|asks|called|calls|thinks|thought|likes"
    r"|liked|loves|loved|hates|hated|prefers|lives|lived|works|worked|feels|felt|knows|knew|leads|led|owns|swims|bakes"
    r"|paints|painted|quit|agreed|replied|answered|helped|helps|visit(?:s|ed)|invited|bought|sold|borrow(?:s|ed)"
    r"|promised|owes|coaches|fixed|installed|recommended|recommends|manages|reviewed|volunteers|joined|comes|came"
    r"|brought"
    r"|met|married|divorced|dances|jogs|sews|knits|gardens|hopes|believes|complained|apologi[sz]ed|wrote|reads|sleeps"
    r"|snores|smokes|cried|laughed|fell|broke (?:his|her)|turned \d+|failed|graduated|counted|is learning|will (?:chair"
    r"|represent|lead|cook|drive|call|bring|present|speak|join|help)|teaches|travel(?:s|led|ed)|studies|wrote"
)
_IS_A: Final = r"^(?:,| is| was| remains| —| –) (?:the|an?|our|my|his|her|their|this) (?:[a-z-]+ ){0,2}?"
_RIGHT_EN: Final = _behind(
    (PRODUCT, 3, rf"{_IS_A}(?:{_THINGS_EN})\b|^ (?:{_THINGS_EN})s?\b"),
    (ORG, 3, rf"{_IS_A}(?:{_FIRMS_EN})\b"),
    (LOCATION, 3, rf"{_IS_A}(?:{_PLACES_EN})\b|^ (?:{_PLACES_EN})\b"),
    (PERSON, 3, rf"{_IS_A}(?:{_KIN_EN}|student|chef|actor|actress|dancer|player|writer|carpenter|pilot|vet|judge)\b"),
    (
        PRODUCT,
        2,
        r"^ (?:overheats?|charges|updates?|restarts?|broke|beats|costs|ships with|runs (?:on|out|slow)|works (?:on"
        r"|with|offline)"
        r"|needs (?:an? (?:update|restart|upgrade|new)|charging)|(?:lost|deleted|corrupted|saved|exported|made"
        r"|ate) (?:all )?"
        r"(?:my|our|the) (?:\w+ )?(?:notes?|data|files?|photos?|work|documents?|drafts?|recordings?)"
        r"|(?:doesn['’]t|does not|won['’]t|can['’]t|cannot) (?:sync|load|start|open|support|handle|export|import"
        r"|connect)"
        r"|has (?:a (?:cracked|built-in|touch|better|free)|no (?:dark mode|offline|export)))\b",
    ),
    (
        ORG,
        2,
        r"^ (?:raised (?:our|my|the|its|their)|pays|bought (?:our|the|out)|sued|fired|promoted me|offered me|offers"
        r"|closed in \d"
        r"|opened in \d|owes us|sent (?:us|me|the)|fixed (?:our|the) (?:roof|boiler|fence|pipes)|turned me down"
        r"|interviewed me"
        r"|hired me|let me go|charged (?:me|us)|refunded|overcharged|is (?:hiring|owned|based|bankrupt"
        r"|a subsidiary))\b",
    ),
    (
        PERSON,
        2.2,
        r"^ (?:was|got|has been|is being) (?:promoted|hired|fired|elected|arrested|injured|operated|admitted"
        r"|discharged|adopted"
        r"|diagnosed|robbed|born|divorced|widowed|dumped)\b|^ (?:reports|admits|admitted|insists|swears|claims"
        r"|confirmed"
        r"|confirms|warned|mentioned|wonders) (?:that|he|she|it|the)\b|^ (?:can['’]?t|cannot|couldn['’]t|won['’]t"
        r"|might|may"
        r"|could|should|will) (?:come|make it|attend|join|help|water|cook|bring|drive|pick|call|stay|move|visit"
        r"|be there|take)\b"
        r"|^ has (?:the flu|a cold|cancer|covid|asthma|diabetes|a fever|a new (?:job|boyfriend|girlfriend))\b"
        r"|^ scored\b",
    ),
    (
        PRODUCT,
        2.2,
        r"^ (?:is|was|remains) (?:the|a|an|our|my)(?: [a-z-]+){0,3} (?:tracker|tool|app|application|library|framework"
        r"|database|editor|browser|language|plugin|phone|printer|software|service|platform|game|engine|system|package"
        r"|device|model)\b|^ (?:DB|API|SDK|CLI|app|printer|database|server|plugin|library|phone|camera|laptop|exports?"
        r"|imports?|extension|license|licence|update|account|headphones|dashboard|tickets?)\b"
        r"|^ (?:keeps? )?(?:crash(?:es|ed|ing)|freez(?:es|ing)|hangs|lags|boots|supports|compiles|syncs|renders"
        r"|logs me out)"
        r"\b|^ (?:is|was|gets|runs) (?:so |too |very |really )?(?:slow|buggy|down|open source|free|deprecated"
        r"|unresponsive)\b"
        r"|^ on (?:my|our|the) (?:laptop|phone|machine|server|computer|mac|pc|desktop)",
    ),
    (
        LOCATION,
        2,
        r"^ (?:office|branch|airport|harbou?r|station|plant|warehouse|suburb|district|marathon|river|coast|peninsula"
        r"|site|depot|campus|region)\b|^ (?:is|was|gets) (?:\w+ )?(?:noisy|colder|warmer|cold|rainy|dark|sunny|humid"
        r"|crowded|beautiful|lovely|steep|hot|far|flooded|wide|(?:\w+ )?(?:hours?|minutes?|km|miles) away|near|north"
        r"|south"
        r"|in flood)\b|^ (?:in (?:winter|summer|spring|autumn|january|july)|has the best|froze|flooded)\b|^,? where\b"
        r"|^ (?:lies|borders|airport)\b",
    ),
    (
        ORG,
        2.2,
        r"^ (?:announced|sells|acquired|hired|laid off|went (?:public|bankrupt|bust)|employs|raised [\$€£\d]|refused"
        r"|delivers?|delivered|sent (?:the|us|me|an?)|lost the (?:parcel|package|shipment)|cancel(?:s|led) (?:the|our"
        r"|my)"
        r"|opened an?|clos(?:ed|es) (?:the|its|one|an?)|is hiring|handles our|does our|makes|supplies|ships|charges"
        r"|invoiced|merged|owns"
        r"|sponsors|rejected|publish(?:es|ed))\b|^(?:'s|’s) (?:ceo|cto|shares|employees|customers|headquarters"
        r"|board)\b",
    ),
    (
        PERSON,
        2.2,
        rf"^ (?:(?:also|never|always|often|still|really|just|has|had|will|can|won't|doesn't"
        rf"|didn't) )?(?:{_PERSON_VERBS_EN})\b"
        r"|^ (?:is|was) (?:pregnant|moving|coming|leaving|sick|ill|retired|married|vegan|vegetarian|allergic|expecting"
        r"|\d+(?: years old)?\b|on (?:leave|paternity|maternity|holiday|vacation|call)|in hospital|our|my|born|tired"
        r"|late|away"
        r"|happy|angry|sad|learning|engaged|single|deaf|blind|shy|tall)"
        r"|^ has (?:a|an|two|three|\d+) (?:\w+ )?(?:allergy|dogs?|cats?|kids|children|sons?|daughters?|sisters?"
        r"|brothers?)"
        r"|^ was born|^, (?:who|my|our|his|her) |^ and (?:I|her|his|my)\b|^:? (?:vegan|vegetarian|allergic)"
        r"|^(?:'s|’s) (?:mother|father|wife|husband|son|daughter|sister|brother|birthday|idea|flat|house|place|dog|cat"
        r"|drill|car|boss|phone|desk|party|wedding|surgery|opinion|suggestion)\b",
    ),
    (PERSON, 1.4, r"^, (?:a|an|the) |^'s\b|^’s\b"),
)
_RIGHT_ES: Final = _behind(
    (
        PERSON,
        2,
        r"^ (?:(?:no|ya no|también|se|me|le|nunca|siempre) ){0,2}(?:abrió|cerró|enseña|llegó|escribió|fundó|dejó"
        r"|viv[eí]\w*"
        r"|trabaj[aó]\w*|coordina|dijo|quiere|cocin[aó]|compró|vendió|ganó|jueg?[aó]|cant[aó]|habla|estudi[aó]|llamó"
        r"|viene"
        r"|dirige|toca|mudó|casó|jubil[aó]|regaló|prefiere|odia|nació|murió|cumple|corre|pinta|baila|sabe|cree|piensa"
        r"|pasó"
        r"|olvidó|perdió|puede|pudo|podrá|va a|viene|sale|vuelve|llega|tiene (?:hambre|fiebre|gripe|miedo|un|una|dos)"
        r"|es (?:alérgic|vegan|bomber|médic|profesor|abogad|enfermer|mi |de |un |una )|tiene \d+ años)"
        r"|^ y (?:yo|su)\b",
    ),
    (LOCATION, 2, r"^ (?:se desbordó|queda|está (?:a|lejos|cerca))|^ en (?:invierno|verano)"),
    (
        ORG,
        2,
        r"^ (?:(?:me|nos) (?:subió|bajó|despidió|contrató|cobró|ofreció|paga|debe)"
        r"|anunció|contrató|despidió|vende|fabrica|canceló|entrega|quebró|rechazó|abrió una)",
    ),
    (PRODUCT, 2.5, r"^ se (?:calienta|cuelga|bloquea|rompió|actualiza|apaga)"),
    (PRODUCT, 2, r"^ (?:en el (?:servidor|portátil|móvil|ordenador)|se cuelga|va lento|no arranca|para mis? )"),
)
_RIGHT_DE: Final = _behind(
    (
        PERSON,
        2,
        r"^ (?:wohnt|arbeitet|sagt|sagte|kommt|geht|spielt|züchtet|leitet|studiert|übernimmt|übernahm|heiratet|kocht"
        r"|will"
        r"|mag|macht|zieht|zog|singt|malt|liest|schreibt|schrieb|fährt|fuhr|lernt|lehrt|unterrichtet|hasst|liebt"
        r"|meint|denkt"
        r"|glaubt|findet|isst|trinkt|schläft|kennt|kann|möchte|reist|stammt|hat (?:geheiratet|Geburtstag|Angst|gesagt"
        r"|ein(?:en|e)? (?:Sohn|Tochter|Hund|Katze))|ist (?:krank|schwanger|allergisch|vegetarier|vegan|müde|\d+|mein"
        r"|unser"
        r"|verheiratet|umgezogen|geboren)|heißt|joggt|backt|kauft|kaufte|verkauft|verlässt|verließ|rief"
        r"|wurde geboren)\b"
        r"|^ und (?:ich|sein|ihr)",
    ),
    (
        ORG,
        2,
        r"^ (?:liefert|entlässt|produziert|stellt \w+ (?:ein|her)|kündigt|baut|verkauft|meldet|hat (?:den|die"
        r"|das) (?:Kredit"
        r"|Auftrag|Rechnung|Paket|Vertrag)|übernimmt die)\b",
    ),
    (LOCATION, 3, r"^ (?:führt (?:[Hh]och|[Nn]iedrig)wasser|liegt|trat über|im (?:Winter|Sommer))"),
    (PRODUCT, 2, r"^ (?:installiert|stürzt|läuft (?:nicht|langsam|auf)|unterstützt|gekauft)"),
)
_RIGHT: Final = {"": _RIGHT_EN, "es": _RIGHT_ES, "de": _RIGHT_DE}
_ORG_TAIL_DE: Final = re.compile(
    r"(?<=[a-zäöü]{3})(?:bank|werke?|verlag|kasse|bahn|verein|gruppe|technik|bau|handel|versicherung|klinik|verband"
    r"|genossenschaft|gesellschaft|holding)$"
)
_STREET_DE: Final = re.compile(r"(?:stra(?:ss|ß)e|gasse|weg|platz|allee|ufer)$", re.IGNORECASE)

Scores = dict[str, float]


def scores_of(text: str, start: int, end: int, tagged: Tagged | None, language: str = "", *, opens: bool) -> Scores:
    """The points of each kind for the name at `start` to `end`. `language`: "" (English), `es` or `de`; `opens`: the
    name opens its sentence, where a capital says nothing."""
    points = dict.fromkeys((PERSON, ORG, LOCATION, PRODUCT), 0.0)
    words = text[start:end].split()
    unknown = _by_model(points, tagged, start, end, _MODEL[language])
    known = _own(points, words, 0.5 if opens and unknown and not language else 1.0)
    before = text[max(0, start - 64) : start].rsplit("\n", 1)[-1]
    seen: set[str] = set()
    for kind, weight, pattern in _LEFT[language]:
        if kind not in seen and pattern.search(before):
            points[kind] += weight
            seen.add(kind)
    seen.clear()
    after = text[end : end + 64]
    # What stands behind a plain word says nothing of a name ("Traffic is slow").
    plain = opens and unknown and not known and len(words) == 1 and not _is_odd(tagged, text, start, end)
    if not language and before.casefold().endswith("the ") and len(words) == 1:
        points[PERSON] -= 1.5
        points[PRODUCT] += 0.5
    for kind, weight, pattern in _RIGHT[language]:
        if kind not in seen and pattern.search(after):
            points[kind] += weight * (0.5 if plain else 1)
            seen.add(kind)
    return points


def best(points: Scores) -> tuple[str, float]:
    """The kind with most points, and how many."""
    kind = max(points, key=lambda one: points[one])
    return kind, points[kind]


def spelled_kind(words: list[str]) -> str:
    """The kind that the first or last word of a name of several words makes sure of, else ""."""
    if len(words) < 2:
        return ""
    first, last = (word.strip(",'’\"()").casefold() for word in (words[0], words[-1]))
    bare = last.strip(".")
    if last in LEGAL_FORMS or bare in LEGAL_FORMS or "&" in words:
        return ORG
    if first.strip(".") in PERSON_STARTS:
        return PERSON
    if _NUMBERED.fullmatch(words[-1]):
        return PRODUCT
    if bare in ORG_ENDS or first in ORG_STARTS or any(word.casefold() in ORG_STARTS for word in words[1:-1]):
        return ORG
    if bare in PRODUCT_ENDS and not words[-1].islower():
        return PRODUCT
    return LOCATION if bare in PLACE_ENDS or first in PLACE_STARTS else ""


def _own(points: Scores, words: list[str], trust: float) -> bool:
    """Points for the name's own words; whether any of them is known. `trust`: how far a lone word's list counts."""
    bare = [word.strip(".,'’\"()") for word in words]
    first, several = bare[0].casefold(), len(words) > 1
    spelled = spelled_kind(words)
    if spelled:
        points[spelled] += 6
    if _ORG_TAIL_DE.search(bare[-1]):
        points[ORG] += 3
    if _STREET_DE.search(bare[-1]):
        points[LOCATION] += 3
    if any(any(map(str.isdigit, word)) for word in words) or _has_hump(bare[-1]):
        points[PRODUCT] += 2
    given = name_lists.is_given(bare[0]) or ("-" in first and name_lists.is_given(first.split("-")[0]))
    family = name_lists.is_family(bare[-1])
    place = name_lists.is_place(" ".join(bare)) and first not in PEOPLES
    if several:
        points[PERSON] += (1.6 if given else 0) + (1.0 if family else 0) + (0.4 if given and family else 0)
    else:
        points[PERSON] += trust * (1.8 if given else 0.5 if family else 0)
    if place:
        points[LOCATION] += 2.0 if several and not given else trust * (1.1 if given else 1.7)
    return bool(spelled) or given or place


def _is_odd(tagged: Tagged | None, text: str, start: int, end: int) -> bool:
    """Whether the model's tokenizer never met the word, so that it is no everyday one ("Pixelmoth")."""
    everyday = text[start:end].casefold().endswith(("s", "ing", "ed", "ly", "er", "tion", "ment", "ness", "able"))
    return tagged is not None and not everyday and tagged.rarity(start, end) >= 3


def _has_hump(word: str) -> bool:
    return any(b.isupper() and a.islower() for a, b in pairwise(word)) and not word.startswith("Mc")


def _by_model(points: Scores, tagged: Tagged | None, start: int, end: int, weight: float) -> bool:
    """Points by the model's probabilities; whether it sees no name at all."""
    mean = None if tagged is None else tagged.mean_over(start, end)
    if mean is None:
        return True
    for kind, share in zip(KINDS[1:], mean[1:], strict=True):
        points[kind] += weight * float(share)
    return float(mean[0]) > 0.85
