package io.tandem.spark

import org.apache.spark.SparkConf
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.internal.SQLConf

/** The settings, each with its default. Those of a session are read for every plan, the others when a process starts. */
object Settings {
  // of a session
  val Enabled = "spark.tandem.enabled"       // true: Tandem runs what it can
  val OnFallback = "spark.tandem.onFallback" // warn: log each reason; error: fail the query; silent: only explain tells
  val FloatSums = "spark.tandem.floatSums"   // true: sums of floats may differ from Spark's in the last digits
  val Mode = "spark.tandem.mode"             // cpu, gpu, or empty: as the daemon was started
  val BuildBytes = "spark.tandem.buildBytes" // 128m: build sides of joins over files up to this size are read by the daemon
  val TimeLimit = "spark.tandem.timeLimit"   // of one task's command, such as 10min; 0: the daemon's
  // of a process
  val Socket = "spark.tandem.socket"         // of a daemon that runs already; empty: each node starts one
  val Directory = "spark.tandem.directory"   // of the node's socket and executable; empty: the user's, as for `tandem serve`
  val Token = "spark.tandem.token"           // what that daemon asks for, if it does
  val Cores = "spark.tandem.cores"           // cores that the executor's commands may use at once; 0: those Spark gave it
  val Memory = "spark.tandem.memory"         // bytes of its column cache, such as 4g; empty: the daemon's default
  val Binary = "spark.tandem.binary"         // the daemon's executable; empty: the one in the jar
  val HangLimit = "spark.tandem.hangLimit"   // how long a daemon may not answer before it is taken for hung: 10s

  /** Tells whether the session wants Tandem. */
  def enabled(conf: SQLConf): Boolean = conf.getConfString(Enabled, "true").trim.toLowerCase match {
    case "true" => true
    case "false" => false
    case other => throw new IllegalArgumentException(s"$Enabled is true or false, not '$other'.")
  }

  /** Tells what a session does about parts that Tandem does not run. */
  def onFallback(conf: SQLConf): OnFallback = conf.getConfString(OnFallback, "warn").trim.toLowerCase match {
    case "warn" => Warn
    case "error" => Fail
    case "silent" => Silent
    case other => throw new IllegalArgumentException(s"$OnFallback is warn, error or silent, not '$other'.")
  }

  /** Tells whether sums of floats may be computed in another order than Spark's. */
  def floatSums(conf: SQLConf): Boolean = conf.getConfString(FloatSums, "true").trim.toLowerCase == "true"

  /** Returns how large the files of a build side may be that a daemon makes itself; 0: Spark broadcasts them all. */
  def buildBytes(conf: SQLConf): Long = {
    val text = conf.getConfString(BuildBytes, "128m")
    try JavaUtils.byteStringAsBytes(text)
    catch { case _: NumberFormatException => throw new IllegalArgumentException(s"$BuildBytes is a size such as 128m, not '$text'.") }
  }

  /** Returns the cores that Spark gave an executor: what its daemon's threads are capped by. */
  def cores(conf: SparkConf): Int = {
    val set = conf.getInt(Cores, 0)
    val local = """local\[(\d+)[,\]].*""".r
    if (set > 0) set
    else
      conf.get("spark.master", "") match {
        case local(count) => count.toInt
        case "local" => 1
        case _ => conf.getInt("spark.executor.cores", Runtime.getRuntime.availableProcessors)
      }
  }
}

/** What to do about a part of a plan that Tandem does not run. */
sealed trait OnFallback extends Serializable
case object Warn extends OnFallback
case object Fail extends OnFallback
case object Silent extends OnFallback

/** Says why a part of a plan cannot run on Tandem. */
final class Unsupported(val reason: String) extends Exception(reason, null, false, false)

/** What `spark.tandem.onFallback=error` makes of a reason. */
final class FallbackException(reason: String)
    extends RuntimeException(
      s"Tandem does not run this: $reason. Set ${Settings.OnFallback}=warn to let Spark run it.")
