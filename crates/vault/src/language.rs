//! Which language a text is in, its stop words and its stemmer.
//! Invariant: pure. A guess only steers weights; no text is refused or hidden because of it.

use std::collections::HashMap;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

/// The languages with a stop-word list and a stemmer. Texts in others are matched by their folded words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// English.
    English,
    /// French.
    French,
    /// German.
    German,
    /// Spanish.
    Spanish,
    /// Italian.
    Italian,
    /// Portuguese.
    Portuguese,
    /// Dutch.
    Dutch,
}

impl Language {
    /// Every language known here.
    pub const ALL: [Self; 7] = [
        Self::English,
        Self::French,
        Self::German,
        Self::Spanish,
        Self::Italian,
        Self::Portuguese,
        Self::Dutch,
    ];

    /// The language whose stop words occur most among `words` (folded), if any does.
    ///
    /// Words that several languages share count for all of them, so a tie goes to the earlier language.
    pub fn guess<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut hits = [0usize; Self::ALL.len()];
        for mask in words.filter_map(|word| STOP_WORDS.get(word)) {
            for (hit, language) in hits.iter_mut().zip(Self::ALL) {
                *hit += usize::from(mask & language.bit() != 0);
            }
        }
        let most = hits.into_iter().max().filter(|&most| most > 0)?;
        Self::ALL.into_iter().zip(hits).find(|&(_, hit)| hit == most).map(|(language, _)| language)
    }

    /// Whether `word` (folded) carries grammar rather than meaning in this language.
    pub fn is_stop_word(self, word: &str) -> bool {
        STOP_WORDS.get(word).is_some_and(|mask| mask & self.bit() != 0)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }

    fn stop_list(self) -> &'static str {
        match self {
            Self::English => ENGLISH,
            Self::French => FRENCH,
            Self::German => GERMAN,
            Self::Spanish => SPANISH,
            Self::Italian => ITALIAN,
            Self::Portuguese => PORTUGUESE,
            Self::Dutch => DUTCH,
        }
    }

    /// The stem of `word`, given in lower case with its accents.
    pub fn stem(self, word: &str) -> String {
        let algorithm = match self {
            Self::English => Algorithm::English,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Spanish => Algorithm::Spanish,
            Self::Italian => Algorithm::Italian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Dutch => Algorithm::Dutch,
        };
        Stemmer::create(algorithm).stem(word).into_owned()
    }
}

/// Each stop word with one bit for every language that has it.
static STOP_WORDS: LazyLock<HashMap<&'static str, u8>> = LazyLock::new(|| {
    let mut words = HashMap::new();
    for language in Language::ALL {
        for word in language.stop_list().split_ascii_whitespace() {
            *words.entry(word).or_insert(0) |= language.bit();
        }
    }
    words
});

/// The plain form of an English verb whose past has a stem of its own.
pub fn plain_form(word: &str) -> Option<&'static str> {
    IRREGULAR.get(word).copied()
}

static IRREGULAR: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = IRREGULAR_VERBS.split(';').map(str::split_ascii_whitespace);
    lines
        .filter_map(|mut line| line.next().map(|plain| line.map(move |past| (past, plain))))
        .flatten()
        .collect()
});

/// Whether `word` (folded) asks something of the notes rather than naming what is in them.
///
/// People say "do my notes mention …"; such words are dropped as long as others remain.
pub fn is_asking_word(word: &str) -> bool {
    ASKING.split_ascii_whitespace().any(|asking| asking == word)
}

/// The longest phrase at the start of `text` that asks and names nothing, in Chinese and Japanese.
pub fn function_phrase(text: &str) -> Option<&'static str> {
    let starting = CJK_FUNCTION_PHRASES.split_ascii_whitespace().filter(|phrase| text.starts_with(phrase));
    starting.max_by_key(|phrase| phrase.len())
}

const CJK_FUNCTION_PHRASES: &str = "是什么意思 多长时间 多少时间 什么时间 什么时候 什么地方 多大年纪 多少岁 怎么办 有多少 有多高 有多大 有多远 有多长 几岁 几天 几月 几号 哪位 有没有 是不是 能不能 为什么 怎么样 多少钱 哪一年 哪一天 告诉我 \
    提到过 有哪些 是什么 什么 多少 怎么 怎样 如何 哪里 哪儿 哪些 哪个 哪天 几个 几次 几点 多久 多大 多长 多高 是谁 是否 \
    可以 需要 提到 关于 我们 你们 他们 我的 你的 他的 她的 笔记里 笔记中 里有 里面 笔记 记录 请问 一下 的 了 吗 呢 吧 啊 \
    么 是 谁 我 你 请 ですか ますか ました でした について どこ いつ なに です ます";

/// Whether `word` (folded) is so common in questions that it says little about what is looked for.
pub fn is_everyday_word(word: &str) -> bool {
    EVERYDAY.split_ascii_whitespace().any(|everyday| everyday == word)
}

/// Whether `word` (folded) is a number, a month or a day of the week: what "how many" and "when" ask for.
pub fn is_quantity(word: &str) -> bool {
    QUANTITIES.split_ascii_whitespace().any(|quantity| quantity == word)
}

const QUANTITIES: &str = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half twice once \
    january february march april june july august september october november december monday tuesday wednesday \
    thursday friday saturday sunday noon midnight deux trois quatre cinq sept huit neuf dix onze douze treize quatorze \
    quinze seize vingt trente quarante cinquante soixante cent mille janvier fevrier mars avril mai juin juillet aout \
    septembre octobre novembre decembre lundi mardi mercredi jeudi vendredi samedi dimanche midi minuit zwei drei vier \
    funf sechs sieben acht neun zehn elf zwolf zwanzig januar februar marz juni juli oktober dezember montag dienstag \
    mittwoch donnerstag freitag samstag sonntag dos tres cuatro cinco seis siete ocho nueve diez due tre quattro";

/// Characters of Chinese that stand everywhere and name nothing alone.
pub fn is_everyday_character(c: char) -> bool {
    "在有和就都也不个要会到说去看好着过对能这那上下中与及为从把被很还再又没只给用些".contains(c)
}

const EVERYDAY: &str = "like want need use used happen happened come came call called name named mean keep make made put \
    take took think know thing things time people day good new old long last first many still ever aime veux besoin \
    utilise passe appelle nom chose choses jour jours temps bon nouveau vieux premier dernier encore trouve gut neu alt \
    zeit tag heisst braucht nombre cosa cosas dia tiempo nome giorno tempo naam dag tijd";

const ASKING: &str = "note notes noted notate vault say says said tell anything something mention mentions \
    mentioned write writes written wrote find search look show know noter noté notee dis dit dites trouve trouver cherche \
    chercher mentionne parle montre sais notiz notizen steht finde zeige nota notas apunte apuntes dice busca";

const IRREGULAR_VERBS: &str = "begin began begun; bite bit bitten; blow blew blown; break broke broken; bring brought; \
    build built; burn burnt; buy bought; catch caught; choose chose chosen; cost costs; deal dealt; draw drew drawn; \
    dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; \
    fight fought; find found; fly flew flown; forget forgot forgotten; freeze froze frozen; grow grew grown; hang hung; \
    hear heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led; learn learnt; leave left; \
    lend lent; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung; rise rose risen; \
    run ran; see saw seen; sell sold; send sent; shake shook shaken; shoot shot; show shown; shrink shrank; shut shuts; \
    sing sang sung; sink sank sunk; sit sat; sleep slept; speak spoke spoken; spend spent; stand stood; steal stole \
    stolen; stick stuck; strike struck; swim swam swum; take took taken; teach taught; tear tore torn; think thought; \
    throw threw thrown; understand understood; wake woke woken; wear wore worn; win won; write wrote written; \
    foot feet; tooth teeth; mouse mice; goose geese; man men; woman women; child children; person people";

const ENGLISH: &str = "a about after all also am an and any are as at be been before being but by can could \
    did do does doing down during each for from further get give gave go got had has have having he her here \
    hers him his how i if in into is it its just let me more most much many my no nor not now of off on once \
    only or other our ours out over own please same she should so some such than that the their theirs them \
    then there these they this those through to too under until up us very was we were what when where which \
    while who whom whose why will with would you your yours s t re ve ll d m";

const FRENCH: &str = "a ai aie ainsi as au aux avait avais avec avez avoir avons c ce cela celle celui ces cet \
    cette chez combien comme comment d dans de depuis des dois doit donc dont du elle elles en encore es est \
    et etaient etait ete etes etre eu eux fait faut il ils j je l la laquelle le lequel les leur leurs lors lui \
    m ma mais me mes moi mon n ne ni nos notre nous on ont ou par pas pendant peu peut peux plus pour \
    pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont suis sur t ta \
    te tes toi ton tous tout toute toutes tu un une va vers voici voila vos votre vous y dit quelque quelqu \
    sous";

const GERMAN: &str = "aber alle als also am an auch auf aus bei beim bin bis bist da damit dann das dass dein \
    dem den der des die dies diese dieser doch du durch ein eine einem einen einer eines er es fur gibt hab \
    habe haben hat hatte hatten ich ihm ihn ihr ihre im in ins ist ja kann kein keine man mein meine meinem \
    meinen meiner mich mir mit nach nicht noch nun nur ob oder ohne sein seine sich sie sind so uber um und uns \
    unser unter vom von vor war waren warum was wann welche welcher welches wem wen wenn wer wie viel viele wir \
    wird wo wurde wurden zu zum zur";

const SPANISH: &str = "a al algo ante antes asi aun como con cual cuales cuando cuanta cuantas cuanto cuantos \
    de del desde donde dos el ella ellas ellos en entre era eran es esa ese eso esta estaba estan este esto \
    estos fue fueron ha hace han hasta hay la las le les lo los mas me mi mis mucho muy no nos o para pero \
    por porque que quien se ser si sin sobre son su sus tambien te tengo ti tiene tienen todo tu tus un una \
    unos y ya yo";

const ITALIAN: &str = "a ad agli ai al alla alle anche avere c che chi ci come con cosa cui d da dal dalla \
    degli dei del della delle dello di dove e era erano essere fa fu gli ha hai hanno ho i il in io l la le \
    lei lo loro lui ma me mi mia mie mio ne nei nel nella no noi non o per perche piu qual quale quali quando \
    quanta quante quanti quanto quella quello questa questo se si sono su sua sue sugli sui sul sulla suo ti \
    tra tu tutto un una uno vi";

const PORTUGUESE: &str = "a ao aos as com como da das de dela dele do dos e ela ele em entre era essa esse \
    esta este eu foi foram ha isso isto ja lhe mais mas me meu meus minha minhas muito na nao nas no nos o onde \
    os ou para pela pelo por porque qual quais quando quanta quantas quanto quantos que quem se sem ser seu \
    seus sua suas tem tenho um uma voce";

const DUTCH: &str = "aan al alles als bij dan dat de der deze die dit doen door dus een en er ge geen had heb \
    hebben heeft het hier hij hoe hoeveel hun ik in is ja je kan mijn met mij naar niet nog nu of om ons ook op \
    over te tegen toen tot uit van veel voor waar waarom wanneer waren was wat welke werd wie wij wordt zal ze \
    zich zij zijn zo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_tells_its_language() {
        let guess = |text: &str| Language::guess(text.split(' '));
        assert_eq!(guess("how many points did i get"), Some(Language::English));
        assert_eq!(guess("combien de sucre faut il"), Some(Language::French));
        assert_eq!(guess("wie viel hat das dach gekostet"), Some(Language::German));
        assert_eq!(guess("heat pump"), None);
    }

    #[test]
    fn the_longest_phrase_is_taken() {
        assert_eq!(function_phrase("什么时候放"), Some("什么时候"));
        assert_eq!(function_phrase("冰糖"), None);
    }
}
