package io.tandem.spark

import java.io.{EOFException, IOException, OutputStream}
import java.net.{StandardProtocolFamily, UnixDomainSocketAddress}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.{ReadableByteChannel, SocketChannel}
import java.nio.file.Path
import java.util.ArrayDeque

import io.tandem.proto.node.{Execute, Failure, Hello, Need, Trailer, Welcome}

/** The kinds of frames; `crates/node/proto/node.proto` is the reference. */
object Frame {
  val Hello: Byte = 1
  val Execute: Byte = 2
  val Block: Byte = 3
  val BlockEnd: Byte = 4
  val Ping: Byte = 7
  val Welcome: Byte = 65
  val Need: Byte = 66
  val Batches: Byte = 67
  val Trailer: Byte = 68
  val Failure: Byte = 69
  val Pong: Byte = 71
}

/** What the daemon says instead of an answer. */
final class NodeFailure(val failure: Failure) extends IOException(failure.getMessage)

/** A connection to the daemon, after the greeting. One thread uses it at a time; closing it from another one stops that. */
final class Connection private (channel: SocketChannel) extends AutoCloseable {
  private val header = ByteBuffer.allocate(5).order(ByteOrder.LITTLE_ENDIAN)
  private var greeting: Welcome = _

  /** Returns what the daemon said of itself. */
  def welcome: Welcome = greeting

  /** Sends one frame, whose payload is the buffers one after the other. */
  def send(kind: Byte, payload: ByteBuffer*): Unit = {
    header.clear()
    header.putInt(payload.map(_.remaining).sum).put(kind).flip()
    val buffers = (header +: payload).toArray
    while (buffers.exists(_.hasRemaining)) channel.write(buffers)
  }

  /** Reads the head of the next frame: its kind and the length of its payload, which the caller reads. */
  def receive(): (Byte, Int) = {
    header.clear()
    fill(header)
    header.flip()
    val length = header.getInt
    (header.get, length)
  }

  /** Reads what is left of a payload into a buffer; returns how many bytes, at least one. */
  def read(buffer: ByteBuffer): Int = {
    val read = channel.read(buffer)
    if (read < 0) throw new EOFException("the daemon closed the connection")
    read
  }

  /** Reads a whole payload. */
  def body(length: Int): ByteBuffer = {
    val buffer = ByteBuffer.allocate(length)
    fill(buffer)
    buffer.flip()
  }

  /** Sends a ping and waits for its answer. */
  def ping(): Unit = {
    send(Frame.Ping, ByteBuffer.allocate(0))
    receive() match {
      case (Frame.Pong, length) => body(length)
      case (kind, length) => unexpected(kind, length)
    }
  }

  /** Fails for a frame that has no place here. */
  def unexpected(kind: Byte, length: Int): Nothing = kind match {
    case Frame.Failure => throw new NodeFailure(Failure.parseFrom(body(length)))
    case _ => throw new IOException(s"the daemon sent a frame of kind $kind out of turn")
  }

  override def close(): Unit = channel.close()

  private def fill(buffer: ByteBuffer): Unit = while (buffer.hasRemaining) read(buffer)

  private def greet(hello: Hello): Unit = {
    send(Frame.Hello, ByteBuffer.wrap(hello.toByteArray))
    receive() match {
      case (Frame.Welcome, length) => greeting = Welcome.parseFrom(body(length))
      case (kind, length) => unexpected(kind, length)
    }
  }
}

object Connection {
  /** The version of the protocol that this jar speaks. */
  val Protocol = 1

  /** Connects to a daemon's socket and greets it, once it is known to be this user's. `opened` sees the connection before the
    * greeting, to be able to close it.
    *
    * @throws Untrusted if it may be another user's
    */
  def open(socket: Path, hello: Hello, opened: Connection => Unit): Connection = {
    val channel = SocketChannel.open(StandardProtocolFamily.UNIX)
    val connection = new Connection(channel)
    opened(connection)
    try {
      Trust.checkSocket(socket)
      channel.connect(UnixDomainSocketAddress.of(socket))
      Trust.checkPeer(channel, socket)
      connection.greet(hello)
      connection
    } catch {
      case error: Throwable =>
        channel.close()
        throw error
    }
  }
}

/** The answer to one command, as the bytes of an Arrow stream.
  *
  * @param block writes the block of an index, as an Arrow stream
  */
final class Answer(connection: Connection, command: Execute, block: (Int, OutputStream) => Unit)
    extends ReadableByteChannel {
  private val held = new ArrayDeque[ByteBuffer]
  private var left = 0 // bytes of the current frame that are still in the socket
  private var end: Option[Trailer] = None
  private var sent = 0

  connection.send(Frame.Execute, ByteBuffer.wrap(command.toByteArray))

  /** Returns the daemon's report, once all has been read. */
  def trailer: Option[Trailer] = end

  /** Returns how many blocks were sent. */
  def blocksSent: Int = sent

  /** Reads the answer up to `limit` bytes, so that what goes wrong until then goes wrong before a row is given out. */
  def hold(limit: Long): Unit = {
    var bytes = 0L
    while (end.isEmpty && bytes < limit) {
      advance()
      if (left > 0) {
        held.add(connection.body(left))
        bytes += left
        left = 0
      }
    }
  }

  override def read(target: ByteBuffer): Int = {
    if (held.isEmpty && left == 0 && end.isEmpty) advance()
    if (!held.isEmpty) {
      val source = held.peek()
      val count = math.min(source.remaining, target.remaining)
      target.put(source.slice(source.position(), count))
      source.position(source.position() + count)
      if (!source.hasRemaining) held.remove()
      count
    } else if (left > 0) {
      val part = target.slice(target.position(), math.min(left, target.remaining))
      val count = connection.read(part)
      target.position(target.position() + count)
      left -= count
      count
    } else -1
  }

  override def isOpen: Boolean = true

  /** Does nothing: the connection's owner closes it, or gives it back. */
  override def close(): Unit = ()

  /** Reads frames until one has bytes of the stream, or the answer has ended. */
  private def advance(): Unit =
    while (left == 0 && end.isEmpty) connection.receive() match {
      case (Frame.Batches, length) => left = length
      case (Frame.Trailer, length) => end = Some(Trailer.parseFrom(connection.body(length)))
      case (Frame.Need, length) => Need.parseFrom(connection.body(length)).getBlocksList.forEach(send(_))
      case (kind, length) => connection.unexpected(kind, length)
    }

  private def send(index: Integer): Unit = {
    val number = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(index).flip()
    val buffer = ByteBuffer.allocate(Answer.BlockBytes)
    def empty(): Unit = {
      buffer.flip()
      if (buffer.hasRemaining) connection.send(Frame.Block, number.duplicate(), buffer)
      buffer.clear()
    }
    block(
      index,
      new OutputStream {
        override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)
        override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
          var done = 0
          while (done < length) {
            val part = math.min(length - done, buffer.remaining)
            buffer.put(bytes, offset + done, part)
            done += part
            if (!buffer.hasRemaining) empty()
          }
        }
      })
    empty()
    connection.send(Frame.BlockEnd, number)
    sent += 1
  }
}

object Answer {
  /** Bytes of a frame of a block: large enough that headers cost nothing, far below a daemon's limit. */
  val BlockBytes: Int = 1 << 20
}
