"""Talk about the talk, and what is no talk: lines that say nothing once their small words are taken away.

A line is idle when every word of it is a small word, a word of courtesy or one of getting through a meeting, and at
least one is of the last kind. One other word (a name, a thing, a number) and it stays: "Shall we start? Yusra leaves
at four." Furniture of documents and the output of programs are told by classes of lines in the same way.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from recalld.actors.retain.lexicon import FILLER_WORDS, word_set

_SMALL: Final = word_set(
    """
    i me my you your yours we us our it its this that these those a an the and or but so if then than as of to in on at
    for with from by up out off back over be am is are was were been do does did don't doesn't didn't have has had will
    would shall should can could may might must can't cannot couldn't won't i'm i'll i'd i've you're you'll you've we're
    we'll we've it's it'll that's there's here's let's not no yes yeah yep please just really very too also again now
    here there still yet ok okay well first next one ones any some all other another anything something everything
    anyone someone everyone everybody folks guys team others how what when where why who which more less little bit
    quick quickly
    real soon shortly later maybe perhaps sure think guess hope know like want wanted need get got getting go going come
    coming came take make see look try trying give given keep say said tell ask let me bear sorry thank thanks great
    good
    better best fine perfect nice cool alright right oh ah hey hi hello bye short long couple few minute minutes second
    seconds sec moment moments time day evening morning afternoon weekend week night today everybody's happy free feel
    able okay ready done last before after while because until
    """
)
_DEVICES: Final = word_set(
    """
    screen slides slide deck camera video audio sound mic microphone headset speakers connection line link chat window
    tab volume recording recorder transcript transcription call conference meeting session stream webinar lobby room
    break pause questions question people audience applause point points discussion agenda item topic floor
    """
)
_GOING_ON: Final = re.compile(
    r"\b(?:hear|hearing|unmute|muted?|sharing|share (?:my|your|the|our) (?:screen|slides|deck|video)|see (?:me|us|it"
    r"|my|the"
    r"|your) ?(?:screen|slides|slide|deck|now|ok|okay)?$|see my (?:screen|slides)|repeat|louder|slower|speak up|speak"
    r"|talk"
    r"|(?:your|my) (?:camera|mic|microphone|video|audio|sound|connection|line)|breaking up|frozen|lagging|dropped"
    r"|get (?:going|started)|(?:let's|shall we|we(?:'ll| will|'re)?(?: going to)?|let us|about to|ready to) "
    r"(?:get |just )?(?:begin|start|started|go|continue|resume|proceed|move|pause|wrap|stop|be right|take)"
    r"|(?:we['’]ll|we will|i['’]ll|i will) be (?:right )?back|stand by|hold on|holding|hang on|(?:please )?(?:hold"
    r"|wait)"
    r"|bear with (?:me|us)|one (?:moment|second|minute|sec)|a (?:moment|second|minute|sec)|another (?:minute|moment)"
    r"|(?:to|people|others|everyone) (?:join|joined|joining)|let me|take your time|after you|you first|go ahead"
    r"|get back"
    r"|(?:is|are|does) (?:this|that|it) (?:better|working|on|work)|any (?:other |more |further )?(?:questions|comments"
    r"|thoughts)|(?:short|quick|little|five|ten) break|fair (?:point|enough)|(?:that['’]?s|all) (?:from me|all from)"
    r"|thank you for|thanks (?:for|all|everyone|everybody)|that helps|helps a lot|no (?:worries|problem|rush|hurry)"
    r"|(?:will|shall) (?:begin|start) (?:shortly|soon|in)|over to (?:you|me)|anytime|any time|(?:sounds|looks) (?:good"
    r"|great|fine)|have a (?:good|great|nice|lovely)|see you|talk (?:soon|later)|catch you|be right (?:back|there|with)"
    r"|(?:audio|sound|video|connection|line|screen|camera|mic) (?:is |was |keeps? )?(?:cut|cuts|cutting|choppy|gone"
    r"|bad|lost"
    r"|back|off|on|frozen|better)|(?:bad|poor|terrible) (?:connection|line|audio|sound)|(?:lost|losing) you"
    r"|zoom (?:in|out)"
    r"|(?:you['’]re|we['’]re|i['’]m|we are|you are|i am) (?:back|live|here|recording|on air)|closer to|offline"
    r"|where were we"
    r"|(?:any|no) (?:objections?|updates?|news)|nothing (?:to (?:report|add)|from)|so moved|motion carried|adjourned"
    r"|(?:be|remain|stay) seated|all rise|excused|(?:state|say|spell) your (?:full )?name|your (?:full )?name,? please"
    r"|same as (?:last|before)|(?:good|great|excellent|interesting|valid) (?:question|point)"
    r"|proceed|overruled|sustained|a seconder|tuning in|(?:don['’]t|do not) go anywhere|ladies and gentlemen|rephrase"
    r"|ignore (?:me|that|this)|wrong (?:window|chat|channel|person)|forget (?:it|that)|what do you mean"
    r"|you['’]re the best"
    r"|swear to tell|no further questions|important to us|next speaker|all we have time|go on|(?:hello|hi) and welcome"
    r"|so true|tell me about it|fingers crossed|can['’]t wait|bless you|get well|feel better|happy (?:birthday|new year"
    r"|holidays|easter|christmas)|merry christmas|sweet dreams|safe (?:travels|trip|flight|journey)|take it easy"
    r"|good for you|well said|what a (?:day|week|shame|pity|relief)|sounds (?:fun|amazing|lovely|awesome|perfect"
    r"|interesting"
    r"|delicious|tough|hard)|sorry to hear|i (?:see|understand|hear you)|understood|makes sense|no biggie"
    r"|you know (?:what|how) (?:i|it)|didn['’]?t (?:catch|get|hear) (?:that|you)|come in|sit down|wrap up|move on"
    r"|moving on|next (?:slide|question|item|point|topic))\b"
)
"""What is said to get through a meeting; the rest of the line must be small words."""
_GOING_WORDS: Final = word_set(
    """
    hear hearing mute unmute muted sharing share shared repeat repeating louder slower closer clearly loud clear speak
    speaking talk talking frozen lagging dropped breaking begin begins beginning start starts started starting continue
    resume proceed move moving pause stop wrap stand hold holding hang wait waiting bear join joined joining joins helps
    help anytime enough fair worries problem rush hurry read reading check checking admit record coming appreciate
    appreciated having listening attending patience following welcome enjoy safe rest turn pull open find finding type
    write typing comments thoughts anymore properly sit down picture
    zoom closer lost losing cut cuts cutting choppy gone bad poor terrible live air offline objections objection updates
    update news nothing report add moved motion carried adjourned seated rise remain stay excused state spell name full
    same question point excellent interesting valid true fingers crossed wait bless birthday year holidays easter link
    christmas merry sweet dreams travels trip flight journey easy shame pity relief sounds sound fun amazing awesome
    proceed overruled sustained seconder tuning gentlemen ladies rephrase ignore typo wrong window forget mood swear
    truth
    important anywhere speaker speakers further quite welcome continue
    delicious tough hard understand understood makes sense biggie mean catch links share five ten via side lovely
    """
)
_IDLE_ES: Final = word_set(
    """
    me te se nos os le les lo la el los las un una y o si no sí que de en a con por para mi tu su ya ahora luego bien
    mal
    todo todos todas a muy más momento segundo minuto segundos minutos vuelvo vuelve escucháis escuchan escucha
    escuchas oye
    oís oyen oímos oigo escucho escuchamos ve ven ves veis vemos veo pantalla micrófono cámara audio gracias vale
    perfecto
    buenos buenas días tardes noches hola adiós chao espera esperad espere empezamos empezar comenzar comenzamos
    seguimos
    silencio silenciado enseguida comparto compartir puede pueden podéis puedes repetir claro genial nada igualmente
    saludos
    hasta luego pronto mañana oye perdón perdona disculpa disculpen está estás estáis están hay alguien aquí listo
    listos
    vamos allá bueno ok jaja jajaja
    """
)
_CORE_ES: Final = re.compile(
    r"\b(?:escuch\w+|o[yií][es]?\w*|momento|segundo|minuto|vuelvo|pantalla|micrófono|cámara|silenciad\w+|empe[zc]\w+"
    r"|comen[zc]\w+|repetir|buen[oa]s (?:días|tardes|noches)|enseguida|esperad?|gracias|perdón|hasta)\b"
)
_IDLE_DE: Final = word_set(
    """
    ich du ihr wir er es mich dich euch uns mir dir bin bist seid sind ist war kann kannst könnt können hört hören höre
    hörst sehen sehe seht siehst gut gleich wieder da zurück moment sekunde minute minuten bitte danke gerne gern ja
    nein
    doch okay ok alles klar super passt bis dann bald später morgen moin hallo tschüss zusammen allerseits leute na
    jetzt
    noch mal nochmal einmal kurz mein meinen dein deinen euer den das der die bildschirm mikro mikrofon kamera ton stumm
    stummgeschaltet teile teilen anfangen beginnen starten fangen los geht's gehts weiter machen wir an guten tag abend
    schönen schönes feierabend wochenende noch auch so und oder alle besser lauter sprechen sprichst wiederholen warten
    warte
    einen eine ein ihnen dir euch sehr vielen dank prima perfekt stimmt genau verstanden
    """
)
_CORE_DE: Final = re.compile(
    r"\b(?:hört|hören|höre|hörst|moment|sekunde|minute|gleich wieder|bildschirm|mikro\w*|kamera|stumm\w*|anfangen"
    r"|beginnen"
    r"|starten|los|lauter|wiederholen|warten?|moin|guten|danke?|dank|bis (?:dann|bald|später|morgen)|zusammen"
    r"|feierabend)\b"
)
_IDLE_CJK: Final = re.compile(
    r"(?:大家|各位|请|好|好的|那|我们|现在|可以|能|吗|嗎|的|了|吧|呢|啊|我|你|您|一下|先|听到|聽到|听见|听得见|听得到|看到|看见|看得到|说话|說話|声音|屏幕|稍等"
    r"|等|马上|回来|就|开始|继续|静音|麦克风|没|清楚|是|辛苦|谢谢|感谢|收到|没问题|不|在|来|重复|再说|遍|一|はい|ええ|聞こえ|ます|ません|か|ました|見え|画面"
    r"|共有|し|て|い|少々|ちょっと|お待ち|待って|ください|くださいませ|では|それでは|始め|ましょう|マイク|オフ|ミュート|に|なって|大丈夫|です|ね|よ|いえ|いえいえ"
    r"|すみません|もう一度|お願い|お疲れ様|でした|失礼|戻り|すぐ|皆さん|ありがとう|ございます|了解)+"
)
_CORE_CJK: Final = re.compile(
    r"听|聽|看得?[到见]|屏幕|稍等|等一下|静音|麦克风|声音|开始吧|继续|再说一遍|聞こえ|見え|画面|待ち|待って|ミュート|マイク|始め|もう一度|いえいえ|失礼"
)
_LAUGHS: Final = re.compile(r"(?:a*(?:ha|he|hi|ja|je|ka){2,}[hja]*|l+o+l+(?:o+l+)*|r+o+f+l+|lma+o+|x+d+|(?:hm|mm)+m*)")
_COMMAND: Final = re.compile(r"/[a-z-]{2,20}|[ynq]|(?:continue|stop|help|next|retry|again|exit|quit|mood|this)[.!]*")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_HAN_KANA: Final = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")


@lru_cache(maxsize=2048)
def is_idle(sentence: str) -> bool:
    """Whether a sentence is about getting through the talk and holds nothing else."""
    if len(sentence) > 120 or any(map(str.isdigit, sentence)):
        return False
    folded = sentence.casefold().replace("’", "'").strip()
    if _HAN_KANA.search(folded):
        bare = re.sub(r"[\W_]+", "", folded)
        return _IDLE_CJK.fullmatch(bare) is not None and _CORE_CJK.search(bare) is not None
    words = _WORD.findall(folded)
    if _COMMAND.fullmatch(folded):
        return True
    if not words or len(words) > 18:
        return False
    if all(map(_is_small, words)) and _GOING_ON.search(folded.rstrip(" .!?…")) is not None:
        return True
    for known, core in ((_IDLE_ES, _CORE_ES), (_IDLE_DE, _CORE_DE)):
        if all(word in known for word in words) and core.search(folded) is not None:
            return True
    return False


def is_laughter(word: str) -> bool:
    """Whether a word in small letters is laughter or a hum, however long it is drawn out."""
    return _LAUGHS.fullmatch(word) is not None


def _is_small(word: str) -> bool:
    return is_laughter(word) or word in _SMALL or word in FILLER_WORDS or word in _DEVICES or word in _GOING_WORDS


def is_idle_answer(text: str) -> bool:
    """Whether a turn answers an idle question and says no more ("Yes, we can.")."""
    if len(text) > 60 or any(map(str.isdigit, text)):
        return False
    folded = text.casefold().replace("’", "'")
    if _HAN_KANA.search(folded):
        return _IDLE_CJK.fullmatch(re.sub(r"[\W_]+", "", folded)) is not None
    words = _WORD.findall(folded)
    return bool(words) and any(
        all(map(known, words)) for known in (_is_small, _IDLE_ES.__contains__, _IDLE_DE.__contains__)
    )


# --- documents --------------------------------------------------------------------------------------------------

_FURNITURE: Final = word_set(
    """
    page pages continued next previous notes note meeting minutes agenda untitled new document draft copy confidential
    internal template click tap edit insert add here end start begin beginning recording transcript transcription table
    contents index cover blank intentionally left distribute circulate share print version revision placeholder sample
    example text title heading subtitle summary body footer header attendees participants present absent apologies
    decisions actions action items item todo todos tbd tba pending none empty nothing section appendix attachments
    attachment image photo screenshot picture figure logo file seite notizen besprechung entwurf vertraulich leer ende
    anfang página notas reunión borrador confidencial fin inicio date time name author your this to the of for from on a
    an and or do not be is was only use see over back top subject topics discussion follow up ups wrap sign log login
    press enter fill write writing commands command drag drop upload select choose field weekly daily sync standup retro
    opening goodbye any other business aob roll call approval approve round roundtable updates steps misc miscellaneous
    housekeeping logistics q a questions answers parking lot general various thanks objectives goals risks background
    links
    break closing lunch coffee welcome intro introduction introductions blah foo bar baz asdf qwerty speaker changes
    present
    more read home contact menu search go continue here type below above
    """
)
_FURNITURE_ALONE: Final = word_set(
    "date time name author your this to the of for from on a an and or do not be is was only use see over back up "
    "new more read go home here below above contact search continue add menu type sign "
    "any other a goals risks links general various thanks call round answers approve steps press fill write writing "
    "choose "
    "select present weekly daily"
)
_HOLE: Final = re.compile(
    r"\{\{[^{}]*\}\}|\$\{[^{}]*\}|<(?:your|insert|name|date|title|add|the|company|email|e-mail)[^<>]*>"
    r"|<[a-z]+(?:[ _-][a-z]+)*>"
    r"|\[(?:insert|add|your|enter|type|todo|tbd|tba|name|date|title|company|fill|describe|placeholder)\b[^\[\]]*\]"
    r"|\b(?:YYYY|DD|MM|HH)(?:[-/.: ](?:YYYY|YY|DD|MM|SS|HH))+\b|_{3,}|\bX{3,}\b|\b(?:xx+|tt)[./-](?:xx+"
    r"|mm)[./-](?:xx+|jjjj)\b",
    re.IGNORECASE,
)
_SOUNDS: Final = re.compile(
    r"^\s*(?:[\[(*]+|[-–—]{2,}|♪+)\s*(?:[a-z' -]{0,24}\b)?(?:rings?|ringing|cough\w*|sighs?|sighing|noises?|laugh\w*"
    r"|chuckl\w*"
    r"|giggl\w*|music|applau\w*|clap\w*|cheer\w*|cry\w*|sob\w*|throat|beeps?|static|silence|pauses?|unintelligible"
    r"|inaudible|indistinct|crosstalk|chatter|murmur\w*|breath\w*|sniff\w*|door (?:opens|closes|slams)|footsteps"
    r"|knock\w*"
    r"|overlapping|foreign language|no audio|blank audio|whispers?|gasps?|gelächter|risas|aplausos"
    r"|beifall|音楽|笑い?|拍手|笑声"
    r"|掌声)(?:[a-z ]{0,16})?[ \d:.]*\s*(?:[\])*]+|[-–—]{2,}|♪+)\s*$",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(
    r"^\W*(?:(?:page|seite|página|p\.?|section|chapter|part|slide|version|rev|v|appendix|figure|table|sheet|speaker)\W*"
    r"(?:\d[\d.]*|[A-Z])(?:\W*(?:of|von|de|/)?\W*\d+)?|\d+ *(?:/|of|von|de) *\d+|[-–—*|]+ *\d+ *[-–—*|]+"
    r"|[ivxl]{2,6})\W*$",
    re.IGNORECASE,
)
_MADE_BY: Final = re.compile(
    r"^\W*(?:(?:sent|scanned|transcribed|subtitles?|captions?|recorded|exported|generated|translated|created|downloaded"
    r"|printed) (?:from|with|by|using|on|automatically)(?: my| the)? (?:[\w.-]+ ?){1,4}|<!--.*-->"
    r"|!\[[^\]]*\]\([^)]*\))\W*$",
    re.IGNORECASE,
)
_NOTICE: Final = re.compile(
    r"^\W*(?:[\w .]{1,30} (?:pinned (?:a|this) message|(?:changed|set) (?:the|this) (?:group|subject|icon|topic"
    r"|channel)"
    r"\b.{0,40}|created (?:the |this )?(?:group|channel)\b.{0,40}|is typing|started an? (?:\w+ )?call"
    r"|joined (?:via|using|from) .{1,40}|reacted\b.{0,10} to .{1,60})|(?:liked|loved|emphasi[sz]ed"
    r"|laughed at) [“\"].{1,80}[”\"]"
    r"|(?:seen|delivered|read|edited)(?: at)? ?\d{0,2}:?\d{0,2}(?: ?[ap]m)?|(?:forwarded|edited|deleted|new messages?)"
    r"|(?:today|yesterday) at \d{1,2}:\d\d(?: ?[ap]m)?)\W*$",
    re.IGNORECASE,
)
_DAY_ONLY: Final = re.compile(
    r"^\W*(?:(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:week|kw|woche|semana)(?= \d)|january|february|march"
    r"|april|june"
    r"|july|august|september|october|november|december|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag"
    r"|lunes"
    r"|martes|miércoles|jueves|viernes|sábado|domingo|\d{1,4}(?:st|nd|rd|th)?)\W*)+$",
    re.IGNORECASE,
)
"""A date and nothing else, as it stands over an empty page."""
_ISO_DAY: Final = re.compile(r"^\W*\d{4}-\d\d-\d\d\W*$")
_NO_VALUE: Final = re.compile(
    r"^\W*(?:none|n/?a|tbd|tba|tbc|nothing|nil|pending|todo|to do|to be (?:determined|decided|confirmed|announced"
    r"|added|done)"
    r"|unknown|not (?:yet )?(?:set|applicable|available|decided)|keine?r?|offen|ninguno|nada"
    r"|pendiente|aucun|无|暂无|待定|未定"
    r"|なし|未記入|\?+)\W*$",
    re.IGNORECASE,
)
_MEDIA: Final = re.compile(r"^\W*[\w -]{1,60}\.(?:png|jpe?g|gif|webp|heic|mp4|mov|mp3|wav|m4a|pdf|docx?|svg)\W*$", re.I)
_LEADER: Final = re.compile(r"(?:\.{4,}|(?: \.){4,}|…{2,})\s*\d{0,4}\s*$")
_LABEL: Final = re.compile(r"^\W*[\w /&-]{1,30}[:：]\s*")
_NUMBER_ONLY: Final = re.compile(r"^[\W\d_]*$")
_WEB: Final = re.compile(
    r"\b(?:(?:we|this (?:site|website|page)|our (?:site|website)) uses? cookies|accept (?:all )?cookies"
    r"|cookie (?:policy"
    r"|settings|preferences|notice)|manage (?:your )?(?:cookie )?preferences|you have (?:been "
    r"|successfully )?unsubscribed"
    r"|click (?:here|below)|terms of (?:service|use) apply|view (?:in|this) browser|skip to (?:main )?content"
    r"|enable javascript|powered by \w+|wir verwenden cookies|diese (?:website|seite) verwendet cookies"
    r"|utilizamos cookies"
    r"|usamos cookies|nous utilisons des cookies)\b",
    re.IGNORECASE,
)
_OWN: Final = re.compile(r"\b(?:i|we|my|he|she|they|our team|customers?|users?)\b(?! use cookies)", re.IGNORECASE)


def is_furniture(line: str) -> bool:
    """Whether a line of a document only frames it: page marks, headings of nothing, placeholders, pictures' names."""
    if len(line) > 160:
        return False
    if any(form.match(line) for form in (_MEDIA, _SOUNDS, _NUMBERED, _MADE_BY, _NOTICE)) or _LEADER.search(line):
        return True
    if _DAY_ONLY.match(line) and (any(map(str.isalpha, line)) or _ISO_DAY.match(line)):
        return True
    bare = _HOLE.sub(" ", line)
    value = _LABEL.sub("", bare, count=1)
    if (bare != line and _NUMBER_ONLY.match(value)) or (value != bare and _NO_VALUE.match(value)):
        return True
    if any(map(str.isdigit, bare)):
        return False
    words = [word.casefold() for word in _WORD.findall(bare)]
    if not 0 < len(words) <= 8:
        return False
    return all(word in _FURNITURE for word in words) and not all(word in _FURNITURE_ALONE for word in words)


def is_empty_table(text: str) -> bool:
    """Whether a table has a head and nothing under it."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if len(lines) < 2 or not all(line.startswith("|") for line in lines):
        return False
    return not any(character.isalnum() for line in lines[1:] for character in line)


def is_web_notice(text: str) -> bool:
    """Whether a short text is what sites and lists say by themselves (cookie banners, "you have unsubscribed")."""
    return len(text) < 400 and _WEB.search(text) is not None and _OWN.search(_WEB.sub(" ", text)) is None


# --- programs ---------------------------------------------------------------------------------------------------

_OUTPUT: Final = re.compile(
    r"^\s*(?:\[?(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL|NOTICE|CRITICAL)\]?[\s:|-]"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,Z+:]*\]?\s+\[?\w*\]?\s*(?:INFO|DEBUG|WARN(?:ING)?|ERROR|TRACE|FATAL)\b"
    r"|(?:npm|yarn|pnpm) (?:WARN|ERR!|notice|info)|(?:added|removed|changed|audited) \d+ packages?\b"
    r"|Traceback \(most recent call last\)|File \"[^\"]+\", line \d+|(?:[\w.]+\.)?\w+(?:Error|Exception|Warning)(?::|$)"
    r"|at [\w.$<>]+ ?\([^()]*:\d+(?::\d+)?\)|\$ \S|>>> |(?:Collecting|Downloading|Requirement already satisfied"
    r"|Successfully (?:installed|built|tagged)|Building wheels?|Installing collected packages)\b"
    r"|\d{1,3}%\|?[█#=>. -]|(?:GET|POST|PUT|PATCH|DELETE|HEAD) /\S* (?:HTTP/)?\d|HTTP/\d(?:\.\d)? \d{3}"
    r"|(?:remote|Unpacking|Receiving|Resolving|Compressing|Counting|Enumerating|Writing) ?(?:objects|deltas)?: +\d"
    r"|(?:exit(?:ed)?|Process finished) (?:with )?(?:exit )?(?:code|status) \d+|={3,} .* ={3,}$|(?:PASSED|FAILED|ok"
    r"|not ok) \d"
    r"|\+{3} |-{3} [ab]/|@@ .* @@|diff --git)"
)


def is_output(text: str) -> bool:
    """Whether every line is what a program printed: log lines, a trace, the progress of an installation."""
    lines = [line for line in text.splitlines() if line.strip()]
    told = [_OUTPUT.match(line) is not None for line in lines]
    if not told or not told[0]:
        return False
    return all(one or line.startswith((" ", "\t")) for one, line in zip(told, lines, strict=True))
