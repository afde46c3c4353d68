"""A standalone cluster of a master and workers on loopback, without Spark's start scripts, which pip's Spark lacks."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent


class Cluster:
    def __init__(self, directory, workers=2, cores=1, worker_settings=(), worker_memory="1g"):
        self.directory = Path(directory)
        self.processes = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        self.launch("Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0", name="master")
        self.wait_for("master", "I have been elected leader")
        properties = self.directory / "worker.conf"
        properties.write_text("\n".join(worker_settings) + "\n")
        for index in range(workers):
            self.launch(
                "Worker", self.url, "--host", "127.0.0.1", "--webui-port", "0", "-c", str(cores), "-m", worker_memory,
                "-d", str(self.directory / f"work{index}"), "--properties-file", str(properties), name=f"worker{index}")
        for index in range(workers):
            self.wait_for(f"worker{index}", "Successfully registered with master")

    def launch(self, kind, *arguments, name):
        log = open(self.directory / f"{name}.log", "w")
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_HOME": str(HOME)}
        process = subprocess.Popen(
            [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *arguments],
            stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        self.processes.append(process)

    def wait_for(self, name, text, seconds=60):
        deadline = time.monotonic() + seconds
        while text not in (self.directory / f"{name}.log").read_text():
            assert time.monotonic() < deadline, (self.directory / f"{name}.log").read_text()[-2000:]
            time.sleep(0.1)

    def executors(self):
        """Returns the processes of the cluster's executors."""
        return processes(
            lambda process, command: "CoarseGrainedExecutorBackend" in command
            and os.path.realpath(f"/proc/{process}/cwd").startswith(str(self.directory)))

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def processes(wanted):
    """Returns the ids of processes; `wanted` is asked with each id and command line."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if command and wanted(process.name, command):
                    found.append(int(process.name))
            except OSError:
                pass
    return found
