package org.apache.spark.sql.execution.tandem

import io.tandem.spark.Settings

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project, Sort}
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning
import org.apache.spark.sql.execution.{CoalesceExec, FilterExec, ProjectExec, SortExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
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

  /** Tells whether a plan is projections and filters of few rows that one stage left. */
  private def isSmall(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter => isSmall(plan.children.head)
    case stage: LogicalQueryStage =>
      val conf = plan.conf
      conf.coalesceShufflePartitionsEnabled && isFinished(stage.physicalPlan) &&
      stage.stats.sizeInBytes <= conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    case _ => false
  }

  /** Tells whether a plan makes no more rows of what a stage with a pipeline of ours left. */
  private def isFinished(plan: SparkPlan): Boolean = plan match {
    case _: BaseAggregateExec | _: ProjectExec | _: FilterExec | _: AQEShuffleReadExec => isFinished(plan.children.head)
    case stage: QueryStageExec => stage.isMaterialized && !isRanges(stage.plan) && stage.plan.exists(_.isInstanceOf[TandemExec])
    case _ => false
  }

  /** Tells whether a plan gives rows that have been shuffled for the sort already. */
  private def isRanges(plan: SparkPlan): Boolean = plan.outputPartitioning.isInstanceOf[RangePartitioning]
}
