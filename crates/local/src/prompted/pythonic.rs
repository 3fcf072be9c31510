//! The pythonic form: `[f(a=1, b='x'), g()]`. Only literals; nothing is evaluated.

use serde_json::{Map, Number, Value};

use super::TextCall;

/// Why a text is not a list of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoCall {
    /// It may become one when more text comes.
    Incomplete,
    /// It will never be one.
    Other,
}

type Parsed<T> = Result<T, NoCall>;

const DEEPEST: usize = 64;

/// Reads `[f(...), ...]` at the beginning of a text; gives the calls and the length.
pub(super) fn call_list(text: &str) -> Parsed<(Vec<TextCall>, usize)> {
    let mut reader = Reader { text, at: 0 };
    reader.expect('[')?;
    let mut calls = Vec::new();
    loop {
        reader.space();
        calls.push(reader.call()?);
        reader.space();
        match reader.next()? {
            ',' => {
                reader.space();
                if reader.take(']') {
                    break;
                }
            }
            ']' => break,
            _ => return Err(NoCall::Other),
        }
    }
    Ok((calls, reader.at))
}

/// Reads `f(...)` at the beginning of a text; gives the call and the length.
pub(super) fn single_call(text: &str) -> Parsed<(TextCall, usize)> {
    let mut reader = Reader { text, at: 0 };
    let call = reader.call()?;
    Ok((call, reader.at))
}

struct Reader<'text> {
    text: &'text str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Parsed<char> {
        self.rest().chars().next().ok_or(NoCall::Incomplete)
    }

    fn next(&mut self) -> Parsed<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Ok(letter)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Parsed<()> {
        if self.next()? == wanted { Ok(()) } else { Err(NoCall::Other) }
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn call(&mut self) -> Parsed<TextCall> {
        let name = self.name(true)?;
        self.expect('(')?;
        let mut arguments = Map::new();
        self.space();
        while !self.take(')') {
            let key = self.name(false)?;
            self.space();
            self.expect('=')?;
            self.space();
            let value = self.value(0)?;
            if arguments.insert(key, value).is_some() {
                return Err(NoCall::Other);
            }
            self.space();
            match self.peek()? {
                ',' => {
                    self.at += 1;
                    self.space();
                }
                ')' => {}
                _ => return Err(NoCall::Other),
            }
        }
        Ok(TextCall { name, arguments })
    }

    /// A tool's name may hold dots and dashes, an argument's may not begin a number.
    fn name(&mut self, of_tool: bool) -> Parsed<String> {
        let inside = |letter: char| {
            letter.is_alphanumeric() || letter == '_' || (of_tool && matches!(letter, '.' | '-' | '/'))
        };
        let end = self.rest().find(|letter| !inside(letter));
        let name = &self.rest()[..end.unwrap_or(self.rest().len())];
        if name.chars().next().is_some_and(|first| first.is_ascii_digit()) {
            return Err(NoCall::Other);
        }
        let out = name.to_owned();
        match (end, out.is_empty()) {
            (None, _) => Err(NoCall::Incomplete),
            (Some(_), true) => Err(NoCall::Other),
            (Some(_), false) => {
                self.at += out.len();
                Ok(out)
            }
        }
    }

    fn value(&mut self, depth: usize) -> Parsed<Value> {
        if depth > DEEPEST {
            return Err(NoCall::Other);
        }
        match self.peek()? {
            '\'' | '"' => self.string().map(Value::String),
            '[' => self.list('[', ']', depth).map(Value::Array),
            '(' => self.list('(', ')', depth).map(Value::Array),
            '{' => self.dict(depth).map(Value::Object),
            '-' | '+' | '.' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn list(&mut self, open: char, close: char, depth: usize) -> Parsed<Vec<Value>> {
        self.expect(open)?;
        let mut items = Vec::new();
        self.space();
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            self.separator(close)?;
        }
        Ok(items)
    }

    fn dict(&mut self, depth: usize) -> Parsed<Map<String, Value>> {
        self.expect('{')?;
        let mut fields = Map::new();
        self.space();
        while !self.take('}') {
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                Value::Number(key) => key.to_string(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(NoCall::Other);
                }
            };
            self.space();
            self.expect(':')?;
            self.space();
            let value = self.value(depth + 1)?;
            fields.insert(key, value);
            self.separator('}')?;
        }
        Ok(fields)
    }

    fn separator(&mut self, close: char) -> Parsed<()> {
        self.space();
        match self.peek()? {
            ',' => {
                self.at += 1;
                self.space();
                Ok(())
            }
            letter if letter == close => Ok(()),
            _ => Err(NoCall::Other),
        }
    }

    fn word(&mut self) -> Parsed<Value> {
        let end = self.rest().find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let end = end.ok_or(NoCall::Incomplete)?;
        let value = match &self.rest()[..end] {
            "True" | "true" => Value::Bool(true),
            "False" | "false" => Value::Bool(false),
            "None" | "null" => Value::Null,
            _ => return Err(NoCall::Other),
        };
        self.at += end;
        // `None(...)` and `True.x` are no literals.
        if matches!(self.peek()?, '(' | '.' | '[') { Err(NoCall::Other) } else { Ok(value) }
    }

    fn number(&mut self) -> Parsed<Value> {
        let inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '+' | '-' | '_');
        let end = self.rest().find(|letter| !inside(letter)).ok_or(NoCall::Incomplete)?;
        let text = self.rest()[..end].replace('_', "");
        let text = text.strip_prefix('+').unwrap_or(&text);
        let integer =
            text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
        let float = || text.parse::<f64>().ok().and_then(Number::from_f64);
        let number = integer.ok().or_else(float).ok_or(NoCall::Other)?;
        self.at += end;
        Ok(Value::Number(number))
    }

    fn string(&mut self) -> Parsed<String> {
        let quote = self.next()?;
        let long = self.rest().starts_with(&format!("{quote}{quote}"));
        if long {
            self.at += 2;
        }
        let close = String::from(quote).repeat(if long { 3 } else { 1 });
        let mut out = String::new();
        loop {
            if self.rest().starts_with(&close) {
                self.at += close.len();
                return Ok(out);
            }
            match self.next()? {
                '\\' => self.escape(&mut out)?,
                letter => out.push(letter),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Parsed<()> {
        match self.next()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'x' => out.push(self.code(2)?),
            'u' => out.push(self.code(4)?),
            'U' => out.push(self.code(8)?),
            '\n' => {}
            letter @ ('\\' | '\'' | '"' | '/') => out.push(letter),
            // Python keeps what it does not know.
            letter => out.extend(['\\', letter]),
        }
        Ok(())
    }

    fn code(&mut self, digits: usize) -> Parsed<char> {
        let first = self.hex(digits)?;
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            self.at += 2;
            let second = self.hex(4)?;
            let pair = 0x10000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00) % 0x400;
            return Ok(char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self, digits: usize) -> Parsed<u32> {
        (0..digits).try_fold(0u32, |all, _| {
            let digit = self.next()?.to_digit(16).ok_or(NoCall::Other)?;
            Ok(all.wrapping_mul(16) + digit)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn arguments(text: &str) -> Value {
        let (calls, len) = call_list(text).unwrap();
        assert_eq!((calls.len(), len), (1, text.len()));
        Value::Object(calls[0].arguments.clone())
    }

    #[test]
    fn reads_every_literal() {
        assert_eq!(
            arguments(r#"[f(a=1, b=-2.5e3, c='it\'s', d="a \"b\"\n\u00e9\x41", e=True, g=None, h=false)]"#),
            json!({"a": 1, "b": -2500.0, "c": "it's", "d": "a \"b\"\né\u{41}", "e": true, "g": null, "h": false})
        );
        assert_eq!(
            arguments("[f(a=[1, [2], ()], b={'k': {'x': [None]}, 2: ''}, c='''a'b''', d=1_000,)]"),
            json!({"a": [1, [2], []], "b": {"k": {"x": [null]}, "2": ""}, "c": "a'b", "d": 1000})
        );
    }

    #[test]
    fn reads_several_calls() {
        let (calls, len) = call_list("[a.b-c(x=1) , d( ) ] and more").unwrap();
        assert_eq!(len, "[a.b-c(x=1) , d( ) ]".len());
        assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["a.b-c", "d"]);
    }

    #[test]
    fn refuses_what_is_no_literal() {
        for text in [
            "[f(g())]",
            "[f(a=g(x=1))]",
            "[f(1)]",
            "[f(a=b)]",
            "[f(a=1 + 2)]",
            "[f(a=1, a=2)]",
            "[f(a='x' 'y')]",
            "[f(**{})]",
            "[f(a=nan)]",
            "[link](https://x)",
            "[1, 2]",
            "[]",
            "[f(a=None())]",
            "[f(a=f'{x}')]",
            "[f(a={1, 2})]",
        ] {
            assert_eq!(call_list(text), Err(NoCall::Other), "{text}");
        }
        let deep = format!("[f(a={}1{})]", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(call_list(&deep), Err(NoCall::Other));
    }

    proptest! {
        #[test]
        fn every_beginning_is_incomplete(
            text in "[a-z]{1,6}", number in any::<i32>(), flag in any::<bool>(),
        ) {
            let flag = if flag { "True" } else { "None" };
            let whole = format!("[find(text='{text}é\\'', n={number}, more=[{flag}, {{'k': \"v\"}}])]");
            for (end, _) in whole.char_indices().skip(1) {
                prop_assert_eq!(call_list(&whole[..end]), Err(NoCall::Incomplete), "{}", &whole[..end]);
            }
            prop_assert!(call_list(&whole).is_ok());
        }

        #[test]
        fn nothing_panics(text in "\\[?[a-c(){}\\[\\]'\"=,:\\\\ux0-9. é-]{0,40}") {
            let _ = call_list(&text);
            let _ = single_call(&text);
        }
    }
}
