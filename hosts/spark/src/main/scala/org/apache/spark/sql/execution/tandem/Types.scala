package org.apache.spark.sql.execution.tandem

import java.math.BigInteger

import com.google.protobuf.ByteString
import io.tandem.proto.pipeline.{Decimal => DecimalProto, Literal => LiteralProto, Null, Simple, TimeUnit, Timestamp, Type, Value}
import io.tandem.spark.Unsupported

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Spark's types and values as the pipeline language has them. */
object Types {
  /** Instants are UTC for the daemon: what depends on the session's zone is not given to it. */
  val Zone = "UTC"

  def simple(kind: Simple): Type = Type.newBuilder.setSimple(kind).build()
  val Boolean: Type = simple(Simple.SIMPLE_BOOLEAN)
  val Int32: Type = simple(Simple.SIMPLE_INT32)
  val Int64: Type = simple(Simple.SIMPLE_INT64)
  val Float64: Type = simple(Simple.SIMPLE_FLOAT64)

  def decimal(precision: Int, scale: Int): Type =
    Type.newBuilder.setDecimal(DecimalProto.newBuilder.setPrecision(precision).setScale(scale)).build()

  /** Returns the pipeline's type.
    *
    * @throws Unsupported if it has none
    */
  def of(kind: DataType): Type = kind match {
    case BooleanType => Boolean
    case ByteType => simple(Simple.SIMPLE_INT8)
    case ShortType => simple(Simple.SIMPLE_INT16)
    case IntegerType => Int32
    case LongType => Int64
    case FloatType => simple(Simple.SIMPLE_FLOAT32)
    case DoubleType => Float64
    case DateType => simple(Simple.SIMPLE_DATE)
    case StringType => simple(Simple.SIMPLE_STRING)
    case BinaryType => simple(Simple.SIMPLE_BINARY)
    case kind: DecimalType => decimal(kind.precision, kind.scale)
    case TimestampType => timestamp(Some(Zone))
    case TimestampNTZType => timestamp(None)
    case text: StringType => throw new Unsupported(s"text with the collation of ${text.sql} stays with Spark")
    case other => throw new Unsupported(s"values of type ${other.sql} stay with Spark")
  }

  /** Returns a value of Spark's internal form as one of the type. */
  def value(value: Any, kind: DataType): Value = {
    val proto = Value.newBuilder
    (value, kind) match {
      case (null, _) => proto.setNull(Null.NULL_VALUE)
      case (value: Boolean, BooleanType) => proto.setBoolean(value)
      case (value: Byte, ByteType) => proto.setInteger(value.toLong)
      case (value: Short, ShortType) => proto.setInteger(value.toLong)
      case (value: Int, IntegerType | DateType) => proto.setInteger(value.toLong)
      case (value: Long, LongType | TimestampType | TimestampNTZType) => proto.setInteger(value)
      case (value: Float, FloatType) => proto.setFloat(value.toDouble)
      case (value: Double, DoubleType) => proto.setFloat(value)
      case (value: UTF8String, StringType) =>
        if (!value.isValid) throw new Unsupported("text that is not UTF-8 stays with Spark")
        proto.setString(value.toString)
      case (value: Array[Byte], BinaryType) => proto.setBinary(ByteString.copyFrom(value))
      case (value: Decimal, kind: DecimalType) => integer(proto, unscaled(value, kind))
      case (_, other) => throw new Unsupported(s"a constant of type ${other.sql} stays with Spark")
    }
    proto.build()
  }

  def literal(constant: Any, kind: DataType): LiteralProto =
    LiteralProto.newBuilder.setValue(value(constant, kind)).setKind(of(kind)).build()

  private def unscaled(value: Decimal, kind: DecimalType): BigInteger =
    value.toJavaBigDecimal.setScale(kind.scale).unscaledValue

  private def integer(proto: Value.Builder, value: BigInteger): Unit =
    if (value.bitLength < 64) proto.setInteger(value.longValue) else proto.setWide(ByteString.copyFrom(value.toByteArray))

  private def timestamp(zone: Option[String]): Type = {
    val kind = Timestamp.newBuilder.setUnit(TimeUnit.TIME_UNIT_MICROSECOND)
    zone.foreach(kind.setZone)
    Type.newBuilder.setTimestamp(kind).build()
  }
}
