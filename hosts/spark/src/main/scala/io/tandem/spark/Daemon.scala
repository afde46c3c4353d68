package io.tandem.spark

import java.io.IOException
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.control.NonFatal

import io.tandem.proto.node.Hello
import org.slf4j.LoggerFactory

import org.apache.spark.SparkConf
import org.apache.spark.network.util.JavaUtils

/** Says why no daemon can be asked now. */
final class Unavailable(message: String, cause: Throwable = null) extends IOException(message, cause)

/** The daemon of this node, as one process of Spark sees it: its connections, whether it lives, and starting it again.
  *
  * The first process that finds no daemon at the node's socket starts one, under a lock on a file beside it; that daemon ends
  * with the process, since it reads the pipe that the process holds. Others then start another. A daemon that ends is
  * started again by one thread at a time, ever later if it keeps ending: meanwhile tasks run on the JVM.
  */
final class Daemon(conf: SparkConf, application: String, executor: String) {
  private val log = LoggerFactory.getLogger(classOf[Daemon])
  private val launcher = new Launcher(conf)
  private val hangLimit = JavaUtils.timeStringAs(conf.get(Settings.HangLimit, "10s"), TimeUnit.MILLISECONDS)
  private val idle = new ConcurrentLinkedQueue[Connection]
  private val open = ConcurrentHashMap.newKeySet[Connection]
  private val running = new AtomicInteger
  @volatile private var closed = false
  @volatile private var avoidUntil = System.nanoTime // after another process's daemon hung, by System.nanoTime
  private var failures = 0        // to start it, one after the other
  private var notBefore = System.nanoTime // when it may be tried again, by System.nanoTime
  private var lastFailure = ""

  private val hello = Hello.newBuilder
    .setProtocol(Connection.Protocol)
    .setClientVersion(Daemon.version)
    .setToken(conf.get(Settings.Token, ""))
    .setApplication(application)
    .setExecutor(s"$application/$executor")
    .setCores(Settings.cores(conf))
    .build()

  private val watch = new Thread(() => watchForHangs(), "tandem-watch")
  watch.setDaemon(true)
  watch.start()
  // Starting takes a moment that the first query should not wait for.
  private val starter = new Thread(() => try release(borrow()) catch { case NonFatal(_) => }, "tandem-start")
  starter.setDaemon(true)
  starter.start()

  /** Returns a connection that no other thread uses. [[release]] or [[drop]] it.
    *
    * @throws Unavailable if there is no daemon and none can be started now
    */
  def borrow(): Connection = {
    if (System.nanoTime < avoidUntil) throw new Unavailable("the daemon hangs")
    running.incrementAndGet() // from here on the watch looks
    try Option(idle.poll()).getOrElse(connect())
    catch {
      case error: Throwable =>
        running.decrementAndGet()
        throw error
    }
  }

  /** Gives a connection back for the next command. */
  def release(connection: Connection): Unit = {
    running.decrementAndGet()
    if (closed || !open.contains(connection)) connection.close() else idle.add(connection)
  }

  /** Closes a connection whose command did not end well: the daemon stops the command. */
  def drop(connection: Connection): Unit = {
    running.decrementAndGet()
    forget(connection)
  }

  /** Closes a connection that broke, and the idle ones: if the daemon ended, they are of no use either. */
  def lost(connection: Connection): Unit = {
    drop(connection)
    Iterator.continually(idle.poll()).takeWhile(_ != null).foreach(forget)
  }

  /** Closes all connections, and ends the daemon if it was started here. */
  def close(): Unit = {
    closed = true
    watch.interrupt()
    end()
  }

  private def forget(connection: Connection): Unit = {
    open.remove(connection)
    connection.close()
  }

  private def closeConnections(): Unit = {
    idle.clear()
    open.forEach(forget(_))
  }

  private def end(): Unit = {
    closeConnections()
    launcher.end()
  }

  private def connect(): Connection =
    try greet()
    catch {
      case failure: NodeFailure => throw new Unavailable(s"the daemon refuses: ${failure.getMessage}", failure)
      case _: IOException => startAndConnect()
    }

  private def greet(): Connection = {
    var connection: Connection = null
    try Connection.open(launcher.socket, hello, made => { connection = made; open.add(made) })
    catch {
      case error: Throwable =>
        if (connection != null) forget(connection)
        throw error
    }
  }

  /** Starts the daemon unless another thread or process did meanwhile. One thread at a time; the others wait for it. */
  private def startAndConnect(): Connection = synchronized {
    if (closed) throw new Unavailable("the executor is ending")
    if (System.nanoTime < notBefore)
      throw new Unavailable(s"the daemon is not there and will be started again soon: $lastFailure")
    try {
      idle.clear() // of the daemon that is no more
      val connection = launcher.start(() => greet())
      failures = 0
      log.info(
        s"Tandem's daemon ${connection.welcome.getDaemonVersion}, process ${connection.welcome.getPid}, " +
          s"serves at ${launcher.socket}")
      connection
    } catch {
      case error: IOException =>
        failures += 1
        // 0.2 s, 0.4 s, …, at most half a minute.
        notBefore = System.nanoTime + math.min(30000L, 100L << math.min(failures, 20)) * 1000000L
        lastFailure = error.getMessage
        log.warn(s"Tandem's daemon cannot be used (tasks run on the JVM): ${error.getMessage}")
        throw new Unavailable(error.getMessage, error)
    } finally if (closed) end() // close() may have come before there was a process to end
  }

  /** Pings the daemon while commands run, or always if it was started here, for others too. One that does not answer is ended,
    * and its commands with it.
    */
  private def watchForHangs(): Unit = {
    val period = math.max(100L, math.min(1000L, hangLimit / 4))
    try
      while (!closed) {
        Thread.sleep(period)
        if (running.get > 0 || launcher.owns) {
          val ping = new Thread(() => try askAlive() catch { case NonFatal(_) => }, "tandem-ping")
          ping.setDaemon(true)
          ping.start()
          ping.join(hangLimit)
          if (ping.isAlive && !closed) {
            log.warn(s"Tandem's daemon has not answered for $hangLimit ms and is taken for hung")
            if (launcher.owns) launcher.kill() else avoidUntil = System.nanoTime + hangLimit * 1000000L
            closeConnections()
            ping.join()
          }
        }
      }
    catch { case _: InterruptedException => }
  }

  private def askAlive(): Unit = {
    val connection = greet()
    try connection.ping()
    finally forget(connection)
  }
}

/** The one of this process. */
object Daemon {
  @volatile private var current: Option[Daemon] = None

  /** The version of the jar, for people. */
  val version: String = Option(classOf[Daemon].getPackage.getImplementationVersion).getOrElse("development")

  def open(conf: SparkConf, application: String, executor: String): Unit = synchronized {
    if (current.isEmpty) current = Some(new Daemon(conf, application, executor))
  }

  def close(): Unit = synchronized {
    current.foreach(_.close())
    current = None
  }

  /** Returns the process's daemon.
    *
    * @throws Unavailable if the plugin was not started here
    */
  def get: Daemon = current.getOrElse(
    throw new Unavailable("this executor runs without spark.plugins=io.tandem.spark.TandemPlugin"))
}
