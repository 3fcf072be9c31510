//! Sizes, speeds and times as people say them.
//!
//! Invariant: pure.

use std::time::Duration;

/// E.g. `2.5 GB`; a thousand bytes are a kilobyte.
pub fn bytes(count: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let size = count as f64;
    match units.iter().find(|(unit, _)| size >= *unit * 0.9995) {
        Some((unit, name)) if size / unit < 9.95 => format!("{:.1} {name}", size / unit),
        Some((unit, name)) => format!("{:.0} {name}", size / unit),
        None => format!("{count} bytes"),
    }
}

/// E.g. `45 s`, `3 min`, `1 h 20 min`.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    match seconds {
        0..100 => format!("{seconds} s"),
        100..3600 => format!("{} min", (seconds + 30) / 60),
        3600..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(2_497_280_256), "2.5 GB");
        assert_eq!(bytes(9_990_000), "10 MB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(time(Duration::from_millis(1600)), "2 s");
        assert_eq!(time(Duration::from_secs(150)), "3 min");
        assert_eq!(time(Duration::from_secs(4800)), "1 h 20 min");
    }
}
