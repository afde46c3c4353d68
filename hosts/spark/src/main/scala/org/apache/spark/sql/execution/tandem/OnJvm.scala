package org.apache.spark.sql.execution.tandem

import java.lang.ref.WeakReference
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap

import io.tandem.spark.Driver

import org.apache.spark.{Partition, SparkEnv, TaskContext}
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Asks the driver for Spark's own way to the rows of some splits. */
final case class OnJvm(rdd: Int, splits: Array[Int])

/** Tasks that the daemon cannot run. Hardly any query has one, so Spark's plan for them is made when the first asks, instead of
  * being prepared with every query and sent with every task.
  */
object OnJvm {
  /** What may be asked for: for as long as the driver has a use for it. */
  private val offered = new ConcurrentHashMap[Int, WeakReference[TandemRDD]]

  def offer(rdd: TandemRDD): Unit = {
    offered.values.removeIf(_.get == null)
    offered.put(rdd.id, new WeakReference(rdd))
  }

  /** Answers an executor. */
  def answer(asked: OnJvm): Array[Byte] = {
    val rdd = Option(offered.get(asked.rdd)).flatMap(known => Option(known.get)).getOrElse {
      throw new IllegalStateException(s"the query of RDD ${asked.rdd} has ended; run it again.")
    }
    val onJvm = rdd.onJvm
    val splits = asked.splits.map(onJvm.partitions)
    JavaUtils.bufferToArray(SparkEnv.get.closureSerializer.newInstance().serialize((onJvm, splits)))
  }

  /** Computes the rows of a task's splits, as the driver says. */
  def rows(rdd: TandemRDD, share: Share, context: TaskContext): Iterator[ColumnarBatch] = {
    val answer = ByteBuffer.wrap(Driver.ask(OnJvm(rdd.id, share.parts.map(_.index))))
    val (onJvm, splits) = SparkEnv.get.closureSerializer.newInstance()
      .deserialize[(RDD[ColumnarBatch], Array[Partition])](answer, Thread.currentThread.getContextClassLoader)
    splits.iterator.flatMap(onJvm.iterator(_, context))
  }
}
