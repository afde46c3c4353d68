package org.apache.spark.sql.execution.tandem

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.tandem.proto.pipeline.{ArithmeticOperator, Comparison, DateField, Expr, Failure, Function, In => InProto, Like => LikeProto, Overflow}
import io.tandem.spark.Unsupported

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.execution.ScalarSubquery
import org.apache.spark.sql.types._

/** Catalyst's expressions as the pipeline language has them, with Spark's semantics written out.
  *
  * What the language cannot say exactly as Spark means it is [[Unsupported]], with the reason: nothing is approximated. Errors
  * that Spark raises (ANSI) may come from the daemon for rows that Spark would not have looked at; the task then runs on the
  * JVM, which decides.
  *
  * @param slot  finds the slot of an attribute
  * @param value finds the value of a scalar subquery; while planning, when there is none yet, any value
  */
final class Expressions(slot: ExprId => Option[Int], value: ScalarSubquery => Any) {
  def apply(expression: Expression): Expr = expression match {
    case attribute: AttributeReference =>
      Write.slot(slot(attribute.exprId).getOrElse(throw new Unsupported(s"${attribute.name} is not a column of its input")))
    case Literal(value, kind) => Write.literal(Types.literal(value, kind))
    case subquery: ScalarSubquery => Write.literal(Types.literal(value(subquery), subquery.dataType))
    case Alias(child, _) => apply(child)
    case KnownNotNull(child) => apply(child)
    case KnownFloatingPointNormalized(child) => apply(child)
    case NormalizeNaNAndZero(child) => Floats.normal(apply(child), child.dataType)

    case and: And => Write.and(flatten(and) { case And(left, right) => Seq(left, right) })
    case or: Or => Write.or(flatten(or) { case Or(left, right) => Seq(left, right) })
    case Not(child) => Write.not(apply(child))
    case IsNull(child) => Write.isNull(apply(child))
    case IsNotNull(child) => Write.not(Write.isNull(apply(child)))
    case IsNaN(child) => // never null
      val input = apply(child)
      Write.and(Seq(Write.not(Write.isNull(input)), Floats.isNaN(input, child.dataType)))
    case EqualTo(left, right) => compare(Comparison.COMPARISON_EQUAL, left, right)
    case LessThan(left, right) => compare(Comparison.COMPARISON_LESS, left, right)
    case LessThanOrEqual(left, right) => compare(Comparison.COMPARISON_LESS_OR_EQUAL, left, right)
    case GreaterThan(left, right) => compare(Comparison.COMPARISON_GREATER, left, right)
    case GreaterThanOrEqual(left, right) => compare(Comparison.COMPARISON_GREATER_OR_EQUAL, left, right)
    case EqualNullSafe(left, right) =>
      sameType(left, right)
      Write.not(Write.distinct(ordered(left), ordered(right)))
    case In(child, list) if list.nonEmpty && list.forall(_.isInstanceOf[Literal]) =>
      in(child, list.map(_.asInstanceOf[Literal].value))
    case InSet(child, values) if values.nonEmpty => in(child, values.toSeq)

    case If(condition, yes, no) =>
      Write.choose(Seq((apply(condition), apply(yes))), Some(apply(no)), Types.of(expression.dataType))
    case CaseWhen(branches, otherwise) =>
      Write.choose(
        branches.map { case (condition, value) => (apply(condition), apply(value)) },
        otherwise.map(apply),
        Types.of(expression.dataType))
    case Coalesce(children) =>
      Write.call(Function.FUNCTION_COALESCE, Types.of(expression.dataType), children.map(apply): _*)

    case BitwiseAnd(left, right) => bits(Function.FUNCTION_BIT_AND, expression, left, right)
    case BitwiseOr(left, right) => bits(Function.FUNCTION_BIT_OR, expression, left, right)
    case BitwiseXor(left, right) => bits(Function.FUNCTION_BIT_XOR, expression, left, right)
    case BitwiseNot(child) => bits(Function.FUNCTION_BIT_NOT, expression, child)
    case ShiftLeft(left, right) => shift(Function.FUNCTION_SHIFT_LEFT, left, right)
    case ShiftRight(left, right) => shift(Function.FUNCTION_SHIFT_RIGHT, left, right)
    case operation: BinaryArithmetic => arithmetic(operation)
    case UnaryMinus(child, failOnError) =>
      number(child.dataType)
      Write.negate(apply(child), if (failOnError) Overflow.OVERFLOW_ERROR else Overflow.OVERFLOW_WRAP)
    case UnaryPositive(child) => apply(child)
    case Abs(child, failOnError) => absolute(child, failOnError)
    case cast: Cast => Casts(cast, apply(cast.child))

    case Year(child) => field(DateField.DATE_FIELD_YEAR, child)
    case Quarter(child) => field(DateField.DATE_FIELD_QUARTER, child)
    case Month(child) => field(DateField.DATE_FIELD_MONTH, child)
    case WeekOfYear(child) => field(DateField.DATE_FIELD_WEEK, child)
    case DayOfMonth(child) => field(DateField.DATE_FIELD_DAY, child)
    case DayOfYear(child) => field(DateField.DATE_FIELD_DAY_OF_YEAR, child)
    case DayOfWeek(child) => // Spark counts from 1, the language from 0; both from Sunday
      Write.arithmetic(
        ArithmeticOperator.ARITHMETIC_OPERATOR_ADD,
        field(DateField.DATE_FIELD_DAY_OF_WEEK, child),
        Write.literal(Types.literal(1, IntegerType)),
        Types.Int32,
        Overflow.OVERFLOW_ERROR,
        Failure.FAILURE_ERROR)
    case DateDiff(end, start) =>
      val days = Write.arithmetic(
        ArithmeticOperator.ARITHMETIC_OPERATOR_SUBTRACT,
        apply(end),
        apply(start),
        Types.Int64,
        Overflow.OVERFLOW_ERROR,
        Failure.FAILURE_ERROR)
      Write.cast(days, Types.Int32, Failure.FAILURE_ERROR)

    case Like(child, Literal(pattern, StringType), escape) if pattern != null =>
      text(child)
      if (Try(StringUtils.escapeLikeRegex(pattern.toString, escape)).isFailure)
        throw new Unsupported(s"the pattern '$pattern', which Spark raises an error for, stays with Spark")
      Expr.newBuilder
        .setLike(LikeProto.newBuilder.setInput(apply(child)).setPattern(pattern.toString).setEscape(escape.toString))
        .build()
    case StartsWith(child, part) => predicate(Function.FUNCTION_STARTS_WITH, child, part)
    case EndsWith(child, part) => predicate(Function.FUNCTION_ENDS_WITH, child, part)
    case Contains(child, part) => predicate(Function.FUNCTION_CONTAINS, child, part)
    case Length(child) if child.dataType == StringType =>
      Write.call(Function.FUNCTION_CHAR_LENGTH, Types.Int32, apply(child))
    case OctetLength(child) if child.dataType == StringType =>
      Write.call(Function.FUNCTION_OCTET_LENGTH, Types.Int32, apply(child))
    case StringTrim(child, None) => trim(Function.FUNCTION_TRIM, child)
    case StringTrimLeft(child, None) => trim(Function.FUNCTION_TRIM_START, child)
    case StringTrimRight(child, None) => trim(Function.FUNCTION_TRIM_END, child)
    case Substring(child, Literal(start: Int, IntegerType), Literal(length: Int, IntegerType))
        if start >= 1 && length >= 0 && child.dataType == StringType =>
      Write.call(
        Function.FUNCTION_SUBSTRING,
        Types.of(StringType),
        apply(child),
        Write.literal(Types.literal(start.toLong, LongType)),
        Write.literal(Types.literal(length.toLong, LongType)))
    case Concat(children) if children.nonEmpty && children.forall(_.dataType == StringType) =>
      // Spark's is null if any part is; the language's skips nulls.
      val parts = children.map(apply)
      Write.choose(
        Seq((Write.and(parts.map(part => Write.not(Write.isNull(part)))),
          Write.call(Function.FUNCTION_CONCAT, Types.of(StringType), parts: _*))),
        None,
        Types.of(StringType))

    case StringLPad(child, length, fill) => pad(Function.FUNCTION_PAD_START, child, length, fill)
    case StringRPad(child, length, fill) => pad(Function.FUNCTION_PAD_END, child, length, fill)
    case StringRepeat(child, times) if child.dataType == StringType =>
      Write.call(Function.FUNCTION_REPEAT, Types.of(StringType), apply(child), apply(times))
    case StringTranslate(child, from @ Literal(_, StringType), to @ Literal(text, StringType))
        // A character zero removes what it stands for.
        if child.dataType == StringType && text != null && !text.toString.contains('\u0000') =>
      Write.call(Function.FUNCTION_TRANSLATE, Types.of(StringType), apply(child), apply(from), apply(to))
    case Md5(Cast(child, BinaryType, _, _)) if child.dataType == StringType =>
      Write.call(Function.FUNCTION_MD5, Types.of(StringType), apply(child))
    case Md5(child) => Write.call(Function.FUNCTION_MD5, Types.of(StringType), apply(child))

    // Not here, because Spark means something else: regular expressions (Java's), initcap (words end at spaces only), cbrt and
    // atan2 (Java's mathematics differ in the last digit), sha2 (hexadecimal digits; the language gives bytes).
    case other => throw new Unsupported(s"the expression ${other.prettyName} (${shorten(other.sql)}) stays with Spark")
  }

  /** Translates a value whose order or equality matters: floats without −0.0 and with one NaN. */
  def ordered(expression: Expression): Expr = expression match {
    case NormalizeNaNAndZero(_) | KnownFloatingPointNormalized(_) => apply(expression)
    case Literal(value: Double, DoubleType) => Write.literal(Types.literal(Floats.normal(value), DoubleType))
    case Literal(value: Float, FloatType) => Write.literal(Types.literal(Floats.normal(value.toDouble).toFloat, FloatType))
    case _ if Floats.is(expression.dataType) => Floats.normal(apply(expression), expression.dataType)
    case _ => apply(expression)
  }

  private def flatten(expression: Expression)(split: PartialFunction[Expression, Seq[Expression]]): Seq[Expr] = {
    def parts(part: Expression): Seq[Expression] = split.lift(part).fold(Seq(part))(_.flatMap(parts))
    parts(expression).map(apply)
  }

  private def sameType(left: Expression, right: Expression): Unit =
    if (left.dataType != right.dataType)
      throw new Unsupported(s"a comparison of ${left.dataType.sql} with ${right.dataType.sql} stays with Spark")

  private def compare(comparison: Comparison, left: Expression, right: Expression): Expr = {
    sameType(left, right)
    Write.compare(comparison, ordered(left), ordered(right))
  }

  private def in(child: Expression, values: Seq[Any]): Expr = {
    val kind = child.dataType
    val list = values.map {
      case value: Double => Types.value(Floats.normal(value), kind)
      case value: Float => Types.value(Floats.normal(value.toDouble).toFloat, kind)
      case value => Types.value(value, kind)
    }
    Expr.newBuilder.setIn(InProto.newBuilder.setInput(ordered(child)).addAllList(list.asJava)).build()
  }

  private def number(kind: DataType): Unit = kind match {
    case _: NumericType =>
    case other => throw new Unsupported(s"arithmetic on ${other.sql} stays with Spark")
  }

  private def arithmetic(operation: BinaryArithmetic): Expr = {
    val (left, right, kind) = (operation.left, operation.right, operation.dataType)
    number(left.dataType)
    number(right.dataType)
    val ansi = operation.evalMode == EvalMode.ANSI
    val failure = if (ansi) Failure.FAILURE_ERROR else Failure.FAILURE_NULL
    val overflow = operation.evalMode match {
      case EvalMode.ANSI => Overflow.OVERFLOW_ERROR
      case EvalMode.TRY => Overflow.OVERFLOW_NULL
      case _ => if (kind.isInstanceOf[DecimalType]) Overflow.OVERFLOW_NULL else Overflow.OVERFLOW_WRAP
    }
    def write(operator: ArithmeticOperator): Expr =
      Write.arithmetic(operator, apply(left), apply(right), Types.of(kind), overflow, failure)
    def scale(kind: DataType): Int = kind.asInstanceOf[DecimalType].scale

    (operation, kind) match {
      case (_: Add | _: Subtract, DecimalType()) if scale(kind) < math.max(scale(left.dataType), scale(right.dataType)) =>
        throw new Unsupported("a decimal sum that must be rounded stays with Spark")
      case (_: Multiply, DecimalType()) if scale(kind) < scale(left.dataType) + scale(right.dataType) =>
        throw new Unsupported("a decimal product that must be rounded stays with Spark")
      case (_: Add, _) => write(ArithmeticOperator.ARITHMETIC_OPERATOR_ADD)
      case (_: Subtract, _) => write(ArithmeticOperator.ARITHMETIC_OPERATOR_SUBTRACT)
      case (_: Multiply, _) => write(ArithmeticOperator.ARITHMETIC_OPERATOR_MULTIPLY)
      case (_: Divide, FloatType | DoubleType) => // by zero: null or an error, never infinity
        right match {
          case Literal(divisor: Double, _) if divisor != 0.0 => write(ArithmeticOperator.ARITHMETIC_OPERATOR_DIVIDE)
          case _ if ansi => throw new Unsupported("a division of floats, where zero is an error, stays with Spark")
          case _ =>
            val zero = Write.literal(Types.literal(if (kind == FloatType) 0.0f else 0.0, kind))
            Write.choose(
              Seq((Write.compare(Comparison.COMPARISON_NOT_EQUAL, ordered(right), zero),
                write(ArithmeticOperator.ARITHMETIC_OPERATOR_DIVIDE))),
              None,
              Types.of(kind))
        }
      case (_: Remainder, _: IntegralType) => write(ArithmeticOperator.ARITHMETIC_OPERATOR_REMAINDER)
      case (_: IntegralDivide, LongType) if left.dataType == LongType =>
        write(ArithmeticOperator.ARITHMETIC_OPERATOR_DIVIDE)
      case (_: Divide, DecimalType()) => throw new Unsupported("a division of decimals stays with Spark")
      case _ => throw new Unsupported(s"${operation.prettyName} of ${left.dataType.sql} stays with Spark")
    }
  }

  private def absolute(child: Expression, failOnError: Boolean): Expr = {
    number(child.dataType)
    val (input, kind) = (apply(child), Types.of(child.dataType))
    if (Floats.is(child.dataType)) Write.call(Function.FUNCTION_ABS, kind, input)
    else {
      val zero = Write.literal(Types.literal(Literal.default(child.dataType).value, child.dataType))
      val overflow = if (failOnError) Overflow.OVERFLOW_ERROR else Overflow.OVERFLOW_WRAP
      Write.choose(
        Seq((Write.compare(Comparison.COMPARISON_LESS, input, zero), Write.negate(input, overflow))),
        Some(input),
        kind)
    }
  }

  private def field(field: DateField, child: Expression): Expr = {
    if (child.dataType != DateType)
      throw new Unsupported(s"a field of ${child.dataType.sql} stays with Spark")
    Write.extract(field, apply(child))
  }

  private def text(child: Expression): Unit =
    if (child.dataType != StringType) throw new Unsupported(s"LIKE on ${child.dataType.sql} stays with Spark")

  private def predicate(function: Function, child: Expression, part: Expression): Expr = {
    if (child.dataType != StringType || part.dataType != StringType)
      throw new Unsupported(s"a search in ${child.dataType.sql} stays with Spark")
    Write.call(function, Types.Boolean, apply(child), apply(part))
  }

  private def trim(function: Function, child: Expression): Expr = {
    if (child.dataType != StringType) throw new Unsupported(s"trim of ${child.dataType.sql} stays with Spark")
    Write.call(function, Types.of(StringType), apply(child))
  }

  private def bits(function: Function, whole: Expression, operands: Expression*): Expr = whole.dataType match {
    case kind: IntegralType => Write.call(function, Types.of(kind), operands.map(apply): _*)
    case other => throw new Unsupported(s"bits of ${other.sql} stay with Spark")
  }

  /** Both take the amount modulo the width; the language wants it in the type of what is shifted. */
  private def shift(function: Function, left: Expression, right: Expression): Expr = left.dataType match {
    case IntegerType => Write.call(function, Types.Int32, apply(left), apply(right))
    case LongType =>
      Write.call(function, Types.Int64, apply(left), Write.cast(apply(right), Types.Int64, Failure.FAILURE_ERROR))
    case other => throw new Unsupported(s"bits of ${other.sql} stay with Spark")
  }

  private def pad(function: Function, child: Expression, length: Expression, fill: Expression): Expr = {
    if (child.dataType != StringType || fill.dataType != StringType)
      throw new Unsupported(s"padding of ${child.dataType.sql} stays with Spark")
    Write.call(function, Types.of(StringType), apply(child), apply(length), apply(fill))
  }

  private def shorten(text: String): String = if (text.length <= 80) text else text.take(77) + "…"

  private object DecimalType {
    def unapply(kind: DataType): Boolean = kind.isInstanceOf[DecimalType]
  }
}
