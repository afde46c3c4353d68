package org.apache.spark.sql.execution.tandem

import io.tandem.proto.pipeline.{Expr, Failure}
import io.tandem.spark.Unsupported

import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode}
import org.apache.spark.sql.types._

/** Which casts mean the same in Spark and in the language. */
object Casts {
  /** Digits that a double holds exactly, so that a decimal of so many becomes the nearest one by any way. */
  private val ExactDigits = 15

  def apply(cast: Cast, input: Expr): Expr = {
    val (from, to) = (cast.child.dataType, cast.dataType)
    // A cast that cannot lose anything means the same in every mode; of the others, the old mode wraps or saturates.
    val safe = (from, to) match {
      case _ if from == to => true
      case (_: IntegralType, _: IntegralType) => to.defaultSize >= from.defaultSize
      case (_: IntegralType, DoubleType) => true
      case (ByteType | ShortType | IntegerType, FloatType) => true
      case (FloatType, DoubleType) => true
      case (BooleanType, _: IntegralType) => true
      case (_: IntegralType, BooleanType) => true
      case (from: DecimalType, DoubleType) => from.precision <= ExactDigits
      case (_: IntegralType, StringType) => true
      case (BooleanType, StringType) => true
      case _ => false
    }
    val checked = (from, to) match {
      case (_: IntegralType | _: DecimalType, _: DecimalType) => true // old mode: null
      case (from: DecimalType, ByteType | ShortType | IntegerType) => // Spark's way is through a double, which rounds
        from.precision <= ExactDigits && cast.evalMode != EvalMode.LEGACY
      case (FloatType | DoubleType, LongType) => // 2^63 fails in the daemon, and is 2^63 − 1 on the JVM, which decides
        cast.evalMode == EvalMode.ANSI
      case (_: IntegralType | FloatType | DoubleType | _: DecimalType, _: IntegralType) =>
        cast.evalMode != EvalMode.LEGACY
      case _ => false
    }
    if (!safe && !checked)
      throw new Unsupported(s"a cast from ${from.sql} to ${to.sql}${mode(cast)} stays with Spark")
    val failure = if (cast.evalMode == EvalMode.ANSI) Failure.FAILURE_ERROR else Failure.FAILURE_NULL
    if (from == to) input else Write.cast(input, Types.of(to), failure)
  }

  private def mode(cast: Cast): String = cast.evalMode match {
    case EvalMode.LEGACY => " without ANSI"
    case EvalMode.TRY => " by try_cast"
    case _ => ""
  }
}
