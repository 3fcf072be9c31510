//! Strings: their characters as JSON writes them, their lengths, formats and patterns.

use serde_json::{Map, Value};

use super::pattern;
use super::schema::{Compiler, Impossible};

/// Longer strings are made of blocks of this length: llama.cpp refuses long repetitions.
const BLOCK: u64 = 256;
/// A least length beyond this is left open.
const LONGEST_LEAST: u64 = 1000;
/// Characters of a text between tags that end none.
const PLAIN: &str = "[^<>\x5B\x5D\x00-\x1F\x7F]";
/// Larger patterns are left open.
const LARGEST_PATTERN: usize = 6000;

impl Compiler<'_> {
    /// Any string.
    pub(super) fn any_string(&mut self) -> String {
        self.bounded(0, None)
    }

    /// A string of this body, which has no quotes in it.
    fn in_quotes(&mut self, body: &str) -> String {
        let usual = format!("\"\\\"\" {body} \"\\\"\"");
        let single = format!("\"'\" {body} \"'\" | {usual}");
        self.rules.add(if self.rules.is_pythonic() { single } else { usual })
    }

    /// One character between single quotes.
    fn single_letter(&mut self) -> String {
        let escape = self.rules.add(
            "[\"'\\\\/bfnrt] | \"u\" ([0-9abcefABCEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2} | \
             [dD] [89abAB] [0-9a-fA-F]{2} \"\\\\u\" [dD] [c-fC-F] [0-9a-fA-F]{2})"
                .to_owned(),
        );
        self.rules.add(format!("[^'\\\\\\x00-\\x1F\\x7F] | \"\\\\\" {escape}"))
    }

    /// One character. Half of a pair of surrogates is none.
    pub(super) fn letter(&mut self) -> String {
        let escape = self.rules.add(
            "[\"\\\\/bfnrt] | \"u\" ([0-9abcefABCEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2} | \
             [dD] [89abAB] [0-9a-fA-F]{2} \"\\\\u\" [dD] [c-fC-F] [0-9a-fA-F]{2})"
                .to_owned(),
        );
        self.rules.add(format!("[^\\\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" {escape}"))
    }

    /// Strings of a schema.
    pub(super) fn string(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        let length = |key: &str| schema.get(key).and_then(Value::as_f64).map(|length| length.max(0.0) as u64);
        let (least, most) = (length("minLength").unwrap_or(0), length("maxLength"));
        if most.is_some_and(|most| most < least) {
            return Err(Impossible);
        }
        let bounded = least > 0 || most.is_some();
        if let Some(Value::String(pattern)) = schema.get("pattern") {
            match pattern::translate(pattern, least, most) {
                Some(held) if held.body.len() <= LARGEST_PATTERN => {
                    if bounded && !held.lengths {
                        self.leave_open("the length of a pattern");
                    }
                    if schema.contains_key("format") {
                        self.leave_open("format");
                    }
                    let letter = self.letter();
                    let body = held.body.replace(pattern::ANY, &letter);
                    return Ok(self.rules.add(format!("\"\\\"\" ({body}) \"\\\"\"")));
                }
                Some(_) | None => self.leave_open("pattern"),
            }
        } else if let Some(format) = schema.get("format").and_then(Value::as_str) {
            match known_format(format) {
                Some(body) => {
                    if bounded {
                        self.leave_open("the length of a format");
                    }
                    return Ok(if body.contains('\'') {
                        self.rules.add(format!("\"\\\"\" {body} \"\\\"\""))
                    } else {
                        self.in_quotes(&body)
                    });
                }
                None => self.leave_open("format"),
            }
        }
        if !bounded {
            return Ok(self.any_string());
        }
        Ok(self.bounded(least, most))
    }

    /// The rule for a text that stands as it is, without quotes. None when nothing holds it but what cannot be said.
    pub(super) fn text_rule(&mut self, schema: &Map<String, Value>) -> Option<String> {
        if schema.contains_key("minLength") || schema.contains_key("maxLength") {
            self.leave_open("the length of a text");
        }
        let (held, key) = match (schema.get("pattern"), schema.get("format")) {
            (Some(Value::String(pattern)), _) => {
                let held = pattern::translate(pattern, 0, None).map(|held| held.body);
                // What JSON escapes would stand there escaped.
                let plain = |body: &String| !body.contains('\\') && body.len() <= LARGEST_PATTERN;
                (held.filter(plain).map(|body| body.replace(pattern::ANY, PLAIN)), "pattern")
            }
            (_, Some(Value::String(format))) => (known_format(format), "format"),
            _ => return None,
        };
        if held.is_none() {
            self.leave_open(key);
        }
        Some(self.rules.add(held?))
    }

    /// Strings of so many characters.
    fn bounded(&mut self, least: u64, most: Option<u64>) -> String {
        let letter = self.letter();
        let body = self.letters(&letter, least, most);
        let usual = format!("\"\\\"\" {body} \"\\\"\"");
        if !self.rules.is_pythonic() {
            return self.rules.add(usual);
        }
        let letter = self.single_letter();
        let body = self.letters(&letter, least, most);
        self.rules.add(format!("\"'\" {body} \"'\" | {usual}"))
    }

    /// So many characters.
    fn letters(&mut self, letter: &str, least: u64, most: Option<u64>) -> String {
        if least > LONGEST_LEAST {
            self.leave_open("minLength");
        }
        let least = least.min(LONGEST_LEAST);
        match most {
            None if least == 0 => format!("{letter}*"),
            None => format!("{letter}{{{least},}}"),
            Some(most) if most <= BLOCK => format!("{letter}{{{least},{most}}}"),
            Some(most) => {
                // The last block may end early, so it stands last; a few characters less than allowed are lost.
                let block = self.rules.add(format!("{letter}{{{BLOCK}}}"));
                let rest = most - least.min(most);
                let part = self.rules.add(format!("{letter}{{0,{}}}", rest.min(BLOCK - 1)));
                let blocks = (rest / BLOCK).saturating_sub(1).min(BLOCK);
                let first = if least > 0 { format!("{letter}{{{least}}} ") } else { String::new() };
                format!("{first}{block}{{0,{blocks}}} {part}")
            }
        }
    }
}

/// What is within the quotes of a string in a format. Some drafts of JSON Schema check formats, so each text of these
/// is one; none of them has a character that JSON escapes.
fn known_format(name: &str) -> Option<String> {
    const DATE: &str = "([1-9] [0-9]{3} \"-\" ((\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01]) | \
                        (\"0\" [469] | \"11\") \"-\" (\"0\" [1-9] | [12] [0-9] | \"30\") | \
                        \"02-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8])) | \
                        [1-9] [0-9] (\"0\" [48] | [2468] [048] | [13579] [26]) \"-02-29\")";
    const TIME: &str = "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? \
                        (\"Z\" | [-+] ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9])";
    const UUID: &str = "[0-9a-fA-F]{8} \"-\" [0-9a-fA-F]{4} \"-\" [0-9a-fA-F]{4} \"-\" [0-9a-fA-F]{4} \"-\" \
                        [0-9a-fA-F]{12}";
    const OCTET: &str = "([0-9] | [1-9] [0-9] | \"1\" [0-9] [0-9] | \"2\" [0-4] [0-9] | \"25\" [0-5])";
    const LABEL: &str = "[a-zA-Z0-9]{1,15} (\"-\" [a-zA-Z0-9]{1,15}){0,2}";
    const PATH: &str = "[a-zA-Z0-9._~!$&'()*+,;=:@/\\-]";
    const CODE: &str = "\"%\" [0-9a-fA-F]{2}";
    let host = || format!("{LABEL} (\".\" {LABEL}){{0,4}}");
    let rest = || {
        let part = format!("({PATH} | {CODE})*");
        let after = format!("({PATH} | [?] | {CODE})*");
        (part, format!("(\"?\" {after})? (\"#\" {after})?"))
    };
    Some(match name {
        "time" => TIME.to_owned(),
        "uuid" => UUID.to_owned(),
        "date" => DATE.to_owned(),
        "date-time" => format!("{DATE} \"T\" {TIME}"),
        "ipv4" => format!("{OCTET} \".\" {OCTET} \".\" {OCTET} \".\" {OCTET}"),
        "hostname" => host(),
        "email" => {
            format!(
                "[a-zA-Z0-9_+]{{1,20}} ([.-] [a-zA-Z0-9_+]{{1,20}}){{0,2}} \"@\" {LABEL} (\".\" {LABEL}){{1,3}}"
            )
        }
        "uri" | "iri" | "uri-reference" | "iri-reference" | "url" => {
            let (path, end) = rest();
            let host = host();
            format!(
                "[a-z] [a-z0-9]{{1,10}} \":\" (\"//\" {host} (\":\" [0-9]{{1,4}})? (\"/\" {path})? | \
                 \"///\" [a-zA-Z0-9] {path} | [a-zA-Z0-9] {path}) {end}"
            )
        }
        _ => return None,
    })
}
