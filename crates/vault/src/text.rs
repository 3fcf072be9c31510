//! Turns text into the tokens that the index stores and a query asks for.
//! Invariant: pure, total, and the same for notes and queries.

use unicode_normalization::UnicodeNormalization;

use crate::language::{Language, plain_form};

/// Longer words are data (keys, hashes, embedded images), which nobody searches by their middle.
const LONGEST_WORD: usize = 64;

/// A stretch of text that is matched as one: a word, or a run of a script that puts no spaces between words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Byte offset of the piece in the text.
    pub start: usize,
    /// The text of the piece, untouched.
    pub raw: &'a str,
    /// How it is matched.
    pub kind: PieceKind,
    /// Whether a hyphen alone stands between the piece before and this one.
    pub hyphenated: bool,
}

/// How a piece is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// Letters and digits of a script with spaces: matched as a word and by its stem.
    Word,
    /// Characters of a script without spaces: matched by pairs of neighbours.
    Run,
}

/// Splits text into pieces; everything that is no letter or digit separates them.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found: Vec<Piece<'_>> = Vec::new();
    let mut open: Option<(usize, PieceKind)> = None;
    for (at, c) in text.char_indices() {
        let kind = piece_kind(c, open);
        if open.is_some_and(|(_, current)| Some(current) == kind) {
            continue;
        }
        close(text, open.take(), at, &mut found);
        open = kind.map(|kind| (at, kind));
    }
    close(text, open, text.len(), &mut found);
    found
}

fn piece_kind(c: char, open: Option<(usize, PieceKind)>) -> Option<PieceKind> {
    if is_mark(c) {
        return open.map(|(_, kind)| kind);
    }
    if is_unspaced(c) {
        return Some(PieceKind::Run);
    }
    // Vowel signs of Indic scripts are no letters to Unicode, yet part of the word.
    let inside_word = matches!(open, Some((_, PieceKind::Word))) && ('\u{900}'..='\u{dff}').contains(&c);
    (c.is_alphanumeric() || inside_word).then_some(PieceKind::Word)
}

fn close<'a>(text: &'a str, open: Option<(usize, PieceKind)>, end: usize, found: &mut Vec<Piece<'a>>) {
    let Some((start, kind)) = open else { return };
    let hyphenated = found.last().is_some_and(|last| {
        let between = &text[last.start + last.raw.len()..start];
        last.kind == PieceKind::Word
            && kind == PieceKind::Word
            && matches!(between, "-" | "\u{2010}" | "\u{2011}")
    });
    found.push(Piece { start, raw: &text[start..end], kind, hyphenated });
}

/// Lower case, without accents, with compatibility forms (full width, ligatures) made plain.
pub fn fold(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    for c in word.nfkc() {
        for lower in c.to_lowercase() {
            match lower {
                'ß' => folded.push_str("ss"),
                'œ' => folded.push_str("oe"),
                'æ' => folded.push_str("ae"),
                'ø' => folded.push('o'),
                'ł' => folded.push('l'),
                'đ' => folded.push('d'),
                'ı' => folded.push('i'),
                c if is_unspaced(c) => folded.push(c),
                c => folded.extend(c.nfd().filter(|&c| !is_mark(c))),
            }
        }
    }
    folded
}

/// The token of a piece: folded, and rid of the spaces and signs that some compatibility forms hide.
pub fn word(raw: &str) -> String {
    let mut word = fold(raw);
    word.retain(|c| if c.is_ascii() { c.is_ascii_alphanumeric() } else { !c.is_whitespace() });
    word
}

/// Lower case and composed, accents kept: what a stemmer expects.
pub fn lower(word: &str) -> String {
    word.nfkc().flat_map(char::to_lowercase).nfc().collect()
}

/// The folded stem of a word, or `None` where it is the folded word itself or too short to have one.
pub fn stem(word: &str, language: Language) -> Option<String> {
    if language == Language::English
        && let Some(plain) = plain_form(&self::word(word))
    {
        return Some(plain.to_owned());
    }
    if word.chars().count() < 4 || word.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let stem = self::word(&language.stem(&lower(word)));
    (stem.len() > 1 && stem != self::word(word)).then_some(stem)
}

/// A token and the number of the piece it came from; a piece may give several tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What is compared.
    pub text: String,
    /// Counts words and characters from the beginning of the text: neighbours differ by one.
    pub position: usize,
    /// Byte offset in the text.
    pub start: usize,
}

/// Every token of a note's text: words and their stems, characters and their pairs, joined compounds.
pub fn tokens(text: &str, language: Option<Language>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut position = 0;
    let mut before = String::new();
    for piece in pieces(text) {
        match piece.kind {
            PieceKind::Word => {
                let word = if piece.raw.len() > LONGEST_WORD { String::new() } else { word(piece.raw) };
                let mut push = |text: String| tokens.push(Token { text, position, start: piece.start });
                if !word.is_empty() {
                    if let Some(stem) = language.and_then(|language| stem(piece.raw, language)) {
                        push(stem);
                    }
                    if piece.hyphenated && !before.is_empty() {
                        push(format!("{before}{word}"));
                    }
                    push(word.clone());
                }
                before = word;
                position += 1;
            }
            PieceKind::Run => {
                position = run_tokens(&piece, position, &mut tokens);
                before.clear();
            }
        }
    }
    tokens
}

fn run_tokens(piece: &Piece<'_>, mut position: usize, tokens: &mut Vec<Token>) -> usize {
    let chars: Vec<(usize, char)> = piece.raw.char_indices().collect();
    for (nth, &(at, c)) in chars.iter().enumerate() {
        let start = piece.start + at;
        tokens.push(Token { text: word(&c.to_string()), position, start });
        if let Some(&(_, next)) = chars.get(nth + 1) {
            tokens.push(Token { text: word(&format!("{c}{next}")), position, start });
        }
        position += 1;
    }
    position
}

/// The language of a text, guessed from its first few hundred words.
pub fn guess_language(text: &str) -> Option<Language> {
    let end = text.char_indices().nth(4_000).map_or(text.len(), |(at, _)| at);
    let words: Vec<String> =
        pieces(&text[..end]).iter().filter(|p| p.kind == PieceKind::Word).map(|p| word(p.raw)).collect();
    Language::guess(words.iter().map(String::as_str))
}

/// Scripts written without spaces, and Hangul, whose particles stick to the word.
pub fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{20000}'..='\u{3134f}')
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        pieces(text).into_iter().map(|piece| piece.raw).collect()
    }

    #[test]
    fn pieces_split_at_punctuation_and_scripts() {
        assert_eq!(words("l'eau, 9 kW; 2022年春节"), ["l", "eau", "9", "kW", "2022", "年春节"]);
        assert_eq!(words("cafe\u{301} noir"), ["cafe\u{301}", "noir"]);
        assert_eq!(words("  "), [""; 0]);
    }

    #[test]
    fn folding_forgives_accents_case_and_form() {
        assert_eq!(fold("Éa\u{308}Œuf"), "eaoeuf");
        assert_eq!(fold("Straße"), fold("STRASSE"));
        assert_eq!(fold("ＡＢＣ"), "abc");
        assert_eq!(fold("한국"), "한국");
    }

    #[test]
    fn runs_give_characters_and_pairs() {
        let texts: Vec<String> = tokens("红烧肉", None).into_iter().map(|token| token.text).collect();
        assert_eq!(texts, ["红", "红烧", "烧", "烧肉", "肉"]);
    }

    #[test]
    fn stems_join_forms_of_a_word() {
        assert_eq!(stem("baking", Language::English), stem("bakes", Language::English));
        assert_eq!(stem("HSK4x", Language::English), None);
    }

    #[test]
    fn irregular_verbs_have_their_plain_form() {
        assert_eq!(stem("paid", Language::English), Some("pay".into()));
        assert_eq!(stem("lost", Language::English), Some("lose".into()));
    }

    #[test]
    fn compounds_are_also_found_joined() {
        let texts: Vec<String> = tokens("week-end", None).into_iter().map(|token| token.text).collect();
        assert_eq!(texts, ["week", "weekend", "end"]);
    }
}
