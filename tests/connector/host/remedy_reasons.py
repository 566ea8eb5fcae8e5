"""Remedies that tests elsewhere carry out, and places whose remedy none does, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

FOLLOWED: Mapping[str, str] = {
    "tests/connector/cli/bootstrap/test_auto_loader_import.py": "auto_loader_export.py*2",
    "tests/connector/cli/bootstrap/test_file_log_import.py": "file_log_import.py*2",
    "tests/connector/cli/bootstrap/test_fork.py": "spark_checkpoint.py",
    "tests/connector/cli/bootstrap/test_new_state.py": "start_position.py",
    "tests/connector/cli/commands/test_compact_table.py": "delta_changes.py",
    "tests/connector/cli/commands/test_table_batches.py": "repair.py",
    "tests/connector/cli/reprocess/test_orders_next_to_others.py": "start_position.py",
    "tests/connector/cli/reprocess/test_reprocess.py": "known_files.py",
    "tests/connector/cli/reprocess/test_reread.py": "reprocess_plan.py*2 table_sink.py",
    "tests/connector/host/test_busy_catalog.py": "host/run.py iceberg_table.py",
    "tests/connector/host/test_incidents.py": "new_columns.py",
    "tests/connector/host/test_names_of_columns.py": "query_records.py",
    "tests/connector/host/test_query_ends.py": "batch_order.py start_check.py*3",
    "tests/connector/host/test_refusals.py": "delta_table.py table_fit.py*6",
    "tests/connector/host/test_remedies.py": (
        "file_version.py new_files.py spark_checkpoint.py tree_discovery.py"
    ),
    "tests/connector/host/test_replacing.py": (
        "direct_write.py rehearsal.py start_check.py*2 table_sink.py"
    ),
    "tests/connector/host/test_restores.py": "batch_order.py*2",
    "tests/connector/host/test_run.py": "inference.py schema_evolution.py",
    "tests/connector/host/test_two_starts.py": "epochs.py history.py start_check.py",
    "tests/connector/query/test_begun_files.py": "begun_files.py reader.py",
    "tests/connector/source/test_deleted_files.py": "file_source.py tree_discovery.py",
    "tests/connector/source/test_event_time_column.py": "discovery.py",
    "tests/tables/test_delta.py": "delta_table.py",
    "tests/tables/test_iceberg.py": "iceberg_table.py",
}
"""Module of tests -> modules, with how many of their places have a remedy that it carries out."""

REASONS: Mapping[str, str] = {
    "another store, package or configuration: the remedy is to move": (
        "acknowledgements.py aligned_positions.py contract.py epochs.py fsspec_storage.py "
        "hdfs_storage.py local_storage.py open_store.py providers.py*2 reader_commit.py "
        "sftp_storage.py start_position.py visibility_check.py written_values.py"
    ),
    "objects that are damaged or lost: test_verify.py puts copies back and restores": (
        "attachments.py*2 checkpoint.py checksummed_json.py epochs.py history.py*4 orders.py*2"
    ),
    "a newer release has to be installed": "checkpoint.py serializer.py spark_checkpoint.py",
    "a bug in an enumerator, a reader or in Sluice: the remedy is a report": (
        "acknowledgements.py applied_orders.py context.py enumerator/api.py*2 "
        "hybrid_enumerator.py in_flight.py reader_assignment.py*2 schema_evolution.py "
        "subtask_gateway.py*3 task.py*4 visibility_check.py"
    ),
    "imports and forks: their tests meet it next to the call that is right": (
        "auto_loader_export.py file_log_import.py new_state.py*5"
    ),
    "commands: tests of the command meet it next to the call that is right": (
        "arguments.py bootstrap.py doctor_checks.py clean_up.py commands/run.py*3 feeds_file.py*5 "
        "hints.py known_files.py metrics.py repair.py*3 reprocess_plan.py spark_run.py*2 splits.py "
        "state_view.py tree_discovery.py view_reader.py*3"
    ),
    "the machine or a catalog: a process that dies each time, a package that is missing": (
        "batch_log.py embedded_query.py errors.py*3 host/run.py*2 worker.py worker_pool.py"
    ),
    "calls of Spark: the remedy is another call, which tests with Spark make": (
        "batch_reader.py direct_write.py driver.py hybrid_source.py owner.py*2 "
        "schema_json.py*2 schemas.py spark_checkpoint.py state_location.py*3 validation.py"
    ),
    "stores, queues and lists that fail: the simulator and tests with servers go on after them": (
        "backlog.py criteria.py hybrid_enumerator.py queue_discovery.py*2 restore.py "
        "running_coordinator.py*2 threads.py"
    ),
    "attempts of one batch that differ: tests/reader/test_task.py goes on after them": (
        "acknowledgement.py*3 part_end.py"
    ),
    "files of writers that are not here, and other packages: tests of formats meet it": (
        "blocks.py calendar_rebase.py*2 file_version.py*2 formats/api.py in_place.py "
        "orc/format.py*2 parquet/format.py partitioning.py*2 place.py reader.py row_filter.py "
        "split_content.py table_fit.py"
    ),
    "tables that others have changed: tests/tables has each, and the batch is added later": (
        "batch_order.py*2 delta_changes.py*3 delta_table.py*3 iceberg_files.py*2 "
        "iceberg_table.py*4 manifests.py*2 table_sink.py*2 written_batch.py*5"
    ),
    "nothing was begun: the command is called again with what the message names": (
        "audit/audit.py*2 books.py*2 file_rows.py"
    ),
}
"""Why no test carries out the remedy -> modules, with how many of their places."""
