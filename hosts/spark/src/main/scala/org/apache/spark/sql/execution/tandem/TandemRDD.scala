package org.apache.spark.sql.execution.tandem

import java.io.IOException

import scala.jdk.CollectionConverters._

import io.tandem.proto.node.{Class => FailureClass, Execute, Trailer}
import io.tandem.spark.{Answer, Connection, Daemon, FallbackException, NodeFailure, Unavailable, Unsupported}
import org.apache.arrow.vector.ipc.ArrowStreamReader
import org.slf4j.LoggerFactory

import org.apache.spark.{Partition, SparkContext, TaskContext, TaskKilledException}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** The splits of one task: neighbours of those that Spark made for tasks of its own. */
final case class Share(index: Int, parts: Array[FilePartition]) extends Partition

object Share {
  /** The most bytes of files of a task, where there are more tasks than the cores need. */
  private val TaskBytes = 1L << 30

  /** Makes a task for each core, or more where they would read more than [[TaskBytes]]: what a task costs Spark is more than
    * the daemon needs for a split, and the daemon evens out what is left of its tasks over its cores.
    */
  def pack(parts: Array[FilePartition], cores: Int): Array[Share] = {
    val before = parts.scanLeft(0L)((bytes, part) => bytes + part.files.map(_.length).sum)
    val total = before.last
    val tasks = math.max(cores.toLong, (total + TaskBytes - 1) / TaskBytes)
    def share(index: Int): Long =
      if (parts.length <= tasks) index else (before(index).toDouble / math.max(total, 1) * tasks).toLong
    parts.indices.groupBy(share).toArray.sortBy(_._1).zipWithIndex.map { case ((_, indices), task) =>
      Share(task, indices.map(parts).toArray)
    }
  }
}

/** Runs a pipeline in the daemon.
  *
  * @param shares     which splits are the task's
  * @param spark      makes the same rows computed by Spark, for tasks that the daemon cannot run
  * @param command    an `Execute` without splits
  * @param strict     whether a task that the daemon cannot run fails
  */
final class TandemRDD(
    @transient sc: SparkContext,
    @transient shares: Array[Share],
    @transient spark: () => RDD[ColumnarBatch],
    command: Array[Byte],
    partitionSchema: StructType,
    builds: Array[BuildSide],
    strict: Boolean,
    metrics: Map[String, SQLMetric])
    extends RDD[ColumnarBatch](sc, Nil) {
  OnJvm.offer(this)

  /** The driver's: what executors are told, and the RDD itself, without which Spark would clear its broadcasts away. */
  @transient private lazy val onJvm: RDD[ColumnarBatch] = spark()
  @transient lazy val answer: Array[Byte] = OnJvm.write(onJvm)

  override protected def getPartitions: Array[Partition] = shares.toArray[Partition]

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    split.asInstanceOf[Share].parts.flatMap(_.preferredLocations()).distinct.toSeq

  override def compute(split: Partition, context: TaskContext): Iterator[ColumnarBatch] = {
    val task = s"stage ${context.stageId()}.${context.stageAttemptNumber()}, " +
      s"partition ${context.partitionId()}.${context.attemptNumber()}"
    val share = split.asInstanceOf[Share]
    try {
      if (context.attemptNumber() >= TandemRDD.Attempts && !strict)
        throw new Unsupported(s"its first ${TandemRDD.Attempts} attempts, with the daemon, failed")
      new TandemBatches(whole(share, task), builds, context, metrics)
    } catch {
      case reason @ (_: IOException | _: Unsupported) if !context.isInterrupted() && !Thread.currentThread.isInterrupted =>
        if (strict && !TandemRDD.ofTheData(reason)) throw new FallbackException(reason.getMessage)
        TandemRDD.log.warn(s"$task runs on the JVM: ${reason.getMessage}")
        metrics("tasksFallenBack") += 1
        OnJvm.rows(this, share, context)
      case _: IOException => throw new TaskKilledException(context.getKillReason().getOrElse("cancelled"))
    }
  }

  private def whole(share: Share, task: String): Execute = {
    val whole = Execute.parseFrom(command).toBuilder.setName(task)
    val table = whole.getTablesBuilder(0)
    for (part <- share.parts; file <- part.files) table.addSplits(Scans.split(file, partitionSchema))
    whole.build()
  }
}

object TandemRDD {
  private val log = LoggerFactory.getLogger("io.tandem.spark.Task")

  /** How many attempts of a task ask the daemon, unless the session is strict. One that lost the connection after rows were
    * given out, since they are taken too slowly, would lose it again and again; Spark makes four attempts.
    */
  private val Attempts = 2

  /** Tells whether a task failed for its data, such as an overflow: Spark then has an error of its own to raise. */
  private def ofTheData(reason: Throwable): Boolean = reason match {
    case failure: NodeFailure => failure.failure.getClass_ == FailureClass.CLASS_INPUT
    case _ => false
  }
}

/** The batches of one task. Construction asks the daemon, and waits until the answer is whole or so long that nothing but the
  * connection can still fail: until then the task can be run elsewhere.
  */
final class TandemBatches(
    command: Execute,
    builds: Array[BuildSide],
    context: TaskContext,
    metrics: Map[String, SQLMetric])
    extends Iterator[ColumnarBatch] {
  private val started = System.nanoTime
  private val daemon = Daemon.get
  @volatile private var connection: Connection = _ // none when the answer has been read
  private val answer = ask(attempts = 2)
  private val allocator = ArrowUtils.rootAllocator.newChildAllocator("tandem task", 0, Long.MaxValue)
  private val reader = new ArrowStreamReader(answer, allocator)
  private var batch: ColumnarBatch = _
  private var ready = false
  context.addTaskCompletionListener[Unit](_ => close())
  account()

  override def hasNext: Boolean = {
    if (!ready && !finished) {
      if (connection != null) context.killTaskIfInterrupted()
      ready = load()
      if (!ready) close()
    }
    ready
  }

  override def next(): ColumnarBatch = {
    if (!hasNext) throw new NoSuchElementException("the answer has ended")
    ready = false
    metrics("numOutputRows") += batch.numRows()
    batch
  }

  private var finished = false

  private def load(): Boolean = {
    if (answer.trailer.exists(_.getBatches == 0)) return false
    var more = reader.loadNextBatch()
    while (more && reader.getVectorSchemaRoot.getRowCount == 0) more = reader.loadNextBatch()
    if (more) {
      val root = reader.getVectorSchemaRoot
      if (batch == null) {
        val columns = root.getFieldVectors.asScala.map(vector => new ArrowColumnVector(vector): ColumnVector)
        batch = new ColumnarBatch(columns.toArray)
      }
      batch.setNumRows(root.getRowCount)
    } else {
      answer.hold(Long.MaxValue) // the trailer
      account()
    }
    more
  }

  /** Sends the command. A daemon that is lost before it answers is asked once more: it may have been started again. */
  private def ask(attempts: Int): Answer = {
    connection = daemon.borrow()
    val asked = connection
    // Closing the channel is what stops the daemon's work; a task that is blocked in a read can do nothing else.
    context.addTaskInterruptListener((_: TaskContext, _: String) => if (connection eq asked) asked.close())
    try {
      val answer = new Answer(connection, command, (index, output) => builds(index).write(output))
      answer.hold(TandemBatches.HeldBytes)
      answer
    } catch {
      case failure: NodeFailure =>
        if (failure.failure.getClass_ == FailureClass.CLASS_PROTOCOL) daemon.drop(connection)
        else daemon.release(connection)
        connection = null
        throw failure
      case error: Throwable =>
        daemon.lost(connection)
        connection = null
        error match {
          case _: IOException if attempts > 1 && !context.isInterrupted() && !error.isInstanceOf[Unavailable] =>
            ask(attempts - 1)
          case _ => throw error
        }
    }
  }

  /** Gives the connection back and fills the metrics, once the answer has been read. */
  private def account(): Unit = answer.trailer.foreach { trailer =>
    if (connection != null) {
      daemon.release(connection)
      connection = null
      count(trailer)
    }
  }

  private def count(trailer: Trailer): Unit = {
    metrics("rowsIn") += trailer.getRowsIn
    metrics("rowGroups") += trailer.getRowGroups
    metrics("rowGroupsSkipped") += trailer.getRowGroupsSkipped
    metrics("columnsCached") += trailer.getColumnsCached
    metrics("columnsDecoded") += trailer.getColumnsDecoded
    metrics("bytesRead") += trailer.getBytesRead
    metrics("bytesOut") += trailer.getBytesOut
    metrics("scanTime") += trailer.getScanNs
    metrics("computeTime") += trailer.getComputeNs
    metrics("waitTime") += trailer.getWaitNs
    metrics("taskTime") += System.nanoTime - started
    metrics("blocksSent") += answer.blocksSent
    metrics("devicePipelines") += trailer.getPipelinesList.asScala.count(_.getDevice.nonEmpty)
    val input = context.taskMetrics().inputMetrics
    input.incBytesRead(trailer.getBytesRead)
    input.incRecordsRead(trailer.getRowsIn)
  }

  private def close(): Unit = if (!finished) {
    finished = true
    if (connection != null) daemon.drop(connection)
    connection = null
    if (batch != null) batch.close()
    reader.close(false)
    allocator.close()
  }
}

object TandemBatches {
  /** Bytes of an answer that are held before the first batch is given out. Partial aggregates are far smaller. */
  val HeldBytes: Long = 32L << 20
}
