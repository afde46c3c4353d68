package org.apache.spark.sql.execution.tandem

import java.lang.ref.SoftReference
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import io.tandem.spark.{Settings, Unsupported}

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, DynamicPruning, PlanExpression}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans.physical.{BroadcastMode, BroadcastPartitioning, Partitioning}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, HashedRelation}

/** Leaves the build sides of joins to the daemon where they are filters and projections of files: it reads them itself, so
  * that Spark need not run a job, collect rows and broadcast them first.
  */
object InPlace extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = {
    val wanted = Settings.enabled(plan.conf) && Settings.buildBytes(plan.conf) > 0
    if (!wanted || TandemRule.usesInputFile(plan) || prunes(plan)) plan else place(plan)
  }

  /** Spark prunes partitions by what it broadcasts for a join. */
  private def prunes(plan: SparkPlan): Boolean =
    plan.exists(_.expressions.exists(_.exists(_.isInstanceOf[DynamicPruning])))

  /** Puts what was not taken in the end back to what Spark can run. */
  def undo(plan: SparkPlan): SparkPlan = plan.transformUp { case TandemBuild(mode, child) => BroadcastExchangeExec(mode, child) }

  private def place(plan: SparkPlan): SparkPlan = Capture.cut(plan).map(_ => builds(plan)) match {
    case Some(changed) if (changed ne plan) && isTaken(changed) => changed
    case _ => plan.mapChildren(place)
  }

  private def isTaken(plan: SparkPlan): Boolean =
    try TandemExec.make(plan).nonEmpty
    catch { case _: Unsupported => false }

  /** Replaces the broadcasts of a pipeline that can be, and looks for pipelines in the others. */
  private def builds(plan: SparkPlan): SparkPlan = plan match {
    case join: BroadcastHashJoinExec =>
      join.buildSide match {
        case BuildLeft => join.withNewChildren(Seq(build(join.left, join), builds(join.right)))
        case BuildRight => join.withNewChildren(Seq(builds(join.left), build(join.right, join)))
      }
    case other => other.mapChildren(builds)
  }

  private def build(plan: SparkPlan, join: BroadcastHashJoinExec): SparkPlan = plan match {
    case BroadcastExchangeExec(mode, child) if !join.isNullAwareAntiJoin && isPlain(child) => TandemBuild(mode, child)
    case other => other.mapChildren(place)
  }

  /** Tells whether a plan is one of filters and projections of not too many bytes of files, and can be taken. */
  private def isPlain(plan: SparkPlan): Boolean = isChain(plan) && (plan match {
    case scan: FileSourceScanExec => Try(Scans.check(scan, plan.conf)).isSuccess
    case _ => isTaken(plan)
  })

  private def isChain(plan: SparkPlan): Boolean = isKnown(plan) && (plan match {
    case scan: FileSourceScanExec => scan.relation.location.sizeInBytes <= Settings.buildBytes(plan.conf)
    case _: ProjectExec | _: FilterExec => isChain(plan.children.head)
    case _ => false
  })

  /** Tells whether a node needs no other query's result. */
  private def isKnown(plan: SparkPlan): Boolean = !plan.expressions.exists(_.exists(_.isInstanceOf[PlanExpression[_]]))
}

/** The build side of a join that the daemon makes of files. A task that runs on the JVM makes it there. */
case class TandemBuild(mode: BroadcastMode, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = BroadcastPartitioning(mode)
  override protected def doCanonicalize(): SparkPlan = TandemBuild(mode.canonicalized, child.canonicalized)
  override protected def withNewChildInternal(changed: SparkPlan): SparkPlan = copy(child = changed)

  override protected def doExecute(): RDD[InternalRow] =
    throw new IllegalStateException("a build side is asked for as a broadcast")

  override protected[sql] def doExecuteBroadcast[T](): Broadcast[T] = {
    val rows = child.execute()
    new BuiltHere(UUID.randomUUID().toString, rows, rows.partitions, mode).asInstanceOf[Broadcast[T]]
  }
}

/** A relation that each executor makes of its rows if it is asked for, instead of one that the driver sent. */
final class BuiltHere(name: String, rows: RDD[InternalRow], partitions: Array[Partition], mode: BroadcastMode)
    extends Broadcast[HashedRelation](-1) {

  override protected def getValue(): HashedRelation = BuiltHere.held(name).value {
    val context = TaskContext.get()
    val all = partitions.iterator.flatMap(rows.iterator(_, context)).map(_.copy())
    mode.transform(all, None).asInstanceOf[HashedRelation]
  }

  override protected def doUnpersist(blocking: Boolean): Unit = ()
  override protected def doDestroy(blocking: Boolean): Unit = ()
}

object BuiltHere {
  private val relations = new ConcurrentHashMap[String, Held]

  /** A relation that the tasks of an executor share, for as long as there is memory for it. */
  private final class Held {
    private var relation = new SoftReference[HashedRelation](null)

    def isEmpty: Boolean = relation.get == null

    def value(make: => HashedRelation): HashedRelation = synchronized {
      Option(relation.get).getOrElse {
        val made = make
        relation = new SoftReference(made)
        made
      }
    }
  }

  private def held(name: String): Held = {
    if (!relations.containsKey(name)) relations.values.removeIf(_.isEmpty)
    relations.computeIfAbsent(name, _ => new Held)
  }
}
