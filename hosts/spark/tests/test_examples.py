"""The examples run as their texts say."""

import os
import subprocess
import sys

import pytest
from cluster import HOME
from conftest import JAR, ROOT

EXAMPLE = str(ROOT / "hosts/spark/examples/revenue.py")
SUBMIT = [
    str(HOME / "bin/spark-submit"), "--jars", JAR, "--driver-class-path", JAR, "--conf",
    "spark.plugins=io.tandem.spark.TandemPlugin"]


@pytest.mark.parametrize("command", [[sys.executable], SUBMIT], ids=["python", "spark-submit"])
def test_revenue(command, tmp_path):
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_HOME": str(HOME)}
    ran = subprocess.run(
        [*command, EXAMPLE, str(ROOT / "data/ssb-sf0.1")], capture_output=True, text=True, timeout=100, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "1992 " in ran.stdout and "Tandem PartialAggregate(d_year, sum(lo_revenue" in ran.stdout, ran.stdout
