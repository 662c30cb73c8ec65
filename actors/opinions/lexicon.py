"""Words that judge and words that tell an outcome, by what they are about. Data alone; `rules` reads them.

Each dimension has four lists: words that say it holds, words that say it does not, and outcomes for and against it.
Words of several parts stand with spaces; in Chinese and Japanese they are looked for anywhere in the text.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Dimension(NamedTuple):
    """Space-separated forms; `_` stands for a space inside one."""

    name: str
    good: str
    bad: str
    went_well: str = ""
    went_badly: str = ""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


GENERAL: Final = "general"

DIMENSIONS: Final = (
    Dimension(
        GENERAL,
        "good great excellent best better awesome amazing wonderful fantastic brilliant superb perfect nice lovely fine"
        " outstanding impressive recommended worth worthwhile love loved loves favourite favorite underrated right wise"
        " positive successful success superior promising solid bueno buena excelente mejor gut super toll besser beste"
        " 很好 出色 优秀 最好 不错 良い 素晴らしい 最高",
        "bad terrible awful horrible worst worse poor mediocre disappointing dreadful overrated wrong unwise foolish"
        " negative useless worthless pointless hate hated hates lousy inferior flawed ridiculous junk garbage rubbish"
        " malo mala terrible peor pésimo schlecht furchtbar schlimm schlechter 很差 糟糕 最差 不好 悪い ひどい 最悪",
        "praised thrived paid_off pays_off won_an_award five_stars applauded succeeded improved improves benefits"
        " benefited helped flourished",
        "complained complaints regretted regret disappointed backfired one_star returned_it flopped criticised"
        " criticized harmed hurt suffered worsened",
    ),
    Dimension(
        "reliable",
        "reliable dependable stable robust steady trouble-free bulletproof rock-solid sturdy durable consistent"
        " resilient fiable estable zuverlässig stabil 可靠 稳定 穩定 信頼できる 安定",
        "unreliable flaky unstable fragile buggy shaky brittle broken unpredictable erratic inconsistent"
        " undependable inestable unzuverlässig instabil 不可靠 不稳定 不穩定 不安定",
        "uptime without_a_hitch without_issues without_problems without_errors without_incident without_downtime"
        " flawlessly smoothly survived passed never_failed kept_running kept_working held_up recovered works_fine"
        " worked_fine still_works still_running no_outages no_errors no_crashes error-free works worked"
        " delivered stayed_up sin_problemas ohne_probleme reibungslos 没有故障 顺利 正常运行 問題なく",
        "hiccup hiccups glitch glitches crash crashed crashes crashing fail failed fails"
        " failing failure failures outage outages downtime went_down"
        " goes_down down broke breaks break hung hangs froze freezes frozen error errors bug bugs corrupted corrupt"
        " lost_data data_loss malfunctioned malfunction died dies stopped_working timed_out timeout timeouts"
        " unresponsive unavailable unreachable rolled_back incident incidents falló fallos caída cayó abgestürzt"
        " ausgefallen ausfall absturz 崩溃 故障 宕机 失败 出错 クラッシュ 故障 落ちた 失敗",
    ),
    Dimension(
        "fast",
        "fast quick rapid speedy snappy responsive swift faster fastest quicker efficient performant rápido schnell"
        " 快 很快 迅速 速い 早い",
        "slow sluggish laggy slower slowest inefficient lento langsam 慢 很慢 缓慢 遅い",
        "in_seconds in_milliseconds instantly immediately within_minutes ahead_of_schedule halved_the_time sped_up"
        " in_no_time",
        "took_hours took_days took_forever took_ages lagged lag latency waited_for_hours timed_out timeouts dragged"
        " delayed delays bottleneck crawled",
    ),
    Dimension(
        "cheap",
        "cheap affordable inexpensive economical cheaper cheapest bargain low-cost barato günstig billig 便宜 安い",
        "expensive overpriced costly pricey dearer unaffordable extravagant caro teuer 贵 昂贵 高い",
        "saved_money saved_us cut_costs lower_bill discount half_the_price for_free free_of_charge price_dropped"
        " prices_dropped",
        "cost_overrun over_budget doubled_the_bill bill_doubled price_rose prices_rose raised_prices price_increase"
        " costs_rose surcharge hidden_fees",
    ),
    Dimension(
        "tasty",
        "delicious tasty yummy flavourful flavorful fresh scrumptious rico delicioso"
        " lecker köstlich 好吃 美味 美味しい",
        "bland tasteless disgusting overcooked undercooked stale soggy salty inedible burnt greasy asqueroso"
        " eklig 难吃 不好吃 まずい",
        "ate_everything seconds_please licked second_helping cleaned_the_plate",
        "food_poisoning sent_it_back left_it_untouched spat threw_up threw_it_away",
    ),
    Dimension(
        "easy",
        "easy simple intuitive straightforward effortless user-friendly clear easier simpler easiest approachable fácil"
        " sencillo einfach leicht 简单 容易 簡単",
        "hard difficult confusing complicated complex unclear cumbersome tricky unintuitive steep harder impenetrable"
        " difícil complicado schwierig kompliziert 困难 复杂 难用 難しい 複雑",
        "figured_it_out in_minutes first_try without_help learnt_it learned_it picked_it_up up_and_running",
        "gave_up struggled struggles got_lost needed_help could_not_figure stuck baffled",
    ),
    Dimension(
        "safe",
        "safe secure harmless trusted protected safer seguro sicher 安全",
        "dangerous unsafe insecure risky vulnerable harmful hazardous toxic peligroso gefährlich unsicher 危险 危険",
        "no_accidents no_injuries no_breaches audit_passed passed_the_audit unharmed unscathed",
        "breach breached hacked leaked leak stolen injured injury accident accidents exploit exploited vulnerability"
        " vulnerabilities recalled killed poisoned caught_fire exploded attacked 泄露 事故 受伤",
    ),
    Dimension(
        "honest",
        "honest trustworthy sincere loyal fair faithful truthful transparent honesto ehrlich 诚实 正直",
        "dishonest untrustworthy deceitful corrupt unfair disloyal sneaky two-faced deshonesto unehrlich 不诚实",
        "kept_his_promise kept_her_promise kept_their_promise told_the_truth admitted returned_the_money kept_his_word"
        " kept_her_word gave_it_back paid_back",
        "lied lies lying cheated cheats stole steals deceived betrayed broke_his_promise broke_her_promise"
        " broke_their_promise misled covered_up fraud scam scammed embezzled",
    ),
    Dimension(
        "kind",
        "kind friendly polite helpful generous warm caring welcoming considerate gentle patient supportive amable"
        " freundlich nett 友好 善良 亲切 親切",
        "rude mean unfriendly impolite unhelpful cruel arrogant selfish hostile harsh impatient cold grosero"
        " unfreundlich gemein 粗鲁 刻薄",
        "helped solved answered resolved thanked apologised apologized comforted"
        " volunteered donated smiled shared invited",
        "shouted yelled insulted ignored mocked bullied snapped screamed slammed threatened laughed_at",
    ),
    Dimension(
        "punctual",
        "punctual prompt timely on_time always_on_time puntual pünktlich 准时",
        "late unpunctual tardy always_late impuntual unpünktlich 迟到 遅い",
        "on_time arrived_early met_the_deadline right_on_schedule before_the_deadline arrived_on_time",
        "late missed_the_deadline missed_deadlines missed_the_train overslept behind_schedule delayed postponed"
        " kept_us_waiting no-show did_not_show_up",
    ),
    Dimension(
        "skilled",
        "skilled competent talented smart clever intelligent capable strong gifted experienced knowledgeable expert"
        " professional careful diligent accurate precise competente kompetent klug 聪明 能干 有才华 優秀",
        "incompetent clumsy stupid incapable weak unqualified careless sloppy inexperienced ignorant amateurish lazy"
        " inaccurate imprecise dumb incompetente inkompetent dumm 愚蠢 无能 粗心",
        "won wins solved solves fixed promoted aced mastered record award awarded accurate_result nailed finished_first"
        " scored beat 获奖 赢得",
        "lost loses mistake mistakes botched messed_up blunder blunders accident"
        " accidents forgot flunked miscalculated fired missed"
        " misjudged 输了 犯错",
    ),
    Dimension(
        "fun",
        "fun interesting exciting entertaining engaging fascinating gripping enjoyable inspiring divertido spannend"
        " interessant 有趣 面白い",
        "boring dull tedious tiresome uninteresting monotonous dreary aburrido langweilig 无聊 つまらない",
        "laughed enjoyed could_not_put_it_down standing_ovation had_a_great_time glued",
        "fell_asleep yawned walked_out left_early dozed",
    ),
    Dimension(
        "useful",
        "useful valuable essential necessary important effective productive relevant útil nützlich wichtig 有用 重要",
        "useless unnecessary unimportant ineffective irrelevant unproductive inútil nutzlos unwichtig 没用 无用",
        "saved_time saved_hours saved_the_day cured relieved increased_productivity used_it_every_day use_it_every_day",
        "wasted_time waste_of_time waste_of_money nobody_uses nobody_used gathers_dust made_no_difference no_effect",
    ),
    Dimension(
        "quiet",
        "quiet peaceful calm silent tranquil tranquilo ruhig leise 安静 静か",
        "noisy loud rowdy chaotic ruidoso laut 吵 うるさい",
        "slept_well",
        "kept_us_awake kept_me_awake woke_us woke_me could_not_sleep party_until",
    ),
    Dimension(
        "clean",
        "clean tidy spotless hygienic limpio sauber 干净 清潔",
        "dirty filthy messy smelly unhygienic sucio schmutzig 脏 汚い",
        "",
        "mould mold cockroach cockroaches rats stains stained stank",
    ),
    Dimension(
        "likely",
        "likely probable inevitable certain will_succeed will_win bound_to",
        "unlikely improbable impossible hopeless doomed will_fail will_lose",
        "approved confirmed succeeded completed shipped launched passed signed won",
        "rejected cancelled canceled failed abandoned collapsed postponed withdrawn denied lost",
    ),
    Dimension(
        "healthy",
        "healthy nutritious wholesome beneficial saludable gesund 健康",
        "unhealthy fattening harmful addictive insalubre ungesund 不健康",
        "lost_weight lowered reduced_the_risk lives_longer feel_better felt_better lower_blood_pressure",
        "gained_weight raised_the_risk increased_the_risk made_me_sick made_him_sick made_her_sick headaches"
        " heart_attack heart_attacks causes_cancer higher_risk",
    ),
    Dimension(
        "popular",
        "popular beloved famous well-liked in_demand trendy crowded",
        "unpopular obscure forgotten empty disliked",
        "sold_out queue queues packed record_sales best-seller went_viral full_house",
        "nobody_came unsold half_empty closed_down slow_sales cancelled_shows",
    ),
    Dimension(
        "beautiful",
        "beautiful pretty gorgeous stunning elegant attractive hermoso bonito schön 美丽 漂亮 美しい",
        "ugly hideous unattractive tacky clunky feo hässlich 丑 醜い",
    ),
)

ANTONYMS: Final = (
    "increase rise grow raise up more gain higher improve expand / decrease fall shrink lower down less lose drop"
    " decline worsen reduce",
    "start begin open join adopt launch / stop end close leave abandon quit",
    "win / lose",
    "succeed / fail",
    "accept approve support allow permit / reject refuse oppose ban forbid prohibit",
    "before early / after late",
    "same alike equal / different unequal",
    "true correct right / false wrong incorrect",
    "always / never",
    "replace / keep",
    "buy / sell",
    "love like enjoy / hate dislike",
    "hot warm / cold cool",
    "big large huge / small tiny little",
    "rich / poor",
    "young new modern / old outdated obsolete",
    "full / empty",
    "public / private",
    "indoors inside / outdoors outside",
    "possible / impossible",
    "necessary needed / unnecessary needless",
    "legal / illegal",
    "alive / dead",
)

MILD: Final = words(
    "slightly somewhat minor small little brief briefly occasionally sometimes once hiccup hiccups almost"
    " nearly partly partially rare one single few bit temporarily short"
)
"""Words beside an outcome that make it a weak one."""

HEDGES: Final = words(
    "maybe perhaps possibly might may could seems seemed apparently reportedly allegedly rumoured rumored probably"
)

STOP: Final = words(
    "a an the and or but if then than that this these those it its it's is are was were be been being am"
    " do does did has have had having will would shall should can could may might must of in on at to for"
    " from by with about as into over under again after before during without through between out off up"
    " down so very really quite just too also only own same such no not nor never none i me my we us our"
    " you your he him his she her they them their who whom whose which what when where why how all any"
    " each few more most other some there here yes think believe feel opinion view say said says told"
    " tells imo imho guess reckon suppose find seems seem still now today yesterday week month year day"
    " time times got get gets make makes made one two three ever always often much many lot lots thing"
    " things way people everyone everybody anyone because since while although though however"
)
