//! What names of files say, and which of them may become files here.
//!
//! Invariant: pure. A name that comes out of [`safe_name`] stays in its folder on every system.

/// Bytes of a name at most; file systems allow 255, and `.part.json` comes behind it.
const LONGEST: usize = 200;
/// What llama.cpp writes behind the names of a split model's files, e.g. `-00001-of-00003.gguf`.
const SPLIT_TAIL: usize = "-00001-of-00003.gguf".len();
/// Names that are devices on Windows, whatever stands behind their dot.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The place of a file within a split model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitName<'a> {
    /// What all of its files begin with.
    pub prefix: &'a str,
    /// From 1 on.
    pub number: u32,
    /// How many there are.
    pub count: u32,
}

/// The place in a split model that a name tells, as `llama-gguf-split` names its files.
pub fn split_name(name: &str) -> Option<SplitName<'_>> {
    let cut = name.len().checked_sub(SPLIT_TAIL).filter(|cut| name.is_char_boundary(*cut))?;
    let (prefix, tail) = name.split_at(cut);
    let rest = tail.strip_prefix('-')?.strip_suffix(".gguf")?;
    let (number, count) = rest.split_once("-of-")?;
    let digits = |text: &str| {
        (text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let (number, count) = (digits(number)?, digits(count)?);
    (!prefix.is_empty() && (1..=count).contains(&number)).then_some(SplitName { prefix, number, count })
}

/// The name of one file of a split model.
pub fn split_file(prefix: &str, number: u32, count: u32) -> String {
    format!("{prefix}-{number:05}-of-{count:05}.gguf")
}

/// Whether a file holds the part of a model that sees or hears, as llama.cpp names it.
pub fn is_projector(name: &str) -> bool {
    last_segment(name).to_ascii_lowercase().contains("mmproj")
}

/// Whether a name is that of a GGUF file.
pub fn is_gguf(name: &str) -> bool {
    name.len() > 5 && name.as_bytes()[name.len() - 5..].eq_ignore_ascii_case(b".gguf")
}

/// The quantisation in a name, e.g. `Q4_K_M` of `Qwen3-4B-Q4_K_M.gguf`, in capitals.
pub fn quantisation_of(name: &str) -> Option<String> {
    let file = last_segment(name);
    // Some repositories have a folder for each quantisation; the file's own name goes first.
    let words = |text: &str| -> Option<String> {
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.rfind(|word| is_quantisation(word)).map(str::to_ascii_uppercase)
    };
    words(file).or_else(|| words(name))
}

fn is_quantisation(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    if matches!(word.as_str(), "F16" | "FP16" | "BF16" | "F32" | "MXFP4" | "MXFP4_MOE" | "NVFP4") {
        return true;
    }
    let Some(rest) = ["IQ", "TQ", "Q"].iter().find_map(|kind| word.strip_prefix(kind)) else { return false };
    let mut parts = rest.split('_');
    let bits = parts.next().is_some_and(|bits| bits.len() == 1 && bits.as_bytes()[0].is_ascii_digit());
    let known = ["0", "1", "K", "S", "M", "L", "XS", "XXS", "XL", "NL"];
    let mut tail = parts.peekable();
    bits && tail.peek().is_some()
        && tail.all(|part| known.contains(&part) || part.bytes().all(|b| b.is_ascii_digit()))
}

/// A name that a server gave, as the name of a file here.
///
/// Only the part behind the last slash or backslash counts. What some system does not allow becomes `_`, what is too
/// long is cut, and a missing `.gguf` is added.
pub fn safe_name(given: &str) -> String {
    let last = last_segment(given);
    let (stem, tail) = match split_name(last) {
        Some(split) => (split.prefix, &last[split.prefix.len()..]),
        None if is_gguf(last) => last.split_at(last.len() - ".gguf".len()),
        None => (last, ".gguf"),
    };
    let stem: String = stem.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let stem = stem.trim_matches([' ', '.']);
    let mut stem = cut(stem, LONGEST - tail.len()).trim_end_matches([' ', '.']).to_owned();
    let device = stem.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let numbered = |kind: &str| {
        device.strip_prefix(kind).is_some_and(|number| number.chars().count() == 1 && number != "0")
    };
    if stem.is_empty() || DEVICES.contains(&device.as_str()) || numbered("com") || numbered("lpt") {
        stem.insert(0, '_');
    }
    // A name that begins with a dash is an option of many programs.
    if stem.starts_with('-') {
        stem.replace_range(..1, "_");
    }
    stem + tail
}

fn is_allowed(c: char) -> bool {
    let turns =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    !c.is_control()
        && !turns
        && !matches!(c, '<' | '>' | ':' | '"' | '/' | '\\' | '|' | '?' | '*' | '\u{fffd}')
}

fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn last_segment(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_servers_stay_in_their_folder() {
        for (given, name) in [
            ("model.gguf", "model.gguf"),
            ("../../etc/passwd", "passwd.gguf"),
            ("..", "_.gguf"),
            ("C:\\Windows\\con.gguf", "_con.gguf"),
            ("com1.tar.gguf", "_com1.tar.gguf"),
            ("a:b|c?.gguf", "a_b_c_.gguf"),
            ("-rf.gguf", "_rf.gguf"),
            (".hidden.gguf", "hidden.gguf"),
            ("模型-Q4_K_M.gguf", "模型-Q4_K_M.gguf"),
            ("tab\u{7}\u{202e}x.gguf", "tab__x.gguf"),
            ("Model.GGUF", "Model.GGUF"),
        ] {
            assert_eq!(safe_name(given), name, "{given:?}");
        }
    }

    #[test]
    fn a_long_name_is_cut_before_its_split_tail() {
        let name = safe_name(&format!("{}-00002-of-00009.gguf", "é".repeat(300)));
        assert!(name.len() <= LONGEST, "{}", name.len());
        assert_eq!(split_name(&name).map(|split| (split.number, split.count)), Some((2, 9)));
    }

    #[test]
    fn split_files_are_told_from_others() {
        let split = split_name("a-b-00002-of-00003.gguf");
        assert_eq!(split, Some(SplitName { prefix: "a-b", number: 2, count: 3 }));
        for name in ["a.gguf", "a-00000-of-00003.gguf", "a-00004-of-00003.gguf", "a-0001-of-00003.gguf", "é"]
        {
            assert_eq!(split_name(name), None, "{name}");
        }
    }

    #[test]
    fn quantisations_are_read_from_names() {
        for (name, quantisation) in [
            ("Qwen3-4B-Q4_K_M.gguf", Some("Q4_K_M")),
            ("qwen2.5-0.5b-instruct-q8_0.gguf", Some("Q8_0")),
            ("x-IQ4_XS.gguf", Some("IQ4_XS")),
            ("x.i1-IQ3_XXS.gguf", Some("IQ3_XXS")),
            ("Model-UD-Q4_K_XL.gguf", Some("Q4_K_XL")),
            ("gpt-oss-20b-mxfp4.gguf", Some("MXFP4")),
            ("Q6_K/model-00001-of-00002.gguf", Some("Q6_K")),
            ("model-BF16.gguf", Some("BF16")),
            ("ggml-model-Q4_0_4_4.gguf", Some("Q4_0_4_4")),
            ("Q4.gguf", None),
            ("Qwen.gguf", None),
        ] {
            assert_eq!(quantisation_of(name).as_deref(), quantisation, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_that_every_system_takes(given in "\\PC{0,300}") {
            let name = safe_name(&given);
            prop_assert!(name.len() <= LONGEST && is_gguf(&name));
            prop_assert!(name.chars().all(is_allowed));
            prop_assert!(!name.starts_with(['.', '-', ' ']));
            prop_assert_eq!(safe_name(&name), name);
        }
    }
}
