//! What a user sets for devices, by the environment.

use std::{env, time::Duration};

use tandem_column::{Error, Result};
use tandem_device::{DeviceKind, Info, Patience};

/// How columns get to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transfer {
    /// Columns of a large table are read where they are, others copied; on a CPU nothing is copied.
    #[default]
    Auto,
    /// All columns are copied.
    Active,
    /// All columns are read where they are, if the device can.
    Passive,
}

/// How devices are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSettings {
    /// The time in which a device must end a command; 60 s if it is not set. `TANDEM_DEVICE_TIMEOUT`.
    pub timeout: Option<Duration>,
    /// Queues: one for kernels, the others for copies of parts to come. `TANDEM_DEVICE_STREAMS`.
    pub streams: Option<usize>,
    /// How columns get to a device. `TANDEM_DEVICE_TRANSFER`.
    pub transfer: Transfer,
}

impl DeviceSettings {
    /// Reads the environment.
    ///
    /// # Errors
    /// Input, for a value that is none.
    pub fn from_environment() -> Result<DeviceSettings> {
        DeviceSettings::read(|name| env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<DeviceSettings> {
        let value = |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let timeout = value("TANDEM_DEVICE_TIMEOUT").map(|text| {
            let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
            let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            time.ok_or_else(|| {
                Error::input(format!("TANDEM_DEVICE_TIMEOUT is a number of seconds, such as 60: {text}"))
            })
        });
        let streams = value("TANDEM_DEVICE_STREAMS").map(|text| match text.as_str() {
            "1" => Ok(1),
            "2" => Ok(2),
            "4" => Ok(4),
            _ => Err(Error::input(format!("TANDEM_DEVICE_STREAMS is 1, 2 or 4: {text}"))),
        });
        let transfer = value("TANDEM_DEVICE_TRANSFER").map(|text| match text.as_str() {
            "auto" => Ok(Transfer::Auto),
            "active" => Ok(Transfer::Active),
            "passive" => Ok(Transfer::Passive),
            _ => Err(Error::input(format!("TANDEM_DEVICE_TRANSFER is auto, active or passive: {text}"))),
        });
        Ok(DeviceSettings {
            timeout: timeout.transpose()?,
            streams: streams.transpose()?,
            transfer: transfer.transpose()?.unwrap_or_default(),
        })
    }

    /// Returns the time in which a device must end a command.
    pub(super) fn limit(&self) -> Duration {
        self.timeout.unwrap_or(Patience::default().limit)
    }

    /// Returns how many queues are used: two, unless nothing is copied.
    pub(super) fn queues(&self, info: &Info) -> usize {
        let copies = info.kind != DeviceKind::Cpu || self.transfer == Transfer::Active;
        self.streams.unwrap_or(if copies { 2 } else { 1 }).max(1)
    }

    /// Tells whether bytes are read where they are; `passive` are those of large tables.
    pub(super) fn in_place(&self, info: &Info, passive: bool) -> bool {
        info.shared_memory
            && match self.transfer {
                // A CPU's memory is the host's: nothing is won by a copy.
                Transfer::Auto => passive || info.kind == DeviceKind::Cpu,
                Transfer::Active => false,
                Transfer::Passive => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<DeviceSettings> {
        DeviceSettings::read(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn the_environment_is_read() {
        assert_eq!(read("", ""), Ok(DeviceSettings::default()));
        assert_eq!(read("TANDEM_DEVICE_TIMEOUT", "0.25").map(|s| s.limit()), Ok(Duration::from_millis(250)));
        assert_eq!(read("TANDEM_DEVICE_TIMEOUT", " ").map(|s| s.limit()), Ok(Duration::from_secs(60)));
        assert_eq!(read("TANDEM_DEVICE_STREAMS", " 4").map(|s| s.streams), Ok(Some(4)));
        assert_eq!(read("TANDEM_DEVICE_TRANSFER", "active").map(|s| s.transfer), Ok(Transfer::Active));
    }

    #[test]
    fn mistakes_name_the_variable_and_what_it_takes() {
        for (name, value, remedy) in [
            ("TANDEM_DEVICE_TIMEOUT", "soon", "a number of seconds"),
            ("TANDEM_DEVICE_TIMEOUT", "0", "a number of seconds"),
            ("TANDEM_DEVICE_TIMEOUT", "-1", "a number of seconds"),
            ("TANDEM_DEVICE_TIMEOUT", "nan", "a number of seconds"),
            ("TANDEM_DEVICE_TIMEOUT", "inf", "a number of seconds"),
            ("TANDEM_DEVICE_STREAMS", "3", "1, 2 or 4"),
            ("TANDEM_DEVICE_TRANSFER", "lazy", "auto, active or passive"),
        ] {
            let error = read(name, value).expect_err("it is no value");
            assert!(error.message.starts_with(name) && error.message.contains(remedy), "{error}");
            assert!(error.message.ends_with(value), "{error}");
        }
    }
}
