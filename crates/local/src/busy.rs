//! What other programs do with the processor.
//!
//! Invariant: read-only and without waiting; a system that does not say counts as busy where a mistake is dear, and as
//! quiet where it is not.

use std::time::{Duration, Instant};

/// Share of the last ten seconds in which somebody waited for a processor, in percent, up to which it is quiet.
const PRESSURE: f64 = 5.0;
/// Runnable programs for each processor up to which it is quiet, where the system does not say how long they wait.
const RUNNABLE: f64 = 0.5;
/// A shorter time says nothing: the system counts in hundredths of a second.
const LEAST: Duration = Duration::from_millis(100);

/// Whether nobody waits for the processor. Threads that wait awake for each other take it away from others, and are
/// slowed down 2 to 15 times themselves where it is taken away from them. (Linux: Documentation/accounting/psi.rst.)
pub(crate) fn quiet() -> bool {
    let read = |path| std::fs::read_to_string(path).ok();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    is_quiet(read("/proc/pressure/cpu").as_deref(), read("/proc/loadavg").as_deref(), processors)
}

fn is_quiet(pressure: Option<&str>, load: Option<&str>, processors: usize) -> bool {
    let some = pressure.and_then(|text| text.lines().find(|line| line.starts_with("some ")));
    let waited =
        some.and_then(|line| line.split_once("avg10=")?.1.split_whitespace().next()?.parse::<f64>().ok());
    let running = load.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    match (waited, running) {
        (Some(waited), _) => waited <= PRESSURE,
        (None, Some(running)) => running <= RUNNABLE * processors as f64,
        (None, None) => false,
    }
}

/// What all programs, and this process, had of the processor at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    at: Instant,
    all: Option<f64>,
    own: Option<f64>,
}

impl Since {
    /// Now.
    pub(crate) fn now() -> Self {
        let read = |path| std::fs::read_to_string(path).ok();
        Self {
            at: Instant::now(),
            all: read("/proc/stat").and_then(|text| busy_ticks(&text)),
            own: read("/proc/self/stat").and_then(|text| own_ticks(&text)),
        }
    }

    /// How many processors others used since then, on average; none when too little time has passed to say.
    pub(crate) fn others(&self) -> Option<f64> {
        let passed = self.at.elapsed();
        let now = Self::now();
        let used = (now.all? - self.all?) - (now.own? - self.own?);
        (passed >= LEAST).then(|| (used / TICKS / passed.as_secs_f64()).max(0.0))
    }
}

/// The kernel counts for programs in hundredths of a second (`USER_HZ`).
const TICKS: f64 = 100.0;

/// Time of all processors that was not idle (proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal).
fn busy_ticks(stat: &str) -> Option<f64> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<f64> =
        line.split_whitespace().skip(1).take(8).filter_map(|text| text.parse().ok()).collect();
    (fields.len() == 8).then(|| fields.iter().sum::<f64>() - fields[3] - fields[4])
}

/// Time of this process (proc_pid_stat(5): fields 14 and 15; the name before them may have spaces).
fn own_ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system) = (fields.next()?.parse::<f64>().ok()?, fields.next()?.parse::<f64>().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_the_processor_makes_it_busy() {
        let pressure =
            |share: &str| format!("some avg10={share} avg60=0.00 avg300=0.00 total=1\nfull avg10=9.00\n");
        assert!(is_quiet(Some(&pressure("0.00")), Some("9.00 9.00 9.00 1/2 3"), 2));
        assert!(!is_quiet(Some(&pressure("31.50")), Some("0.00 0.00 0.00 1/2 3"), 2));
        assert!(is_quiet(None, Some("0.90 2.00 2.00 1/99 5"), 2));
        assert!(!is_quiet(None, Some("1.10 0.00 0.00 1/99 5"), 2));
        assert!(!is_quiet(None, None, 2) && !is_quiet(Some("odd"), None, 2));
    }

    #[test]
    fn times_are_read_as_the_kernel_writes_them() {
        assert_eq!(busy_ticks("cpu  10 1 5 1000 50 2 3 4 0 0\ncpu0 1 2"), Some(25.0));
        assert_eq!(busy_ticks("cpu  10 1"), None);
        assert_eq!(own_ticks("7 (a ) b) S 1 1 1 0 -1 4 1 1 1 1 30 12 0 0 20"), Some(42.0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_this_process_does_is_no_other_s() {
        let since = Since::now();
        assert_eq!(since.others(), None, "no time has passed");
        let began = Instant::now();
        while began.elapsed() < LEAST {
            std::hint::spin_loop();
        }
        let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        let others = since.others().unwrap();
        // The whole machine may be larger than what this process may use; here they are one.
        assert!((0.0..=processors.max(1024.0)).contains(&others), "{others}");
    }
}
