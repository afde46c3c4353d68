//! The node daemon alone, without the SQL engine: what hosts carry with them.

use std::sync::Arc;

use clap::Parser;
use tandem_runtime::Devices;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Holds columns and runs pipelines for all clients of this machine
#[derive(Parser)]
#[command(name = "tandem-node", version)]
struct Arguments {
    #[command(flatten)]
    options: tandem_node::NodeOptions,
}

fn main() -> std::process::ExitCode {
    let devices = Arc::new(Devices::from_environment());
    let served = tandem_node::serve(Arguments::parse().options, devices.clone());
    devices.save_programs();
    match served {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
