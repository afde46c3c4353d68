"""Revenue by year of an SSB data set, on Tandem. Make the data with `tandem gen ssb --sf 1 -o data/ssb`, then:

    spark-submit --jars JAR --driver-class-path JAR --conf spark.plugins=io.tandem.spark.TandemPlugin revenue.py data/ssb

With pip's Spark, `python revenue.py data/ssb` finds the jar that dev/build-spark made.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

data = sys.argv[1]
builder = SparkSession.builder.appName("revenue")
if not any(argument.endswith("spark-submit") for argument in sys.orig_argv):
    jar = next((Path(__file__).resolve().parents[1] / "target").glob("tandem-spark_*.jar"))
    builder = builder.config("spark.jars", jar).config("spark.driver.extraClassPath", jar)
    builder = builder.config("spark.plugins", "io.tandem.spark.TandemPlugin")
spark = builder.getOrCreate()
for table in ("lineorder", "date"):
    spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)
revenue = spark.sql(
    """select d_year, sum(lo_revenue) revenue
       from lineorder join date on lo_orderdate = d_datekey
       where lo_discount between 1 and 3 group by d_year order by d_year"""
)
for row in revenue.collect():
    print(f"{row.d_year} {row.revenue:>15,}")
revenue.explain()  # the plan that ran
spark.stop()
