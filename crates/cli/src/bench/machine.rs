//! What the benchmark ran on, and when.

use std::{fs, time::SystemTime};

use serde::Serialize;

/// A machine, as far as it matters for speed.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The CPU's name.
    pub processor: String,
    /// Logical cores.
    pub cores: usize,
    /// The widest vector instructions.
    pub vectors: &'static str,
    /// Gigabytes of memory.
    pub memory_gb: f64,
    /// The operating system's kernel.
    pub system: String,
    /// Measured bandwidth of reading memory on all threads, in gigabytes per second.
    pub bandwidth_gb_s: f64,
}

impl Machine {
    /// Looks at this machine and measures its bandwidth on `threads` threads.
    pub fn probe(threads: usize) -> Machine {
        let field = |path: &str, name: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_string()
        };
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            vectors: vectors(),
            memory_gb: kilobytes(&field("/proc/meminfo", "MemTotal")) / 1e6,
            system: format!("{} {}", std::env::consts::OS, release.trim()),
            bandwidth_gb_s: tandem_limit::bandwidth(threads),
        }
    }
}

/// Returns the bytes of memory that could be used now, if known.
pub fn available_memory() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some((kilobytes(line.trim()) * 1024.0) as usize)
}

fn kilobytes(text: &str) -> f64 {
    text.trim_end_matches("kB").trim().parse().unwrap_or(0.0)
}

fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") {
            return "AVX2";
        }
    }
    "baseline"
}

/// Returns today's date in UTC, as yyyy-mm-dd.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date((seconds / 86_400) as i64)
}

/// Writes a day since 1970-01-01 as a date of the Gregorian calendar.
fn date(day: i64) -> String {
    // Years that begin in March put the leap day last; eras of 400 years have 146,097 days.
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + late)
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_become_dates() {
        let days = [(0, "1970-01-01"), (11_016, "2000-02-29"), (19_782, "2024-02-29"), (20_453, "2025-12-31")];
        for (day, expected) in days {
            assert_eq!(super::date(day), expected);
        }
    }
}
