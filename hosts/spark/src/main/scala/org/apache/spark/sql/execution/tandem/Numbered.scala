package org.apache.spark.sql.execution.tandem

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{FileSourceScanExec, SampleExec, SparkPlan}

/** Marks the scans of a query that sees the numbers of partitions or the places of rows in them, as samples, `rand(42)` and
  * `monotonically_increasing_id()` do. Their tasks are Spark's own splits, so that Spark's rows come of them.
  *
  * The whole query is looked at, since a round-robin exchange hands the numbers on: for AQE before stages are cut from it.
  */
object Numbered extends Rule[SparkPlan] {
  private val Mark = TreeNodeTag[Boolean]("tandem.numbered")

  override def apply(plan: SparkPlan): SparkPlan = {
    if (plan.exists(sees)) plan.foreach {
      case scan: FileSourceScanExec => scan.setTagValue(Mark, true)
      case _ =>
    }
    plan
  }

  /** Tells whether a scan's splits must stay as they are. */
  def is(scan: FileSourceScanExec): Boolean = scan.getTagValue(Mark).isDefined

  private def sees(node: SparkPlan): Boolean = node.isInstanceOf[SampleExec] || node.expressions.exists(!_.deterministic)
}
