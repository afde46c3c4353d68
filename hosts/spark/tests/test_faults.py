"""Faults of the daemon, in one process: each query ends with the right rows."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import pytest
from conftest import JAR, ROOT, daemons, metric, settings, wait_until

PRELUDE = """
import os, signal, subprocess, sys, threading, time
sys.path.insert(0, {tests!r})
from conftest import *
directory = {directory!r}
spark = session(directory, {settings})
rows = directory + "/rows"
if not os.path.exists(rows):
    spark.range(200000).selectExpr("id", "id % 7 k", "cast(id as string) s").write.parquet(rows)
spark.read.parquet(rows).createOrReplaceTempView("t")
spark.range(7).selectExpr("id k", "concat('n', id) n").write.mode("overwrite").parquet(directory + "/dim")
spark.read.parquet(directory + "/dim").createOrReplaceTempView("d")
SQL = "select n, sum(id), count(*) from t join d on t.k = d.k where id > 5 group by n"
want = plain(spark, SQL)
def run(fallen_back=None):
    frame = spark.sql(SQL)
    assert_rows(want, frame.collect())
    assert tandem_nodes(frame)
    fallen = metric(frame, "tasksFallenBack")
    assert fallen_back is None or (fallen > 0) == fallen_back, fallen
    return fallen
def recovers():
    wait_until(lambda: run() == 0, 30, "tasks still fall back to the JVM")
def pid():
    found = daemons(directory)
    assert len(found) == 1, found
    return found[0]
def own_daemon(*options):
    path = directory + "/own.sock"
    command = [directory + "/node/tandem-node", "--socket", path, "--with-parent", *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    wait_until(lambda: os.path.exists(path), 10, "the daemon did not start")
    return path, process
"""


@pytest.fixture
def program():
    """Runs a program with a session of its own, and checks that it leaves no process behind."""
    directory = tempfile.mkdtemp(prefix="tandem-fault-")

    def run(body, settings="", expect=0, limit=110):
        text = PRELUDE.format(tests=str(Path(__file__).parent), directory=directory, settings=settings)
        child = subprocess.run(
            [sys.executable, "-c", text + textwrap.dedent(body)],
            capture_output=True, text=True, timeout=limit, env={**os.environ, "TANDEM_SPARK_JAR": JAR})
        assert child.returncode == expect, child.stdout[-2000:] + child.stderr[-4000:]
        wait_until(lambda: not daemons(directory), 15, "a daemon was left behind")
        return child

    run.directory = directory
    yield run
    for process in daemons(directory):
        os.kill(process, signal.SIGKILL)
    shutil.rmtree(directory, ignore_errors=True)


def test_killed_and_hung(program):
    """One session, since most of such a test is the start of two processes."""
    program("""
        run(fallen_back=False)
        first = pid()
        for _ in range(2):
            os.kill(pid(), signal.SIGKILL)
            recovers()
        assert pid() != first

        # while it works
        def kill():
            for _ in range(6):
                time.sleep(0.15)
                for process in daemons(directory):
                    os.kill(process, signal.SIGKILL)
        killer = threading.Thread(target=kill)
        killer.start()
        for _ in range(8):
            run()
        killer.join()
        recovers()

        os.kill(pid(), signal.SIGSTOP)
        started = time.monotonic()
        run()
        assert time.monotonic() - started < 20
        recovers()
        spark.stop()
    """, settings="spark__tandem__hangLimit='2s'")


def test_stopped_while_another_process_starts_the_daemon(program):
    """What a thread starts after the session's end, when the lock is free at last, ends too."""
    program("""
        import fcntl
        run(fallen_back=False)
        spark.stop()
        executable = directory + "/node/tandem-node"
        os.remove(executable)
        with open(directory + "/node/node.lock", "w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            session(directory).stop()
            assert not daemons(directory) and not os.path.exists(executable)
        wait_until(lambda: os.path.exists(executable), 20, "the thread did not go on")
        time.sleep(1)  # to start it
        wait_until(lambda: not daemons(directory), 10, "a daemon was left behind by a session that ended")
    """)


def test_cannot_be_started(program):
    program("""
        run(fallen_back=True)
        run(fallen_back=True)
        spark.stop()
    """, settings="spark__tandem__binary='/bin/false'")


def test_speaks_another_protocol(program):
    """A socket that answers with frames of another version: a clear reason, and the JVM's rows."""
    program("""
        import socket, struct
        path = directory + "/other.sock"
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        def answer():
            while True:
                client, _ = server.accept()
                client.recv(65536)
                text = b"this daemon speaks version 9 of the protocol: use a plugin of the same version"
                body = bytes([8, 8, 18, len(text)]) + text
                client.sendall(struct.pack("<IB", len(body), 69) + body)
        threading.Thread(target=answer, daemon=True).start()
        spark.stop()
        spark = session(directory, spark__tandem__socket=path)
        spark.read.parquet(rows).createOrReplaceTempView("t")
        spark.read.parquet(directory + "/dim").createOrReplaceTempView("d")
        run(fallen_back=True)
        spark.stop()
    """)


def test_another_user_was_there_first(program):
    """A socket that may be another user's is sent nothing, and the query runs on the JVM, with the reason in the log."""
    if os.geteuid() != 0:
        pytest.skip("only root can make files of another user")
    child = program("""
        import socket
        spark.stop()
        heard = []
        def listen(path):
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen()
            def answer():
                while True:
                    client, _ = server.accept()
                    heard.append((path, client.recv(65536)))
                    client.close()
            threading.Thread(target=answer, daemon=True).start()
        def place(name, mode=0o700):
            path = f"{directory}/{name}"
            os.mkdir(path)
            listen(path + "/node.sock")
            os.chmod(path, mode)
            return path
        def falls_back(**settings):
            global spark
            spark = session(directory, spark__tandem__token="a token of sufficient length", **settings)
            spark.sparkContext.setLogLevel("WARN")
            spark.read.parquet(rows).createOrReplaceTempView("t")
            spark.read.parquet(directory + "/dim").createOrReplaceTempView("d")
            run(fallen_back=True)
            spark.stop()
            assert not daemons(directory), "a daemon was started there"
        theirs, open_to_all, ours = place("theirs"), place("open", 0o777), place("ours")
        os.chown(theirs, 65534, 65534)
        os.symlink(ours, directory + "/link")
        falls_back(spark__tandem__directory=theirs)
        falls_back(spark__tandem__directory=open_to_all)
        falls_back(spark__tandem__directory=directory + "/link")
        os.chown(ours + "/node.sock", 65534, 65534)
        falls_back(spark__tandem__socket=ours + "/node.sock")
        # The kernel knows who listens, whosever the files are.
        code = "import socket, sys\\ns = socket.socket(socket.AF_UNIX)\\ns.bind(sys.argv[1])\\ns.listen()\\n"
        code += "while True: sys.stdout.buffer.write(s.accept()[0].recv(1000)), sys.stdout.flush()"
        made, moved = theirs + "/other.sock", directory + "/moved.sock"
        os.chmod(directory, 0o711)
        other = subprocess.Popen(["python3", "-c", code, made], user=65534, group=65534, stdout=subprocess.PIPE)
        wait_until(lambda: any(made in line and " 00010000 " in line for line in open("/proc/net/unix")), 20, "it does not listen")
        os.rename(made, moved)
        os.chown(moved, 0, 0)
        os.chmod(directory, 0o700)
        falls_back(spark__tandem__socket=moved)
        other.kill()
        assert other.communicate()[0] == b"", "the token was sent to another user"
        assert heard == [], heard
    """, limit=115)
    log = child.stdout + child.stderr
    for reason in (
        "theirs belongs to user 65534, not to 0", "open is open to others (mode 0777)", "link is not a directory, or a link to one",
        "ours/node.sock belongs to user 65534, not to 0", "listens on",
    ):
        assert reason in log, (reason, log[-4000:])


def test_a_runtime_directory_that_is_none(program, monkeypatch):
    """XDG_RUNTIME_DIR that is empty (or relative) counts as not set: the daemon is in the temporary directory."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    program("""
        run(fallen_back=False)
        assert os.path.exists(f"{directory}/tandem-{os.geteuid()}/node.sock")
        assert not os.path.exists("tandem/node.sock")
        spark.stop()
    """, settings=f"spark__tandem__directory='', spark__driver__extraJavaOptions='-Djava.io.tmpdir={program.directory}'")


def test_the_driver_is_killed(program):
    child = program("""
        run(fallen_back=False)
        os.kill(pid(), 0)
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        os._exit(7)
    """, expect=7)
    assert child.returncode == 7


def test_cancel_stops_the_work_in_the_daemon(program):
    program("""
        spark.range(3000000).selectExpr("id", "id % 1000 k").coalesce(1).write.parquet(directory + "/big")
        spark.read.parquet(directory + "/big").createOrReplaceTempView("big")
        spark.sql("select k, id from big where id < 60000").coalesce(1).write.parquet(directory + "/many")
        spark.read.parquet(directory + "/many").createOrReplaceTempView("many")
        # Every row meets sixty others: far longer than the wait below.
        slow = "select /*+ broadcast(m) */ sum(b.id + m.id) from big b join many m on b.k = m.k where b.id % 3 != m.id % 2"
        run(fallen_back=False)
        process = pid()
        failed = []
        def query():
            try:
                spark.sql(slow).collect()
            except Exception as error:
                failed.append(error)
        thread = threading.Thread(target=query)
        thread.start()
        def busy():
            before = sum(map(int, open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[11:13]))
            time.sleep(0.3)
            after = sum(map(int, open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()[11:13]))
            return after - before > 5
        try:
            wait_until(busy, 20, "the query does not work in the daemon")
        except AssertionError:
            assert not thread.is_alive() and not failed, failed  # it was too fast to be cancelled
        else:
            spark.sparkContext.cancelAllJobs()
            thread.join(20)
            assert failed, "the query was not cancelled"
            wait_until(lambda: not busy(), 5, "the daemon goes on with a cancelled command")
            assert pid() == process
        run(fallen_back=False)
        spark.stop()
    """)


OTHER = """
import sys
sys.path.insert(0, {tests!r})
from conftest import *
directory = {directory!r}
spark = session(directory)
spark.read.parquet(directory + "/rows").createOrReplaceTempView("t")
frame = spark.sql("select k, sum(id) from t where id > 5 group by k")
frame.collect()
assert metric(frame, "tasksFallenBack") == 0
assert metric(frame, "columnsCached") > 0, "the other application's columns were not found"
assert len(daemons(directory)) == 1
spark.stop()
"""


def test_two_applications_share_a_daemon(program):
    other = Path(program.directory) / "other.py"
    other.write_text(OTHER.format(tests=str(Path(__file__).parent), directory=program.directory))
    program("""
        run(fallen_back=False)
        process = pid()
        other = subprocess.run([sys.executable, directory + "/other.py"], capture_output=True, text=True, timeout=80)
        assert other.returncode == 0, other.stderr[-3000:]
        assert pid() == process
        run(fallen_back=False)
        spark.stop()
    """)


def test_memory_runs_out(program):
    """A command that collects more than the daemon allows runs on the JVM; the daemon goes on."""
    program("""
        run(fallen_back=False)
        path, small = own_daemon("--memory-limit", "1")
        spark.stop()
        spark = session(directory, spark__tandem__socket=path)
        spark.read.parquet(rows).createOrReplaceTempView("t")
        spark.read.parquet(directory + "/dim").createOrReplaceTempView("d")
        groups = "select id, s, count(*), sum(k) from t where id > 5 group by id, s"
        frame = check(spark, groups, on_jvm=None)
        assert metric(frame, "tasksFallenBack") > 0
        run(fallen_back=False)
        assert small.poll() is None
        spark.stop()
        small.stdin.close()
        small.wait(10)
    """)


def test_rows_are_taken_too_slowly(program):
    """The daemon gives up a client that takes nothing; the task's third attempt runs on the JVM."""
    program("""
        run(fallen_back=False)
        path, impatient = own_daemon("--client-timeout", "1")
        spark.stop()
        spark = session(directory, master="local[2,4]", spark__tandem__socket=path)
        # One row group of 60 MB, of which a task holds 32.
        wide = spark.range(0, 400000, 1, 1).selectExpr("id", "lpad(cast(id as string), 150, 'x') s")
        wide.write.parquet(directory + "/wide")
        spark.read.parquet(directory + "/wide").createOrReplaceTempView("wide")
        slow = "case when id = 1000 then java_method('java.lang.Thread', 'sleep', 3000L) end"
        frame = spark.sql(f"select count(x), sum(length(s)) from (select {slow} x, s from wide where id > 5)")
        assert [tuple(row) for row in frame.collect()] == [(1, 150 * 399994)]
        assert tandem_nodes(frame) and metric(frame, "tasksFallenBack") == 1
        assert impatient.poll() is None
        spark.stop()
        impatient.stdin.close()
        impatient.wait(10)
    """)


def test_the_machine_has_no_memory_for_the_daemon(program):
    program("""
        import resource
        run(fallen_back=False)
        process = pid()
        used = int(open(f"/proc/{process}/statm").read().split()[0]) * resource.getpagesize()
        resource.prlimit(process, resource.RLIMIT_AS, (used + (1 << 20), used + (1 << 20)))
        spark.range(3000000).selectExpr("id", "id % 5 k").write.parquet(directory + "/more")
        spark.read.parquet(directory + "/more").createOrReplaceTempView("t")
        want = plain(spark, SQL)
        run()
        spark.stop()
    """)


def test_the_disk_is_full(program):
    """The daemon cannot be unpacked."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk that is full")
    full = program.directory + "/full"
    os.mkdir(full)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", full], check=True)
    try:
        program("""
            run(fallen_back=True)
            spark.stop()
        """, settings=f"spark__tandem__directory={full + '/node'!r}")
    finally:
        subprocess.run(["umount", full], check=True)


def test_tasks_on_the_jvm_keep_their_splits(spark, tmp_path):
    """What a task reads on the JVM was decided with the query, whatever the session's settings are by then."""
    path = str(tmp_path / "split")
    spark.range(0, 100_000, 1, 4).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("split")
    frame = spark.sql("select id from split where id >= 10")
    rows = frame._jdf.queryExecution().toRdd()
    for name in os.listdir(path):
        if name.endswith(".parquet"):
            os.utime(os.path.join(path, name), (1, 1))  # another file, as far as the daemon can tell
    with settings(spark, {"spark.sql.files.maxPartitionBytes": "1000"}):
        assert rows.count() == 99_990
    assert metric(frame, "tasksFallenBack") > 0
