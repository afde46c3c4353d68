//! Waiting for a device: how long, and what ends it early.
//!
//! Drivers wait without an end, so nothing here asks them to: the state of a command is looked at again and again. Between
//! two looks a backend whose driver tells the end of a command sleeps until then; others look at first without a pause, since
//! a small kernel takes 50 µs, then after longer and longer ones.

use std::thread;
use std::time::{Duration, Instant};

use tandem_column::{Cancel, Class, Error, Result};

/// How long commands are looked at without a pause: several small kernels.
const BUSY: Duration = Duration::from_micros(200);
/// A pause is this part of the time waited so far: late by 3 % at most, beside what the system's timer adds.
const PART: u32 = 32;
/// The longest pause: a cancelled statement ends within it.
pub(crate) const LONGEST: Duration = Duration::from_millis(1);

/// How long a device may take to end one command, and a flag that ends the wait.
#[derive(Clone, Debug)]
pub struct Patience {
    /// The time in which a device must end a command; each that ends begins it anew.
    pub limit: Duration,
    /// Set by whoever does not want the result any more.
    pub cancel: Cancel,
}

impl Default for Patience {
    /// 60 s: a command takes milliseconds, and seconds where a device is shared.
    fn default() -> Patience {
        Patience { limit: Duration::from_secs(60), cancel: Cancel::new() }
    }
}

/// What a look at a device shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// What was waited for is over.
    Over,
    /// Something before it has ended.
    Nearer,
    /// Nothing has changed.
    Same,
}

impl Patience {
    /// Looks until it is over; in between, `rest` is told how long that has taken.
    ///
    /// # Errors
    /// What `look` fails with; `Device` if the limit has passed; the error of a cancelled statement.
    pub(crate) fn wait(&self, mut look: impl FnMut() -> Result<Look>, rest: impl Fn(Duration)) -> Result<()> {
        let began = Instant::now();
        let mut answered = began;
        loop {
            match look()? {
                Look::Over => return Ok(()),
                Look::Nearer => answered = Instant::now(),
                Look::Same => {}
            }
            self.cancel.check()?;
            if answered.elapsed() >= self.limit {
                let seconds = self.limit.as_secs_f64();
                let remedy = "if it is only slow, set TANDEM_DEVICE_TIMEOUT to more seconds";
                return Err(Error::new(
                    Class::Device,
                    format!("the device did not answer within {seconds} s; {remedy}"),
                ));
            }
            rest(began.elapsed());
        }
    }
}

/// Lets others run for a while that grows with the time waited so far.
pub(crate) fn pause(waited: Duration) {
    match waited < BUSY {
        true => thread::yield_now(),
        false => thread::sleep((waited / PART).min(LONGEST)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_goes_on_is_waited_for() {
        let patience = Patience { limit: Duration::from_millis(20), ..Patience::default() };
        let mut looks = 0;
        let mut slow = || {
            looks += 1;
            thread::sleep(Duration::from_millis(2));
            Ok(if looks == 30 { Look::Over } else { Look::Nearer })
        };
        patience.wait(&mut slow, pause).expect("it answers all the time");
        let error = patience.wait(|| Ok(Look::Same), pause).expect_err("it never answers");
        assert_eq!(error.class, Class::Device);
        assert!(error.message.contains("within 0.02 s") && error.message.contains("TANDEM_DEVICE_TIMEOUT"), "{error}");
        let error = patience.wait(|| Err(Error::internal("as it is")), pause).expect_err("it failed");
        assert_eq!(error.message, "as it is");
    }

    #[test]
    fn a_flag_ends_the_wait() {
        let patience = Patience::default();
        patience.cancel.cancel();
        assert!(patience.wait(|| Ok(Look::Same), pause).expect_err("it is cancelled").is_cancelled());
        patience.wait(|| Ok(Look::Over), pause).expect("what is over needs no wait");
    }
}
