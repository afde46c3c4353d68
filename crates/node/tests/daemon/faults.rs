//! Commands that fail, are stopped or are too large; clients that go away or hang; the daemon's own end.

use std::{
    io::Read,
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use prost::Message;
use tandem_node::{
    Client,
    frame::{self, FrameKind},
    proto::Class,
};

use crate::fixture::*;

/// Starts a command that takes long on a thread of its own.
fn endless(running: &Running, client: Client) -> std::thread::JoinHandle<Result<(), tandem_node::Failed>> {
    let path = running.directory.path().join("sales.parquet");
    if !path.exists() {
        sales(&path, ROWS);
    }
    let execute = with_block(command(ENDLESS, vec![whole(&path); 50]), "endless");
    let mut client = client;
    std::thread::spawn(move || client.execute(&execute, |_| Ok(keys(100_000))).map(drop))
}

fn wait_for_running(running: &Running, count: u64) {
    let observer = std::cell::RefCell::new(running.client());
    eventually("a number of commands", || observer.borrow_mut().status().unwrap().running == count);
}

#[test]
fn cancelling_and_leaving_stop_the_work() {
    let running = Running::start(|_| {});
    for close in [false, true] {
        let client = running.client();
        let stop = client.stop();
        let command = endless(&running, client);
        wait_for_running(&running, 1);
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        if close {
            stop.close()
        } else {
            stop.cancel()
        }
        let failed = command.join().unwrap().unwrap_err();
        assert_eq!(failed.class, if close { Class::Protocol } else { Class::Cancelled }, "{failed}");
        wait_for_running(&running, 0);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    // The workers are free again, and a connection outlives its cancelled command.
    let (path, mut client) = (running.sales(), running.client());
    client.stop().cancel();
    let outcome = client.execute(&command(&by_region(0), vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(regions(&outcome.batches), expected_by_region(0..ROWS));
}

#[test]
fn limits_of_time_and_memory() {
    let running = Running::start(|options| options.memory_limit = 64);
    let (path, mut client) = (running.sales(), running.client());
    let mut execute = with_block(command(ENDLESS, vec![whole(&path); 50]), "endless");
    execute.time_limit_ms = 300;
    let failed = client.execute(&execute, |_| Ok(keys(100_000))).unwrap_err();
    assert_eq!(failed.class, Class::Exhausted);
    assert!(failed.message.contains("time limit") && !failed.retryable, "{failed}");

    let wide =
        ENDLESS.replace("aggregate by ($2) (count_rows(): int64, sum($1): int64)", "materialize output ($0, $1, $2)");
    let failed = client.execute(&with_block(command(&wide, vec![whole(&path)]), "endless"), |_| Ok(keys(100_000)));
    let failed = failed.unwrap_err();
    assert_eq!(failed.class, Class::Exhausted);
    assert!(failed.message.contains("memory") && failed.retryable, "{failed}");
    let mut small = command(&by_region(0), vec![whole(&path)]);
    small.memory_limit_bytes = 1000;
    let failed = client.execute(&small, |_| unreachable!()).unwrap_err();
    assert!(failed.class == Class::Exhausted && failed.message.contains("of sales.parquet"), "{failed}");
    small.memory_limit_bytes = 0;
    assert!(client.execute(&small, |_| unreachable!()).is_ok(), "the daemon goes on");
    assert!(client.status().unwrap().prometheus.contains("tandem_memory_used_bytes 0\n"));
}

/// A short command makes much text; several at once have no more than one.
#[test]
fn computed_text_counts_against_the_limit_of_all() {
    let running = Running::start(|options| options.memory_limit = 64);
    let path = running.sales();
    let long = "b".repeat(40_000);
    let query = |text: &str| {
        format!(
            "pipeline 0\n  scan sales [id@0: int32?, region@1: string?]\n  let $2 text: string? = {text}\n  \
             aggregate by () (max($2): string)\n"
        )
    };
    let fails = |text: &str| {
        let execute = command(&query(text), vec![whole(&path)]);
        let failed = running.client().execute(&execute, |_| unreachable!()).unwrap_err();
        assert!(failed.class == Class::Exhausted && failed.message.contains("--memory-limit"), "{failed}");
    };
    std::thread::scope(|scope| {
        for text in [format!("replace($1, 'r', '{long}')"), format!("concat($1, '{long}')")] {
            for _ in 0..2 {
                let text = text.clone();
                scope.spawn(move || fails(&text));
            }
        }
    });
    let small = command(&query("concat($1, 'x')"), vec![whole(&path)]);
    assert!(running.client().execute(&small, |_| unreachable!()).is_ok(), "the daemon goes on");
    assert!(running.client().status().unwrap().prometheus.contains("tandem_memory_used_bytes 0\n"));
}

/// Rows that a client has not taken yet count as long as they are there.
#[test]
fn results_count_until_they_are_sent() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let rows = "pipeline 0\n  scan sales [id@0: int32?, amount@2: int64?]\n  let $2 twice: int64? = $1 * 2:int64\n  \
                materialize output ($0, $1, $2)\n";
    let rows = command(rows, vec![whole(&path); 50]);
    let observer = std::cell::RefCell::new(running.client());
    let used = || observer.borrow_mut().status().unwrap().prometheus;
    let (begun, wait) = std::sync::mpsc::channel();
    let (go_on, paused) = std::sync::mpsc::channel();
    let mut client = running.client();
    let slow = std::thread::spawn(move || {
        let mut first = true;
        client.stream(
            &rows,
            |_| unreachable!(),
            |_| {
                if std::mem::take(&mut first) {
                    begun.send(()).unwrap();
                    paused.recv().unwrap();
                }
                Ok(())
            },
        )
    });
    wait.recv().unwrap();
    assert!(!used().contains("tandem_memory_used_bytes 0\n"), "the rows are still there");
    go_on.send(()).unwrap();
    assert!(slow.join().unwrap().is_ok());
    eventually("nothing is held", || used().contains("tandem_memory_used_bytes 0\n"));
}

#[test]
fn a_sender_that_fails_hands_its_duty_on() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let execute = with_block(command(JOIN, vec![whole(&path)]), "broadcast");
    let (asked, wait) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (running, execute) = (&running, &execute);
        scope.spawn(move || {
            let failed = running.client().execute(execute, |_| {
                asked.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(300));
                Err(tandem_node::Error::internal("no block"))
            });
            assert!(failed.is_err());
        });
        wait.recv().unwrap();
        let outcome = running.client().execute(execute, |_| Ok(keys(100))).unwrap();
        assert_eq!(outcome.trailer.blocks_received, 1);
    });
}

#[test]
fn errors_of_the_data_and_the_query() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let mut run = |text: &str| client.execute(&command(text, vec![whole(&path)]), |_| unreachable!()).unwrap_err();
    let scan = "pipeline 0\n  scan sales [id@0: int32?]\n";
    let overflow = run(&format!("{scan}  let $1 x: int32? = $0 * 1000000:int32\n  materialize output ($1)\n"));
    assert_eq!(overflow.class, Class::Input, "{overflow}");
    let last = run(&format!("{scan}  aggregate final by () (sum($0): int64)\n"));
    assert_eq!(last.class, Class::Input, "{last}");
    let text = "let $1 i: interval = interval(0, 1, 0)\n  materialize output ($0)";
    let unsupported = run(&format!("pipeline 0\n  scan sales [amount@2: int64?]\n  {text}\n"));
    assert_eq!(unsupported.class, Class::Unsupported, "{unsupported}");
    let other = run("pipeline 0\n  scan other [id@0: int32?]\n  materialize output ($0)\n");
    assert!(other.message.contains("does not give table other"), "{other}");
    let far = run("pipeline 0\n  scan sales [id@9: int32?]\n  materialize output ($0)\n");
    assert!(far.message.contains("no column number 9"), "{far}");
    let kind = run("pipeline 0\n  scan sales [id@0: int64?]\n  materialize output ($0)\n");
    assert!(kind.message.contains("id is int32"), "{kind}");
    let null = run("pipeline 0\n  scan sales [id@0: int32]\n  materialize output ($0)\n");
    assert!(null.message.contains("may be null"), "{null}");
    let block = run("pipeline 0\n  block b [id: int32]\n  materialize output ($0)\n");
    assert!(block.message.contains("does not give block b"), "{block}");
    let status = client.status().unwrap();
    assert_eq!((status.running, status.failures), (0, 8));
}

#[test]
fn a_client_that_hangs_is_given_up() {
    let running = Running::start(|options| options.client_timeout = 1);
    let path = running.sales();
    let text = "pipeline 0\n  scan sales [id@0: int32?, region@1: string?]\n  materialize output ($0, $1)\n";
    let execute = command(text, vec![whole(&path); 50]);
    let mut stream = UnixStream::connect(&running.socket).unwrap();
    frame::write(&mut stream, FrameKind::Hello, &Client::hello().encode_to_vec()).unwrap();
    frame::write(&mut stream, FrameKind::Execute, &execute.encode_to_vec()).unwrap();
    // Nobody reads the answer, nor sends the block of another command, nor the rest of a frame.
    let blocked = with_block(command(JOIN, vec![whole(&path)]), "never");
    let mut other = UnixStream::connect(&running.socket).unwrap();
    frame::write(&mut other, FrameKind::Hello, &Client::hello().encode_to_vec()).unwrap();
    frame::write(&mut other, FrameKind::Execute, &blocked.encode_to_vec()).unwrap();
    let mut half = UnixStream::connect(&running.socket).unwrap();
    frame::write(&mut half, FrameKind::Hello, &Client::hello().encode_to_vec()).unwrap();
    std::io::Write::write_all(&mut half, &[100, 0, 0, 0, 2, 1, 2, 3]).unwrap();
    let observer = std::cell::RefCell::new(running.client());
    eventually("all commands begin", || observer.borrow_mut().status().unwrap().commands == 2);
    eventually("all commands end", || observer.borrow_mut().status().unwrap().running == 0);
    eventually("connections end", || observer.borrow_mut().status().unwrap().connections <= 2);
    let mut rest = Vec::new();
    half.set_read_timeout(Some(PATIENCE)).unwrap();
    half.read_to_end(&mut rest).unwrap();
}

#[test]
fn draining_finishes_what_runs_and_refuses_the_rest() {
    let mut running = Running::start(|_| {});
    let path = running.sales();
    let node = running.node.take().unwrap();
    let client = running.client();
    let slow = with_block(command(JOIN, vec![whole(&path)]), "slow");
    let (asked, wait) = std::sync::mpsc::channel();
    let (go, told) = std::sync::mpsc::channel();
    let mut sender = running.client();
    let command_thread = std::thread::spawn(move || {
        sender.execute(&slow, |_| {
            asked.send(()).unwrap();
            told.recv().unwrap();
            Ok(keys(100))
        })
    });
    wait.recv().unwrap();
    let drain = std::thread::spawn(move || node.drain(PATIENCE));
    let observer = std::cell::RefCell::new(client);
    eventually("draining begins", || observer.borrow_mut().status().unwrap().draining);
    eventually("the socket goes", || !running.socket.exists());
    let mut client = observer.into_inner();
    let refused = client.execute(&command(&by_region(0), vec![whole(&path)]), |_| unreachable!()).unwrap_err();
    assert_eq!((refused.class, refused.retryable), (Class::Draining, true), "{refused}");
    go.send(()).unwrap();
    let outcome = command_thread.join().unwrap().unwrap();
    assert_eq!(outcome.trailer.rows_out, 1);
    drain.join().unwrap();
    assert!(client.ping().is_err());
}

#[test]
fn draining_ends_what_takes_too_long() {
    let mut running = Running::start(|_| {});
    let command = endless(&running, running.client());
    wait_for_running(&running, 1);
    let began = Instant::now();
    running.node.take().unwrap().drain(Duration::from_millis(100));
    assert!(began.elapsed() < Duration::from_secs(10));
    let failed = command.join().unwrap().unwrap_err();
    assert!(failed.retryable, "{failed}");
}

#[test]
fn too_many_connections_are_told_so() {
    let running = Running::start(|options| options.max_connections = 2);
    let _one = running.client();
    let two = running.client();
    let failed = Client::connect(&running.socket, "app-1").map(drop).unwrap_err();
    assert!(failed.message.contains("--max-connections") && failed.retryable, "{failed}");
    drop(two);
    eventually("a place is free", || Client::connect(&running.socket, "app-1").is_ok());
}
