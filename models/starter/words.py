"""Raw language for the generator: words, sentences and Markdown passages in English, French and Chinese.

The text means nothing on purpose: the model learns to find and copy, not to know. Word lists come from Debian's
`wamerican` and `wfrench`; Chinese is drawn from the level-1 characters of GB 2312 and a list of common words.
"""
import random

R = random.Random()
LANGS = ('en', 'fr', 'zh')


def _load(path, lo=2, hi=13):
    with open(path, encoding='utf-8') as f:
        return [w for w in (line.strip() for line in f) if lo < len(w) < hi and w.isalpha()]


EN_ALL = _load('/usr/share/dict/american-english')
EN_LOWER = [w for w in EN_ALL if w.islower()]
NAMES = [w for w in EN_ALL if w[0].isupper() and w[1:].islower() and len(w) < 10]
EN_SHORT = [w for w in EN_LOWER if len(w) < 8]
FR_LOWER = [w for w in _load('/usr/share/dict/french') if w.islower()]
FR_SHORT = [w for w in FR_LOWER if len(w) < 8]
FR_ACCENT = [w for w in FR_LOWER if not w.isascii()]

EN_COMMON = """garden recipe budget travel meeting project idea book reading health sleep coffee bread family photo server backup
router password network python rust model agent protocol memory index search graph lecture exam chapter thesis paper method
result data plan goal habit music guitar piano chess bicycle repair kitchen painting camera lens battery solar energy water
tomato pasta soup cheese wine tea market house rent tax insurance doctor dentist vaccine school teacher holiday train flight
hotel museum city river mountain winter summer storm history language grammar poem novel film theatre letter email calendar
deadline invoice client contract release design review test database query cache queue thread kernel compiler parser token
prompt embedding vector cluster deployment container pipeline latency throughput time day week month year morning evening
first last next new old good best small large number name address phone code key door car boiler window floor people team
work home list note file page part way thing place point question answer problem reason change price cost size weight speed""".split()
FR_COMMON = """jardin recette budget voyage réunion projet idée livre lecture santé sommeil café pain famille photo serveur
sauvegarde mot passe réseau modèle mémoire recherche cours examen chapitre thèse méthode résultat données objectif habitude
musique guitare piano échecs vélo réparation cuisine peinture appareil objectif batterie énergie eau tomate pâtes soupe fromage
vin thé marché maison loyer impôt assurance médecin dentiste vaccin école professeur vacances train avion hôtel musée ville
rivière montagne hiver été orage histoire langue grammaire poème roman film théâtre lettre courriel calendrier échéance facture
client contrat équipe semaine mois année matin soir premier dernière prochain nouveau vieux bon meilleur petit grand numéro nom
adresse téléphone code clé porte voiture chaudière fenêtre étage gens travail liste page endroit question réponse problème prix
coût taille poids vitesse heure jour aujourd'hui demain hier déjà très après près forêt crème gâteau œuf beurre sucre farine
minutes chez père mère fille garçon frère sœur ami voisin été août décembre février janvier mars avril mai juin juillet
septembre octobre novembre lundi mardi mercredi jeudi vendredi samedi dimanche dépenses départ arrivée billet gare""".split()
FR_FUNC = """le la les un une des du de et à en pour avec sur dans par est sont était a ont au aux ce cette ces qui que se ne pas
plus il elle on nous vous mon ma mes notre votre leur ou mais si avant après chaque sans sous entre vers très bien aussi""".split()
FR_ELIDED = "l'{w} d'{w} j'{w} qu'{w} s'{w} n'{w} c'{w} l’{w} d’{w}".split()
EN_FUNC = """the a of in and to with for from on by is are was has needs uses at about every after before not only also more than
it this that we I my our you be can will or but if then when where which as so do don't it's isn't we'll""".split()
ZH_COMMON = """花园 菜谱 预算 旅行 会议 项目 想法 读书 健康 睡眠 咖啡 面包 家庭 照片 服务器 备份 路由器 密码 网络 模型 记忆 索引 搜索 讲座
考试 论文 方法 结果 数据 计划 目标 习惯 音乐 吉他 钢琴 象棋 自行车 修理 厨房 绘画 相机 电池 能源 番茄 面条 汤 奶酪 红酒 茶叶 市场
房子 房租 保险 医生 牙医 疫苗 学校 老师 假期 火车 飞机 酒店 博物馆 城市 河流 冬天 夏天 历史 语言 语法 诗歌 小说 电影 信件 邮件 日历
截止 发票 客户 合同 发布 设计 评审 测试 数据库 查询 缓存 队列 内核 编译器 今天 明天 昨天 早上 晚上 上午 下午 星期 周一 周五 周末 月份
年底 名字 地址 电话 钥匙 汽车 窗户 阳台 问题 答案 原因 价格 大小 重量 速度 妈妈 爸爸 孩子 朋友 邻居 同事 经理 北京 上海 杭州 成都 西湖
红烧肉 豆腐 米饭 饺子 白菜 土豆 辣椒 酱油 生抽 糖 盐 分钟 小时 温度 水温 每天 每周 记得 需要 可以 已经 还没有 完成 准备 购买 整理 学习
练习 开会 讨论 决定 安排 修改 检查 更新 安装 配置 系统 手机 电脑 软件 费用 公里 地铁 车站 航班 签证 护照 行李 药 体检 跑步 游泳 茶 猫""".split()
ZH_FUNC = list("的了在是和有不也就都要会能把被从到对为与及或而但再很更最这那我你他她它们") + ['因为', '所以', '如果', '然后', '以及', '可能', '应该', '关于']
HANZI = [bytes([r + 0xA0, c + 0xA0]).decode('gb2312') for r in range(16, 56) for c in range(1, 95) if not (r == 55 and c > 89)]
EMOJI = "✅ 🎉 🌱 ☕ 📌 ⚠️ 🙂 🚲 📚 → ★".split()


def number():
    r = R.random()
    if r < .3: return str(R.randint(0, 9999))
    if r < .4: return f"{R.randint(1, 31)}.{R.randint(1, 12)}."
    if r < .5: return f"{R.randint(0, 23):02}:{R.randint(0, 59):02}"
    if r < .6: return f"20{R.randint(10, 39)}-{R.randint(1, 12):02}-{R.randint(1, 28):02}"
    if r < .7: return f"{R.randint(1, 999)} %" if R.random() < .3 else f"{R.randint(1, 999)}%"
    if r < .78: return f"{R.choice('€$¥£')}{R.randint(1, 9999)}" if R.random() < .5 else f"{R.randint(1, 999)},{R.randint(10, 99)} €"
    if r < .86: return f"{R.randint(1, 900)} {R.choice(['g', 'kg', 'ml', 'cm', 'km', 'min', '°C', 'GB', 'h'])}"
    if r < .93: return f"{R.randint(0, 99)}.{R.randint(0, 99)}"
    return R.choice([f"+{R.randint(1, 99)} {R.randint(10, 99)} {R.randint(100, 999)} {R.randint(10, 99)} {R.randint(10, 99)}", f"192.168.{R.randint(0, 255)}.{R.randint(1, 254)}",
                     f"{R.choice(NAMES).upper()[:4]}-{R.randint(1, 9999)}", f"{R.choice('ABCDEFGHJK')}{R.randint(1, 99)}{R.choice('abcxyz')}{R.randint(100, 999)}"])


def word(lang='en'):
    r = R.random()
    if lang == 'zh':
        if r < .55: return R.choice(ZH_COMMON)
        if r < .93: return ''.join(R.choice(HANZI) for _ in range(R.choice([1, 2, 2, 2, 3])))
        if r < .97: return number()
        return R.choice([R.choice(NAMES), R.choice(EN_COMMON)])
    if r < .05: return number()
    if r < .15: return R.choice(NAMES)
    if lang == 'fr':
        if r < .5: return R.choice(FR_COMMON)
        return R.choice(FR_ACCENT) if r < .6 else R.choice(FR_SHORT) if r < .88 else R.choice(FR_LOWER)
    return R.choice(EN_COMMON) if r < .45 else R.choice(EN_SHORT) if r < .85 else R.choice(EN_LOWER)


def phrase(lang='en', a=1, b=3):
    ws = [word(lang) for _ in range(R.randint(a, b))]
    return ''.join(_spaced(ws)) if lang == 'zh' else ' '.join(ws)


def _spaced(ws):
    """Chinese words without spaces, Latin ones sometimes set off by a space."""
    for i, w in enumerate(ws):
        yield (' ' if i and w.isascii() and R.random() < .3 else '') + w


MARKS = ['**%s**', '**%s**', '*%s*', '`%s`', '"%s"', '(%s)', '[[%s]]', '#%s', '[%s](https://example.org/%s)', '~~%s~~']


def mark(w):
    m = R.choice(MARKS)
    return m % ((w, R.choice(EN_LOWER)) if m.count('%s') == 2 else w)


def sentence(lang='en', lo=4, hi=14):
    n = R.randint(lo, hi)
    out = [function_word(lang) if R.random() < .4 else word(lang) for _ in range(n)]
    if R.random() < .18:
        i = R.randrange(n); out[i] = mark(out[i])
    if R.random() < .02: out.append(R.choice(EMOJI))
    if lang == 'zh':
        for i in range(3, n - 2):
            if R.random() < .15: out[i] += R.choice('，，，、；：')
        s = ''.join(_spaced(out))
        return s + (R.choice('。。。！？') if R.random() < .92 else '')
    for i in range(2, n - 2):
        if R.random() < .08: out[i] += R.choice([',', ',', ';', ' –', ':'])
    s = ' '.join(out)
    s = s[0].upper() + s[1:]
    if R.random() > .92: return s
    return s + (R.choice(['.', '.', '.', ' !', ' ?']) if lang == 'fr' else R.choice('...!?'))


def function_word(lang):
    if lang == 'zh': return R.choice(ZH_FUNC)
    if lang == 'fr':
        return R.choice(FR_FUNC) if R.random() < .8 else R.choice(FR_ELIDED).format(w=R.choice(FR_COMMON))
    return R.choice(EN_FUNC)


def text(lang='en', lo=1, hi=3):
    return ('' if lang == 'zh' else ' ').join(sentence(lang) for _ in range(R.randint(lo, hi)))


def _items(lang, n, short=.6):
    return [phrase(lang, 1, 5) if R.random() < short else sentence(lang, 3, 9) for _ in range(n)]


def passage(lang='en', size=1.0):
    """A Markdown block without blank lines: paragraph, list, tasks, table, fields or code."""
    r = R.random(); n = max(2, int(R.randint(2, 6) * size))
    if r < .55: return text(lang, 1, max(1, round(R.randint(1, 4) * size)))
    if r < .63: return '\n'.join(sentence(lang) for _ in range(max(1, n // 2)))
    head = (sentence(lang, 3, 7).rstrip('.。!！?？ ') + ('：' if lang == 'zh' else ' :' if lang == 'fr' else ':') + '\n') if R.random() < .3 else ''
    if R.random() < .12: head = '#' * R.randint(2, 3) + ' ' + title(lang) + '\n'
    if r < .75: return head + '\n'.join(R.choice('--*') + ' ' + s for s in _items(lang, n))
    if r < .81: return head + '\n'.join(f'{i + 1}. {s}' for i, s in enumerate(_items(lang, n)))
    if r < .87: return head + '\n'.join(f'- [{R.choice(" x")}] {s}' for s in _items(lang, n))
    if r < .93:
        c = R.randint(2, 3); cell = lambda: R.choice([phrase(lang, 1, 2), number()])
        rows = ['| ' + ' | '.join(phrase(lang, 1, 1) for _ in range(c)) + ' |', '|' + R.choice(['---', ' --- ']).join('|' * (c + 1))[0:0] + '|'.join([' --- '] * c) + '|' if R.random() < .6 else '|' + '|'.join(['---'] * c) + '|']
        return '\n'.join(rows + ['| ' + ' | '.join(cell() for _ in range(c)) + ' |' for _ in range(n)])
    if r < .98: return head + '\n'.join(f'{R.choice(["", "- ", "**"])}{phrase(lang, 1, 2)}{"：" if lang == "zh" else ": "}{R.choice([number(), phrase(lang, 1, 3)])}' for _ in range(n))
    return '```\n' + '\n'.join(f'{R.choice(EN_LOWER)} {R.choice(["--", "= ", "-", "/", "."])}{R.choice(EN_LOWER)}' for _ in range(max(1, n // 2))) + '\n```'


def title(lang='en', topic=None):
    t = topic or phrase(lang, 1, 3)
    if lang == 'zh':
        return t + (R.choice(['笔记', '计划', '记录', '清单', '总结', '心得', '指南']) if R.random() < .3 else '')
    if lang == 'fr' and R.random() < .4:
        t = R.choice(['notes de ', 'plan de ', 'journal de ', 'idées pour ', 'liste de ', 'recette du ', 'compte rendu ', "fiche d'"]) + t
    elif lang == 'en' and R.random() < .4:
        t += ' ' + R.choice(['notes', 'plan', 'log', 'ideas', 'list', 'summary', 'draft', 'overview', 'howto'])
    if R.random() < .06: t = number() + ' ' + t
    if R.random() < .04: t += ' (' + phrase(lang, 1, 1) + ')'
    return R.choice([t, t.title() if "'" not in t else t, t[0].upper() + t[1:], t[0].upper() + t[1:]])


FOLDERS = {'en': 'daily projects Recipes Journal Work Health Travel Archive people inbox Home'.split(),
           'fr': 'Journal Projets Recettes Voyages Maison Santé Cuisine Études Famille Travail Réunions'.split(),
           'zh': '日记 项目 菜谱 旅行 家庭 健康 工作 读书 学习 会议 笔记'.split()}


def clean(s):
    """A title as a file name: without characters that paths cannot hold."""
    return ''.join(c for c in s if c not in '/\\:*?"<>|#[]`{}\n').strip() or 'note'


def path_of(t, lang='en'):
    r = R.random(); s = clean(t)
    if r < .25: s = s.lower().replace(' ', '-')
    elif r < .32: s = s.replace(' ', '_')
    elif r < .4: s = s.lower()
    if R.random() < .05: s = f"20{R.randint(10, 39)}-{R.randint(1, 12):02}-{R.randint(1, 28):02}"
    folder = ''
    if R.random() < .65:
        folder = R.choice(FOLDERS[lang]) if R.random() < .6 else clean(word(lang))
        if R.random() < .2: folder += '/' + clean(R.choice([word(lang), str(R.randint(2018, 2030))]))
        folder += '/'
    return folder + s + ('.markdown' if R.random() < .01 else '.md')
