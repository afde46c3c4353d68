package org.apache.spark.sql.execution.tandem

import scala.jdk.CollectionConverters._

import io.tandem.proto.pipeline._

/** Short ways to write expressions of the pipeline language. */
object Write {
  def slot(index: Int): Expr = Expr.newBuilder.setSlot(index).build()

  def literal(value: Literal): Expr = Expr.newBuilder.setLiteral(value).build()

  def and(inputs: Seq[Expr]): Expr = Expr.newBuilder.setAnd(exprs(inputs)).build()

  def or(inputs: Seq[Expr]): Expr = Expr.newBuilder.setOr(exprs(inputs)).build()

  def not(input: Expr): Expr = Expr.newBuilder.setNot(input).build()

  def isNull(input: Expr): Expr = Expr.newBuilder.setIsNull(input).build()

  def distinct(left: Expr, right: Expr): Expr =
    Expr.newBuilder.setDistinct(Pair.newBuilder.setLeft(left).setRight(right)).build()

  def compare(comparison: Comparison, left: Expr, right: Expr): Expr =
    Expr.newBuilder.setCompare(Compare.newBuilder.setComparison(comparison).setLeft(left).setRight(right)).build()

  def arithmetic(
      operator: ArithmeticOperator,
      left: Expr,
      right: Expr,
      kind: Type,
      overflow: Overflow,
      zero: Failure): Expr =
    Expr.newBuilder
      .setArithmetic(
        Arithmetic.newBuilder
          .setOperator(operator)
          .setLeft(left)
          .setRight(right)
          .setKind(kind)
          .setOverflow(overflow)
          .setZero(zero))
      .build()

  def negate(input: Expr, overflow: Overflow): Expr =
    Expr.newBuilder.setNegate(Negate.newBuilder.setInput(input).setOverflow(overflow)).build()

  def cast(input: Expr, kind: Type, failure: Failure): Expr =
    Expr.newBuilder.setCast(Cast.newBuilder.setInput(input).setKind(kind).setFailure(failure)).build()

  def choose(branches: Seq[(Expr, Expr)], otherwise: Option[Expr], kind: Type): Expr = {
    val choice = Case.newBuilder.setKind(kind)
    branches.foreach { case (condition, value) =>
      choice.addBranches(Branch.newBuilder.setCondition(condition).setValue(value))
    }
    otherwise.foreach(choice.setOtherwise(_))
    Expr.newBuilder.setCase(choice).build()
  }

  def call(function: Function, kind: Type, arguments: Expr*): Expr =
    Expr.newBuilder
      .setFunction(FunctionCall.newBuilder.setFunction(function).addAllArguments(arguments.asJava).setKind(kind))
      .build()

  def extract(field: DateField, argument: Expr): Expr =
    Expr.newBuilder
      .setFunction(
        FunctionCall.newBuilder
          .setFunction(Function.FUNCTION_EXTRACT)
          .setField(field)
          .addArguments(argument)
          .setKind(Types.Int32))
      .build()

  private def exprs(inputs: Seq[Expr]): Exprs = Exprs.newBuilder.addAllInputs(inputs.asJava).build()
}
