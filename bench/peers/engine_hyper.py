"""Hyper: tables of a .hyper database, or external tables on Parquet files."""

import os

import tableauhyperapi
from tableauhyperapi import Connection, CreateMode, HyperProcess, Telemetry


def version():
    return tableauhyperapi.__version__


class Engine:
    def __init__(self, request):
        settings = {
            "log_config": "",
            "soft_concurrent_query_thread_limit": str(request["threads"]),
            "hard_concurrent_query_thread_limit": str(request["threads"]),
        }
        self.process = HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=settings)
        database = os.path.join(request["scratch"], "bench.hyper")
        self.connection = Connection(self.process.endpoint, database, CreateMode.CREATE_AND_REPLACE)
        for name, table in request["tables"].items():
            if request["from"] == "memory":
                columns = ", ".join(table["columns"])
                sql = f"create table \"{name}\" as select {columns} from external('{table['path']}', format => 'parquet')"
            else:
                sql = f"create temporary external table \"{name}\" for '{table['path']}'"
            self.connection.execute_command(sql)

    def run(self, sql):
        return self.connection.execute_list_query(sql)

    def rows(self, result):
        return result

    def close(self):
        self.connection.close()
        self.process.close()
