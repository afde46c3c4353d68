package io.tandem.spark

import java.io.{BufferedReader, IOException, InputStreamReader}
import java.nio.channels.FileChannel
import java.nio.file.{Files, LinkOption, Path, Paths, StandardCopyOption, StandardOpenOption}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import org.slf4j.LoggerFactory

import org.apache.spark.SparkConf
import org.apache.spark.network.util.JavaUtils

/** Starts the node's daemon from the executable in the jar, and ends it.
  *
  * The directory is the user's own, so that its permissions are the access control of the socket in it.
  */
final class Launcher(conf: SparkConf) {
  private val log = LoggerFactory.getLogger(classOf[Daemon])
  private val foreign = conf.get(Settings.Socket, "").trim
  private val directory = conf.get(Settings.Directory, "").trim match {
    case "" => Launcher.directory
    case path => Paths.get(path)
  }
  @volatile private var process: Option[Process] = None
  @volatile private var lastLine = ""

  /** Where the daemon listens. */
  val socket: Path = if (foreign.nonEmpty) Paths.get(foreign) else directory.resolve("node.sock")

  /** Connects to the daemon, started if need be.
    *
    * @throws IOException with one sentence if there is none
    */
  def start(connect: () => Connection): Connection =
    if (foreign.nonEmpty) {
      try connect()
      catch {
        case failure @ (_: NodeFailure | _: Untrusted) => throw failure
        case error: IOException =>
          throw new IOException(
            s"no daemon answers at $foreign, which ${Settings.Socket} names: start one with `tandem serve`" +
              s" or unset it (${error.getMessage})")
      }
    } else {
      makeDirectory(directory)
      val lock = FileChannel.open(directory.resolve("node.lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)
      try {
        lock.lock()
        try connect()
        catch {
          case failure: NodeFailure => throw failure
          case _: IOException =>
            launch()
            awaitStart(connect)
        }
      } finally lock.close()
    }

  /** Tells whether the daemon was started here. */
  def owns: Boolean = process.exists(_.isAlive)

  /** Ends a daemon that hangs and was started here. */
  def kill(): Unit = process.foreach(_.destroyForcibly().waitFor(2, TimeUnit.SECONDS))

  /** Ends the daemon, if it was started here. */
  def end(): Unit = synchronized {
    process.foreach { process =>
      process.getOutputStream.close() // it ends by itself, unless it hangs
      if (!process.waitFor(2, TimeUnit.SECONDS)) process.destroyForcibly().waitFor(2, TimeUnit.SECONDS)
    }
    process = None
  }

  private def launch(): Unit = {
    end()
    Files.deleteIfExists(socket)
    val binary = conf.get(Settings.Binary, "").trim match {
      case "" => extract()
      case path => Paths.get(path)
    }
    // It may use all cores, for all executors of the node; each says in its greeting how many are its own.
    val command = Seq(
      binary.toString, "--socket", socket.toString, "--with-parent", "--log", "warn",
      "--client-timeout", Launcher.ClientSeconds.toString, "--time-limit", Launcher.TimeLimitSeconds.toString) ++
      conf.getOption(Settings.Memory).filter(_.nonEmpty).toSeq
        .flatMap(memory => Seq("--cache", JavaUtils.byteStringAsMb(memory).toString))
    log.info(s"Starting Tandem's daemon: ${command.mkString(" ")}")
    val builder = new ProcessBuilder(command.asJava).redirectErrorStream(true)
    // Memory of columns that went is the next ones' for ten seconds, before the system gets it back: faulting it in anew takes a
    // good part of the time of decoding a column, and on virtual machines sometimes more.
    builder.environment.putIfAbsent("MIMALLOC_PURGE_DELAY", "10000")
    val started = builder.start()
    synchronized { process = Some(started) } // not while another thread ends the one before
    val reader = new Thread(() => copyLog(started), "tandem-log")
    reader.setDaemon(true)
    reader.start()
  }

  private def awaitStart(connect: () => Connection): Connection = {
    val deadline = System.nanoTime + TimeUnit.SECONDS.toNanos(20)
    while (true) {
      val alive = process.exists(_.isAlive)
      try return connect()
      catch {
        case failure: NodeFailure => throw failure
        case error: IOException =>
          if (!alive) throw new IOException(s"the daemon ended at once: $lastLine")
          if (System.nanoTime > deadline) throw new IOException(s"the daemon did not start in 20 s: ${error.getMessage}")
          Thread.sleep(5)
      }
    }
    throw new IllegalStateException("not reached")
  }

  /** Copies the daemon's log into Spark's. */
  private def copyLog(process: Process): Unit = {
    val reader = new BufferedReader(new InputStreamReader(process.getInputStream))
    try reader.lines().forEach { line =>
      lastLine = line
      log.info(s"daemon: $line")
    }
    catch { case _: java.io.UncheckedIOException => }
  }

  /** Unpacks the executable, once for each version of the jar. */
  private def extract(): Path = {
    val platform = s"${System.getProperty("os.name").toLowerCase}-${System.getProperty("os.arch")}"
      .replace("amd64", "x86_64")
    val resource = s"/tandem/$platform/tandem-node"
    val source = getClass.getResourceAsStream(resource)
    if (source == null)
      throw new IOException(
        s"this jar has no daemon for $platform: set ${Settings.Socket} to the socket of a running one")
    try {
      val executable = Files.createTempFile(
        directory,
        "tandem-node-",
        "",
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))
      Files.copy(source, executable, StandardCopyOption.REPLACE_EXISTING)
      Files.setPosixFilePermissions(executable, PosixFilePermissions.fromString("rwx------"))
      val place = directory.resolve("tandem-node")
      Files.move(executable, place, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
      place
    } finally source.close()
  }

  private def makeDirectory(path: Path): Unit = {
    val own = PosixFilePermissions.fromString("rwx------")
    if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS))
      try Files.createDirectories(path, PosixFilePermissions.asFileAttribute(own))
      catch { case _: java.nio.file.FileAlreadyExistsException => } // another process of the node was faster
    try Trust.checkDirectory(path)
    catch {
      case error: Untrusted => throw new IOException(s"${error.getMessage}, and set ${Settings.Directory} to it", error)
    }
  }
}

object Launcher {
  /** How long a task may go without taking a part of a large result. What reads the rows may be slow, such as a sort that spills
    * or a Python function, and a task that ends closes its connection: only an executor that is stopped holds memory for so long.
    */
  private val ClientSeconds = TimeUnit.HOURS.toSeconds(1)

  /** The daemon's own limit of a command, above what [[Settings.TimeLimit]] sets: Spark knows when a task is to end. */
  private val TimeLimitSeconds = TimeUnit.DAYS.toSeconds(1)

  /** The directory of this user's daemon on this machine: the one that `tandem serve` takes too. */
  private def directory: Path = Trust.directoryVariable("XDG_RUNTIME_DIR") match {
    case Some(path) => path.resolve("tandem")
    case None => Paths.get(System.getProperty("java.io.tmpdir"), s"tandem-${Trust.user}")
  }
}
