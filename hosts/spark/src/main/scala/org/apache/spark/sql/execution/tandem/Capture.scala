package org.apache.spark.sql.execution.tandem

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import io.tandem.proto.pipeline.{AggregateSink, BlockSource, Build, Expr, JoinKind, Materialize, Phase, Pipeline, Probe, Query, ResultSource, Sink, Source, Step, TableSource, Type}
import io.tandem.spark.Unsupported

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, ExprId, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

/** Stands for an input of a captured plan: a scan, or a broadcast. */
case class TandemInput(index: Int, output: Seq[Attribute]) extends LeafExecNode {
  override protected def doExecute(): Nothing = throw new IllegalStateException("an input of a pipeline runs elsewhere")
}

/** A part of a plan that is a pipeline: partial aggregate ← (project | filter | broadcast hash join)* ← scan.
  *
  * @param plan   the part, with its inputs replaced by [[TandemInput]]
  * @param inputs the scan, then those of builds that are made of files, and the broadcasts
  */
case class Captured(plan: SparkPlan, inputs: Seq[SparkPlan])

object Capture {
  def table(index: Int): String = s"t$index"
  def block(index: Int): String = s"b$index"

  /** Names a kind of join for people. */
  def kind(joinType: JoinType): String = joinType match {
    case _: ExistenceJoin => "existence"
    case other => other.sql.toLowerCase
  }

  /** Cuts a part out of a plan; `None` if it has not the form of a pipeline over a scan of files. */
  def cut(plan: SparkPlan): Option[Captured] = {
    val inputs = ArrayBuffer.empty[SparkPlan]
    def input(plan: SparkPlan): SparkPlan = {
      inputs += plan
      TandemInput(inputs.size - 1, plan.output)
    }
    def build(plan: SparkPlan): SparkPlan = plan match {
      case files: TandemBuild => files.copy(child = stream(files.child).get)
      case broadcast => input(broadcast)
    }
    def stream(plan: SparkPlan): Option[SparkPlan] = plan match {
      case scan: FileSourceScanExec => Some(input(scan))
      case _: ProjectExec | _: FilterExec => stream(plan.children.head).map(child => plan.withNewChildren(Seq(child)))
      case join: BroadcastHashJoinExec =>
        join.buildSide match {
          case BuildLeft => stream(join.right).map(right => join.withNewChildren(Seq(build(join.left), right)))
          case BuildRight => stream(join.left).map(left => join.withNewChildren(Seq(left, build(join.right))))
        }
      case _ => None
    }
    val cut = plan match {
      case aggregate: HashAggregateExec if aggregate.aggregateExpressions.forall(_.mode == Partial) =>
        stream(aggregate.child).map(child => aggregate.withNewChildren(Seq(child)))
      case _: ProjectExec | _: FilterExec | _: BroadcastHashJoinExec => stream(plan)
      case _ => None
    }
    cut.map(Captured(_, inputs.toSeq))
  }
}

/** Translates a captured plan into a query of the pipeline language.
  *
  * @param value finds the value of a scalar subquery
  */
final class Translation(plan: SparkPlan, value: ScalarSubquery => Any, floatSums: Boolean) {
  private val pipelines = ArrayBuffer.empty[Pipeline]
  private val slots = mutable.Map.empty[ExprId, Int]
  private val expressions = new Expressions(slots.get(_), value)
  private var writer: PipelineWriter = _
  private var computes = false

  /** Returns the query.
    *
    * @throws Unsupported with the reason, if the language cannot say what Spark would do
    */
  def query(): Query = {
    plan match {
      case aggregate: HashAggregateExec =>
        stream(aggregate.child)
        finishAggregate(aggregate)
      case _ =>
        stream(plan)
        if (!computes) throw new Unsupported("a scan without filter, join or expression stays with Spark")
        finishRows(plan.output)
    }
    Query.newBuilder.setVersion(1).addAllPipelines(pipelines.asJava).build()
  }

  /** Writes the steps of a plan, from the scan up; the slots of its output are known afterwards. */
  private def stream(plan: SparkPlan): Unit = plan match {
    case TandemInput(index, output) =>
      val columns = output.indices.map(Integer.valueOf).asJava
      val table = TableSource.newBuilder.setTable(Capture.table(index)).addAllColumns(columns)
      writer = new PipelineWriter(Source.newBuilder.setTable(table).build())
      // As `Scans` declares them: Spark promises no nulls of some partition columns, the daemon is not told.
      output.foreach(column => slots(column.exprId) = define(column, nullable = true))
    case filter: FilterExec =>
      stream(filter.child)
      computes = true
      writer.step(Step.newBuilder.setFilter(expressions(filter.condition)).build())
    case project: ProjectExec =>
      stream(project.child)
      val (computed, renamed) = project.projectList.partition {
        case _: Attribute | Alias(_: Attribute, _) => false
        case _ => true
      }
      val values = computed.map(named => (named.name, expressions(named), Types.of(named.dataType)))
      if (values.nonEmpty) computes = true
      val places = renamed.map {
        case Alias(attribute: Attribute, _) => slotOf(attribute)
        case attribute => slotOf(attribute.toAttribute)
      }
      computed.zip(writer.compute(values)).foreach { case (named, slot) => slots(named.exprId) = slot }
      renamed.zip(places).foreach { case (named, slot) => slots(named.exprId) = slot }
    case join: BroadcastHashJoinExec =>
      val (streamed, streamedKeys, build, buildKeys) = join.buildSide match {
        case BuildLeft => (join.right, join.rightKeys, join.left, join.leftKeys)
        case BuildRight => (join.left, join.leftKeys, join.right, join.rightKeys)
      }
      stream(streamed)
      computes = true
      probe(join, streamedKeys, build, buildKeys)
    case other => throw new Unsupported(s"${other.nodeName} stays with Spark")
  }

  private def probe(
      join: BroadcastHashJoinExec,
      streamedKeys: Seq[Expression],
      build: SparkPlan,
      buildKeys: Seq[Expression]): Unit = {
    val kind = (join.joinType, join.buildSide) match {
      case (_: InnerLike, _) => JoinKind.JOIN_KIND_INNER
      case (LeftOuter, BuildRight) | (RightOuter, BuildLeft) => JoinKind.JOIN_KIND_LEFT
      case (LeftSemi, BuildRight) => JoinKind.JOIN_KIND_SEMI
      case (LeftAnti, BuildRight) => JoinKind.JOIN_KIND_ANTI
      case (_: ExistenceJoin, BuildRight) => JoinKind.JOIN_KIND_MARK
      case (joinType, side) => throw new Unsupported(s"a join of kind ${Capture.kind(joinType)} with $side stays with Spark")
    }
    val adds = kind == JoinKind.JOIN_KIND_INNER || kind == JoinKind.JOIN_KIND_LEFT
    val proto = Probe.newBuilder
      .setBuild(finishBuild(build, buildKeys))
      .setKind(kind)
      .setNullAware(join.isNullAwareAntiJoin)
      .addAllKeys(streamedKeys.map(expressions.ordered).asJava)
    join.condition.foreach { condition =>
      val before = writer.size
      val all = build.output.zipWithIndex.map { case (column, index) => column.exprId -> (before + index) }.toMap
      proto.setResidual(new Expressions(id => all.get(id).orElse(slots.get(id)), value)(condition))
    }
    if (adds) proto.addAllAdds(build.output.indices.map(Integer.valueOf).asJava)
    writer.step(Step.newBuilder.setProbe(proto).build())
    if (adds)
      build.output.foreach { column =>
        slots(column.exprId) = define(column, column.nullable || kind == JoinKind.JOIN_KIND_LEFT)
      }
    join.joinType match {
      case ExistenceJoin(exists) => slots(exists.exprId) = define(exists, nullable = false)
      case _ =>
    }
  }

  /** Writes the pipeline that builds from a broadcast's rows, or from files; returns its index. */
  private def finishBuild(build: SparkPlan, keys: Seq[Expression]): Int = {
    val (probing, probed) = (writer, slots.toMap)
    slots.clear()
    build match {
      case TandemInput(index, output) =>
        val source = Source.newBuilder.setBlock(BlockSource.newBuilder.setName(Capture.block(index)))
        writer = new PipelineWriter(source.build())
        output.foreach(column => slots(column.exprId) = define(column, column.nullable))
      case files => stream(files.children.head)
    }
    val sink = Build.newBuilder
      .addAllKeys(keys.map(expressions.ordered).asJava)
      .addAllPayload(build.output.map(column => Integer.valueOf(slotOf(column))).asJava)
    pipelines += writer.finish(Sink.newBuilder.setBuild(sink).build())
    slots.clear()
    slots ++= probed
    writer = probing
    pipelines.size - 1
  }

  private def finishRows(output: Seq[Attribute]): Unit = {
    val columns = output.map(column => Integer.valueOf(slotOf(column)))
    pipelines += writer.finish(Sink.newBuilder.setMaterialize(Materialize.newBuilder.addAllOutput(columns.asJava)).build())
  }

  private def finishAggregate(aggregate: HashAggregateExec): Unit = {
    // Keys and arguments are computed in one step, each once.
    val values = ArrayBuffer.empty[(String, Expr, Type)]
    val first = writer.size
    def slot(name: String, expr: Expr, kind: Type): Int =
      if (expr.hasSlot) expr.getSlot
      else
        first + (values.indexWhere(_._2 == expr) match {
          case -1 =>
            values += ((name, expr, kind))
            values.size - 1
          case index => index
        })
    val keys = aggregate.groupingExpressions.map { key =>
      (key.toAttribute, slot(key.name, expressions(key), Types.of(key.dataType)))
    }
    val aggregates = new Aggregates(expressions, slot, floatSums)
    val parts = aggregate.aggregateExpressions.map(aggregates(_))
    writer.compute(values.toSeq)
    val sink = AggregateSink.newBuilder
      .addAllKeys(keys.map(key => Integer.valueOf(key._2)).asJava)
      .addAllAggregates(parts.flatMap(_._1.map(_.aggregate)).asJava)
      .setPhase(Phase.PHASE_SINGLE)
    pipelines += writer.finish(Sink.newBuilder.setAggregate(sink).build())

    // A second pipeline makes Spark's buffers of the aggregates' columns.
    val source = ResultSource.newBuilder.addPipelines(pipelines.size - 1)
    writer = new PipelineWriter(Source.newBuilder.setResult(source).build())
    slots.clear()
    keys.foreach { case (key, _) => slots(key.exprId) = define(key, nullable = true) }
    val buffers = parts.flatMap { case (parts, buffer) =>
      val columns = parts.map(part => Write.slot(writer.define("state", part.kind, part.nullable)))
      buffer.map { case (attribute, expr) => (attribute, expr(columns)) }
    }
    val (plain, computed) = buffers.partition(_._2.hasSlot)
    plain.foreach { case (attribute, expr) => slots(attribute.exprId) = expr.getSlot }
    val made = writer.compute(computed.map { case (attribute, expr) => (attribute.name, expr, Types.of(attribute.dataType)) })
    computed.zip(made).foreach { case ((attribute, _), slot) => slots(attribute.exprId) = slot }
    val output = aggregate.output
    val trivial = computed.isEmpty && output.map(column => slots.getOrElse(column.exprId, -1)) == output.indices
    if (!trivial) finishRows(output)
  }

  private def slotOf(attribute: Attribute): Int =
    slots.getOrElse(attribute.exprId, throw new Unsupported(s"${attribute.name} is not a column of its input"))

  private def define(column: Attribute, nullable: Boolean): Int =
    writer.define(column.name, Types.of(column.dataType), nullable)
}
