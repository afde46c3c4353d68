//! Profile files: lines of `key = value`.
//!
//! ```text
//! # My card.
//! name = "My card"
//! memory = 8 GiB
//! memory_bandwidth = 256 GB/s
//! bus_bandwidth = 12.5 GB/s
//! launch_latency = 5 us          # optional from here on
//! copy_engines = 2
//! fp64 = false
//! ```
//!
//! The keys are fields of [`Profile`] and its [`Info`](crate::Info); `memory` and the two bandwidths must be there. Numbers may have a unit: `B`, `KB`,
//! `MB`, `GB`, `TB` are powers of 1000, `KiB` to `TiB` of 1024, `/s` may follow; `ns`, `us`, `ms`, `s` for times.

use tandem_column::{Error, Result};

use super::profile::Profile;
use crate::DeviceKind;

const KEYS: &str = "name, kind, memory, memory_bandwidth, bus_bandwidth, launch_latency, copy_engines, units, \
                    group_items, local_memory, fp64, int64_atomics, shared_memory";

impl Profile {
    /// Reads the text of a profile file; `file` is its name in messages.
    ///
    /// # Errors
    /// `Input` with file, line and remedy.
    pub fn parse(file: &str, text: &str) -> Result<Profile> {
        let mut profile = Profile::plain();
        let mut seen: Vec<&str> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |message: String| Error::input(format!("device profile {file}, line {number}: {message}"));
            let content = strip_comment(line).trim();
            if content.is_empty() {
                continue;
            }
            let Some((key, value)) = content.split_once('=') else {
                return Err(wrong(format!("write key = value, not {content}")));
            };
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(wrong(format!("remove this line, the key was set before: {key}")));
            }
            seen.push(key);
            profile.set(key, value).map_err(|message| wrong(format!("{message}: {content}")))?;
        }
        for key in ["memory", "memory_bandwidth", "bus_bandwidth"] {
            if !seen.contains(&key) {
                let line = text.lines().count() + 1;
                return Err(Error::input(format!("device profile {file}, line {line}: add a line {key} = …")));
            }
        }
        if profile.info.name.is_empty() {
            let stem = std::path::Path::new(file).file_stem();
            profile.info.name = stem.map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned());
        }
        Ok(profile)
    }

    /// Sets the field of a key, or says how to write its value.
    fn set(&mut self, key: &str, value: &str) -> std::result::Result<(), String> {
        match key {
            "name" => self.info.name = unquote(value).to_owned(),
            "kind" => {
                self.info.kind = match unquote(value) {
                    "cpu" => DeviceKind::Cpu,
                    "gpu" => DeviceKind::Gpu,
                    "accelerator" => DeviceKind::Accelerator,
                    _ => return Err("write cpu, gpu or accelerator".to_owned()),
                }
            }
            "memory" => self.set_memory(whole(bytes(value)?)?),
            "memory_bandwidth" => self.memory_bandwidth = bytes(value)?,
            "bus_bandwidth" => self.bus_bandwidth = bytes(value)?,
            "launch_latency" => self.launch_latency = nanoseconds(value)?,
            "copy_engines" => {
                self.copy_engines = match count(value)? {
                    engines @ 1..=2 => engines,
                    _ => return Err("write 1 or 2".to_owned()),
                }
            }
            "units" => self.info.units = count(value)?,
            "group_items" => self.info.group_items = count(value)?,
            "local_memory" => self.info.local_memory = whole(bytes(value)?)?,
            "fp64" => self.info.fp64 = truth(value)?,
            "int64_atomics" => self.info.int64_atomics = truth(value)?,
            "shared_memory" => self.info.shared_memory = truth(value)?,
            _ => return Err(format!("no such key, the keys are {KEYS}")),
        }
        Ok(())
    }
}

/// Cuts a comment off, but not a `#` within quotes.
fn strip_comment(line: &str) -> &str {
    let mut quoted = false;
    let end = line.find(|character| {
        quoted ^= character == '"';
        character == '#' && !quoted
    });
    &line[..end.unwrap_or(line.len())]
}

fn unquote(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// Splits a positive number from its unit.
fn measure(value: &str) -> Option<(f64, &str)> {
    let end = value.find(|character: char| !matches!(character, '0'..='9' | '.' | '_')).unwrap_or(value.len());
    let number = value[..end].replace('_', "").parse::<f64>().ok()?;
    (number > 0.0).then_some((number, value[end..].trim()))
}

fn bytes(value: &str) -> std::result::Result<f64, String> {
    let remedy = || "write a positive number with a unit such as GiB, GB or GB/s".to_owned();
    let (number, unit) = measure(value).ok_or_else(remedy)?;
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let factor = match unit {
        "" | "B" => 1.0,
        "KB" | "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024f64.powi(2),
        "GiB" => 1024f64.powi(3),
        "TiB" => 1024f64.powi(4),
        _ => return Err(remedy()),
    };
    Ok(number * factor)
}

fn nanoseconds(value: &str) -> std::result::Result<u64, String> {
    let remedy = || "write a positive number with a unit: ns, us, ms or s".to_owned();
    let (number, unit) = measure(value).ok_or_else(remedy)?;
    let factor = match unit {
        "" | "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(remedy()),
    };
    Ok((number * factor) as u64)
}

fn whole(number: f64) -> std::result::Result<usize, String> {
    if number >= 1.0 { Ok(number as usize) } else { Err("write at least one byte".to_owned()) }
}

fn count(value: &str) -> std::result::Result<usize, String> {
    value.parse().ok().filter(|count| *count > 0).ok_or_else(|| "write a positive whole number".to_owned())
}

fn truth(value: &str) -> std::result::Result<bool, String> {
    value.parse().map_err(|_| "write true or false".to_owned())
}
