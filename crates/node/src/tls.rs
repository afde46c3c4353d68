//! TCP connections inside TLS. A thread moves bytes between the encrypted socket and one end of a local pair, so that
//! everything else knows Unix sockets only.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tandem_column::{Error, Result};

use crate::{NodeOptions, connections::Link, trust};

/// Bytes on their way in one direction; more waits in the sockets.
const ROOM: usize = 256 << 10;
/// How long nothing may happen before a connection counts as gone.
const SILENCE: Duration = Duration::from_secs(3600);
/// How long the other side may take to hear the end of a connection that this side has closed.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// A TCP listener whose connections are inside TLS.
pub(crate) struct TlsListener {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

/// Listens on an address with the certificate and key of the options.
pub(crate) fn listen(address: SocketAddr, options: &NodeOptions) -> Result<(SocketAddr, TlsListener)> {
    let (Some(certificate), Some(key)) = (&options.tls_certificate, &options.tls_key) else {
        return Err(Error::input("--listen needs TLS: give --tls-certificate and --tls-key"));
    };
    if options.token_file.is_none() {
        return Err(Error::input("--listen needs a token: give --token-file"));
    }
    let chain = certificates(certificate)?;
    let secret = trust::read_secret(key, "key", "--tls-key")?;
    let key = PrivateKeyDer::from_pem_slice(secret.as_bytes()).map_err(|error| unreadable("key", key, &error))?;
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

    /// Begins TLS on a connection; the guard is held until its last bytes are sent.
    pub(crate) fn wrap(&self, stream: TcpStream, guard: impl Send + 'static) -> io::Result<Arc<Link>> {
        let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        let (plain, outer) = tunnel(stream, connection.into(), guard)?;
        Ok(Link::remote(plain, outer))
    }
}

/// The encrypted end of a connection.
pub(crate) struct Outer {
    socket: TcpStream,
    /// The other side is known: what is on its way to it is waited for.
    trusted: AtomicBool,
}

impl Outer {
    /// Notes that the other side is known.
    pub(crate) fn trust(&self) {
        self.trusted.store(true, Ordering::Relaxed);
    }

    /// Closes it at once, whatever is on its way.
    pub(crate) fn close(&self) {
        // Already closed is closed.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Returns how long the other side may take to hear the end.
    fn last_words(&self) -> Duration {
        if self.trusted.load(Ordering::Relaxed) { LAST_WORDS } else { Duration::ZERO }
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
    let (plain, outer) = tunnel(stream, connection.into(), ()).map_err(|error| unreachable(error.to_string()))?;
    outer.trust();
    Ok(plain)
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

/// Starts the thread that moves bytes and holds the guard, and returns the plain end and the encrypted one.
fn tunnel(
    socket: TcpStream,
    mut connection: Connection,
    guard: impl Send + 'static,
) -> io::Result<(UnixStream, Arc<Outer>)> {
    let (inner, plain) = UnixStream::pair()?;
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)?;
    inner.set_nonblocking(true)?;
    connection.set_buffer_limit(Some(ROOM));
    let outer = Arc::new(Outer { socket, trusted: AtomicBool::new(false) });
    let moved = outer.clone();
    // What fails closes both ends: the daemon and the client see the end of the stream. Also after a panic, of which the
    // thread's own message tells.
    let run = move || {
        let _guard = guard;
        let _closed = Closed(&moved);
        drop(pump(&moved, inner, connection));
    };
    std::thread::Builder::new().name("tls".into()).spawn(run)?;
    Ok((plain, outer))
}

/// Closes the encrypted end when the thread that moves its bytes ends: others hold it too.
struct Closed<'o>(&'o Outer);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Moves bytes both ways until one side ends and what is left of it has arrived.
fn pump(outer: &Outer, mut inner: UnixStream, mut connection: Connection) -> io::Result<()> {
    let mut socket = &outer.socket;
    let (mut incoming, mut outgoing) = (Vec::<u8>::new(), Vec::<u8>::new());
    let (mut outer_ended, mut closing) = (false, None::<Closing>);
    loop {
        // Plain bytes of the client that the other side has not taken yet. All that TLS holds is taken out as long as
        // there is room: no event of the socket tells of it.
        loop {
            outer_ended |= take(&mut connection, &mut incoming)?;
            let full = incoming.len() >= ROOM;
            give(&mut inner, &mut incoming)?;
            if !full || incoming.len() >= ROOM {
                break;
            }
        }
        if !outgoing.is_empty() {
            let taken = connection.writer().write(&outgoing)?;
            outgoing.drain(..taken);
        }
        if let Some(closing) = closing.as_mut().filter(|closing| !closing.told)
            && outgoing.is_empty()
            && !connection.is_handshaking()
        {
            connection.send_close_notify();
            closing.told = true;
        }
        while connection.wants_write() {
            match connection.write_tls(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let sent = closing.as_ref().is_some_and(|closing| closing.told) && !connection.wants_write();
        if outer_ended && (incoming.is_empty() || closing.is_some()) || sent {
            return Ok(());
        }
        // Looked at here too: as long as bytes come in no wait is over time.
        if closing.as_ref().is_some_and(|closing| closing.until <= Instant::now()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let flag = |wanted: bool, flag: PollFlags| if wanted { flag } else { PollFlags::empty() };
        let reads = incoming.len() < ROOM;
        let outer_flags = flag(reads, PollFlags::IN) | flag(connection.wants_write(), PollFlags::OUT);
        let inner_flags = flag(outgoing.is_empty(), PollFlags::IN) | flag(!incoming.is_empty(), PollFlags::OUT);
        let left = closing.as_ref().map_or(SILENCE, |closing| closing.until.saturating_duration_since(Instant::now()));
        // A side that has ended would only say so again and again.
        let [outer_ready, inner_ready] = wait(
            [
                (!outer_ended).then(|| PollFd::new(&outer.socket, outer_flags)),
                closing.is_none().then(|| PollFd::new(&inner, inner_flags)),
            ],
            left,
        )?;
        if reads && outer_ready.intersects(PollFlags::IN | PollFlags::HUP) {
            match connection.read_tls(&mut socket) {
                Ok(0) => outer_ended = true,
                Ok(_) => {
                    let processed = connection.process_new_packets();
                    if let Err(error) = processed {
                        // The alert says why.
                        let _ = connection.write_tls(&mut socket);
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
                Ok(0) => closing = Some(Closing { told: false, until: Instant::now() + outer.last_words() }),
                Ok(read) => outgoing.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Waits until one of two sides is ready; returns for which events each is. One that is left out is for none.
fn wait(sides: [Option<PollFd<'_>>; 2], limit: Duration) -> io::Result<[PollFlags; 2]> {
    let watched = sides.each_ref().map(Option::is_some);
    let mut polled: Vec<PollFd<'_>> = sides.into_iter().flatten().collect();
    match poll(&mut polled, Some(&Timespec::try_from(limit).map_err(io::Error::other)?)) {
        Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
        Err(error) if error != Errno::INTR => return Err(error.into()),
        _ => {}
    }
    let mut ready = polled.iter().map(PollFd::revents);
    let ready = watched.map(|watched| watched.then(|| ready.next()).flatten().unwrap_or(PollFlags::empty()));
    match ready.iter().any(|events| events.intersects(PollFlags::ERR | PollFlags::NVAL)) {
        true => Err(io::ErrorKind::BrokenPipe.into()),
        false => Ok(ready),
    }
}

/// The plain side has ended; what it said last is on its way.
struct Closing {
    /// The other side was told that this is the end.
    told: bool,
    until: Instant,
}

/// Takes plain bytes out of TLS, while there is room; tells whether no more will come.
fn take(connection: &mut Connection, incoming: &mut Vec<u8>) -> io::Result<bool> {
    while incoming.len() < ROOM {
        let mut bytes = [0; 16 << 10];
        match connection.reader().read(&mut bytes) {
            Ok(0) => return Ok(true),
            Ok(read) => incoming.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Writes as much as the socket takes.
fn give(to: &mut UnixStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(taken) => drop(bytes.drain(..taken)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // It listens no more, but may still have something to say.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => bytes.clear(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
