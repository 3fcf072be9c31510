//! What this machine has: processor, memory, instruction sets.
//!
//! Invariant: read-only; what can't be found out is left out, never guessed.

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// The machine, as far as the system tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Name of the processor; empty when the system does not say.
    pub processor: String,
    /// Cores.
    pub physical_cores: Option<u32>,
    /// Threads that run at once, within the limits of this process.
    pub logical_cores: u32,
    /// Instruction sets that matter for models.
    pub instruction_sets: Vec<&'static str>,
    /// Its memory, in bytes.
    pub memory: Memory,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What this process may use at most: the machine's, or less within a container.
    pub total: u64,
    /// Of it, what can be used now without anybody making room.
    pub available: u64,
    /// The limit of a container, when it is below what the machine has.
    pub limit: Option<u64>,
}

impl Machine {
    /// Reads it.
    pub fn read() -> Self {
        let what = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
        let system = System::new_with_specifics(what).ok();
        let first = system.as_ref().and_then(|system| system.cpus().first());
        let processor = first.map(|cpu| cpu.brand().trim().to_owned());
        let count = |cores: usize| u32::try_from(cores).unwrap_or(u32::MAX);
        Self {
            processor: processor.unwrap_or_default(),
            physical_cores: System::physical_core_count().ok().map(count),
            logical_cores: std::thread::available_parallelism().map_or(1, |cores| count(cores.get())),
            instruction_sets: instruction_sets(),
            memory: Memory::read(),
        }
    }
}

impl Memory {
    /// Reads it; what is available changes all the time.
    pub fn read() -> Self {
        let Ok(mut system) = System::new() else { return Self { total: 0, available: 0, limit: None } };
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let (total, available) = (system.total_memory(), system.available_memory());
        match system.cgroup_limits().filter(|limits| limits.total_memory < total) {
            Some(limits) => Self {
                total: limits.total_memory,
                available: limits.free_memory.min(available),
                limit: Some(limits.total_memory),
            },
            None => Self { total, available, limit: None },
        }
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn instruction_sets() -> Vec<&'static str> {
    macro_rules! present {
        ($($name:tt),*) => {
            [$(($name, std::arch::is_x86_feature_detected!($name))),*]
        };
    }
    let all = present!(
        "sse4.2",
        "avx",
        "f16c",
        "fma",
        "avx2",
        "avxvnni",
        "avx512f",
        "avx512bw",
        "avx512vbmi",
        "avx512vnni",
        "avx512bf16"
    );
    let standard = all.into_iter().filter(|(_, present)| *present).map(|(name, _)| name);
    // The standard library does not know this one yet; Linux says it.
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let amx = flags.split_whitespace().any(|flag| flag == "amx_int8").then_some("amx-int8");
    standard.chain(amx).collect()
}

#[cfg(target_arch = "aarch64")]
fn instruction_sets() -> Vec<&'static str> {
    macro_rules! present {
        ($($name:tt),*) => {
            [$(($name, std::arch::is_aarch64_feature_detected!($name))),*]
        };
    }
    let all = present!("neon", "dotprod", "fp16", "i8mm", "bf16", "sve", "sve2");
    all.into_iter().filter(|(_, present)| *present).map(|(name, _)| name).collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
fn instruction_sets() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_processor_and_memory() {
        let machine = Machine::read();
        assert!(machine.logical_cores >= 1);
        assert!(machine.memory.total > 64 << 20);
        assert!(machine.memory.available <= machine.memory.total, "{:?}", machine.memory);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_kernel_says_is_what_is_read() {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = text.lines().find(|line| line.starts_with("MemTotal:")).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let memory = Memory::read();
        assert_eq!(memory.limit.map_or(memory.total, |_| kilobytes * 1024), kilobytes * 1024);
    }
}
