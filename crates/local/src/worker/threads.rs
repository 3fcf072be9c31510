//! How many threads compute: one for each fast core that this process may use.
//!
//! A second thread on the same core adds nothing, and a slow core makes the fast ones wait for it at the end of each
//! operation. Invariant: never more than this process may use; what the user set is used as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

use crate::busy::Since;
use crate::speed::SpeedOptions;

/// Threads of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threads {
    /// Those that write.
    pub(super) threads: u32,
    /// Those that read prompts.
    pub(super) batch_threads: u32,
}

/// A model smaller than this is faster on one thread: waking others costs more than they do.
const SMALL_MODEL: u64 = 64 << 20;
/// From so many fast cores on one stays free for the window.
const MANY: usize = 5;
/// A core with less than this share of the fastest one's capacity is a slow one.
const FAST_SHARE: f64 = 0.7;

impl Threads {
    /// As many as are set, or else as this machine is good for beside what others do with it.
    pub(super) fn chosen(options: &SpeedOptions, model_bytes: u64) -> Self {
        let others = STARTED.get().and_then(Since::others);
        let threads = options.threads.unwrap_or_else(|| beside(usual(model_bytes), others));
        Self { threads, batch_threads: options.batch_threads.unwrap_or(threads) }
    }
}

/// When this process started.
static STARTED: OnceLock<Since> = OnceLock::new();

/// Notes what others do from now on.
pub(super) fn look_at_others() {
    STARTED.get_or_init(Since::now);
}

/// So many threads beside others that use so many processors. At least half of them: others may soon be done, and the
/// system divides fairly.
fn beside(threads: u32, others: Option<f64>) -> u32 {
    // Half a processor is what a desktop does anyway.
    let taken = others.map_or(0, |used| (used + 0.5 - f64::EPSILON) as u32);
    threads.saturating_sub(taken).max(threads.div_ceil(2))
}

fn usual(model_bytes: u64) -> u32 {
    if model_bytes < SMALL_MODEL {
        return 1;
    }
    // Affinity and the quota of a container are in this.
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = fast_cores(Path::new("/sys/devices"), &allowed_cpus()).unwrap_or(allowed).min(allowed);
    let used = if cores >= MANY { cores - 1 } else { cores };
    u32::try_from(used.max(1)).unwrap_or(1)
}

/// Fast cores among these processors, by what the system says of them (Linux: Documentation/admin-guide/cputopology.rst
/// and the folder of the performance counters of hybrid processors). None when it says nothing.
fn fast_cores(devices: &Path, allowed: &BTreeSet<usize>) -> Option<usize> {
    let read = |path: String| std::fs::read_to_string(devices.join(path)).ok();
    let mut cores: BTreeMap<String, f64> = BTreeMap::new();
    let performance = read("cpu_core/cpus".to_owned()).map(|list| cpus_of(&list));
    for cpu in allowed {
        let folder = format!("system/cpu/cpu{cpu}");
        let core = read(format!("{folder}/topology/core_cpus_list"))
            .or_else(|| read(format!("{folder}/topology/thread_siblings_list")))?;
        let capacity = match (&performance, read(format!("{folder}/cpu_capacity"))) {
            (Some(performance), _) => f64::from(u8::from(performance.contains(cpu))),
            (None, Some(capacity)) => capacity.trim().parse().unwrap_or(1.0),
            (None, None) => 1.0,
        };
        cores.insert(core.trim().to_owned(), capacity);
    }
    let fastest = cores.values().copied().fold(0.0, f64::max);
    let fast = cores.values().filter(|capacity| **capacity >= fastest * FAST_SHARE).count();
    (fast > 0).then_some(fast)
}

/// The processors that this process may run on.
fn allowed_cpus() -> BTreeSet<usize> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(cpus_of).unwrap_or_default()
}

/// `0-3,8` are five processors.
fn cpus_of(list: &str) -> BTreeSet<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/sys/devices` in which each processor has these neighbours on its core, and a capacity if one is known.
    fn devices(cores: &[(&str, Option<u32>)], performance: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, (neighbours, capacity)) in cores.iter().enumerate() {
            let folder = root.path().join(format!("system/cpu/cpu{cpu}"));
            std::fs::create_dir_all(folder.join("topology")).unwrap();
            std::fs::write(folder.join("topology/core_cpus_list"), format!("{neighbours}\n")).unwrap();
            if let Some(capacity) = capacity {
                std::fs::write(folder.join("cpu_capacity"), format!("{capacity}\n")).unwrap();
            }
        }
        if let Some(list) = performance {
            std::fs::create_dir_all(root.path().join("cpu_core")).unwrap();
            std::fs::write(root.path().join("cpu_core/cpus"), format!("{list}\n")).unwrap();
        }
        root
    }

    fn fast(root: &tempfile::TempDir, allowed: &str) -> Option<usize> {
        fast_cores(root.path(), &cpus_of(allowed))
    }

    #[test]
    fn two_threads_on_a_core_are_one_core() {
        let root = devices(&[("0,2", None), ("1,3", None), ("0,2", None), ("1,3", None)], None);
        assert_eq!(fast(&root, "0-3"), Some(2));
        assert_eq!(fast(&root, "0,2"), Some(1), "pinned to one core");
    }

    #[test]
    fn slow_cores_are_left_out() {
        let intel =
            devices(&[("0-1", None), ("0-1", None), ("2", None), ("3", None), ("4", None)], Some("0-1"));
        assert_eq!(fast(&intel, "0-4"), Some(1));
        assert_eq!(fast(&intel, "2-4"), Some(3), "slow ones are all there is");
        let arm = devices(
            &[("0", Some(400)), ("1", Some(400)), ("2", Some(1024)), ("3", Some(900)), ("4", Some(1024))],
            None,
        );
        assert_eq!(fast(&arm, "0-4"), Some(3));
    }

    #[test]
    fn a_system_that_says_nothing_is_asked_no_further() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(fast(&root, "0-3"), None);
    }

    #[test]
    fn others_get_their_part_and_never_more_than_half() {
        let chosen =
            [(4, None), (4, Some(0.3)), (4, Some(0.9)), (4, Some(1.9)), (4, Some(8.0)), (1, Some(2.0))];
        assert_eq!(chosen.map(|(threads, others)| beside(threads, others)), [4, 4, 3, 2, 2, 1]);
    }

    #[test]
    fn what_is_set_is_used_and_small_models_use_one() {
        let set = SpeedOptions { threads: Some(3), ..SpeedOptions::default() };
        assert_eq!(Threads::chosen(&set, 1), Threads { threads: 3, batch_threads: 3 });
        assert_eq!(Threads::chosen(&SpeedOptions::default(), 1), Threads { threads: 1, batch_threads: 1 });
        assert_eq!(cpus_of("0-2, 5,7-7"), BTreeSet::from([0, 1, 2, 5, 7]));
    }
}
