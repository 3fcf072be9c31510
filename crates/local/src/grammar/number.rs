//! Numbers within bounds, digit by digit.
//!
//! Invariant: what is written is within the bounds and is read exactly (at most 15 digits before the point).

use serde_json::{Map, Value};

use super::schema::{Compiler, Impossible};

/// The largest whole number that is written.
const LARGEST: i128 = 999_999_999_999_999;
/// Multiples are listed up to this many.
const MOST_MULTIPLES: i128 = 300;

/// Bounds of a number; an open one is not reached itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    low: Option<(f64, bool)>,
    high: Option<(f64, bool)>,
}

impl Bounds {
    pub(super) fn of(schema: &Map<String, Value>) -> Self {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let tighter = |closed: Option<f64>, open: Option<f64>, sign: f64| match (closed, open) {
            (Some(closed), Some(open)) if closed * sign > open * sign => Some((closed, false)),
            (_, Some(open)) => Some((open, true)),
            (Some(closed), None) => Some((closed, false)),
            (None, None) => None,
        };
        // An older draft says with `true` that the bound itself is not reached.
        let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
        let mut low = tighter(number("minimum"), number("exclusiveMinimum"), 1.0);
        let mut high = tighter(number("maximum"), number("exclusiveMaximum"), -1.0);
        if flag("exclusiveMinimum") {
            low = low.map(|(bound, _)| (bound, true));
        }
        if flag("exclusiveMaximum") {
            high = high.map(|(bound, _)| (bound, true));
        }
        Self { low, high }
    }

    /// Whether a number lies within.
    pub(super) fn hold(self, number: f64) -> bool {
        self.low.is_none_or(|(low, open)| number > low || (number == low && !open))
            && self.high.is_none_or(|(high, open)| number < high || (number == high && !open))
    }

    fn whole(self) -> (i128, i128) {
        let low = self.low.map_or(-LARGEST, |(bound, open)| {
            let whole = bound.ceil();
            clamp(whole) + i128::from(open && whole == bound)
        });
        let high = self.high.map_or(LARGEST, |(bound, open)| {
            let whole = bound.floor();
            clamp(whole) - i128::from(open && whole == bound)
        });
        (low.clamp(-LARGEST, LARGEST), high.clamp(-LARGEST, LARGEST))
    }

    fn mirrored(self) -> Self {
        let turned = |bound: Option<(f64, bool)>| bound.map(|(bound, open)| (-bound, open));
        Self { low: turned(self.high), high: turned(self.low) }
    }
}

fn clamp(number: f64) -> i128 {
    number.clamp(-1e18, 1e18) as i128
}

impl Compiler<'_> {
    /// Whole numbers.
    pub(super) fn integer(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        let (low, high) = Bounds::of(schema).whole();
        if low > high {
            return Err(Impossible);
        }
        match schema.get("multipleOf").and_then(Value::as_f64) {
            None => {}
            Some(step) if step > 0.0 && (1.0 / step).fract() == 0.0 => {}
            Some(step) => {
                if let Some(rule) = self.multiples(low, high, step)? {
                    return Ok(rule);
                }
                self.leave_open("multipleOf");
            }
        }
        if (low, high) == (-LARGEST, LARGEST) {
            return Ok(self.any_integer());
        }
        let choices = self.whole_numbers(low, high);
        Ok(self.rules.add(choices.join(" | ")))
    }

    fn multiples(&mut self, low: i128, high: i128, step: f64) -> Result<Option<String>, Impossible> {
        let whole = clamp(step);
        if step.fract() != 0.0 || whole < 1 || (high - low) / whole > MOST_MULTIPLES {
            return Ok(None);
        }
        let first = low.div_euclid(whole) * whole;
        let all = (0..=MOST_MULTIPLES + 2).map(|place| first + place * whole);
        let entries: std::collections::BTreeMap<String, String> = all
            .filter(|number| (low..=high).contains(number))
            .map(|number| (number.to_string(), String::new()))
            .collect();
        let choices = super::gbnf::one_of(self.rules, &entries).ok_or(Impossible)?;
        Ok(Some(self.rules.add(choices)))
    }

    /// Numbers.
    pub(super) fn number(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        if schema.get("multipleOf").is_some_and(|step| step.as_f64() == Some(1.0)) {
            return self.integer(schema);
        }
        if schema.contains_key("multipleOf") {
            self.leave_open("multipleOf");
        }
        let bounds = Bounds::of(schema);
        if bounds.low.is_none() && bounds.high.is_none() {
            return Ok(self.any_number());
        }
        let (low, high) = bounds.whole();
        let mut choices = if low <= high { self.whole_numbers(low, high) } else { Vec::new() };
        choices.extend(self.fractions(bounds));
        let negative = self.fractions(bounds.mirrored());
        choices.extend(negative.into_iter().map(|choice| format!("\"-\" {choice}")));
        if choices.is_empty() { Err(Impossible) } else { Ok(self.rules.add(choices.join(" | "))) }
    }

    pub(super) fn any_integer(&mut self) -> String {
        self.rules.add("\"-\"? (\"0\" | [1-9] [0-9]{0,14})".to_owned())
    }

    pub(super) fn any_number(&mut self) -> String {
        let whole = self.any_integer();
        let digits = self.digits();
        self.rules.add(format!("{whole} (\".\" {digits})? ([eE] [-+]? [0-9]{{1,2}})?"))
    }

    fn digits(&mut self) -> String {
        self.rules.add("[0-9]{1,15}".to_owned())
    }

    /// Whole numbers from `low` to `high`.
    fn whole_numbers(&mut self, low: i128, high: i128) -> Vec<String> {
        let mut out = Vec::new();
        if low < 0 {
            let (least, most) = ((-high).max(1), -low);
            if least <= most {
                let choices = self.counted(least, most);
                out.extend(choices.into_iter().map(|choice| format!("\"-\" {choice}")));
            }
        }
        if high >= 0 {
            out.extend(self.counted(low.max(0), high));
        }
        out
    }

    /// Whole numbers that are not negative, by their length.
    fn counted(&mut self, low: i128, high: i128) -> Vec<String> {
        let (low_text, high_text) = (low.to_string(), high.to_string());
        if low_text.len() == high_text.len() {
            return vec![between(&low_text, &high_text)];
        }
        let mut out = vec![between(&low_text, &"9".repeat(low_text.len()))];
        let lengths = (low_text.len() + 1, high_text.len() - 1);
        if lengths.0 <= lengths.1 {
            out.push(format!("[1-9] [0-9]{{{},{}}}", lengths.0 - 1, lengths.1 - 1));
        }
        out.push(between(&format!("1{}", "0".repeat(high_text.len() - 1)), &high_text));
        out.into_iter().map(|body| if body.contains('|') { self.rules.add(body) } else { body }).collect()
    }

    /// Numbers with a point that are not negative.
    fn fractions(&mut self, bounds: Bounds) -> Vec<String> {
        let (low, low_open) = bounds.low.filter(|(low, _)| *low >= 0.0).unwrap_or((0.0, false));
        let (high, high_open) = bounds.high.unwrap_or((LARGEST as f64, false));
        if high <= low || low >= LARGEST as f64 {
            return Vec::new();
        }
        let high = high.min(LARGEST as f64);
        let (low_whole, high_whole) = (clamp(low.floor()), clamp(high.floor()));
        let (low_digits, high_digits) = (after_point(low), after_point(high));
        let mut out = Vec::new();
        if low_whole == high_whole {
            let width = low_digits.len().max(high_digits.len()).max(1);
            let from = format!("{low_digits:0<width$}");
            let to = format!("{high_digits:0<width$}");
            // The bounds themselves are left out where they are open, and where they are whole numbers.
            if let Some(digits) = inside(&from, &to, low_open, high_open) {
                let digits = self.rules.add(digits);
                out.push(format!("\"{low_whole}.\" {digits}"));
            }
            return out;
        }
        let digits = self.digits();
        let first_whole = if low_digits.is_empty() && !low_open { low_whole } else { low_whole + 1 };
        if first_whole < high_whole {
            let whole = self.counted(first_whole, high_whole - 1);
            let whole = self.rules.add(whole.join(" | "));
            out.push(format!("{whole} \".\" {digits}"));
        }
        if first_whole > low_whole {
            let above = self.above(&low_digits, low_open);
            out.push(format!("\"{low_whole}.\" {above}"));
        }
        if let Some(below) = self.below(&high_digits, high_open) {
            out.push(format!("\"{high_whole}.\" {below}"));
        }
        out
    }

    /// Digits after the point that make no less than these.
    fn above(&mut self, digits: &str, open: bool) -> String {
        let mut choices = Vec::new();
        for (at, digit) in digits.char_indices().filter(|(_, digit)| *digit != '9') {
            let next = char::from(digit as u8 + 1);
            choices.push(format!("\"{}\" [{next}-9] [0-9]{{0,6}}", &digits[..at]));
        }
        choices.push(format!("\"{digits}\" [0-9]{{0,6}}{}", if open { " [1-9]" } else { "" }));
        self.rules.add(choices.join(" | "))
    }

    /// Digits after the point that make no more than these.
    fn below(&mut self, digits: &str, open: bool) -> Option<String> {
        let mut choices = Vec::new();
        for (at, digit) in digits.char_indices().filter(|(_, digit)| *digit != '0') {
            let last = char::from(digit as u8 - 1);
            // What is cut off earlier is less.
            let end = if at > 0 { "?" } else { "" };
            choices.push(format!("\"{}\" ([0-{last}] [0-9]{{0,6}}){end}", &digits[..at]));
        }
        if !open {
            choices.push(if digits.is_empty() { "\"0\"".to_owned() } else { format!("\"{digits}\"") });
        }
        (!choices.is_empty()).then(|| self.rules.add(choices.join(" | ")))
    }
}

/// The digits after the point.
fn after_point(number: f64) -> String {
    let text = format!("{number}");
    text.split_once('.').map(|(_, digits)| digits.to_owned()).unwrap_or_default()
}

/// Digits from one text to another of the same length, both included.
fn between(low: &str, high: &str) -> String {
    let (Some(first), Some(last)) = (low.chars().next(), high.chars().next()) else {
        return "\"\"".to_owned();
    };
    let (low_rest, high_rest) = (&low[1..], &high[1..]);
    let count = low_rest.len();
    let any = match count {
        0 => String::new(),
        count => format!(" [0-9]{{{count}}}"),
    };
    let lowest = low_rest.chars().all(|digit| digit == '0');
    let highest = high_rest.chars().all(|digit| digit == '9');
    if first == last {
        return if count == 0 {
            format!("\"{first}\"")
        } else if lowest && highest {
            format!("\"{first}\"{any}")
        } else {
            format!("\"{first}\" ({})", between(low_rest, high_rest))
        };
    }
    let mut choices = Vec::new();
    let from = if lowest { first } else { char::from(first as u8 + 1) };
    let to = if highest { last } else { char::from(last as u8 - 1) };
    if !lowest {
        choices.push(format!("\"{first}\" ({})", between(low_rest, &"9".repeat(count))));
    }
    if from <= to {
        choices.push(format!("[{from}-{to}]{any}"));
    }
    if !highest {
        choices.push(format!("\"{last}\" ({})", between(&"0".repeat(count), high_rest)));
    }
    choices.join(" | ")
}

/// The same, without the bounds that are open. With one digit more there is room between neighbours.
fn inside(low: &str, high: &str, low_open: bool, high_open: bool) -> Option<String> {
    let of = |low: String, high: String| {
        let width = high.len();
        let low = low.parse::<i128>().ok()? + i128::from(low_open);
        let high = high.parse::<i128>().ok()? - i128::from(high_open);
        (low <= high).then(|| between(&format!("{low:0width$}"), &format!("{high:0width$}")))
    };
    let choices: Vec<String> =
        [of(low.to_owned(), high.to_owned()), of(format!("{low}0"), format!("{high}0"))]
            .into_iter()
            .flatten()
            .collect();
    (!choices.is_empty()).then(|| choices.join(" | "))
}
