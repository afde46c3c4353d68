//! A contest: ourselves, the loops where there are any, and the peers, all at once or one after the other.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tandem_engine::{Devices, Mode, Session, SessionBuilder, Table};
use tandem_limit::Arrays;

use super::{
    Storage, clients,
    contender::Contender,
    data::TableData,
    measure::measure,
    own::{Limit, Own},
    peer::{Peer, PeerKind},
    record::{OWN, OWN_CPU, Record},
    suite::Suite,
    venv::Venv,
};
use crate::failure::Failure;

/// What all contenders share.
pub struct Contest {
    /// The suite.
    pub suite: Suite,
    /// Where the data is.
    pub from: Storage,
    /// The mode that we run in.
    pub mode: Mode,
    /// Threads of each.
    pub threads: usize,
    /// The devices of mode gpu.
    pub devices: Arc<Devices>,
    /// Clients at once, where what several see is measured, too.
    pub clients: Option<usize>,
    /// How long a peer may take for a query.
    pub timeout: Duration,
    /// Where peers may write files.
    pub scratch: PathBuf,
    /// The data.
    pub tables: Vec<TableData>,
}

impl Contest {
    /// Runs everyone and adds what came out to the record.
    ///
    /// # Errors
    /// Only ourselves failing to start; a peer that cannot is skipped.
    pub fn run(&self, record: &mut Record, peers: &[PeerKind], venv: Result<&Venv, &String>) -> Result<(), Failure> {
        let (mut contenders, shared) = self.own().map_err(Failure::Statement)?;
        if record.isolated {
            add(record, &mut contenders);
            contenders.clear();
        }
        for &kind in peers {
            match self.start(kind, venv) {
                Err(reason) => {
                    eprintln!("{} takes no part: {reason}", kind.name());
                    record.skipped.push((kind.name().to_string(), reason));
                }
                Ok(peer) => contenders.push(Box::new(peer)),
            }
            if record.isolated {
                add(record, &mut contenders);
                contenders.clear();
            }
        }
        add(record, &mut contenders);
        if let (Some(clients), Some(own)) = (self.clients, shared) {
            // Peers have ended: nobody else computes.
            drop(contenders);
            let seen = clients::measure(&own, &record.queries, clients, record.repeat);
            record.clients = Some(seen.map_err(Failure::Statement)?);
        }
        Ok(())
    }

    /// Describes a session of ours.
    fn session(&self, mode: Mode) -> SessionBuilder {
        Session::builder().mode(mode).threads(self.threads).devices(self.devices.clone())
    }

    /// Makes our own contenders: on resident tables with the loops beside, or on files with our cache cold and warm; with
    /// devices, our own CPU's executor as well. A session of its own is for several clients.
    fn own(&self) -> Result<(Vec<Box<dyn Contender>>, Option<Own>), String> {
        let start = Instant::now();
        if self.from == Storage::Parquet {
            let open = |name, mode, cold| Own::files(name, self.session(mode), &self.tables, cold);
            let mut contenders: Vec<Box<dyn Contender>> =
                vec![Box::new(open(OWN, self.mode, true)?), Box::new(open("tandem (warm)", self.mode, false)?)];
            if self.mode == Mode::Gpu {
                contenders.push(Box::new(open(OWN_CPU, Mode::Cpu, true)?));
            }
            let shared = self.clients.map(|_| open(OWN, self.mode, false)).transpose()?;
            return Ok((contenders, shared));
        }
        let mut tables: Vec<(&'static str, Arc<Table>)> = Vec::new();
        for table in &self.tables {
            tables.push((table.name, Arc::new(table.load(self.threads).map_err(|error| error.to_string())?)));
        }
        let bytes: usize = tables.iter().map(|(_, table)| table.byte_len()).sum();
        let open = |name, mode| Own::resident(name, self.session(mode), &tables);
        let mut contenders: Vec<Box<dyn Contender>> = vec![Box::new(open(OWN, self.mode)?)];
        if self.mode == Mode::Gpu {
            contenders.push(Box::new(open(OWN_CPU, Mode::Cpu)?));
        }
        if self.suite == Suite::Ssb {
            let find = |name: &str| tables.iter().find(|(known, _)| *known == name).map(|(_, table)| table.as_ref());
            match Arrays::from_tables(find) {
                Ok(arrays) => contenders.push(Box::new(Limit { arrays, threads: self.threads })),
                Err(reason) => eprintln!("the hand-fused loops take no part: {reason}"),
            }
        }
        let (gigabytes, seconds) = (bytes as f64 / 1e9, start.elapsed().as_secs_f64());
        eprintln!("loaded tandem in {seconds:.1} s: {gigabytes:.2} GB resident");
        let shared = self.clients.map(|_| open(OWN, self.mode)).transpose()?;
        Ok((contenders, shared))
    }

    fn start(&self, kind: PeerKind, venv: Result<&Venv, &String>) -> Result<Peer, String> {
        let venv = venv.map_err(String::clone)?;
        venv.install(kind)?;
        let start = Instant::now();
        let peer = Peer::start(kind, venv, &self.tables, self.from, self.threads, &self.scratch, self.timeout)?;
        eprintln!("loaded {} {} in {:.1} s", kind.name(), peer.version(), start.elapsed().as_secs_f64());
        Ok(peer)
    }
}

/// Measures contenders together and appends them to the record.
fn add(record: &mut Record, contenders: &mut [Box<dyn Contender>]) {
    let outcomes = measure(contenders, &record.queries, record.repeat);
    for (all, more) in record.outcomes.iter_mut().zip(outcomes) {
        all.extend(more);
    }
    record.contenders.extend(contenders.iter().map(|c| (c.name().to_string(), c.version().to_string())));
}
