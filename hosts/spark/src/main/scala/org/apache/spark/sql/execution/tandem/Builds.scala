package org.apache.spark.sql.execution.tandem

import java.io.OutputStream

import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.ArrowStreamWriter

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.execution.joins.{EmptyHashedRelation, HashedRelation, HashedRelationWithAllNullKeys, LongHashedRelation}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.ArrowUtils

/** The build side of a broadcast join, which a daemon is sent once, as Arrow.
  *
  * @param relation Spark's broadcast; its value is fetched only if the daemon asks
  * @param schema   the columns of its rows
  */
final class BuildSide(relation: Broadcast[HashedRelation], schema: StructType) extends Serializable {
  /** Tells it from the other builds of the application. */
  def key: String = relation.id.toString

  /** Writes the rows as an Arrow stream. */
  def write(output: OutputStream): Unit = {
    // Names mean nothing here, and may occur twice.
    val columns = StructType(schema.zipWithIndex.map { case (field, index) =>
      StructField(s"c$index", field.dataType, field.nullable)
    })
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("tandem build", 0, Long.MaxValue)
    try {
      val arrow = ArrowUtils.toArrowSchema(columns, Types.Zone, true, false)
      val root = VectorSchemaRoot.create(arrow, allocator)
      try {
        val rows = ArrowWriter.create(root)
        val stream = new ArrowStreamWriter(root, null, output)
        stream.start()
        val source = BuildSide.rows(relation.value.asReadOnlyCopy(), schema.size)
        while (source.hasNext) {
          var count = 0
          while (count < BuildSide.BatchRows && source.hasNext) {
            rows.write(source.next())
            count += 1
          }
          rows.finish()
          stream.writeBatch()
          rows.reset()
        }
        stream.end()
      } finally root.close()
    } finally allocator.close()
  }
}

object BuildSide {
  private val BatchRows = 1 << 16

  /** Returns every row of a relation once. The rows are reused. */
  private def rows(relation: HashedRelation, columns: Int): Iterator[InternalRow] = relation match {
    // For NOT IN: there was a null key, so that no row passes. Only nulls are needed to say so.
    case HashedRelationWithAllNullKeys => Iterator(new GenericInternalRow(columns))
    case long: LongHashedRelation => long.keys().flatMap(key => long.get(key.getLong(0)))
    case EmptyHashedRelation => Iterator.empty
    // Their keys come once for each row, so that asking for each key's rows would repeat rows.
    case other => other.valuesWithKeyIndex().map(_.getValue)
  }
}
