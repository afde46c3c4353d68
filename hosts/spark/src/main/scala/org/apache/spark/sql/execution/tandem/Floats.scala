package org.apache.spark.sql.execution.tandem

import io.tandem.proto.pipeline.{ArithmeticOperator, Comparison, Expr, Failure, Overflow}

import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

/** Spark's order of floats in the language's: Spark has one NaN, the largest, and −0.0 equals 0.0; the language has the total
  * order, where NaNs lie outside both infinities and −0.0 < 0.0.
  */
object Floats {
  def is(kind: DataType): Boolean = kind == FloatType || kind == DoubleType

  /** Brings every NaN to one and −0.0 to 0.0. */
  def normal(input: Expr, kind: DataType): Expr = {
    val sum = Write.arithmetic( // −0.0 + 0.0 = 0.0
      ArithmeticOperator.ARITHMETIC_OPERATOR_ADD,
      input,
      constant(0.0, kind),
      Types.of(kind),
      Overflow.OVERFLOW_WRAP,
      Failure.FAILURE_NULL)
    Write.choose(Seq((isNaN(input, kind), constant(Double.NaN, kind))), Some(sum), Types.of(kind))
  }

  def normal(value: Double): Double = if (value.isNaN) Double.NaN else value + 0.0

  /** Brings every NaN to one; −0.0 stays, since it is shown. */
  def oneNaN(input: Expr, kind: DataType): Expr =
    Write.choose(Seq((isNaN(input, kind), constant(Double.NaN, kind))), Some(input), Types.of(kind))

  /** Tells whether a value is NaN; null if it is null. */
  def isNaN(input: Expr, kind: DataType): Expr =
    Write.or(
      Seq(
        Write.compare(Comparison.COMPARISON_GREATER, input, constant(Double.PositiveInfinity, kind)),
        Write.compare(Comparison.COMPARISON_LESS, input, constant(Double.NegativeInfinity, kind))))

  private def constant(value: Double, kind: DataType): Expr =
    Write.literal(if (kind == FloatType) Types.literal(value.toFloat, kind) else Types.literal(value, kind))
}
