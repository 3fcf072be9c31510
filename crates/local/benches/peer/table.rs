//! What is printed: one line for each figure, with the aim and the ratio.

/// A figure of both sides, as medians.
pub struct Line {
    pub what: String,
    pub ours: f64,
    pub other: Option<f64>,
    pub unit: &'static str,
    /// More is better (tokens per second) or less is (seconds).
    pub more: bool,
    /// The ratio that is wanted; none for figures that are only told.
    pub aim: Option<f64>,
}

impl Line {
    /// How many times better ours is.
    fn ratio(&self) -> Option<f64> {
        let other = self.other?;
        Some(if self.more { self.ours / other } else { other / self.ours })
    }
}

pub fn print(lines: &[Line], head: (&str, &str)) {
    println!("\n{:<74}{:>12}{:>12}{:>9}{:>7}", "", head.0, head.1, "ratio", "aim");
    for line in lines {
        let figure = |value: f64| format!("{} {}", short(value), line.unit);
        let other = line.other.map_or_else(String::new, figure);
        let ratio = line.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let aim = line.aim.map_or_else(String::new, |aim| format!("{aim:.1}"));
        let verdict = match (line.ratio(), line.aim) {
            (Some(ratio), Some(aim)) if ratio >= aim => "  met",
            (Some(_), Some(_)) => "  NOT met",
            _ => "",
        };
        println!("{:<74}{:>12}{other:>12}{ratio:>9}{aim:>7}{verdict}", line.what, figure(line.ours));
    }
}

fn short(value: f64) -> String {
    match value {
        v if v.is_nan() => "-".to_owned(),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// The middle one; none when there is nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[count / 2]),
        count => Some((values[count / 2 - 1] + values[count / 2]) / 2.0),
    }
}
