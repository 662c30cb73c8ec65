"""Word tables of Chinese, Japanese, Spanish and German (and function words of a few more) behind `languages`.

They are data: what a table decides is said where `languages` uses it.
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _p(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


CLOSERS: Final = " \t\r\n\"'”’»)]}*_~`」』）.!。！～~"

# Words that are frequent in one of these languages and rare or absent in the others.
FUNCTION_WORDS: Final[dict[str, frozenset[str]]] = {
    "en": _words(
        "a an in so no me was as do it's that's see keep later get go yeah hey thanks just really good great"
        " the and is are were of to that it for with you i i'm he she they we have has had not this but be my"
        " on at as do don't will would from or our your his her their what when who how about can if there"
    ),
    "es": _words(
        "soy vivo trabajo tengo gusta quiero nuestra nuestro hemos mañana noche semana"
        " el la los las un una unos unas y e que de del en es son fue era eran está están estoy estaba con por para"
        " se su sus mi mis yo tú nos pero no sí ya más muy al lo le les me te hay ha han he hoy ayer mañana"
        " cuando como"
        " este esta esto porque si sin sobre también desde hasta"
    ),
    "de": _words(
        "in an so was am ab dann gut sehr wohne arbeite heute"
        " die der das den dem des ein eine einen einem einer und ist sind war waren nicht ich du er sie es"
        " wir ihr mit"
        " für auf von zu zum zur im am um bei aus nach wie aber oder auch noch nur hat habe haben hatte wird werden"
        " kein keine mein meine dass weil wenn schon sich mir mich uns heute gestern morgen bis ab seit als vor"
    ),
    "fr": _words(
        "le la les un une des et est sont était de du dans que qui je tu il elle nous vous ne pas pour avec"
        " sur au aux"
        " ce cette mon ma mes son sa ses mais ou où plus très j'ai c'est n'est d'un l'on être avoir hier"
    ),
    "it": _words(
        "il lo la gli le un una di del della che è sono era con per non si mi ti ci ho hai ha hanno nel nella al alla"
        " ma anche più molto questo questa come quando io noi dove perché ieri oggi"
    ),
    "pt": _words(
        "o a os as um uma de do da dos das que é são foi era com por para não se eu ele ela nós meu minha no"
        " na nos nas"
        " mas mais muito ao à em isso este esta como quando você também já ontem hoje"
    ),
}
LETTERS: Final[dict[str, re.Pattern[str]]] = {
    "en": _p(r"\b\w+(?:['’](?:ll|re|ve|m|d|s)|n['’]t)\b"),
    "es": _p(r"[ñ¿¡áíóú]|\b(?:qué|cuándo|dónde|cómo|quién|cuál|también|está|después)\b|(?:ción|ciones)\b"),
    "de": _p(r"ß|\b\w*[äöü]\w*\b"),
    "fr": _p(r"\b(?:l|d|j|n|qu|c|s)['’]\w|ç|œ|è"),
    "pt": _p(r"ã|õ|ção\b|ções\b"),
    "it": _p(r"\b\w+(?:zione|zioni)\b"),
}

# --- questions ---------------------------------------------------------------------------------------------------

QUESTIONS: Final[dict[str, re.Pattern[str]]] = {
    "zh": _p(
        r"[吗嗎]$|(?:什么|怎么样|如何|哪里|哪儿|哪个|谁|多少|几点|几个|为什么)呢?$"
        r"|^(?:请问|为什么|什么时候|谁|哪些|怎么)(?!样|都|也)[^，。]*$|(?:是不是|能不能|可不可以|会不会|要不要|好不好)[^，。]*$"
    ),
    "ja": _p(
        r"(?:です|ます|ました|でした|ません|でしょう|だろう|かな|の)か$|(?:ですかね|ますかね|かな|だっけ|でしたっけ)$"
        r"|^(?:なぜ|どうして|いつ|どこ|誰|だれ|何|なに|どの|どちら|いくら|いくつ)[^。]*(?:か|の)$"
    ),
    "es": _p(
        r"^(?:¿|(?:qué(?! (?:buen|lind|bien|bonit|pena|alegr|suerte|horror|ric|guay|maravill|gran|tal\b))"
        r"|quién(?:es)?|cuándo|dónde|cómo|cuál(?:es)?|cuánt[oa]s?|por qué|para qué)\b)"
    ),
    "de": _p(
        r"^(?:wer|wann|wo|woher|wohin|warum|wieso|weshalb|welche[rsnm]?)\s+(?:ist|sind|war|waren|hat|haben|habe|hast"
        r"|kommt|kommst|kann|kannst|können|muss|soll|will|willst|wird|werden|geht|macht|gibt|wohnst|wohnt)\b[^,]*$"
    ),
}

# --- suppositions --------------------------------------------------------------------------------------------------

HYPOTHETICALS: Final[dict[str, re.Pattern[str]]] = {
    "en": _p(
        r"(?:^|[,;:—(]\s*|\b(?:and|but|so|or|only|even|as|what|see|know|wonder|wondering|not sure|unsure"
        r"|that)\s+)if\b"
        r"|\bif (?:i|we|you|he|she|they|it|the|my|our|there|that|this|only)\b|\bunless\b"
        r"|^\W*(?:suppose|supposing|imagine|assuming|assume|say we|provided that|in case)\b|\b(?:i|we) wish\b"
        r"|\bwould(?:n't|n’t)?(?:'ve| have)\b|\bcould(?:n't|n’t)? have\b|\bwould (?:love|like|prefer|rather"
        r"|be (?:nice"
        r"|great|good))\b.{0,40}\bif\b|\bhad (?:i|we|he|she|they) \w+|\bwere (?:i|we|he|she|they) to\b|\bhypothetical"
    ),
    "zh": _p(
        r"如果|假如|要是|假设|假設|倘若|若是|万一|萬一|要不是|即使|就算|哪怕|除非|(?:真)?希望能|但愿|本来(?:可以|应该)"
    ),
    "ja": _p(
        r"もし(?!かし|く)|仮に|たとえ|としたら|とすれば|(?:だった|でき|あっ|行っ|なっ|来|れ|し|降っ|勝っ|取れ)たら(?!しい)"
        r"|(?:あれ|れ|けれ|すれ)ば(?!、?い)|ならば|といいな|たらいいのに|ばよかった|ばいいのに|(?:場合|ときに)は?、"
    ),
    "es": _p(
        r"(?:^|[,;]\s*|\b(?:y|pero|que|como|incluso|solo)\s+)si\s+(?!no más\b)|\bojal[aá]\b|\ba menos que\b"
        r"|\ben caso de\b"
        r"|^\W*(?:supongamos|imagina|imaginemos|supón)\b|\b(?:habría|hubiera|hubiese|hubiéramos)\b|\bcon tal de que\b"
    ),
    "de": _p(
        r"\b(?:falls|sofern)\b|(?:^|[,;]\s*|\b(?:und|aber|nur|auch)\s+)wenn\b|^\W*(?:angenommen|stell dir vor)\b"
        r"|\b(?:wäre|hätte|könnte|würde|hätten|wären|würden)\b.*\b(?:wenn|gewesen|gerne?)\b|\bes sei denn\b"
        r"|\bim fall(?:e)?,? dass\b"
    ),
}

# --- denial: what denies, and what only looks as if -----------------------------------------------------------------

NEGATIONS: Final[dict[str, tuple[re.Pattern[str], re.Pattern[str]]]] = {
    "zh": (
        _p(
            r"不|没(?!收)|沒|别(?=再|叫|给|让|把|去|来|用|说|做|碰|动|买|发|写)|別(?=再)|勿|未(?!来|來|必)|无(?=需|法|意|须)|無(?=需|法|意)|非(?=必)"
            r"|从来没|拒绝|拒絕|禁止|戒了|取消了"
        ),
        _p(
            r"不错|不錯|不过|不過|不但|不仅|不僅|不只|不光|不久|不断|不斷|不同|不论|不論|不管|不少|不如(?=去)|不得不|不能不|不妨|不由得"
            r"|不知不觉|不好意思|不客气|不用谢|不见不散|差不多|对不起|對不起|了不起|要不是|要不(?=[，,然])|忍不住|说不定|說不定|好不容易|是不是|有没有|能不能|会不会"
            r"|要不要|可不可以|没关系|沒關係|没问题|沒問題|没想到|沒想到|没错|沒錯|没几天|没多久|不一会儿|不一样|不一樣|非常|别人|別人|别的|特别|个别|区别|分别|告别|级别|类别|性别|除非"
        ),
    ),
    "ja": (
        _p(
            r"ない(?!か|で(?:す|しょ)?か)|ません|なかった|ぬ(?=。|$)|ずに|じゃなく|ではなく|なくな(?:っ|り|る)|ないで|いや(?:だ|です)|嫌い|きらい|やめ(?:た|まし"
            r"|て)|辞め|禁止|無理|未(?=定|完|対)"
        ),
        _p(
            r"かもしれない|かもしれません|に違いない|なければ(?:なら|なり|いけ)(?:ない|ません)|なくては(?:なら|なり|いけ)(?:ない|ません)|ないと(?:いけ|だめ|なら)(?:ない|ません)?"
            r"|なきゃ|しか(?:し)?ない|ずにはいられない|ではないか|じゃないか|じゃない[?？]|少ない|少なくない|すくない|危ない|とんでもない|もったいない|つまらない|申し訳(?:ない|ありません)"
            r"|すみません|くだらない|切ない|仕方(?:が)?ない|しょうがない|問題ない|間違いない|違いない|ないように|ないうちに|やめて(?:から)"
        ),
    ),
    "es": (
        _p(
            r"\b(?:no|nunca|jamás|tampoco|ningún|ninguna?|nadie|nada|ni)\b|\bya no\b|\bdejó de\b|\bdejé de\b"
            r"|\bhe dejado de\b|\bodi[oa]\b"
        ),
        _p(
            r"\bno (?:solo|sólo|solamente|obstante)\b|,\s*¿?no\?|\bde nada\b|\bni siquiera se\b"
            r"|\bno hay (?:problema|duda)\b|^no,\s+"
        ),
    ),
    "de": (
        _p(
            r"\b(?:nicht|nichts|nie|niemals|niemand\w*|kein\w*|weder|nirgends|keinesfalls|ungern|aufgehört"
            r"|hasse|hasst)\b|\bohne (?:zu)\b"
        ),
        _p(
            r"\bnicht (?:nur|zuletzt|wahr|unbedingt)\b|\bkein(?:e)? (?:problem|ahnung|zweifel|sorge)\b"
            r"|\b(?:gar )?nicht schlecht\b|^nein,\s+"
        ),
    ),
}
NO_LONGER: Final[dict[str, re.Pattern[str]]] = {
    "zh": _p(
        r"不再|再也不|已经不|已經不|不(?:喜欢|用|住|在|做|吃|喝|抽)[^，。]{0,12}了|没(?:有)?再|戒了|停用|改(?:用|成|为|為|到)|离职|離職|搬(?:走|到|去)"
    ),
    "ja": _p(
        r"なくな(?:っ|り)|もう[^。]{0,16}(?:ない|ません)|やめ(?:た|まし)|辞め|(?:に|へ)(?:変え|替え|変わ|乗り換え|引っ越)"
    ),
    "es": _p(r"\bya no\b|\bdej[óéo] de\b|\bhe dejado de\b|\bha dejado de\b|\bno\b[^.]{0,40}\bmás\b(?! de| que)"),
    "de": _p(r"\b(?:nicht|kein\w*|nie)\b[^.]{0,40}\bmehr\b|\baufgehört\b|\bstatt\s?dessen\b"),
}

# --- hedges --------------------------------------------------------------------------------------------------------

HEDGES: Final[dict[str, tuple[tuple[re.Pattern[str], float], ...]]] = {
    "zh": (
        (_p(r"我(?:敢)?(?:肯定|确定|確定|确信|坚信|相信)"), 0.9),
        (_p(r"我(?:个人)?(?:觉得|覺得|认为|認為|感觉|想)|在我看来|在我看來|依我看|我看(?=，)|个人认为|说实话"), 0.7),
        (_p(r"(?:看起来|看来|似乎|好像|应该(?:是|会)|大概|多半)"), 0.6),
        (_p(r"我猜|可能|或许|或許|也许|也許|说不定|恐怕"), 0.5),
    ),
    "ja": (
        (_p(r"(?:と確信(?:して)?|に違いない|間違いなく|絶対に)"), 0.9),
        (_p(r"(?:と思(?:う|い|って)|と感じ|と考え|気がし|個人的には|と信じ)"), 0.7),
        (_p(r"(?:ようだ|ようです|みたい|らしい|たぶん|多分|おそらく|でしょう|だろう)"), 0.6),
        (_p(r"(?:かもしれ|かも(?=。|$|ね)|もしかしたら|ひょっとして)"), 0.4),
    ),
    "es": (
        (_p(r"\bestoy (?:segur[oa]|convencid[oa]) de que\b|\bsin duda\b"), 0.9),
        (
            _p(
                r"\b(?:creo|pienso|opino|considero|me parece|siento) que\b|\ben mi opinión\b|\bpara mí\b"
                r"|\ba mi juicio\b"
            ),
            0.7,
        ),
        (_p(r"\bparece que\b|\bprobablemente\b|\bseguramente\b|\bsupongo que\b"), 0.6),
        (_p(r"\b(?:quizás?|tal vez|a lo mejor|posiblemente|puede que)\b"), 0.4),
    ),
    "de": (
        (_p(r"\bich bin (?:mir )?(?:sicher|überzeugt)\b|\bzweifellos\b"), 0.9),
        (
            _p(
                r"\bich (?:finde|glaube|denke|meine|halte)\b|\b(?:finde|glaube|denke|meine) ich\b"
                r"|\bmeiner (?:meinung|ansicht) nach\b|\bmeines erachtens\b"
            ),
            0.7,
        ),
        (_p(r"\b(?:wahrscheinlich|vermutlich|anscheinend|es scheint|wohl)\b"), 0.6),
        (_p(r"\b(?:vielleicht|möglicherweise|eventuell|ich schätze|ich vermute)\b"), 0.45),
    ),
}

# --- the first person ----------------------------------------------------------------------------------------------

SUBJECT_PRONOUNS: Final[dict[str, re.Pattern[str]]] = {
    "en": re.compile(r"\bI\b(?!['’])"),
    "zh": _p(r"(?<![自忘])我(?!们|們|国|國|家|校|司|方|市|省)"),
    "ja": _p(r"(?:私|僕|俺|わたし|ぼく|あたし)(?!たち|達|ども|ら)(?=は|が|も|の|に|を|と)"),
    "es": _p(r"\byo\b"),
    "de": re.compile(r"\b[Ii]ch\b"),
}
FIRST_PERSON: Final[dict[str, re.Pattern[str]]] = {
    "en": _p(r"\b(?:i|i['’](?:m|ve|ll|d)|me|my|mine|myself|we|our|us|ours)\b"),
    "zh": _p(r"我|咱|本人|俺|敝"),
    "ja": _p(r"私|僕|俺|わたし|ぼく|あたし|うち(?=の|は|が|では)|自分(?=は|の|が)|我々|弊社"),
    "es": _p(
        r"\b(?:yo|me|mi|mis|mío|mía|conmigo|nosotr[oa]s|nos|nuestr[oa]s?|soy|estoy|tengo|vivo|trabajo|quiero"
        r"|prefiero|odio|uso"
        r"|utilizo|necesito|puedo|voy|vengo|hago|sé|creo|pienso|nací|compré|fui|estuve|hice|empecé|dejé|vi"
        r"|comí|escribí"
        r"|conocí|aprendí|viví|trabajé|estudio|estudié|juego|toco|leo|corro|bebo|como(?= (?:carne|pescado"
        r"|mucho|poco))"
        r"|estamos|somos|tenemos|vamos|fuimos|hicimos|queremos|usamos|trabajamos|vivimos|he (?=\w+[ai]do)|hemos)\b"
    ),
    "de": _p(r"\b(?:ich|mir|mich|mein(?:e[rsnm]?)?|wir|uns|unser(?:e[rsnm]?)?)\b"),
}

# --- junk ----------------------------------------------------------------------------------------------------------

CJK_FILLERS: Final[dict[str, re.Pattern[str]]] = {
    "zh": re.compile(
        r"好的|好吧|好呀|好啊|好哒|好嘞|好滴|好(?=$|[，。！!~～])|嗯+|哦+|噢|啊+|哈+|呵呵|嘿嘿|嘻嘻|谢谢(?:你|您|啦|大家)?|謝謝(?:你|您)?|多谢|感谢"
        r"|不客气|不用谢|没事|没关系|没问题|你好|您好|大家好|各位好|早上好|早安|早(?=$|[，。！!])|下午好|晚上好|晚安|再见|拜拜|回头见|回见|明天见"
        r"|下周见|收到|了解|明白了?|知道了|懂了|辛苦了?|麻烦你?了|加油|可以的?(?=$|[，。！!])|行(?=$|[，。！!])|ok|OK|太好了|太棒了|真棒|厉害|牛"
        r"|赞|恭喜|祝好|祝贺|生日快乐|新年快乐|节日快乐|周末愉快|好久不见|嗨|哈喽|在的|来了|对(?=$|[，。！!])|是的(?=[，。！!]?$)|没错|[啊呀啦呢吧哦嘛了~～]"
    ),
    "ja": re.compile(
        r"はい|ええ|うん|ううん|おお|へえ|あの|えっと|そうです(?:ね|か)?|そうだね|なるほど|了解(?:です|しました|いたしました)?"
        r"|承知(?:しました|いたしました|です)?|かしこまりました|ありがとう(?:ございます|ございました|ね)?|どうも|どういたしまして"
        r"|よろしく(?:お願い(?:いた)?します|です)?|お願いします|(?:お疲れ|おつかれ)(?:様|さま)?(?:です|でした)?|おはよう(?:ございます)?|こんにちは"
        r"|こんばんは|おやすみ(?:なさい)?|すみません|ごめん(?:なさい)?|(?:お先に)?失礼します|さようなら|また(?:ね|明日|後で|来週)|いいです?ね|いいね"
        r"|すごい(?:です)?|すばらしい(?:です)?|よかった(?:です)?|おめでとう(?:ございます)?|お久しぶりです|大丈夫です|楽しみです|笑+|草|w+|OK|オーケー"
        r"|わかりました|分かりました|(?:です)?[ねよ]"
    ),
}
FILLERS: Final[dict[str, frozenset[str]]] = {
    "es": _words(
        "vale ok okay okey gracias muchas mil hola buenas buenos días dias tardes noches adiós adios hasta luego"
        " pronto mañana"
        " chao genial perfecto claro entendido jaja jajaja jajajaja saludos un abrazo de nada bien muy bueno sí listo"
        " estupendo por favor dale qué bien igualmente un saludo cordialmente feliz día"
        " felicidades enhorabuena suerte abrazos besos jeje listo nos vemos hay encantado encantada tal todo mil guay"
    ),
    "de": _words(
        "ok okay danke vielen dank schön bitte gerne gern hallo hi guten morgen tag abend tschüss tschüs bis"
        " später dann"
        " bald super toll prima alles klar gut sehr genau verstanden haha hahaha lg mfg liebe grüße grüsse"
        " viele servus"
        " moin ciao passt perfekt ja na ach so achso stimmt klar klasse wunderbar"
        " keine ursache kein problem schönen noch nacht mach's dir euch herzlichen glückwunsch glück spaß"
        " erfolg jo jup okidoki alles"
        " nett cool freut mich gruß"
    ),
}
