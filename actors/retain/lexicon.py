"""The word lists of the local rules. They are data: what a list decides is said where it is used."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text between its blanks."""
    return frozenset(text.split())


FILLER_WORDS = word_set(
    """
    ok okay okey k kk ty thx thanks thank thankyou cheers cool great nice good fine alright right gotcha yep yup
    yeah lol haha hahaha hehe hmm hm mm mhm uh um er ah oh wow hi hello hey hiya bye goodbye np welcome perfect
    awesome you so much very again a lot all done noted lmao rofl lmfao omg omfg same agreed ditto anyway anyways
    test testing ping zusammen moin bis know night sec brb gn gm huh uhuh yas sure exactly absolutely totally indeed
    true lovely wonderful brilliant excellent everyone folks guys vale gracias hola danke merci bonjour hallo nvm
    lgtm sgtm aww awww aw yay woohoo oops hbu wyd ikr gg wp afk yw xd xoxo mwah ugh meh phew yikes gosh whoops duh
    ha hah heh heya howdy sup yo morning evening afternoon bro dude mate buddy pal next yea nah noice dope sweet
    neat legit roger copy ack aye ta tks thks thnx
    """
)
"""Words of which a turn that only keeps the conversation going consists."""


NEVER_NAMES = word_set(
    """
    i me my mine myself we us our ours you your yours he him his she her hers it its they them their theirs who whom
    whose this that these those the a an and or but nor so yet for if then else when while where why how what which
    whatever not no yes ok okay yeah yep nope of in on at by to from with without about into over under after before
    since until as is am are was were be been being do does did done have has had will would shall should can could
    may might must i'm i've i'll i'd im ive id it's that's there here there's here's let's don't doesn't didn't
    isn't can't won't what's monday tuesday wednesday thursday friday saturday sunday ceo cto cfo coo vp mondays
    tuesdays wednesdays thursdays fridays saturdays sundays mon tue tues wed thu thur thurs fri sat sun january
    february march april june july august september october november december jan feb mar apr jun jul aug sep sept
    oct nov dec today tomorrow yesterday tonight morning afternoon evening night noon midnight week weekend month
    year spring summer autumn fall winter pm utc gmt bc ad lol omg btw imo imho fyi asap tbh idk brb aka eg ie etc
    ps pps re fwd ty thx np haha hahaha wow hey hi hello oh ah hmm please thanks thank thankyou sorry congrats
    congratulations bye goodbye welcome mr mrs ms dr prof sir madam todo note faq url http https www user assistant
    system human agent ai bot chatbot model tool speaker lunes martes miércoles jueves viernes sábado domingo montag
    dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche enero
    febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre januar februar märz juni juli
    oktober dezember ich wir sie er es du der die das ein eine
    """
)
"""Words that are no name whatever their case: little words, calendar words, chat shorthand, roles."""


SENTENCE_OPENERS = word_set(
    """
    nature yoga dance art winning pets books cheer anything appreciate long way family life things wanna enjoy
    believe crazy together little such moments especially best lucky pretty thankfully hard tough feels chat yum
    anytime home impressive lots want change people cute makes whenever proud ha hah yea count small mixed anyways
    mmm ouch oops oof bummer aw awww woo nah lemme missed create strong thoughts takes stuff ever kids respect come
    hold tons blessed stories support agree friends big understand gives truly wanted simple seen somewhat worries
    adorable jealous name time music yup y'all gimme dunno kinda add allow apply ask assume attach begin bring
    choose click close compare complete connect consider continue copy decide define delete describe design discuss
    drop enter explain fill follow include install join learn leave list load lower meet merge mind note open order
    pay pick please pull push raise reach reply replace report restart return review save schedule search select
    share sign sort speak spend split stand store submit talk teach test text think type update upload view visit
    wake walk watch write between above below behind beyond across along among around against within throughout
    toward towards upon unlike plenty half less fewer own former latter early late later yesterday's today's
    tomorrow's everybody anybody nobody anyone no-one someone everywhere somewhere anywhere nowhere hopefully
    luckily sadly suddenly eventually originally generally typically basically literally seriously certainly
    possibly clearly obviously naturally similarly likewise moreover furthermore nevertheless nonetheless otherwise
    hence thus accordingly consequently additionally alternatively woah whoa woohoo yay yo kudos aww during congrats
    ugh phew yep nope haha honestly aside besides despite also actually anyway although all any another as at after
    again almost already always apparently are avoid awesome amazing absolutely agreed because before both btw build
    buy call can check cool could definitely did do does don't each either even every everyone everything exactly
    except excited first finally for from fun get getting give glad go going good great gonna got gotta guess had
    happy has have having hearing here hope how however i if in indeed instead interesting is it its just keep last
    lately let like look looking looks love loved loving make making many maybe meanwhile most move much my need
    never new next nice none nothing now of off on once one only our out over overall perhaps perfect plus probably
    put read really recently remember right run same say see seeing seems send set several she should show since so
    some something sometimes soon sounds sound still stop sure take taking tell that the their then there therefore
    these they this those though through to too try trying turns two under unfortunately until up use using usually
    very visited wait was we well were what whatever when where whether which while who why will wish with without
    wonderful working would yeah yes yesterday yet you your dear cheers beautiful super totally true gotcha speaking
    today tomorrow tonight three four five six seven eight nine ten half-way added updated fixed deployed moved
    started stopped finished met saw went bought sold made wrote called asked said told thought felt knew found kept
    left lost paid ran sent spent took won worked lived loves likes hates prefers wants needs uses used
    """
)
"""Words that open a sentence, so that their capital is only the sentence's."""


MEASURE_WORDS = word_set(
    """
    room page pages chapter section step day days week month year version session figure table item level grade part
    phase line row column appendix act scene season episode round game apartment apt suite floor flight gate
    terminal platform track unit number no q1 q2 q3 q4 h1 h2 port issue ticket pr bug error code sprint milestone
    question option
    """
)
"""Words whose number counts something (`Room 12`) and names no product."""


ORG_ENDS = word_set(
    """
    inc corp ltd llc gmbh ag co plc corporation company university college institute foundation bank group labs lab
    studio studios systems technologies software school hospital agency committee association society museum energy
    ceramics optics high academy dental print cafe bistro ab oy bv nv sarl spa pty air freight werke express lines
    shipping railways rail oil steel textiles tours travel magazine gazette herald news charters mills radio gym
    bakery press media motors airlines airways records pictures pharma foods logistics insurance consulting partners
    holdings industries council ministry department union federation league orchestra theatre clinic publishing
    publishers electronics robotics analytics capital ventures brothers pharmaceuticals telecom networks games
    entertainment church club ales apparel auto bakers bikes boats books brewery brewing builders cabs candles
    carpets catering cement chemicals chocolates cleaning coaches coffee confectionery construction cosmetics
    couriers crafts creamery cycles dairy design designs distillery drones dyes estates events fabrics farm farms
    fashion ferries films finance fisheries fitness florists forge foundry fuels furniture garage garments glass
    glassworks goods grain graphics grocers hardware health healthcare homes hospitality housing instruments
    medical motorsport interiors investments ironworks jewellers joinery kitchens knits laundry lighting linen looms
    lumber machines
    manufacturing marine maritime marketing meats metals milling minerals mining mint mobile mobility mutual nursery
    oils optical opticians organics outfitters packaging paints paper papers pens petroleum pianos plastics plumbing
    potteries pottery power printers printing produce properties publications pumps quarry rentals repairs roasters
    roofing saddlery savings sciences seafood security seeds shoes silks soaps solar solutions spirits stationers
    stationery steelworks stores supplies supply surgery tailors teas tiles timber tools toys traders trading
    transport trust tyres utilities vineyards wares wines winery wireless woodworks wool wools yachts yarns choir
    festival county authority service services office bureau board commission
    """
)
"""Last words that make a run of capitals an organisation."""


PLACE_ENDS = word_set(
    """
    street avenue ave road boulevard square park river lake mountain mountains beach bay island islands city county
    valley forest canyon falls airport station bridge harbor harbour peninsula desert coast hills heights castle
    cathedral cliff cliffs cove creek dam fjord garden gardens glacier gorge hill isles junction lagoon loch marsh
    meadow meadows moor pass peak pier plaza quay reef ridge terrace village wharf woods
    """
)
"""Last words that make a run of capitals a place."""


PERSON_STARTS = word_set(
    """
    herr herrn frau señor señora sr sra monsieur madame mme signor signora dr mr mrs ms prof professor aunt uncle
    sir captain president doctor grandma grandpa
    """
)
"""First words that make a run of capitals a person."""


LABELS = word_set(
    """
    correction note notes warning caution update todo ps re fw fwd edit tip tips summary title subject date dates
    time times from to cc bcc sent step steps example examples question questions answer answers q a context result
    results error errors info information name names age city country address phone email e-mail mail location place
    price cost status goal goals task tasks agenda decision decisions action actions next conclusion background
    details detail description deadline due who what when where why how which pros cons version author authors
    source sources url link links http https ftp file path bonus remember reminder important key points point
    ingredients method methods instructions instruction output input usage default defaults changelog fixed added
    changed removed day week month year monday tuesday wednesday thursday friday saturday sunday january february
    march april may june july august september october november december today tomorrow yesterday plan plans idea
    ideas issue issues problem problems solution solutions cause causes fix fixes team teams project projects
    attendees participants present option options thing things ok okay part section chapter figure table news fact
    facts quote definition overview introduction abstract keywords references requirements requirement features
    feature install installation license type types value values total budget owner owners priority severity
    environment setup config configuration settings parameters returns raises args arguments see also however
    finally first second third lastly spoiler disclaimer tldr tl;dr fyi btw imo imho heads-up i it this that these
    those he she they we you my your our and or but so because if then the an in on at for with by of is are was
    were do does did not no yes please lesson lessons outcome objective objectives purpose scope risks risk
    assumption assumptions language languages hobbies hobby occupation job birthday born gender interests interest
    favorite favourite likes dislikes allergies contact contacts website advantages disadvantages recommendation
    recommendations rating review topic topics category categories tag tags message messages caption image photo
    picture video audio room server port host hostname database branch commit 注意 时间 地点 日期 主题 标题 备注
    说明 问题 答案 总结 结论 背景 要求 姓名 地址 电话 名称 例如 例 注 目标 任务 计划 原因 結論 場所 時間 日時 件名
    備考 概要 締切 締め切り 名前 住所 電話 目的 注記 제목 날짜 시간 장소 이름 주소 标题 截图 封面 字数 作者 摘要
    负责 负责人 状态 优先级 决定 数据库 团队 工具 语言 格式 尺寸 风格 下周 本周 上周 今天 明天 昨天 周一 周二 周三
    周四 周五 选题 稿子 文章 提示 链接 来源 高度 方法 方案 步骤 关于 成本 时长 价格 预算 小结 小贴士 老规矩 安排
    结果 内容 范围 程序 规则 规范 项目 产品 版本 目录 附件 更正 订正 補足 注意 重要 理由 結果 内容 費用 予算 資料
    議題 開始 終了 対象 人数 曜日 一言 更新 nota fecha hora lugar hinweis datum zeit ort betreff remarque objet lieu
    heure
    """
)
"""Words that stand before a colon without being anybody's name; one in a prefix is enough to refuse it."""


ABBREVIATIONS = word_set(
    """
    mr mrs ms dr prof st sr jr vs e.g i.e cf approx dept est fig figs inc ltd co corp vol no nos op pp rev gen col
    sgt capt lt hon gov sen rep pres ave blvd rd mt ft jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues
    wed thu thur thurs fri sat sun z.b bzw ca d.h u.a sog nr str sra sta ud uds av mme mlle env al eds ed u.s u.k
    """
)
"""Words whose full stop ends no sentence, without it, in small letters."""


ABBREVIATIONS_THAT_END = word_set(
    """
    etc a.m p.m inc ltd co corp jr sr u.s u.k usw
    """
)
"""Those that may end a sentence too: a capital behind them decides."""


PEOPLES = word_set(
    """
    american african asian european english british scottish irish welsh french german spanish italian portuguese
    dutch swedish norwegian danish finnish polish czech hungarian greek turkish russian ukrainian chinese japanese
    korean thai vietnamese indian pakistani indonesian filipino malay arabic arab hebrew persian iranian iraqi
    israeli egyptian moroccan nigerian kenyan ethiopian mexican brazilian argentinian colombian chilean peruvian
    cuban canadian australian austrian swiss belgian romanian bulgarian serbian croatian latin christian catholic
    muslim islamic jewish buddhist hindu
    """
)
"""Words for peoples, languages and beliefs: concepts, never products."""


ING_NAMES = word_set(
    """
    beijing nanjing chongqing boeing ming xing jing ding ping sterling wyoming reading hastings darjeeling
    """
)
"""Names that end as a participle does."""


COMMON_WORDS = word_set(
    """
    that this with from have been were what when where which there their they them then than your yours about would
    could should will just like really very much more most some such only also even still well good great nice time
    times thing things people make makes made know think want need going gonna come came back over into after before
    because while does doing done didn don't can't it's i'm i've you're that's we're they're there's here always
    never every each other another lots being feel feels felt love loved looking look looks keep help helps life
    work day days week month year today yesterday tomorrow last next sure right okay yeah wow thanks thank awesome
    amazing cool glad happy excited
    """
)
"""Words that two sentences may share without being about the same thing."""


CALENDAR = word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday morning evening night today tomorrow yesterday spring
    summer autumn winter noon midnight weekend january february march april may june july august september october
    november december
    """
)
"""Words of the calendar that may begin an organisation's name ("Morning Tide Radio")."""


LEGAL_FORMS = word_set(
    """
    gmbh mbh ag kg kgaa ug ohg gbr se e.v ev sa s.a s.a. sl s.l s.l. slu s.l.u srl s.r.l s.r.l. spa s.p.a s.p.a. sarl
    sas s.a.s ltd ltd. limited llc llp lp inc inc. corp corp. plc bv b.v b.v. nv n.v n.v. ab oy oyj asa aps a/s pty pvt
    kft zrt s.r.o s.r.o. a.s a.s. d.o.o d.o.o. ltda lda eirl sp.z.o.o bhd kk
    """
)
"""What stands behind the name of a company and makes it one."""


ORG_STARTS = word_set(
    """
    university universität universidad université universidade università hochschule fachhochschule institute institut
    instituto istituto bank banco banca banque bistro hotel hôtel restaurant restaurante ristorante trattoria pizzeria
    osteria café cafe cafetería bar museum museo musée ministry ministerium ministerio hospital hôpital ospedale radio
    krankenhaus klinik klinikum clínica clinica clinique sparkasse volksbank stadtwerke bäckerei metzgerei brauerei
    apotheke druckerei gasthof gasthaus verlag stiftung werkstatt autohaus fundación fondation fondazione colegio
    escuela
    academia grupo groupe gruppo officine laboratorios construcciones seguros viajes muebles maderas aceros industrias
    almacenes transportes editorial bodegas talleres cooperativa empresa farmacia librería panadería holzhandel
    elektro spedition reederei galerie galería cervecería inmobiliaria constructora distribuidora aerolíneas
    """
)
"""First words that make a run of capitals an organisation."""


PLACE_STARTS = word_set(
    """
    lake mount mt rue via calle avenue avenida avenida plaza río rio lago lac isla playa puerto monte cerro sierra valle
    cape port fort bad
    """
)
"""First words that make a run of capitals a place."""


PRODUCT_ENDS = word_set(
    """
    db os sdk api app cli cloud engine framework server suite desk pad book phone watch browser editor player reader
    pro lite mini ultra ci cd ide ui ai gpt vpn crm erp plus max
    """
)
"""Last words that make a run of capitals something made."""
