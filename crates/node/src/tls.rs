//! TCP connections inside TLS. A thread moves bytes between the encrypted socket and one end of a local pair, so that
//! everything else knows Unix sockets only.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tandem_column::{Error, Result};

use crate::Options;

/// Bytes on their way in one direction; more waits in the sockets.
const ROOM: usize = 256 << 10;
/// How long a side may take nothing before it counts as gone.
const SILENCE: Timespec = Timespec { tv_sec: 3600, tv_nsec: 0 };

/// A TCP listener whose connections are inside TLS.
pub(crate) struct TlsListener {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

/// Listens on an address with the certificate and key of the options.
pub(crate) fn listen(address: SocketAddr, options: &Options) -> Result<(SocketAddr, TlsListener)> {
    let (Some(certificate), Some(key)) = (&options.tls_certificate, &options.tls_key) else {
        return Err(Error::input("--listen needs TLS: give --tls-certificate and --tls-key"));
    };
    if options.token_file.is_none() {
        return Err(Error::input("--listen needs a token: give --token-file"));
    }
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("key", key, &error))?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| Error::input(format!("the certificate and the key do not fit: give a pair ({error})")))?;
    let unusable = |error| Error::input(format!("cannot listen on {address}: choose another --listen ({error})"));
    let listener = TcpListener::bind(address).map_err(unusable)?;
    let bound = listener.local_addr().map_err(unusable)?;
    Ok((bound, TlsListener { listener, config: Arc::new(config) }))
}

impl TlsListener {
    /// Returns the socket that connections come from.
    pub(crate) fn socket(&self) -> &TcpListener {
        &self.listener
    }

    /// Hands connections on until told to stop, or until the socket is shut down; each holds a guard until its last
    /// bytes are sent.
    pub(crate) fn accept<G: Send + 'static>(
        &self,
        ended: impl Fn() -> bool,
        guard: impl Fn() -> G,
        take: impl Fn(UnixStream),
    ) {
        for stream in self.listener.incoming() {
            if ended() {
                return;
            }
            let inner = stream.and_then(|stream| {
                let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
                tunnel(stream, connection.into(), guard())
            });
            match inner {
                Ok(inner) => take(inner),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

/// Connects to a daemon's TLS listener; `authority` is a PEM file of the certificates to trust.
pub(crate) fn connect(address: &str, name: &str, authority: &Path) -> Result<UnixStream> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).map_err(|error| unreadable("certificate", authority, &error))?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerName::try_from(name.to_owned())
        .map_err(|_| Error::input(format!("not the name of a host: give the one in the certificate ({name})")))?;
    let unreachable =
        |error: String| Error::input(format!("cannot connect to {address}: check that a daemon listens ({error})"));
    let connection = ClientConnection::new(Arc::new(config), server).map_err(|error| unreachable(error.to_string()))?;
    let stream = TcpStream::connect(address).map_err(|error| unreachable(error.to_string()))?;
    tunnel(stream, connection.into(), ()).map_err(|error| unreachable(error.to_string()))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    read.map_err(|error| unreadable("certificate", path, &error))
}

fn unreadable(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::input(format!("cannot read the {what}: give a PEM file ({}: {error})", path.display()))
}

/// Starts the thread that moves bytes and holds the guard, and returns the plain end.
fn tunnel(outer: TcpStream, mut connection: Connection, guard: impl Send + 'static) -> io::Result<UnixStream> {
    let (inner, plain) = UnixStream::pair()?;
    outer.set_nodelay(true)?;
    outer.set_nonblocking(true)?;
    inner.set_nonblocking(true)?;
    connection.set_buffer_limit(Some(ROOM));
    // What fails closes both ends: the daemon and the client see the end of the stream.
    let run = move || {
        let _guard = guard;
        drop(pump(outer, inner, connection));
    };
    std::thread::Builder::new().name("tls".into()).spawn(run)?;
    Ok(plain)
}

/// Moves bytes both ways until one side ends and what is left of it has arrived.
fn pump(mut outer: TcpStream, mut inner: UnixStream, mut connection: Connection) -> io::Result<()> {
    let (mut incoming, mut outgoing) = (Vec::<u8>::new(), Vec::<u8>::new());
    let (mut outer_ended, mut inner_ended) = (false, false);
    loop {
        // Plain bytes of the client that the other side has not taken yet.
        while incoming.len() < ROOM {
            let mut bytes = [0; 16 << 10];
            match connection.reader().read(&mut bytes) {
                Ok(0) => {
                    outer_ended = true;
                    break;
                }
                Ok(read) => incoming.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        give(&mut inner, &mut incoming)?;
        if !outgoing.is_empty() {
            let taken = connection.writer().write(&outgoing)?;
            outgoing.drain(..taken);
        }
        while connection.wants_write() {
            match connection.write_tls(&mut outer) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let sent = outgoing.is_empty() && !connection.wants_write();
        if outer_ended && incoming.is_empty() || inner_ended && sent {
            return Ok(());
        }
        let flag = |wanted: bool, flag: PollFlags| if wanted { flag } else { PollFlags::empty() };
        let reads = !outer_ended && incoming.len() < ROOM;
        let outer_flags = flag(reads, PollFlags::IN) | flag(connection.wants_write(), PollFlags::OUT);
        let takes = !inner_ended && outgoing.is_empty();
        let inner_flags = flag(takes, PollFlags::IN) | flag(!incoming.is_empty(), PollFlags::OUT);
        let mut polled = [PollFd::new(&outer, outer_flags), PollFd::new(&inner, inner_flags)];
        if poll(&mut polled, Some(&SILENCE))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let [outer_ready, inner_ready] = polled.map(|polled| polled.revents());
        let broken = PollFlags::ERR | PollFlags::NVAL;
        if (outer_ready | inner_ready).intersects(broken) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if reads && outer_ready.intersects(PollFlags::IN | PollFlags::HUP) {
            match connection.read_tls(&mut outer) {
                Ok(0) => outer_ended = true,
                Ok(_) => {
                    let processed = connection.process_new_packets();
                    if let Err(error) = processed {
                        // The alert says why.
                        let _ = connection.write_tls(&mut outer);
                        return Err(io::Error::other(error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if inner_ready.intersects(PollFlags::IN | PollFlags::HUP) {
            let mut bytes = [0; 64 << 10];
            match inner.read(&mut bytes) {
                Ok(0) if !inner_ended => {
                    inner_ended = true;
                    connection.send_close_notify();
                }
                Ok(read) => outgoing.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Writes as much as the socket takes.
fn give(to: &mut UnixStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(taken) => drop(bytes.drain(..taken)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
