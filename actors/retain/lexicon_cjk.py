"""The word lists of Chinese and Japanese names and fillers:"""

from __future__ import annotations

from recalld.actors.retain.lexicon import word_set

SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗高郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢"
    "姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向汤"
    "陳張劉楊趙吳孫馬許韓鄧馮葉蘇呂盧"
)
"""Common Chinese surnames of one character."""


GIVEN_NAMES_JA = word_set(
    """
    亮 彩 悠 翼 葵 凛 修 恵 健 誠 学 翔 蓮 湊 樹 匠 剛 隆 進 勇 豊 茂 実 茜 遥 楓 愛 忍 薫 望 光 昇 浩 宏 博 聡 智
    徹 仁 純 淳 潤 司 渉 渚 萌 舞 桜 梓 翠 碧 歩 空 海 陸 拓 学 駿 優 唯 泉 瞳 綾 静 幸
    """
)
"""Japanese given names of one character."""


GIVEN_NAME_ENDS_JA = frozenset("子美香奈恵介郎也樹夫男雄彦斗輝希菜乃穂里沙織代江枝太")
"""Last characters that make two or three a Japanese given name."""


FILLER_PHRASES_CJK = word_set(
    """
    好 好的 嗯 嗯嗯 哦 谢谢 謝謝 多谢 不客气 你好 您好 再见 哈哈 哈哈哈 收到 了解 はい うん ありがとう
    ありがとうございます どうも こんにちは 了解です おつかれさまです おつかれさまでした おつかれ お疲れ様です 네 넵
    감사합니다 고마워 안녕 안녕하세요
    """
)
"""Whole turns that only keep the conversation going, where words are not spaced."""


PLACES = word_set(
    """
    北京 上海 天津 重庆 广州 深圳 厦门 福州 泉州 杭州 宁波 温州 苏州 南京 无锡 常州 合肥 南昌 武汉 长沙 成都 贵阳
    昆明 大理 丽江 拉萨 西安 兰州 西宁 银川 乌鲁木齐 太原 石家庄 郑州 洛阳 济南 青岛 烟台 大连 沈阳 长春 哈尔滨
    呼和浩特 南宁 桂林 海口 三亚 珠海 佛山 东莞 中山 惠州 汕头 香港 澳门 台北 高雄 台中 台湾 河北 山西 辽宁 吉林
    黑龙江 江苏 浙江 安徽 福建 江西 山东 河南 湖北 湖南 广东 海南 四川 贵州 云南 陕西 甘肃 青海 内蒙古 广西 西藏
    宁夏 新疆 中国 美国 英国 法国 德国 日本 韩国 印度 俄罗斯 加拿大 澳大利亚 新加坡 泰国 越南 马来西亚 意大利 西班牙
    巴西 纽约 伦敦 巴黎 东京 大阪 京都 首尔 柏林 硅谷 旧金山 洛杉矶 东京 大阪 京都 福岡 札幌 仙台 名古屋 神戸 横浜
    広島 長崎 熊本 鹿児島 沖縄 那覇 金沢 奈良 新潟 千葉 埼玉 川崎 静岡 岡山 北海道 東京 愛知 兵庫 神奈川 長野 岐阜
    富山 福島 青森 秋田 山形 岩手 宮城 茨城 栃木 群馬 山梨 三重 滋賀 和歌山 鳥取 島根 山口 徳島 香川 愛媛 高知 佐賀
    大分 宮崎 松山 渋谷 新宿 池袋 秋葉原 銀座 箱根 鎌倉 日光 アメリカ イギリス フランス ドイツ イタリア スペイン
    中国 韓国 台湾 インド カナダ ロンドン パリ ニューヨーク ベルリン ソウル
    """
)
"""Provinces, cities and countries as they are written in Chinese and in Japanese."""


NO_PERSON = word_set(
    """
    于是 高兴 高中 高度 方便 方法 方案 方式 方面 周一 周二 周三 周四 周五 周六 周日 周末 周会 周报 白天 白色 黄色
    金额 金融 石头 马上 叶子 常常 万一 万分 许多 何时 何况 向来 向他 余下 关于 安全 安排 成本 成为 成员 成功 时间
    时候 文章 文件 文档 项目 任务 任何 单位 单独 温度 强调 明天 明年 和平 解决 应该 张照片 林子 花园 花了 易用 严重
    古代 江边 江南 雷雨 雷达 龙头 毛病 毛衣 孔子 钱包 陆续 程序 程度 范围 曾经 胡同 胡说 罗马 谢谢 唐朝 宋朝 董事
    梁子 邓小 康复 水果 莫非 段落 连续 车站 查询 卢浮 高速 高峰 平时 平台 平均
    """
)
"""Words that begin with a family name's character and name nobody."""


SURNAMES_JA = word_set(
    """
    佐藤 鈴木 高橋 田中 伊藤 渡辺 山本 中村 小林 加藤 吉田 山田 佐々木 山口 松本 井上 木村 斎藤 清水 山崎 森田 池田
    橋本 阿部 石川 山下 中島 石井 小川 前田 岡田 長谷川 藤田 後藤 近藤 村上 遠藤 青木 坂本 斉藤 福田 太田 西村 藤井
    金子 岡本 藤原 中野 三浦 原田 中川 松田 竹内 小野 田村 中山 和田 石田 上田 森本 内田 柴田 酒井 宮崎 横山 高木
    安藤 宮本 大野 小島 谷口 工藤 今井 丸山
    """
)
"""Common Japanese family names."""
