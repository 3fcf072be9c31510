//! Takes a text apart into words that can be compared.
//!
//! Invariant: pure, and the same for every script: what Unicode calls a word, in small letters; names of programs are
//! taken apart (`read_note`, `readNote`), and runs of scripts without spaces become pairs of neighbours.

use unicode_segmentation::UnicodeSegmentation;

/// Bytes of a text that are looked at; a description may be of any length.
const LONGEST: usize = 16 * 1024;

/// The words of a text, in order.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let mut out = Vec::new();
    let mut run = Vec::new();
    // Unicode's words hold `read_note` and `readNote` together, and split scripts without spaces character by character.
    for word in text.unicode_words() {
        if let Some(character) = spaceless(word) {
            run.push(character);
            continue;
        }
        pairs(&mut run, &mut out);
        for part in word.split(|c: char| !c.is_alphanumeric()) {
            push_humps(part, &mut out);
        }
    }
    pairs(&mut run, &mut out);
    out
}

/// The only character of a word of a script that has no spaces between words.
fn spaceless(word: &str) -> Option<char> {
    let mut characters = word.chars();
    let first = characters.next()?;
    let alone = characters.next().is_none();
    (alone && is_spaceless(first)).then_some(first)
}

fn is_spaceless(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'      // Thai, Lao
        | '\u{1000}'..='\u{109f}'    // Burmese
        | '\u{1780}'..='\u{17ff}'    // Khmer
        | '\u{3040}'..='\u{30ff}'    // Hiragana, Katakana
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'    // Han
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// A run of characters becomes its pairs; one alone stays.
fn pairs(run: &mut Vec<char>, out: &mut Vec<String>) {
    match run.as_slice() {
        [] => {}
        [one] => out.push(one.to_string()),
        several => out.extend(several.windows(2).map(|pair| pair.iter().collect())),
    }
    run.clear();
}

/// `readNote` is `read` and `note`, `HTTPServer` is `http` and `server`.
fn push_humps(part: &str, out: &mut Vec<String>) {
    let characters: Vec<char> = part.chars().collect();
    let mut begin = 0;
    for at in 1..=characters.len() {
        if at == characters.len() || is_hump(&characters, at) {
            let word: String = characters[begin..at].iter().flat_map(|c| c.to_lowercase()).collect();
            if characters[begin..at].iter().copied().all(is_spaceless) {
                pairs(&mut word.chars().collect(), out);
            } else {
                out.push(singular(word));
            }
            begin = at;
        }
    }
}

fn is_hump(characters: &[char], at: usize) -> bool {
    let (before, here) = (characters[at - 1], characters[at]);
    let next_is_small = characters.get(at + 1).is_some_and(|next| next.is_lowercase());
    (before.is_lowercase() && here.is_uppercase())
        || (before.is_uppercase() && here.is_uppercase() && next_is_small)
}

/// One `s` at the end is a plural in many languages; both forms are cut alike, so a wrong cut does no harm.
fn singular(word: String) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.chars().count() >= 3 && !stem.ends_with('s') => stem.to_owned(),
        Some(_) | None => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_are_taken_apart() {
        assert_eq!(
            words("notes__readNote HTTPServer list-files"),
            ["note", "read", "note", "http", "server", "list", "file"]
        );
        assert_eq!(words("Class pass is 2nd"), ["class", "pass", "is", "2nd"]);
    }

    #[test]
    fn other_scripts_have_words_too() {
        assert_eq!(words("红烧肉的做法"), ["红烧", "烧肉", "肉的", "的做", "做法"]);
        assert_eq!(words("搜索 note"), ["搜索", "note"]);
        assert_eq!(words("Où est l'été ?"), ["où", "est", "l", "été"]);
        assert_eq!(words("Заметки о Лионе"), ["заметки", "о", "лионе"]);
        assert_eq!(words("メモを読む"), ["メモ", "を読", "読む"]);
        assert!(words(" \n…!?").is_empty());
    }
}
