package org.apache.spark.sql.execution.tandem

import io.tandem.proto.pipeline.{Aggregate => AggregateProto, AggregateFunction, ArithmeticOperator, Expr, Failure, Function, Overflow, Type}
import io.tandem.spark.{Settings, Unsupported}

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, EvalMode, Expression, Literal, UnscaledValue}
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

/** Partial aggregates: what the daemon computes for each of Spark's buffers, and how its columns become the buffer's.
  *
  * Spark's final aggregate reads the buffers, so their types and their values over no rows are Spark's: a sum of integers is
  * null then, that of decimals 0 with a flag, an average's 0 and 0.
  *
  * @param slot       makes a slot of the values that are aggregated
  * @param expressions translates arguments
  */
final class Aggregates(expressions: Expressions, slot: (String, Expr, Type) => Int, floatSums: Boolean) {
  /** An aggregate of the sink, and columns of the buffer made of the sink's column. */
  case class Part(aggregate: AggregateProto, kind: Type, nullable: Boolean)

  /** Returns what the sink computes for an aggregate, and each attribute of its buffer as a function of these columns. */
  def apply(aggregate: AggregateExpression): (Seq[Part], Seq[(Attribute, Seq[Expr] => Expr)]) = {
    if (aggregate.isDistinct) throw new Unsupported("a DISTINCT aggregate stays with Spark")
    val filter = aggregate.filter.map(condition => slot("filter", expressions(condition), Types.Boolean))
    val function = aggregate.aggregateFunction
    val buffer = function.inputAggBufferAttributes

    def part(name: AggregateFunction, argument: Option[Int], kind: Type, nullable: Boolean, overflow: Overflow): Part = {
      val proto = AggregateProto.newBuilder.setFunction(name).setKind(kind).setOverflow(overflow)
      argument.foreach(proto.setArgument)
      filter.foreach(proto.setFilter)
      Part(proto.build(), kind, nullable)
    }
    def value(child: Expression, expr: Expr): Int = slot("argument", expr, Types.of(child.dataType))
    def sum(argument: Int, kind: Type, overflow: Overflow = Overflow.OVERFLOW_ERROR): Part =
      part(AggregateFunction.AGGREGATE_FUNCTION_SUM, Some(argument), kind, nullable = true, overflow)
    def count(argument: Option[Int]): Part = {
      val name =
        if (argument.isEmpty) AggregateFunction.AGGREGATE_FUNCTION_COUNT_ROWS
        else AggregateFunction.AGGREGATE_FUNCTION_COUNT
      part(name, argument, Types.Int64, nullable = false, Overflow.OVERFLOW_ERROR)
    }
    val same: Seq[Expr] => Expr = _.head
    def orZero(kind: DataType)(columns: Seq[Expr]): Expr =
      Write.call(
        Function.FUNCTION_COALESCE,
        Types.of(kind),
        columns.head,
        Write.literal(Types.literal(Literal.default(kind).value, kind)))

    function match {
      case Count(children) =>
        val nullable = children.filter(_.nullable)
        val argument = nullable match {
          case Seq() => None
          case Seq(child) => Some(value(child, expressions(child)))
          case several => // counts rows where none is null: a value that is null otherwise
            val all = Write.and(several.map(child => Write.not(Write.isNull(expressions(child)))))
            val one = Write.literal(Types.literal(true, BooleanType))
            Some(slot("counted", Write.choose(Seq((all, one)), None, Types.Boolean), Types.Boolean))
        }
        (Seq(count(argument)), Seq(buffer.head -> same))

      case Sum(child, context) if context.evalMode != EvalMode.TRY =>
        (child, child.dataType) match {
          case (UnscaledValue(decimal), _) => unscaledSum(decimal, sum(_, _), buffer)
          case (_, _: IntegralType) =>
            val overflow =
              if (context.evalMode == EvalMode.ANSI) Overflow.OVERFLOW_ERROR else Overflow.OVERFLOW_WRAP
            (Seq(sum(value(child, expressions(child)), Types.Int64, overflow)), Seq(buffer.head -> same))
          case (_, FloatType | DoubleType) =>
            (Seq(sum(asDouble(child), Types.Float64)), Seq(buffer.head -> same))
          case (_, _: DecimalType) => // [sum, isEmpty]
            val kind = buffer.head.dataType
            val parts = Seq(sum(value(child, expressions(child)), Types.of(kind)))
            (parts, Seq(buffer.head -> (orZero(kind) _), buffer(1) -> (columns => Write.isNull(columns.head))))
          case (_, other) => throw new Unsupported(s"a sum of ${other.sql} stays with Spark")
        }

      case Average(child, mode) if mode != EvalMode.TRY => // [sum, count]
        (child, child.dataType) match {
          case (UnscaledValue(decimal), _) =>
            val argument = value(decimal, expressions(decimal))
            val kind = decimal.dataType.asInstanceOf[DecimalType]
            val parts = Seq(sum(argument, Types.decimal(Digits, kind.scale)), count(Some(argument)))
            def total(columns: Seq[Expr]): Expr = orZero(DoubleType)(
              Seq(Write.cast(unscaled(columns.head, kind.scale, Digits), Types.Float64, Failure.FAILURE_ERROR)))
            (parts, Seq(buffer.head -> (total _), buffer(1) -> (columns => columns(1))))
          case (_, _: IntegralType | FloatType | DoubleType) =>
            val argument = asDouble(child)
            val parts = Seq(sum(argument, Types.Float64), count(Some(argument)))
            (parts, Seq(buffer.head -> (orZero(DoubleType) _), buffer(1) -> (columns => columns(1))))
          case (_, _: DecimalType) =>
            val argument = value(child, expressions(child))
            val kind = buffer.head.dataType
            val parts = Seq(sum(argument, Types.of(kind)), count(Some(argument)))
            (parts, Seq(buffer.head -> (orZero(kind) _), buffer(1) -> (columns => columns(1))))
          case (_, other) => throw new Unsupported(s"an average of ${other.sql} stays with Spark")
        }

      case Min(child) => extreme(AggregateFunction.AGGREGATE_FUNCTION_MIN, child, part, buffer)
      case Max(child) => extreme(AggregateFunction.AGGREGATE_FUNCTION_MAX, child, part, buffer)
      case other => throw new Unsupported(s"the aggregate ${other.prettyName} stays with Spark")
    }
  }

  /** Sums of short decimals, which Spark takes as integers: summed as decimals, told as integers. */
  private def unscaledSum(decimal: Expression, sum: (Int, Type) => Part, buffer: Seq[AttributeReference]) = {
    val kind = decimal.dataType.asInstanceOf[DecimalType]
    val argument = slot("argument", expressions(decimal), Types.of(kind))
    val whole: Seq[Expr] => Expr = columns =>
      Write.cast(unscaled(columns.head, kind.scale, ShortDigits), Types.Int64, Failure.FAILURE_ERROR)
    (Seq(sum(argument, Types.decimal(ShortDigits, kind.scale))), Seq(buffer.head -> whole))
  }

  /** Multiplies a decimal by 10^scale: a decimal without scale. */
  private def unscaled(input: Expr, scale: Int, digits: Int): Expr = {
    val factor = DecimalType(scale + 1, 0)
    val power = Decimal(java.math.BigDecimal.TEN.pow(scale), scale + 1, 0)
    Write.arithmetic(
      ArithmeticOperator.ARITHMETIC_OPERATOR_MULTIPLY,
      input,
      Write.literal(Types.literal(power, factor)),
      Types.decimal(digits, 0),
      Overflow.OVERFLOW_ERROR,
      Failure.FAILURE_ERROR)
  }

  private def asDouble(child: Expression): Int = {
    val exact = child.dataType match { // sums of longer integers pass 2^53, above which the order of additions matters
      case ByteType | ShortType => true
      case _ => false
    }
    if (!exact && !floatSums)
      throw new Unsupported(s"sums of ${child.dataType.sql} as doubles stay with Spark, as ${Settings.FloatSums}=false asks")
    val input = expressions(child)
    val double = if (child.dataType == DoubleType) input else Write.cast(input, Types.Float64, Failure.FAILURE_ERROR)
    slot("argument", double, Types.Float64)
  }

  private def extreme(
      name: AggregateFunction,
      child: Expression,
      part: (AggregateFunction, Option[Int], Type, Boolean, Overflow) => Part,
      buffer: Seq[AttributeReference]) = {
    val input = expressions(child)
    val value = if (Floats.is(child.dataType)) Floats.oneNaN(input, child.dataType) else input
    val kind = Types.of(child.dataType)
    val same: Seq[Expr] => Expr = _.head
    (Seq(part(name, Some(slot("argument", value, kind)), kind, true, Overflow.OVERFLOW_ERROR)), Seq(buffer.head -> same))
  }

  /** Digits of a decimal that 64 bits hold; Spark sums decimals of up to 8 digits as integers. */
  private val ShortDigits = 18
  private val Digits = 38
}
