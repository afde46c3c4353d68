package org.apache.spark.sql.execution.tandem

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import io.tandem.proto.pipeline.{Expr, Let, Pipeline, Sink, Slot, Source, Step, Type}

/** Writes one pipeline: its slots in order, and the steps that add them. */
final class PipelineWriter(source: Source) {
  private val slots = ArrayBuffer.empty[Slot]
  private val steps = ArrayBuffer.empty[Step]

  /** Returns how many slots there are. */
  def size: Int = slots.size

  /** Adds a slot that the source or a probe defines. */
  def define(name: String, kind: Type, nullable: Boolean): Int = {
    slots += Slot.newBuilder.setName(name).setKind(kind).setNullable(nullable).build()
    slots.size - 1
  }

  /** Adds a slot for each expression; they see only what was there before. */
  def compute(values: Seq[(String, Expr, Type)]): Seq[Int] = {
    if (values.nonEmpty)
      steps += Step.newBuilder.setLet(Let.newBuilder.addAllExprs(values.map(_._2).asJava)).build()
    values.map { case (name, _, kind) => define(name, kind, nullable = true) }
  }

  def step(step: Step): Unit = steps += step

  def finish(sink: Sink): Pipeline =
    Pipeline.newBuilder.setSource(source).addAllSteps(steps.asJava).setSink(sink).addAllSlots(slots.asJava).build()
}
