package io.tandem.spark

import java.util.{Collections, Map => JavaMap, UUID}

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.sql.execution.tandem.{InPlace, Numbered, OnJvm, SmallSort, TandemColumnarRule, TandemExplain}

/** The plugin: `spark.plugins=io.tandem.spark.TandemPlugin` is all that a user sets.
  *
  * The driver's part adds the planner's rule to every session. The executor's part holds the node daemon, which it starts
  * unless `spark.tandem.socket` names one. The rule is in [[org.apache.spark.sql.execution.tandem]], which Spark's
  * visibility asks for; the protocol with the daemon is here.
  */
class TandemPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new TandemDriverPlugin
  override def executorPlugin(): ExecutorPlugin = new TandemExecutorPlugin
}

object TandemPlugin {
  /** What the driver tells the executors: the name of the application for the daemons. */
  val Application = "application"
}

/** Adds the session extension and the reasons of `explain` to the application's settings. */
class TandemDriverPlugin extends DriverPlugin {
  override def init(context: SparkContext, plugin: PluginContext): JavaMap[String, String] = {
    append(plugin, "spark.sql.extensions", classOf[TandemExtensions].getName)
    append(plugin, "spark.sql.extendedExplainProviders", classOf[TandemExplain].getName)
    // Partial aggregates leave few rows: a file for each of 200 partitions takes longer than sorting them into one.
    plugin.conf.setIfMissing("spark.shuffle.sort.bypassMergeThreshold", "1")
    // The pages of its hash tables are 64 MB otherwise, and clearing one takes longer than most build sides do.
    plugin.conf.setIfMissing("spark.buffer.pageSize", "4m")
    // Ids of applications repeat between masters, and there is none yet here; builds must never be taken for another's.
    Collections.singletonMap(TandemPlugin.Application, s"${context.appName}-${UUID.randomUUID()}")
  }

  override def receive(message: AnyRef): AnyRef = message match {
    case asked: OnJvm => OnJvm.answer(asked)
    case other => throw new IllegalArgumentException(s"nobody asks the driver for $other.")
  }

  /** Adds a name to a list of names. Sessions are made after this, from these settings. */
  private def append(plugin: PluginContext, key: String, name: String): Unit = {
    val names = plugin.conf.get(key, "").split(',').map(_.trim).filter(_.nonEmpty)
    if (!names.contains(name)) plugin.conf.set(key, (names :+ name).mkString(","))
  }
}

/** Starts the daemon with the executor and ends it with the executor. */
class TandemExecutorPlugin extends ExecutorPlugin {
  override def init(plugin: PluginContext, extra: JavaMap[String, String]): Unit = {
    Driver.context = plugin
    Daemon.open(plugin.conf, extra.get(TandemPlugin.Application), plugin.executorID)
  }

  override def shutdown(): Unit = Daemon.close()
}

/** The executor's way to the driver's part. */
object Driver {
  @volatile private[spark] var context: PluginContext = _

  def ask(message: AnyRef): Array[Byte] = context.ask(message).asInstanceOf[Array[Byte]]
}

/** Puts the rules into a session. */
class TandemExtensions extends SparkSessionExtensionsProvider {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectQueryStagePrepRule(_ => InPlace)
    extensions.injectQueryStagePrepRule(_ => Numbered)
    extensions.injectPlannerStrategy(_ => SmallSort)
    extensions.injectColumnar(_ => TandemColumnarRule)
  }
}
