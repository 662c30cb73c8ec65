"""Text that reads like an instruction to the model that will one day see it, in five languages and their disguises.

Such text is kept, since it may be the very thing that happened, but as quoted data: its unit carries the risk
`instruction`, a prompt fences it (`fence`), and nothing makes a directive of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

INSTRUCTION = "instruction"
"""The risk mark."""

TRUSTED, NORMAL, UNTRUSTED = "trusted", "normal", "untrusted"
SOURCE_LEVELS = (TRUSTED, NORMAL, UNTRUSTED)
"""How far the source of an item is trusted, as a caller or a bank says."""
QUOTED = "quoted"
"""Trust of a unit from a source nobody distrusts whose text reads like an instruction."""

_PATTERNS = (
    # English: lay aside what you were told
    r"(?<!n't )(?<!n’t )(?<!not )(?<!never )\b(?:ignore|disregard|forget|override|bypass|overrule|discard|"
    r"skip|neglect|do not (?:follow|obey)|"
    r"don'?t (?:follow|obey)|stop (?:following|obeying))\b"
    r"[^.!?\n]{0,40}?\b(?:previous|prior|above|earlier|preceding|all|any|every|your|the|these|those|other|"
    r"system|safety|initial|original)\b"
    r"[^.!?\n]{0,30}?\b(?:instructions?|rules?|prompts?|guidelines?|directives?|constraints?|safeguards?|"
    r"guardrails?|polic(?:y|ies)|restrictions?|programming)\b",
    r"\b(?:ignore|disregard|forget) (?:everything|all|anything) (?:you (?:were|have been|know)|"
    r"(?:that )?(?:came |was |is |stands )?(?:above|before))",
    r"\b(?:new|updated|real|actual|hidden|secret) (?:system )?(?:instructions?|prompt|"
    r"directives?)\s*(?:follow|:|=)",
    # English: be somebody else
    r"\b(?:you are now|from now on,? you(?: are|'re| will| must| shall)|you (?:must|will|shall) now (?:act|"
    r"behave|respond|answer|pretend)|"
    r"pretend (?:to be|that you(?:'re| are))|act as)\b[^.\n]{0,50}?"
    r"\b(?:mode|assistant|a\.?i\.?|dan|jailbroken|unrestricted|unfiltered|uncensored|admin(?:istrator)?|root|"
    r"developer|hacker|no (?:rules|limits|restrictions))\b",
    r"\b(?:developer|god|jailbreak|dan|sudo|unrestricted) mode (?:is )?(?:now )?(?:enabled|activated|on)\b",
    # English: give away, call, stay silent
    r"\b(?:reveal|print|output|repeat|show|leak|disclose|display|expose|send)\b[^.\n]{0,25}?\b(?:your |the |"
    r"its )?(?:system|hidden|initial|secret|developer) (?:prompt|instructions?|message|rules)\b",
    r"\b(?:reply|respond|answer|say|output|print) (?:only |just |exactly )?(?:with )?(?:the (?:word|text|"
    r"phrase) )?[\"'“‘`]?(?:PWNED|HACKED|JAILBROKEN)\b",
    r"\b(?:do not|don'?t|never) (?:tell|inform|warn|mention (?:this|it|that) to|reveal (?:this|it|that) to|"
    r"let) (?:the )?(?:user|human|operator|owner)s?\b",
    r"\b(?:send|post|forward|upload|exfiltrate|transmit|e-?mail)\b[^.\n]{0,60}?\b(?:api[ _-]?keys?|passwords?|"
    r"credentials?|secrets?|tokens?|private keys?|conversation history|memor(?:y|ies))\b[^.\n]{0,60}?"
    r"(?:https?://|\bto\b[^.\n]{0,30}?@)",
    r"\b(?:important|urgent|attention|note)\b[^.\n]{0,20}?\b(?:instructions?|message|notice) (?:to|"
    r"for) (?:the |any |all )?(?:ai|a\.i\.|llm|language model|assistant|agent|model|chatbot)\b",
    r"\bnote (?:to|for) (?:the |any |all )?(?:ai|llm|language model|assistant|agent|chatbot)s?\s*[:：]",
    r"\b(?:ai|llm|language model|assistant|agent|chatbot)s? (?:reading|processing|that reads?|who reads?|"
    r"summari[sz]ing) this\b[^.\n]{0,40}?\b(?:must|should|shall|has to|have to|please|needs? to)\b",
    # the machinery of chat formats
    r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id)\|>|"
    r"\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>",
    r"^\s*(?:#{1,6}|\*\*|-{3,}|={3,}|\[|<)?\s*(?:new |updated )?(?:system|developer)[ _-]?(?:prompt|message|"
    r"instructions?|override)\s*(?:\*\*|\]|>)?\s*[:：=>]",
    r"^\s*(?:#{2,6}|\[|<)\s*(?:system|instructions?)\s*(?:\]|>|:|：)",
    # 中文
    r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要(?:理会|遵守|遵循)|抛开|拋開|绕过|繞過|跳过|违反|停止遵守)[^。！？\n]{0,14}?(?:指令|指示|规则|規則|提示词?|提示詞?|设定|"
    r"設定|要求|限制|约束|約束|准则|守则|命令)",
    r"(?:从现在(?:开始|起)|從現在(?:開始|起)|现在起|现在)[，,]?\s*你(?:是|将|將|就是|要|必须|扮演)[^。\n]{0,24}?(?:模式|助手|管理员|管理員|不受限制|没有限制|"
    r"黑客|开发者|開發者|DAN)",
    r"(?:输出|显示|泄露|透露|告诉我|打印|重复|輸出|顯示|洩露)[^。\n]{0,12}?(?:系统|系統|初始|隐藏|隱藏)(?:的)?(?:提示词?|提示詞?|指令|设定|設定|消息)",
    r"(?:不要|别|請勿|请勿|不得)(?:告诉|告訴|通知|提醒|让)(?:用户|用戶|使用者|主人)",
    r"(?:只|仅|請|请)?(?:回复|回答|回覆|输出|輸出)\s*[「『\"“'‘]?(?:PWNED|HACKED)",
    # 日本語
    r"(?:これまで|以前|上記|前|今まで|すべて|全て|全部|システム)?の?(?:指示|命令|ルール|規則|プロンプト|制約|制限|ガイドライン|設定)(?:は|を|に)?(?:すべて|全て|全部|"
    r"一切)?(?:無視|忘れ|破棄|従わな|従うな|守らな|取り消)",
    r"(?:今から|これから|今後)(?:、|,)?\s*(?:あなた|君|お前)は[^。\n]{0,24}?(?:モード|アシスタント|管理者|制限(?:の)?(?:ない|なし)|開発者|ハッカー|DAN)",
    r"(?:システムプロンプト|システム(?:の)?指示|初期(?:の)?指示|隠された指示)を[^。\n]{0,10}?(?:表示|出力|教え|公開|繰り返)",
    r"(?:ユーザー|利用者|使用者)には?(?:絶対に)?(?:知らせ|教え|伝え|言わ)(?:ない|るな|ず)",
    r"[「『\"“]?(?:PWNED|HACKED)[」』\"”]?(?:と|とだけ)(?:答え|返信|返答|出力|言)",
    # español
    r"\b(?:ignora|ignorad|ignore|ignorar|olvida|olvide|olvidar|descarta|descarte|omite|omita|desobedece|"
    r"no (?:sigas|siga|obedezcas|obedezca))\b[^.!?\n]{0,40}?"
    r"\b(?:instrucci[oó]n(?:es)?|reglas?|normas?|directrices|directivas?|restricciones|prompts?|indicaciones|"
    r"[oó]rdenes)\b",
    r"\b(?:a partir de ahora|desde ahora|ahora),? (?:eres|ser[aá]s|act[uú]as|actuar[aá]s|debes|"
    r"te comportar[aá]s)\b[^.\n]{0,50}?\b(?:modo|asistente|ia|administrador|sin (?:restricciones|l[ií]mites|"
    r"reglas)|desarrollador|dan|hacker)\b",
    r"\b(?:revela|muestra|imprime|repite|filtra|ens[eé]ñame|dime)\b[^.\n]{0,25}?\b(?:prompt|mensaje|"
    r"instrucciones) (?:del? sistema|iniciales|ocult[ao]s?|secret[ao]s?)\b",
    r"\bno (?:se lo |le |les )?(?:digas|diga|informes|informe|avises|cuentes|menciones)[^.\n]{0,20}?"
    r"\b(?:al usuario|a los usuarios|al humano)\b",
    r"\b(?:responde|contesta|di) (?:solo |s[oó]lo |[uú]nicamente )?(?:con )?[\"'“«]?(?:PWNED|HACKED)\b",
    # Deutsch
    r"\b(?:ignorier\w*|missacht\w*|vergiss|vergesst|vergessen sie|überschreib\w*|umgeh\w*|verwirf|"
    r"befolge? (?:nicht|keine)|halte? dich nicht an)\b[^.!?\n]{0,40}?"
    r"\b(?:anweisung(?:en)?|regeln?|vorgaben?|instruktion(?:en)?|richtlinien?|befehle?|einschränkungen?|"
    r"prompts?|systemprompts?)\b",
    r"\b(?:ab jetzt|von nun an|ab sofort|du bist jetzt|du bist nun)\b[^.\n]{0,50}?\b(?:modus|assistent|ki|"
    r"administrator|admin|uneingeschränkt\w*|ohne (?:regeln|einschränkungen|grenzen)|entwickler|hacker|dan)\b",
    r"\b(?:zeig\w*|verrat\w*|offenbar\w*|gib|nenn\w*|wiederhol\w*)\b[^.\n]{0,25}?\b(?:system-?prompts?|"
    r"systemnachricht|systemanweisung(?:en)?|(?:versteckte|geheime|ursprüngliche)n? anweisungen)\b",
    r"\b(?:sag|sage|erzähl|erzähle|verrate?|melde?)\b[^.\n]{0,20}?\b(?:dem (?:nutzer|benutzer|anwender|"
    r"menschen)|den (?:nutzern|benutzern))\b[^.\n]{0,12}?\b(?:nichts|nicht)\b",
    r"\b(?:antworte|sag|sage|schreib|schreibe) (?:nur |ausschließlich )?(?:mit )?[\"'„»]?(?:PWNED|HACKED)\b",
)
_INSTRUCTION = re.compile("|".join(_PATTERNS), re.IGNORECASE | re.MULTILINE)
# Each pattern needs one of these, and a search for them is ten times as fast.
_NEEDED = re.compile(
    r"instru|rule|prompt|guid|direct|constrain|safeg|guardr|polic|restrict|program|ignore|disreg|forget|"
    r"you are|you're|"
    r"from now|act as|pretend|mode|pwned|hacked|jailb|user|human|operator|owner|key|passw|credent|secret|token|"
    r"conversation|memor|llm|a\.i|\bai\b|assistant|agent|model|bot\b|<|\[|system|developer|"
    r"指令|指示|规则|規則|提示|设定|設定|要求|限制|约束|約束|准则|守则|命令|你|用户|用戶|使用者|主人|系统|系統|初始|隐藏|隱藏|"
    r"ルール|プロンプト|制|ガイド|あなた|君|お前|システム|ユーザー|利用者|"
    r"regla|norma|orden|órden|indicac|asistente|modo|mensaje|usuario|anweis|regel|vorgabe|richtlin|befehl|"
    r"einschr|modus|"
    r"nachricht|nutzer|anwender|menschen|assistent|entwickler",
    re.IGNORECASE,
)
# Signs that print nothing, put between letters so that a pattern misses the word.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]")


def plain(text: str) -> str:
    """The text as a reader sees it: compatibility forms folded, invisible signs gone."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))


def reads_like_instruction(text: str) -> bool:
    """Whether a text tells a model what to do rather than what is the case."""
    seen = plain(text)
    return _NEEDED.search(seen) is not None and _INSTRUCTION.search(seen) is not None


def any_instruction(texts: Iterable[str]) -> bool:
    return any(reads_like_instruction(text) for text in texts if text)


def unit_trust(level: str, instruction: bool) -> str:
    """What a unit's `trust` says, the least trusting of both: `untrusted`, `quoted`, `normal`, `trusted`."""
    if level == UNTRUSTED:
        return UNTRUSTED
    return QUOTED if instruction else level


def same_source(trust: str, level: str) -> bool:
    """Whether a stored unit's `trust` may stand when its text comes again from a source of `level`."""
    return trust in ((UNTRUSTED,) if level == UNTRUSTED else (level, QUOTED))


def must_be_fenced(trust: str, risks: Iterable[str] = ()) -> bool:
    """Whether a reader must take a unit as the words of somebody else. Prompts fence every unit; this one is why."""
    return trust in (UNTRUSTED, QUOTED) or INSTRUCTION in risks
