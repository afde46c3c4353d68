"""What a user sees: explain, settings, reasons, metrics."""

import os

import pytest
from conftest import check, metric, reasons, settings, tandem_nodes

SQL = "select s, sum(id) from seen where id > 10 group by s"
REFUSED = "select upper(s) from seen where id > 10"


@pytest.fixture(scope="module", autouse=True)
def table(spark):
    path = spark.directory + "/seen"
    spark.sql("select cast(id as int) id, concat('n', id % 3) s from range(1000)").write.mode("overwrite").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("seen")


@pytest.fixture(autouse=True)
def reset(spark):
    yield
    spark.conf.set("spark.tandem.enabled", "true")
    spark.conf.set("spark.tandem.onFallback", "silent")


def test_disabled_for_a_session(spark):
    other = spark.newSession()
    other.read.parquet(spark.directory + "/seen").createOrReplaceTempView("seen")
    other.conf.set("spark.tandem.enabled", "false")
    frame = other.sql(SQL)
    frame.collect()
    assert not tandem_nodes(frame)
    check(spark, SQL, nodes=1)


def test_wrong_settings_are_refused_with_their_name(spark):
    spark.conf.set("spark.tandem.onFallback", "sometimes")
    with pytest.raises(Exception, match="spark.tandem.onFallback is warn, error or silent, not 'sometimes'"):
        spark.sql(REFUSED).collect()
    with settings(spark, {"spark.tandem.buildBytes": "many"}):
        with pytest.raises(Exception, match="spark.tandem.buildBytes is a size such as 128m, not 'many'"):
            spark.sql(SQL).collect()
    spark.conf.set("spark.tandem.enabled", "maybe")
    with pytest.raises(Exception, match="spark.tandem.enabled is true or false, not 'maybe'"):
        spark.sql(SQL).collect()


def test_error_turns_a_reason_into_a_failure(spark):
    spark.conf.set("spark.tandem.onFallback", "error")
    with pytest.raises(Exception, match="Tandem does not run this: Project: the expression upper"):
        spark.sql(REFUSED).collect()
    check(spark, SQL)


def test_explain_before_and_after_the_run(spark, capfd):
    frame = spark.sql(REFUSED)
    assert "upper" in reasons(frame) and "runs 1 part" in reasons(frame)  # the filter
    frame.collect()
    assert "upper" in reasons(frame)
    frame = spark.sql(SQL)
    frame.collect()
    frame.explain()
    text = capfd.readouterr().out
    assert "Tandem PartialAggregate(s, sum(id" in text and "== Extended Information (Tandem) ==" in text


def test_metrics_of_our_node(spark):
    frame = check(spark, SQL)
    assert metric(frame, "rowsIn") == 1000
    assert metric(frame, "numOutputRows") >= 3
    assert metric(frame, "bytesOut") > 0 and metric(frame, "taskTime") > 0
    again = check(spark, SQL)
    assert metric(again, "columnsCached") > 0 and metric(again, "columnsDecoded") == 0


def test_metrics_of_the_scan(spark):
    """The daemon reads the files, and Spark still tells how many there are."""
    files = len([name for name in os.listdir(spark.directory + "/seen") if name.endswith(".parquet")])
    frame = check(spark, SQL)
    assert metric(frame, "numFiles", of="FileSourceScanExec") == files > 0
    assert metric(frame, "filesSize", of="FileSourceScanExec") > 0
