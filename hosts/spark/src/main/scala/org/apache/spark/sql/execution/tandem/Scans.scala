package org.apache.spark.sql.execution.tandem

import io.tandem.proto.node.{Column, Split, Table}
import io.tandem.spark.Unsupported
import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{Attribute, FileSourceMetadataAttribute}
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, ResolveDefaultColumnsUtils}
import org.apache.spark.sql.execution.{FileSourceScanExec, SQLExecution}
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions}
import org.apache.spark.sql.execution.metric.SQLMetrics
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types._

/** Which scans the daemon does, and how it is told. */
object Scans {
  /** Checks that the daemon reads the same rows as Spark would.
    *
    * @throws Unsupported with the reason, if not
    */
  def check(scan: FileSourceScanExec, conf: SQLConf): Unit = {
    val relation = scan.relation
    def refuse(reason: String): Nothing = throw new Unsupported(reason)
    if (relation.fileFormat.getClass != classOf[ParquetFileFormat])
      refuse(s"${relation.fileFormat} files are read by Spark: only Parquet is taken")
    relation.location.rootPaths.map(_.toUri.getScheme).find(scheme => scheme != null && scheme != "file").foreach { scheme =>
      refuse(s"files at $scheme:// are read by Spark: only local files are taken")
    }
    val options = new FileSourceOptions(CaseInsensitiveMap(relation.options))
    if (options.ignoreCorruptFiles || options.ignoreMissingFiles)
      refuse("a scan that ignores damaged or missing files stays with Spark")
    if (conf.parquetFieldIdReadEnabled) refuse("a scan that finds columns by field id stays with Spark")
    scan.output.foreach {
      case FileSourceMetadataAttribute(column) => refuse(s"the metadata column ${column.name} is read by Spark")
      case _ =>
    }
    if (scan.output.size != scan.requiredSchema.size + relation.partitionSchema.size)
      refuse("a scan with generated columns stays with Spark")
    scan.requiredSchema.foreach { field =>
      if (field.metadata.contains(ResolveDefaultColumnsUtils.EXISTS_DEFAULT_COLUMN_METADATA_KEY))
        refuse(s"${field.name} has a default for old files, which Spark fills in")
    }
    val mode = new ParquetOptions(relation.options, conf).datetimeRebaseModeInRead
    if (scan.requiredSchema.exists(field => isTime(field.dataType)) && mode != LegacyBehaviorPolicy.CORRECTED.toString)
      refuse(s"dates in the calendar of old files (rebase mode $mode) are read by Spark")
    if (scan.outputOrdering.nonEmpty) refuse("a scan whose order matters stays with Spark")
    if (scan.markedForSingleTaskExecution) refuse("a scan that is to be a single task stays with Spark")
    scan.output.foreach(column => Types.of(column.dataType))
  }

  /** Returns the splits that Spark makes of a scan's files. What reads them would cost more than all else: each reader comes
    * with a broadcast of Hadoop's settings.
    */
  def splits(scan: FileSourceScanExec): Array[FilePartition] = {
    scan.selectedPartitions // listed now, too: a task that runs on the JVM must find the same files
    val unread = scan.copy(relation = scan.relation.copy(fileFormat = Unread)(scan.relation.sparkSession))
    val rows = if (unread.supportsColumnar) unread.executeColumnar() else unread.execute()
    val splits = rows.partitions.map(_.asInstanceOf[FilePartition])
    // What it counted is counted for the scan that users see.
    unread.driverMetrics.foreach { case (name, counted) => scan.driverMetrics.get(name).foreach(_.set(counted.value)) }
    val execution = scan.session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)
    SQLMetrics.postDriverMetricUpdates(scan.session.sparkContext, execution, scan.driverMetrics.values.toSeq)
    splits
  }

  /** Parquet that is not read. */
  private object Unread extends ParquetFileFormat {
    override def buildReaderWithPartitionValues(
        session: SparkSession,
        dataSchema: StructType,
        partitionSchema: StructType,
        requiredSchema: StructType,
        filters: Seq[Filter],
        options: Map[String, String],
        hadoopConf: Configuration): PartitionedFile => Iterator[InternalRow] = _ => Iterator.empty
  }

  /** Returns the table of a scan, with the given splits. */
  def table(scan: FileSourceScanExec, name: String, splits: Seq[FilePartition], conf: SQLConf): Table = {
    val table = Table.newBuilder.setName(name).setCaseSensitive(conf.caseSensitiveAnalysis)
    scan.output.zipWithIndex.foreach { case (attribute, index) =>
      table.addColumns(column(attribute, index - scan.requiredSchema.size, scan))
    }
    for (part <- splits; file <- part.files) table.addSplits(split(file, scan.relation.partitionSchema))
    table.build()
  }

  private def column(attribute: Attribute, partition: Int, scan: FileSourceScanExec): Column = {
    val column = Column.newBuilder.setKind(Types.of(attribute.dataType)).setNullable(true)
    if (partition >= 0) column.setName(attribute.name).setPartition(partition)
    else column.setName(scan.requiredSchema(partition + scan.requiredSchema.size).name)
    column.build()
  }

  /** Writes a part of a file. */
  def split(file: PartitionedFile, partitionSchema: StructType): Split = {
    val uri = file.pathUri
    if (uri.getScheme != null && uri.getScheme != "file") throw new Unsupported(s"$uri is not a local file")
    val split = Split.newBuilder
      .setPath(uri.getPath)
      .setStart(file.start)
      .setLength(file.length)
      .setFileSize(file.fileSize)
      .setModifiedMs(file.modificationTime)
    partitionSchema.zipWithIndex.foreach { case (field, index) =>
      val value = if (file.partitionValues.isNullAt(index)) null else file.partitionValues.get(index, field.dataType)
      split.addPartitionValues(Types.value(value, field.dataType))
    }
    split.build()
  }

  private def isTime(kind: DataType): Boolean = kind match {
    case DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }
}
