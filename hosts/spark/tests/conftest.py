"""What the tests share: a session with the plugin, and the comparison of its rows with plain Spark's."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
JAR = os.environ.get("TANDEM_SPARK_JAR") or str(next((ROOT / "hosts/spark/target").glob("tandem-spark_*.jar")))


def session(directory, master="local[2]", **settings):
    """Makes a session with the plugin; its daemon lives in `directory`."""
    builder = (
        SparkSession.builder.master(master)
        .appName("tandem-tests")
        .config("spark.plugins", "io.tandem.spark.TandemPlugin")
        .config("spark.jars", JAR)
        .config("spark.driver.extraClassPath", JAR)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .config("spark.tandem.directory", f"{directory}/node")
        .config("spark.tandem.onFallback", "silent")
    )
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def stop(made):
    """Ends a session and its JVM, which would keep settings of its first session for the next."""
    gateway = made.sparkContext._gateway
    made.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="session")
def spark():
    directory = tempfile.mkdtemp(prefix="tandem-test-")
    made = session(directory)
    made.directory = directory
    yield made
    stop(made)
    wait_until(lambda: not daemons(directory), 10, "the daemon outlived its executor")
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(autouse=True)
def limit():
    """Ends a test that hangs: no test may take longer than two minutes."""

    def stop(*_):
        raise TimeoutError("the test took longer than two minutes")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)


def daemons(directory):
    """Returns the processes of daemons whose socket is in a directory."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit():
                command = (process / "cmdline").read_bytes().split(b"\0")
                state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state != "Z" and b"--socket" in command and f"{directory}/".encode() in b" ".join(command):
                    found.append(int(process.name))
        except OSError:
            pass
    return found


def wait_until(condition, seconds, message):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, message
        time.sleep(0.05)


def plans(frame):
    """Returns the final plan of a query that ran, as text."""
    return frame._jdf.queryExecution().executedPlan().toString()


def final_plan(frame):
    return plans(frame).split("== Initial Plan ==")[0]


def tandem_nodes(frame):
    """Returns the lines of the final plan that are our nodes."""
    return [line.strip(" :+-*()0123456789") for line in final_plan(frame).splitlines() if "Tandem " in line]


def metric(frame, name, of="TandemExec"):
    """Returns the sum of a metric over all our nodes, or those of another kind, of a query that ran."""
    total = 0

    def visit(node):
        nonlocal total
        kind = node.getClass().getSimpleName()
        if kind == "AdaptiveSparkPlanExec":
            return visit(node.executedPlan())
        if kind.endswith("QueryStageExec"):
            return visit(node.plan())
        if kind == of:
            total += node.metrics().apply(name).value()
        children = node.children()
        for index in range(children.size()):
            visit(children.apply(index))

    visit(frame._jdf.queryExecution().executedPlan())
    return total


def key(row):
    """An order of rows that does not depend on the last digits of floats."""
    return [(value is None, f"{value:.9e}" if isinstance(value, float) else repr(value)) for value in row]


def same(left, right):
    if isinstance(left, float) and isinstance(right, float):
        if left != left or right != right:
            return left != left and right != right
        return left == right or abs(left - right) <= 1e-9 * max(abs(left), abs(right))
    return type(left) is type(right) and repr(left) == repr(right)


def assert_rows(want, got, what=""):
    assert len(want) == len(got), f"{what}: {len(want)} rows of Spark, {len(got)} with Tandem"
    for one, other in zip(sorted(want, key=key), sorted(got, key=key)):
        assert len(one) == len(other) and all(map(same, one, other)), f"{what}: Spark has {one}, Tandem {other}"


def plain(spark, sql):
    """Runs a query without Tandem; returns its rows, or the class of its error."""
    spark.conf.set("spark.tandem.enabled", "false")
    try:
        return spark.sql(sql).collect()
    finally:
        spark.conf.set("spark.tandem.enabled", "true")


@contextlib.contextmanager
def settings(spark, values):
    """Has settings in a session for a while."""
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def check(spark, sql, nodes=None, on_jvm=0):
    """Runs a query with and without Tandem: the rows are equal, and `nodes` parts ran on Tandem (None: at least one).

    `on_jvm` tells how many tasks of our nodes may have run on the JVM; None: any."""
    want = plain(spark, sql)
    frame = spark.sql(sql)
    got = frame.collect()
    assert_rows(want, got, sql)
    found = tandem_nodes(frame)
    if nodes is None:
        assert found, f"nothing ran on Tandem:\n{plans(frame)}\n{reasons(frame)}"
    else:
        assert len(found) == nodes, f"{len(found)} nodes, not {nodes}:\n{plans(frame)}\n{reasons(frame)}"
    if on_jvm is not None and found:
        assert metric(frame, "tasksFallenBack") == on_jvm, f"tasks ran on the JVM: {sql}"
    return frame


def reasons(frame):
    """Returns what `explain` says of Tandem."""
    jvm = frame.sparkSession.sparkContext._jvm
    explain = jvm.org.apache.spark.sql.execution.tandem.TandemExplain()
    return explain.generateExtendedInfo(frame._jdf.queryExecution().executedPlan())


def views(spark, suite):
    for file in sorted((ROOT / f"data/{suite}-sf0.1").glob("*.parquet")):
        spark.read.parquet(str(file)).createOrReplaceTempView(file.stem)


def queries(suite):
    return sorted((ROOT / f"bench/suites/{suite}").glob("*.sql"), key=lambda path: [int(x) for x in path.stem.split(".")])
