//! The conformance suite on the shim, plain and sanitized, and that what it should find is found.
//!
//! A sanitizer ends the process, so what it runs is in a child: the test starts its own executable with one ignored test.

use std::process::Command;
use std::sync::Arc;

use super::{Shim, sanitized_environment};
use crate::{Argument, Backend, Class, Device, Error, Found, Result, Shape};
use crate::{conformance::conformance, testing};

/// Returns the device, or says why there is none.
fn shim() -> Option<Arc<dyn Device>> {
    match Shim::open() {
        Ok(shim) => Some(Arc::new(shim)),
        Err(error) => {
            testing::has(&Found { devices: Vec::new(), unusable: vec![("shim".into(), error.message)] }, Backend::Shim);
            None
        }
    }
}

/// Compiles a kernel `k` and runs it on memory of so many bytes, which it returns.
fn run(device: &dyn Device, text: &str, bytes: usize, shape: Shape) -> Result<Vec<u8>> {
    let kernel = device.compile(text, "-w")?.kernel("k")?;
    let memory = device.allocate(bytes)?;
    let mut queue = device.queue()?;
    queue.fill(&memory, 0, bytes, 0, &[])?;
    queue.launch(&kernel, &[Argument::Memory(&memory)], shape, &[])?;
    let mut result = vec![0; bytes];
    queue.read(&memory, 0, &mut result, &[])?;
    Ok(result)
}

#[test]
fn shim_conforms() {
    if let Some(device) = shim() {
        conformance(&device);
    }
}

#[test]
fn barriers_are_met_by_all_threads_or_none() {
    let Some(device) = shim() else { return };
    let run = |body: &str, items| {
        let text = format!("extern \"C\" __global__ void k(unsigned *out) {{ {body} }}");
        run(&*device, &text, 64, Shape { groups: 3, items })
    };
    let diverged = |result: Result<Vec<u8>, Error>| {
        let error = result.expect_err("threads part at a barrier");
        assert_eq!(error.class, Class::Device);
        assert!(error.message.contains("barrier"), "{error}");
    };
    // Several barriers, a static array, and who writes before whom.
    let sums = "__shared__ unsigned sum[1]; if (threadIdx.x == 0) sum[0] = blockIdx.x; __syncthreads();
        for (int i = 0; i < 3; i++) { atomicAdd(sum, 1u); __syncthreads(); } out[blockIdx.x] = sum[0];";
    let words = run(sums, 4).expect("every thread meets every barrier");
    let words: Vec<u32> = words.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
    assert_eq!(words[..4], [12, 13, 14, 0]);
    diverged(run("if (threadIdx.x == 0) __syncthreads();", 4));
    diverged(run("if (threadIdx.x != 0) __syncthreads();", 4));
    diverged(run("if (threadIdx.x > 2) return; __syncthreads();", 4));
    run("if (threadIdx.x > 2) return; __syncthreads();", 3).expect("all meet it");
}

#[test]
fn arguments_are_those_declared() {
    let Some(device) = shim() else { return };
    let program = device.compile("extern \"C\" __global__ void k(int *a, long long b) {}", "").expect("it is right");
    let kernel = program.kernel("k").expect("it is there");
    let mut queue = device.queue().expect("a queue");
    let shape = Shape { groups: 1, items: 1 };
    queue.launch(&kernel, &[Argument::Null, Argument::I64(1)], shape, &[]).expect("they fit");
    for wrong in [&[Argument::Null, Argument::I32(1)][..], &[Argument::Null]] {
        assert_eq!(queue.launch(&kernel, wrong, shape, &[]).expect_err("they do not").class, Class::Internal);
    }
}

/// Runs an ignored test of this file under the sanitizers; returns whether it passed and what it printed.
fn sanitized(test: &str, kernel: &str) -> Option<(bool, String)> {
    shim()?;
    let environment = match sanitized_environment() {
        Ok(environment) => environment,
        Err(error) => {
            testing::has(&Found { devices: Vec::new(), unusable: vec![("shim".into(), error.message)] }, Backend::Shim);
            return None;
        }
    };
    // A process that is ended leaves its files behind.
    let temporary = tempfile::tempdir().expect("a directory");
    let output = Command::new(std::env::current_exe().expect("a test has a program"))
        .args([&format!("shim::tests::{test}"), "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .envs(environment)
        .env("TANDEM_TEST_KERNEL", kernel)
        .env("TMPDIR", temporary.path())
        .output()
        .expect("the child starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success() && text.contains("1 passed"), text))
}

#[test]
#[ignore = "a child of sanitized_shim_conforms: needs its environment"]
fn child_conforms() {
    conformance(&(Arc::new(Shim::sanitized().expect("the environment is right")) as Arc<dyn Device>));
}

#[test]
fn sanitized_shim_conforms() {
    if let Some((passed, text)) = sanitized("child_conforms", "") {
        assert!(passed, "{text}");
    }
}

#[test]
#[ignore = "a child of sanitizers_find_what_is_wrong: needs its environment"]
fn child_runs_a_kernel() {
    let body = std::env::var("TANDEM_TEST_KERNEL").expect("the body of a kernel");
    let text = format!("extern \"C\" __global__ void k(int *out) {{ {body} }}");
    let device = Shim::sanitized().expect("the environment is right");
    run(&device, &text, 4 * 10, Shape { groups: 2, items: 5 }).expect("it runs");
}

#[test]
fn sanitizers_find_what_is_wrong() {
    let item = "const int item = blockIdx.x * blockDim.x + threadIdx.x;";
    let cases = [
        ("out[item] = item;", None),
        ("__syncthreads(); out[item] = item; __syncthreads();", None),
        ("out[item + 1] = item;", Some("heap-buffer-overflow")),
        ("__syncthreads(); out[item] = out[item - 1];", Some("heap-buffer-overflow")),
        ("out[item] = 0x7fffffff - 5 + item;", Some("signed integer overflow")),
        ("out[item] = 1 << (item + 25);", Some("shift exponent")),
        ("*(int *)((char *)out + item) = 1;", Some("misaligned address")),
    ];
    for (body, finding) in cases {
        let Some((passed, text)) = sanitized("child_runs_a_kernel", &format!("{item} {body}")) else { return };
        match finding {
            None => assert!(passed, "{body}\n{text}"),
            Some(finding) => assert!(!passed && text.contains(finding), "{body}\n{text}"),
        }
    }
}
