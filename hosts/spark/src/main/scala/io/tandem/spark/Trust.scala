package io.tandem.spark

import java.io.IOException
import java.nio.channels.SocketChannel
import java.nio.file.{Files, LinkOption, NoSuchFileException, Path, Paths}

import jdk.net.ExtendedSocketOptions.SO_PEERCRED

/** Says why nothing was sent to a socket: whoever listens there may be another user. */
final class Untrusted(reason: String)
    extends IOException(s"this is not a daemon of this user, nothing was sent to it: $reason")

/** Whom the plugin speaks to: only a daemon of its own user, as `crates/node/src/trust.rs` has it for Rust's client.
  *
  * A greeting carries the token, and commands carry plans and rows. So before every greeting the socket's directory must be this
  * user's and closed to others, the socket this user's, and so the process behind it, by the kernel's word (SO_PEERCRED).
  */
object Trust {
  /** This process's user. */
  val user: Int = Files.getAttribute(Paths.get("/proc/self"), "unix:uid").asInstanceOf[Int]

  /** Checks that a directory is this user's, that nobody else may enter it, and that no link leads to it.
    *
    * @throws Untrusted with what is wrong
    */
  def checkDirectory(directory: Path): Unit = {
    val (isDirectory, owner, mode) = look(directory)
    def wrong(what: String) = throw new Untrusted(s"$directory $what: use a directory of your own with mode 0700")
    if (!isDirectory) wrong("is not a directory, or a link to one")
    if (owner != user) wrong(s"belongs to user $owner, not to $user")
    if ((mode & Others) != 0) wrong(f"is open to others (mode 0${mode & Mode}%o)")
  }

  /** Checks a socket before a connection is made.
    *
    * @throws java.nio.file.NoSuchFileException if there is none
    */
  def checkSocket(socket: Path): Unit = {
    if (!Files.exists(socket, LinkOption.NOFOLLOW_LINKS)) throw new NoSuchFileException(socket.toString)
    checkDirectory(Option(socket.getParent).getOrElse(Paths.get(".")))
    val (_, owner, mode) = look(socket)
    if ((mode & Kind) != Socket) throw new Untrusted(s"$socket is not a socket")
    if (owner != user) throw new Untrusted(s"$socket belongs to user $owner, not to $user")
  }

  /** Checks who listens, before anything is sent. */
  def checkPeer(channel: SocketChannel, socket: Path): Unit = {
    val peer = channel.getOption(SO_PEERCRED).user
    val own = Files.getOwner(Paths.get("/proc/self"))
    if (peer != own)
      throw new Untrusted(s"a process of user ${peer.getName} listens on $socket, not one of user ${own.getName}")
  }

  /** Returns the directory that an environment variable names. One that is empty or relative counts as not set: it would mean
    * another place wherever a process is started.
    */
  def directoryVariable(name: String): Option[Path] =
    Option(System.getenv(name)).map(Paths.get(_)).filter(_.isAbsolute)

  /** Tells of a file, or of a link itself, whether it is a directory, whose it is, and its mode. */
  private def look(path: Path): (Boolean, Int, Int) = {
    val found = Files.readAttributes(path, "unix:uid,mode", LinkOption.NOFOLLOW_LINKS)
    val mode = found.get("mode").asInstanceOf[Int]
    ((mode & Kind) == Directory, found.get("uid").asInstanceOf[Int], mode)
  }

  // Of a file's mode: what it is, and the rights of all and of others than its owner.
  private val Kind = 0xf000
  private val Directory = 0x4000
  private val Socket = 0xc000
  private val Mode = 0xfff
  private val Others = 0x3f
}
