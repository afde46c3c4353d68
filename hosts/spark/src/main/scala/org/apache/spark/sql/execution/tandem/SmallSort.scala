package org.apache.spark.sql.execution.tandem

import io.tandem.spark.Settings

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Sort}
import org.apache.spark.sql.execution.{CoalesceExec, SortExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.internal.SQLConf

/** Sorts what a pipeline left in the task that finishes it, once AQE knows that it is less than one partition should have.
  * Spark would sample it, shuffle it by ranges and put them together again, which takes longer than the pipeline.
  */
object SmallSort extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case Sort(order, true, child, _) if Settings.enabled(child.conf) && isSmall(child) =>
      Seq(SortExec(order, global = true, CoalesceExec(1, planLater(child))))
    case _ => Nil
  }

  private def isSmall(plan: LogicalPlan): Boolean = {
    val stages = plan.collectLeaves().map {
      case stage: LogicalQueryStage if stage.isMaterialized => Some(stage)
      case _ => None
    }
    val most = plan.conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    stages.forall(_.nonEmpty) && stages.flatten.exists(stage => isTaken(stage.physicalPlan)) &&
    stages.flatten.map(_.stats.sizeInBytes).sum <= most
  }

  private def isTaken(plan: SparkPlan): Boolean = plan.exists {
    case _: TandemExec => true
    case stage: QueryStageExec => isTaken(stage.plan)
    case _ => false
  }
}
