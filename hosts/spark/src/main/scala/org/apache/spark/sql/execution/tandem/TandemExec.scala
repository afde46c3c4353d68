package org.apache.spark.sql.execution.tandem

import io.tandem.proto.node.{Block, Execute, Mode}
import io.tandem.spark.{Fail, Settings, Unsupported}

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SortOrder}
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.joins.HashedRelation
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** A pipeline that the daemon runs: the node that takes the place of a part of Spark's plan.
  *
  * @param plan       the part, with its inputs replaced by [[TandemInput]]
  * @param children   the inputs: the scan, whose files the daemon reads itself, then scans of builds, and broadcasts
  * @param scalars    the scalar subqueries in `plan`, where Spark finds them to run them
  */
case class TandemExec(plan: SparkPlan, children: Seq[SparkPlan], scalars: Seq[Expression]) extends SparkPlan {
  override def nodeName: String = "Tandem"
  override def output: Seq[Attribute] = plan.output
  override def supportsColumnar: Boolean = true
  override def outputPartitioning: Partitioning = replaced.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = Nil

  /** Spark's own plan for the same rows, over the present inputs. */
  private lazy val replaced: SparkPlan = plan.transformUp { case TandemInput(index, _) => TandemExec.bare(children(index)) }

  override protected def doCanonicalize(): SparkPlan =
    TandemExec(replaced.canonicalized, children.map(_.canonicalized), Nil)

  override protected def withNewChildrenInternal(changed: IndexedSeq[SparkPlan]): SparkPlan = copy(children = changed)

  override def simpleString(maxFields: Int): String = s"Tandem ${TandemExec.describe(plan).mkString(" ← ")}"

  override def verboseStringWithOperatorId(): String =
    s"""$formattedNodeName
       |${ExplainUtils.generateFieldString("Output", output)}
       |Pipeline: ${TandemExec.describe(plan).mkString(" ← ")}
       |""".stripMargin

  override lazy val metrics: Map[String, SQLMetric] = {
    def count(text: String) = SQLMetrics.createMetric(sparkContext, text)
    def bytes(text: String) = SQLMetrics.createSizeMetric(sparkContext, text)
    def time(text: String) = SQLMetrics.createNanoTimingMetric(sparkContext, text)
    Map(
      "numOutputRows" -> count("number of output rows"),
      "rowsIn" -> count("rows of the row groups read"),
      "rowGroups" -> count("row groups"),
      "rowGroupsSkipped" -> count("row groups skipped"),
      "columnsCached" -> count("columns of row groups found in the cache"),
      "columnsDecoded" -> count("columns of row groups decoded"),
      "bytesRead" -> bytes("bytes read from files"),
      "bytesOut" -> bytes("bytes of results"),
      "scanTime" -> time("time to scan"),
      "computeTime" -> time("time to compute"),
      "waitTime" -> time("time to wait for builds"),
      "taskTime" -> time("time in the daemon, as tasks see it"),
      "blocksSent" -> count("builds sent"),
      "devicePipelines" -> count("pipelines run on devices"),
      "tasksFallenBack" -> count("tasks run on the JVM"))
  }

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] =
    try inDaemon()
    catch {
      case unsupported: Unsupported =>
        TandemRule.report(Seq(s"$nodeName: ${unsupported.reason}"), conf)
        onJvm()
    }

  /** Has Spark compute the same rows, split by split. */
  private def onJvm(): RDD[ColumnarBatch] =
    session.withActive(TandemExec.onJvm(replaced, scalars).executeColumnar())

  private def inDaemon(): RDD[ColumnarBatch] = {
    val scan = TandemExec.bare(children.head).asInstanceOf[FileSourceScanExec]
    val values = scalars.collect { case subquery: ScalarSubquery => subquery.exprId -> subquery }.toMap
    val translation = new Translation(plan, subquery => values(subquery.exprId).eval(null), Settings.floatSums(conf))
    val command = Execute.newBuilder
      .setQuery(translation.query())
      .addTables(Scans.table(scan, Capture.table(0), Nil, conf))
      .setMode(TandemExec.mode(conf.getConfString(Settings.Mode, "")))
      .setTimeLimitMs(JavaUtils.timeStringAsMs(conf.getConfString(Settings.TimeLimit, "0")))
    val builds = children.indices.tail.flatMap { index =>
      TandemExec.bare(children(index)) match {
        case files: FileSourceScanExec =>
          command.addTables(Scans.table(files, Capture.table(index), Scans.splits(files).toSeq, conf))
          None
        case broadcast =>
          val relation = broadcast.executeBroadcast[HashedRelation]()
          val build = new BuildSide(relation, broadcast.schema)
          command.addBlocks(Block.newBuilder.setName(Capture.block(index)).setKey(build.key))
          Some(build)
      }
    }
    val splits = Scans.splits(scan)
    val shares = outputPartitioning match {
      case _: UnknownPartitioning if !Numbered.is(scan) => Share.pack(splits, sparkContext.defaultParallelism)
      case _ => splits.map(split => Share(split.index, Array(split)))
    }
    new TandemRDD(
      sparkContext,
      shares,
      () => onJvm(),
      command.build().toByteArray,
      scan.relation.partitionSchema,
      builds.toArray,
      Settings.onFallback(conf) == Fail,
      metrics)
  }

  override protected def doExecute(): RDD[InternalRow] =
    throw new IllegalStateException("Tandem gives batches; Spark puts a ColumnarToRow above it")
}

object TandemExec {
  /** Takes off what Spark put around an input. */
  def bare(plan: SparkPlan): SparkPlan = plan match {
    case transition: RowToColumnarTransition => bare(transition.child)
    case transition: ColumnarToRowTransition => bare(transition.child)
    case other => other
  }

  /** Makes Spark's plan executable as it is, for tasks that the daemon cannot run: without code of whole stages, which would
    * be compiled on the driver for every query, though it is hardly ever needed.
    */
  private def onJvm(plan: SparkPlan, scalars: Seq[Expression]): SparkPlan = {
    val values = scalars.collect { case subquery: ScalarSubquery => subquery.exprId -> subquery }.toMap
    val ready = plan.transformUp { case node =>
      node.transformExpressions { case subquery: ScalarSubquery => values.getOrElse(subquery.exprId, subquery) }
    }
    ApplyColumnarRulesAndInsertTransitions(Nil, outputsColumnar = true)(ready)
  }

  private def mode(name: String): Mode = name.trim.toLowerCase match {
    case "" => Mode.MODE_UNSPECIFIED
    case "cpu" => Mode.MODE_CPU
    case "gpu" => Mode.MODE_GPU
    case other => throw new IllegalArgumentException(s"${Settings.Mode} is cpu or gpu, not '$other'.")
  }

  /** Names the operators of a pipeline, from its end to its scan. */
  private def describe(plan: SparkPlan): Seq[String] = plan match {
    case TandemInput(_, output) => Seq(s"Scan(${output.map(_.name).mkString(", ")})")
    case join: joins.BroadcastHashJoinExec =>
      val (streamed, build) = if (join.buildSide == BuildLeft) (join.right, join.left) else (join.left, join.right)
      val of = build match {
        case files: TandemBuild => s" [${describe(files.child).mkString(" ← ")}]"
        case _ => ""
      }
      s"Probe(${Capture.kind(join.joinType)})$of" +: describe(streamed)
    case other =>
      val name = other match {
        case aggregate: aggregate.HashAggregateExec =>
          val keys = aggregate.groupingExpressions.map(_.name)
          val functions = aggregate.aggregateExpressions.map(_.aggregateFunction.toAggString(false))
          s"PartialAggregate(${(keys ++ functions).mkString(", ")})"
        case filter: FilterExec => s"Filter(${filter.condition})"
        case project: ProjectExec => s"Project(${project.output.map(_.name).mkString(", ")})"
        case node => node.nodeName
      }
      name +: other.children.headOption.toSeq.flatMap(describe)
  }

  /** Takes a part of a plan, if the daemon can run it.
    *
    * @throws Unsupported with the reason, if it has the form but cannot be taken
    */
  def take(plan: SparkPlan): Option[TandemExec] = make(plan).map { node =>
    node.copyTagsFrom(plan)
    plan.logicalLink.foreach(node.setLogicalLink)
    node
  }

  /** Makes the node of a part without a link to the logical plan. A link goes to all nodes below that have none, so that a
    * broadcast that is still to be made would be taken by AQE for the whole part.
    */
  def make(plan: SparkPlan): Option[TandemExec] = Capture.cut(plan).map { captured =>
    val conf = plan.conf
    captured.inputs.foreach { case scan: FileSourceScanExec => Scans.check(scan, conf); case _ => }
    val scalars = captured.plan.collect { case node => node.expressions }.flatten.flatMap(_.collect {
      case subquery: ScalarSubquery => subquery
    })
    // Written once to see that it can be, without the subqueries' values, which are not there yet.
    val query = new Translation(captured.plan, _ => null, Settings.floatSums(conf)).query()
    try io.tandem.proto.pipeline.Query.parseFrom(query.toByteArray)
    catch {
      case _: com.google.protobuf.InvalidProtocolBufferException =>
        throw new Unsupported("an expression nested this deep stays with Spark")
    }
    TandemExec(captured.plan, captured.inputs, scalars.distinct)
  }
}
