"""The same on a standalone cluster of two workers: one daemon serves both executors; faults of either end well."""

import os
import shutil
import signal
import stat
import tempfile
import time

import pytest
from cluster import Cluster
from conftest import ROOT, assert_rows, daemons, metric, plain, session, stop, tandem_nodes, wait_until
from pyspark.sql import SparkSession

SQL = "select n, sum(id), count(*) from t join d on t.k = d.k where id > 5 group by n"


def stop_other_sessions():
    active = SparkSession.getActiveSession()
    if active is not None:
        stop(active)


@pytest.fixture(scope="module")
def cluster():
    stop_other_sessions()  # one driver at a time in a process
    directory = tempfile.mkdtemp(prefix="tandem-cluster-")
    # A fake device: the script is what Spark asks each worker's machine.
    script = f"{directory}/discover"
    with open(script, "w") as file:
        file.write('#!/bin/sh\necho \'{"name": "gpu", "addresses": ["0"]}\'\n')
    os.chmod(script, os.stat(script).st_mode | stat.S_IXUSR)
    made = Cluster(
        directory, worker_settings=["spark.worker.resource.gpu.amount 1", f"spark.worker.resource.gpu.discoveryScript {script}"])
    yield made
    made.stop()
    wait_until(lambda: not made.executors() and not daemons(directory), 20, "a process was left behind")
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def spark(cluster):
    made = session(
        cluster.directory, master=cluster.url, spark__executor__memory="512m", spark__executor__cores="1",
        spark__executor__resource__gpu__amount="1", spark__task__resource__gpu__amount="0.5",
        spark__tandem__hangLimit="3s", spark__task__maxFailures="8")
    path = f"{cluster.directory}/rows"
    made.range(400000).selectExpr("id", "id % 7 k", "cast(id as string) s").repartition(6).write.parquet(path)
    made.read.parquet(path).createOrReplaceTempView("t")
    made.range(7).selectExpr("id k", "concat('n', id) n").write.parquet(f"{cluster.directory}/dim")
    made.read.parquet(f"{cluster.directory}/dim").createOrReplaceTempView("d")
    made.conf.set("spark.sql.files.maxPartitionBytes", "1000000")
    made.want = plain(made, SQL)
    yield made
    stop(made)


def run(spark, fallen_back=None):
    frame = spark.sql(SQL)
    assert_rows(spark.want, frame.collect())
    assert tandem_nodes(frame)
    fallen = metric(frame, "tasksFallenBack")
    assert fallen_back is None or (fallen > 0) == fallen_back, fallen
    return fallen


def recovers(spark, cluster):
    wait_until(lambda: run(spark) == 0 and len(daemons(cluster.directory)) == 1, 40, "no daemon serves all tasks again")


def test_two_executors_share_one_daemon(spark, cluster):
    run(spark)
    wait_until(lambda: len(cluster.executors()) == 2, 30, "there are not two executors")
    run(spark, fallen_back=False)
    assert len(daemons(cluster.directory)) == 1


def test_executors_have_the_device_that_the_script_found(spark):
    resources = spark.sparkContext.parallelize(range(4), 4).map(
        lambda _: __import__("pyspark").TaskContext.get().resources()["gpu"].addresses).collect()
    assert resources == [["0"]] * 4


def test_the_daemon_is_killed(spark, cluster):
    run(spark)
    os.kill(daemons(cluster.directory)[0], signal.SIGKILL)
    run(spark)
    recovers(spark, cluster)


def test_the_daemon_hangs(spark, cluster):
    run(spark)
    os.kill(daemons(cluster.directory)[0], signal.SIGSTOP)
    started = time.monotonic()
    run(spark)
    assert time.monotonic() - started < 60
    recovers(spark, cluster)


def test_an_executor_is_killed(spark, cluster):
    run(spark)
    wait_until(lambda: len(cluster.executors()) == 2, 30, "there are not two executors")
    before = cluster.executors()
    os.kill(before[0], signal.SIGKILL)
    run(spark)
    wait_until(lambda: len(cluster.executors()) == 2 and before[0] not in cluster.executors(), 40, "no new executor")
    run(spark)
    wait_until(lambda: len(daemons(cluster.directory)) == 1, 20, "there is not one daemon")


def test_all_executors_are_killed(spark, cluster):
    run(spark)
    for process in cluster.executors():
        os.kill(process, signal.SIGKILL)
    run(spark)
    wait_until(lambda: len(daemons(cluster.directory)) == 1, 20, "there is not one daemon")


def test_ssb_on_the_cluster(spark):
    for file in sorted((ROOT / "data/ssb-sf0.1").glob("*.parquet")):
        spark.read.parquet(str(file)).createOrReplaceTempView(file.stem)
    for name in ("1.1", "2.1", "3.1", "4.1"):
        sql = (ROOT / f"bench/suites/ssb/{name}.sql").read_text().strip().rstrip(";")
        frame = spark.sql(sql)
        rows = frame.collect()
        assert "PartialAggregate" in tandem_nodes(frame)[0]
        assert_rows(plain(spark, sql), rows, name)
