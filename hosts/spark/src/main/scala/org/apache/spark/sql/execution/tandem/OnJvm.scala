package org.apache.spark.sql.execution.tandem

import java.lang.ref.WeakReference
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap

import io.tandem.spark.Driver

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.vectorized.ColumnarBatch

/** Asks the driver for Spark's own way to the rows of an RDD of ours. */
final case class OnJvm(rdd: Int)

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
    rdd.answer
  }

  /** Writes an RDD as an answer. */
  def write(onJvm: RDD[ColumnarBatch]): Array[Byte] = {
    know(onJvm)
    JavaUtils.bufferToArray(SparkEnv.get.closureSerializer.newInstance().serialize(onJvm))
  }

  /** Has an RDD know what it depends on, as Spark's scheduler does before it sends one: it forgets how it would find out. */
  private def know(rdd: RDD[_]): Unit = rdd.dependencies.foreach(dependency => know(dependency.rdd))

  /** Computes the rows of a task's splits, as the driver says. The splits are the task's own: Spark would not make the same ones
    * again if settings, files or the number of cores have changed since.
    */
  def rows(rdd: TandemRDD, share: Share, context: TaskContext): Iterator[ColumnarBatch] = {
    val answer = ByteBuffer.wrap(Driver.ask(OnJvm(rdd.id)))
    val onJvm = SparkEnv.get.closureSerializer.newInstance()
      .deserialize[RDD[ColumnarBatch]](answer, Thread.currentThread.getContextClassLoader)
    share.parts.iterator.flatMap(onJvm.iterator(_, context))
  }
}
