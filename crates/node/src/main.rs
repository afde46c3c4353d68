//! The node daemon alone, without the SQL engine: what hosts carry with them.

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Holds columns and runs pipelines for all clients of this machine
#[derive(Parser)]
#[command(name = "tandem-node", version)]
struct Arguments {
    #[command(flatten)]
    options: tandem_node::Options,
}

fn main() -> std::process::ExitCode {
    let served = tandem_node::serve(Arguments::parse().options);
    tandem_runtime::save_programs();
    match served {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
