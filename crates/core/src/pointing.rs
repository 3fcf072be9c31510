//! Which earlier turns a question points back to: "And the other one?" means nothing without them.
//!
//! A question points back when it says nothing of its own: all its words are common ones, and one of them points. The
//! words are those of English, French and Chinese; a question in another language stands for itself.
//!
//! Invariant: pure, and the last turn always counts.

use crate::message::{Message, Part, UserMessage};

/// Earlier turns that are looked at.
pub(crate) const TURNS: usize = 6;

/// A question that points back has no more words, or Chinese characters, than this.
const LONGEST: usize = 16;

/// Words of which a question that points back has one.
const POINTING: &str = "other others another next following previous last first second third fourth fifth 1st 2nd 3rd one ones it \
    this that these those them whole full entire complete everything rest more else again continue number note \
    autre autres suivant suivante suivants suivantes précédent précédente dernier dernière premier première \
    deuxième seconde troisième quatrième cinquième ceci cela ça celle celui celles ceux cette cet suite reste \
    entier entière complet complète toute seul seule intégral intégrale intégralité numéro encore plus après \
    dedans elle elles même";

/// Words that a question may have beside them without saying anything of its own.
const FILLING: &str = "and or but ok okay so now then well please can could will would may i you we me my us let see show open \
    read give tell display look get want like go on at in to of about from what which who where when how why \
    does do did is are was were there any have has say says said inside found find notes file result results \
    hit hits page passage the a an for with all also after just too text content contents summarise summarize \
    summary back s anything something up be written two three out thanks great hmm as only thing et ou mais \
    alors ci maintenant bon bien donc puis l d qu j c n m t la le les un une des du de pour sur à au aux avec \
    dans en y il ils est sont ai avez ont tu vous nous je moi te plaît plait peux pouvez pourrais veux \
    voudrais voir vois montre montrer montrez ouvre ouvrir ouvrez lis lire lisez affiche afficher donne donner \
    dis dit disent dire que quoi qui quel quelle quels quelles contient contenu passe passer passons va \
    reviens revenir résume résumer résumé résultat résultats fichier texte chose choses rien aussi écrit parle \
    ce ces tout deux trois trouvé trouvée merci là mes ma mon si oui non";

/// What a French verb may end with that points: "ouvre-la".
const ENCLITICS: [&str; 3] = ["-la", "-le", "-les"];

/// Of these, a Chinese question that points back has one.
const HAN_POINTING: &str = "另 别的 下一 上一 前一 后一 第 其他 其它 其余 还有 它 这篇 那篇 这一 那一 这个 那个 这条 那条 全文 整篇 完整 再 后面 剩 接着 继续 最后 更多";

/// Characters that a Chinese question that points back is written with.
const HAN: &str = "那这另外一二三四五六七八九十两第下上前后篇条则个份笔记呢吗吧啊呀的了是有没还别其他它余打开给我你您看见读念请把再也又\
                   说些什么里面写讲内容全文整完总结概括显示展换接着继续剩来们和与在最回可以能想要让告诉结果文章页段哪怎样多更到找点好只把部出";

/// Whether a question means nothing without what was said before it.
fn points_back(question: &str) -> bool {
    let text = question.to_lowercase().replace('’', "'");
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|word| !word.is_empty());
    let mut points = HAN_POINTING.split_ascii_whitespace().any(|part| text.contains(part));
    let mut count = 0;
    for word in words {
        let Some(found) = pointing(word) else { return false };
        points |= found;
        count += if word.chars().any(is_han) { word.chars().count() } else { 1 };
    }
    // What is written with signs only a path or a formula has, says something of its own.
    let plain =
        |c: char| c.is_alphanumeric() || c.is_whitespace() || "'-.,;:!?…?!。，、；：？！«»\"“”()".contains(c);
    points && count <= LONGEST && text.chars().all(plain)
}

/// Whether a word points, or only fills; none when it says something of its own.
fn pointing(word: &str) -> Option<bool> {
    if is_of(POINTING, word) || is_place(word) {
        return Some(true);
    }
    if is_of(FILLING, word) {
        return Some(false);
    }
    if word.chars().all(|c| is_han(c) || c.is_ascii_digit()) {
        return word.chars().all(|c| HAN.contains(c) || c.is_ascii_digit()).then_some(false);
    }
    if let Some(verb) = ENCLITICS.iter().find_map(|end| word.strip_suffix(end)) {
        return is_of(FILLING, verb).then_some(true);
    }
    let parts = word.contains('-').then(|| word.split('-').filter(|part| !part.is_empty()));
    parts.and_then(|mut parts| parts.try_fold(false, |points, part| Some(points | pointing(part)?)))
}

fn is_of(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|known| known == word)
}

/// The place of a hit in a list: a small number.
fn is_place(word: &str) -> bool {
    word.parse::<u8>().is_ok_and(|number| (1..=20).contains(&number))
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Keeps the last turn, and the turns that its question points back to: from the last turn on that looked something up
/// and that pointed to nothing itself. `message` is what an entry holds.
pub fn keep_pointed_to<T>(messages: &mut Vec<T>, message: impl Fn(&T) -> &Message) {
    let begins = begins(&messages.iter().map(message).collect::<Vec<_>>());
    messages.drain(..begins);
}

fn begins(messages: &[&Message]) -> usize {
    let starts: Vec<(usize, &UserMessage)> = messages
        .iter()
        .enumerate()
        .filter_map(|(at, message)| match message {
            Message::User(user) => Some((at, user)),
            Message::Assistant(_) | Message::Tool(_) => None,
        })
        .collect();
    let Some(((present, question), earlier)) = starts.split_last() else { return 0 };
    if !points_back(&said(question)) {
        return *present;
    }
    let mut begins = *present;
    let mut end = *present;
    for (start, question) in earlier.iter().rev() {
        let looked_up = messages[*start..end].iter().any(|message| matches!(message, Message::Tool(_)));
        end = *start;
        if looked_up {
            begins = *start;
            if !points_back(&said(question)) {
                break;
            }
        }
    }
    begins
}

fn said(message: &UserMessage) -> String {
    let texts = message.parts.iter().map(|part| match part {
        Part::Text { text } => text.as_str(),
        // What is attached is something of its own.
        Part::Image(_) | Part::Resource(_) | Part::Thinking(_) | Part::ToolCall(_) => "attached",
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_that_says_nothing_of_its_own_points_back() {
        for question in [
            "And the other one?",
            "what about the second?",
            "Open it",
            "Open number 2",
            "the 3rd one, please",
            "Next",
            "Show me the whole note",
            "What else does it say?",
            "ok, and the next?",
            "Are there any others?",
            "Can I see the other note?",
            "Open the second one.",
            "read the first note",
            "Continue",
            "Is that the only one?",
            "And the one after that?",
            "Et l'autre ?",
            "Lis celle-ci.",
            "la note complète",
            "Est-ce la seule ?",
            "Et la deuxième ?",
            "Ouvre-la",
            "Ouvre cette note",
            "Qu'y a-t-il d'autre dedans ?",
            "Montre-moi la note en entier",
            "Tu peux ouvrir cette note ?",
            "la suivante, s'il te plaît",
            "Lis l’autre.",
            "那另一个呢？",
            "第二个呢？",
            "打开第2篇",
            "下一条呢",
            "还有吗？",
            "只有这一篇吗？",
            "把它完整显示出来",
            "这篇的全部内容",
            "给我看这篇笔记的全文",
            "它还写了什么？",
            "读第二篇笔记",
        ] {
            assert!(points_back(question), "{question}");
        }
    }

    #[test]
    fn a_question_that_names_something_stands_for_itself() {
        for question in [
            "",
            "Hello",
            "ok",
            "What notes do I have?",
            "And the yellow hive?",
            "What about Biscuit?",
            "next week's plan",
            "Open A/b.md",
            "Open it.md",
            "the second world war",
            "Who am I?",
            "Create a note",
            "What is 2 + 2?",
            "first aid",
            "Continue with the bread",
            "Et pour le sac ?",
            "Merci bien !",
            "Ouvre la note Matériel",
            "Liste mes notes",
            "la première guerre mondiale",
            "那米粒呢？",
            "我有哪些笔记？",
            "第二次世界大战",
            "谢谢你",
            "打开《下一站》",
            "你好",
            "and so and so and so and so and so and so and so and so and so the other one",
        ] {
            assert!(!points_back(question), "{question}");
        }
    }

    fn messages(turns: &[(&str, bool)]) -> Vec<Message> {
        let mut out = Vec::new();
        for (question, looked_up) in turns {
            out.push(Message::User(UserMessage::text(*question)));
            if *looked_up {
                let result = json!({"role": "tool", "call": "c", "tool": "search", "outcome": "succeeded", "content": []});
                out.push(serde_json::from_value(result).unwrap());
            }
        }
        out
    }

    fn begins_with(turns: &[(&str, bool)]) -> usize {
        let messages = messages(turns);
        let begins = begins(&messages.iter().collect::<Vec<_>>());
        messages[..begins].iter().filter(|message| matches!(message, Message::User(_))).count()
    }

    #[test]
    fn a_chain_begins_with_the_search_that_it_goes_on_from() {
        assert_eq!(begins_with(&[("hives", true), ("boats", true)]), 1);
        assert_eq!(begins_with(&[("hives", true), ("boats", true), ("And the other one?", false)]), 1);
        let chain =
            [("hives", true), ("boats", true), ("the second", true), ("thanks", false), ("the third", false)];
        assert_eq!(begins_with(&chain), 1, "thanks are no search");
        assert_eq!(begins_with(&[("hello", false), ("And the other one?", false)]), 1, "nothing to point to");
        assert_eq!(
            begins_with(&[("the next", true), ("the next", true)]),
            0,
            "the search stands further back"
        );
        assert_eq!(begins_with(&[("the next", false)]), 0);
        assert_eq!(begins(&[]), 0);
    }
}
