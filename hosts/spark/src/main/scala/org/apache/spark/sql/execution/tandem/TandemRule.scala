package org.apache.spark.sql.execution.tandem

import io.tandem.spark.{Fail, FallbackException, Settings, Silent, Unsupported, Warn}

import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.catalyst.expressions.{InputFileBlockLength, InputFileBlockStart, InputFileName}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{ColumnarRule, FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.internal.SQLConf

/** Puts [[TandemRule]] where Spark has every stage's final plan: partitions pruned, broadcasts made, with and without AQE. */
object TandemColumnarRule extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = TandemRule
}

/** Replaces the largest parts of a plan that the daemon can run; the others get a reason. */
object TandemRule extends Rule[SparkPlan] {
  /** Why a node was not taken. Tags are not part of a plan's meaning, so that they are put on the nodes themselves. */
  val Reason: TreeNodeTag[String] = TreeNodeTag[String]("tandem.reason")

  private val Lone = "what reads this scan is not a filter, projection, broadcast join or partial aggregate"

  override def apply(plan: SparkPlan): SparkPlan =
    if (!Settings.enabled(plan.conf)) InPlace.undo(plan)
    else {
      val taken = take(InPlace(Numbered(plan)))
      report(reasons(taken), plan.conf)
      taken
    }

  /** Does what the session wants about reasons, each with the name of its node. */
  def report(reasons: Seq[String], conf: SQLConf): Unit = if (reasons.nonEmpty) Settings.onFallback(conf) match {
    case Silent =>
    case Warn => reasons.foreach(reason => logWarning(s"Spark runs $reason"))
    case Fail => throw new FallbackException(reasons.mkString("; "))
  }

  /** Replaces what can be, and tags the rest. */
  def take(plan: SparkPlan): SparkPlan =
    InPlace.undo(if (usesInputFile(plan)) plan else replace(plan, reasoned = false))

  /** Returns the reasons in a plan, each with the name of its node. */
  def reasons(plan: SparkPlan): Seq[String] =
    plan.collect { case node => node.getTagValue(Reason).map(reason => s"${node.nodeName}: $reason") }.flatten.distinct

  /** @param reasoned whether a node above has the reason for this chain already */
  private def replace(plan: SparkPlan, reasoned: Boolean): SparkPlan =
    try TandemExec.take(plan) match {
        case Some(node) => node.mapChildren {
            case scan: FileSourceScanExec => scan
            case broadcast => replace(broadcast, reasoned = false)
          }
        case None =>
          plan match {
            case scan: FileSourceScanExec if !reasoned => scan.setTagValue(Reason, Lone)
            case _ =>
          }
          plan.mapChildren(replace(_, reasoned = false))
      }
    catch {
      case unsupported: Unsupported =>
        val rest = plan.mapChildren(replace(_, reasoned = true))
        if (!reasoned || !taken(rest)) rest.setTagValue(Reason, unsupported.reason)
        rest
    }

  private def taken(plan: SparkPlan): Boolean = plan.exists(_.isInstanceOf[TandemExec])

  /** Spark's scan tells these functions, wherever they stand, which file a row came from. */
  def usesInputFile(plan: SparkPlan): Boolean = plan.exists(_.expressions.exists(_.exists {
    case _: InputFileName | _: InputFileBlockStart | _: InputFileBlockLength => true
    case _ => false
  }))
}

/** What `explain` says of Tandem: what it runs, and the reasons for what it does not. */
class TandemExplain extends ExtendedExplainGenerator {
  override def title: String = "Tandem"

  override def generateExtendedInfo(plan: SparkPlan): String = {
    val stages = this.stages(plan)
    val nodes = stages.map(_.collect { case node: TandemExec => node }.size).sum
    val runs = if (nodes == 0) "runs nothing of this plan" else s"runs $nodes part${if (nodes == 1) "" else "s"} of this plan"
    (runs +: stages.flatMap(TandemRule.reasons).distinct).mkString("\n")
  }

  /** Returns the plans of all stages; of a plan that AQE has not finished, what would be taken now. */
  private def stages(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec if adaptive.isFinalPlan || adaptive.executedPlan.exists(_.isInstanceOf[QueryStageExec]) =>
      stages(adaptive.executedPlan)
    case adaptive: AdaptiveSparkPlanExec =>
      val enabled = Settings.enabled(adaptive.conf)
      // What is looked at gets tags that are not meant for what will run.
      Seq(if (enabled) TandemRule.take(adaptive.executedPlan.clone()) else adaptive.executedPlan)
    case stage: QueryStageExec => stages(stage.plan)
    case other =>
      val inner = other.collect { case stage: QueryStageExec => stage; case adaptive: AdaptiveSparkPlanExec => adaptive }
      other +: inner.flatMap(stages)
  }
}
