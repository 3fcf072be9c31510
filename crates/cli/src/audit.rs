//! `lectern audit`: who decided what about which call, and what came of it.
//!
//! Invariant: nothing is started; arguments and names are untrusted text.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use lectern_app::Home;
use lectern_app::audit::{AuditFilter, AuditLog};
use lectern_app::view::{AuditEntry, AuditVerdict, Problem};
use lectern_core::{ToolOutcome, clock};

use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, one_line};

/// How often a follower looks.
const LOOKS_EVERY: Duration = Duration::from_millis(300);

/// Characters of arguments that a line shows.
const SHOWN: usize = 120;

/// Which entries to print.
#[derive(Debug, Args)]
pub struct Audit {
    /// Only about this server
    #[arg(long, value_name = "ID")]
    server: Option<String>,
    /// Only about this tool, by its public name
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only since then: 30s, 15m, 2h, 3d, 1w ago, or a point in time such as 2026-11-20T09:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<jiff::Timestamp>,
    /// The latest at most; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    /// Print each entry as one line of JSON
    #[arg(long)]
    json: bool,
    /// Go on with what comes; a call is printed when it is decided about, and again when it is over
    #[arg(long)]
    follow: bool,
}

/// Prints the log.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, asked: Audit) -> Result<Exit, Problem> {
    let log = AuditLog::open(&home()?)?;
    let mut filter = AuditFilter {
        server: asked.server.map(Into::into),
        tool: asked.tool.map(Into::into),
        since: asked.since,
        after: None,
        limit: (asked.limit > 0).then_some(asked.limit),
    };
    let first = log.read(&filter)?;
    let mut follower = Follower::default();
    if !follower.take(&first, asked.json) || !asked.follow {
        return Ok(Exit::Done);
    }
    filter.limit = None;
    let cancel = Interrupts::listen().next();
    loop {
        tokio::select! {
            () = cancel.cancelled() => return Ok(Exit::Done),
            () = tokio::time::sleep(LOOKS_EVERY) => {}
        }
        filter.after = Some(follower.from());
        if !follower.take(&log.read(&filter)?, asked.json) {
            return Ok(Exit::Done);
        }
    }
}

/// What was printed already.
#[derive(Default)]
struct Follower {
    last: i64,
    /// Calls that were running when they were printed.
    running: BTreeSet<i64>,
}

impl Follower {
    /// The number after which to look.
    fn from(&self) -> i64 {
        self.running.first().map_or(self.last, |first| first - 1)
    }

    /// Prints what is new among these. False when nobody reads any more.
    fn take(&mut self, entries: &[AuditEntry], json: bool) -> bool {
        for entry in entries {
            let runs = entry.decision == Some(AuditVerdict::Allowed) && entry.outcome.is_none();
            let ended = !runs && self.running.remove(&entry.id);
            if entry.id <= self.last && !ended {
                continue;
            }
            if runs {
                self.running.insert(entry.id);
            }
            self.last = self.last.max(entry.id);
            if !print(entry, json) {
                return false;
            }
        }
        true
    }
}

fn print(entry: &AuditEntry, json: bool) -> bool {
    if json {
        return data(&serde_json::to_string(entry).unwrap_or_default());
    }
    data(&line(entry))
}

/// E.g. `2026-11-20 22:30:00  cli  notes__read_note  allowed (read-only)  succeeded 1,204 B 12 ms  {"path":"A.md"}`.
fn line(entry: &AuditEntry) -> String {
    let at = entry.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
    let who = if entry.who.is_empty() { "-" } else { &entry.who };
    let about = match (&entry.tool, &entry.server) {
        (Some(tool), _) => tool.as_str(),
        (None, Some(server)) => server.as_str(),
        (None, None) => "-",
    };
    let rule = entry.rule.as_deref().unwrap_or_default();
    let what = match entry.decision {
        Some(decision) => format!("{} ({rule})", verdict(decision)),
        None => rule.to_owned(),
    };
    let end = match (entry.decision, entry.outcome) {
        (_, Some(outcome)) => {
            let (bytes, took) = (entry.result_bytes.unwrap_or(0), entry.duration_ms.unwrap_or(0));
            format!("  {} {bytes} B {took} ms", ended(outcome))
        }
        (Some(AuditVerdict::Allowed), None) => "  not finished".to_owned(),
        (_, None) => String::new(),
    };
    let arguments = entry.arguments.as_ref().map(|it| format!("  {}", one_line(&it.to_string(), SHOWN)));
    let line = format!("{at}  {who}  {about}  {what}{end}");
    format!("{}{}", one_line(&line, 400), arguments.unwrap_or_default())
}

fn verdict(verdict: AuditVerdict) -> &'static str {
    match verdict {
        AuditVerdict::Allowed => "allowed",
        AuditVerdict::Denied => "denied",
        AuditVerdict::Cancelled => "cancelled",
        AuditVerdict::Refused => "refused",
    }
}

fn ended(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Succeeded => "succeeded",
        ToolOutcome::Failed => "failed",
        ToolOutcome::Denied => "denied",
        ToolOutcome::Cancelled => "cancelled",
    }
}

/// A point in time, or how long ago.
fn since(text: &str) -> Result<jiff::Timestamp, String> {
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    let wrong = || "write 30s, 15m, 2h, 3d, 1w, or a point in time such as 2026-11-20T09:00:00Z".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: i64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(wrong()),
    };
    let count: i64 = text[..text.len() - 1].trim().parse().map_err(|_| wrong())?;
    let ago = count.checked_mul(seconds).filter(|ago| *ago >= 0).ok_or_else(wrong)?;
    Ok(clock::now().saturating_sub(SignedDuration::from_secs(ago)).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_nothing_else_is() {
        let now = clock::now();
        for (text, seconds) in
            [("30s", 30), ("15m", 900), ("2h", 7_200), ("3d", 259_200), ("1w", 604_800), ("0s", 0)]
        {
            let ago = now.duration_since(since(text).unwrap()).as_secs();
            assert!((seconds - 5..=seconds).contains(&ago), "{text}: {ago}");
        }
        assert_eq!(since("2026-11-20T09:00:00Z").unwrap().to_string(), "2026-11-20T09:00:00Z");
        for wrong in ["", "2", "h", "2y", "-2h", "two hours", "9999999999999999999w", "é"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
