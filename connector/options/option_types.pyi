# The options with their types, for editors and type checkers.
# Generated from the model by `python tools/options_table.py`.

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

class OptionTypes(TypedDict, total=False):
    # All names of options, as in the reference and as in Python.
    acceptUnrelatedFiles: bool
    accept_unrelated_files: bool
    alignmentGroup: str
    alignment_group: str
    allowComments: bool
    allowNonNumericNumbers: bool
    allowSingleQuotes: bool
    allowUnquotedFieldNames: bool
    allowUnreadBatches: bool
    allow_comments: bool
    allow_non_numeric_numbers: bool
    allow_single_quotes: bool
    allow_unquoted_field_names: bool
    allow_unread_batches: bool
    archivePathFilter: str
    archive_path_filter: str
    attributePrefix: str
    attribute_prefix: str
    availableNow: bool
    available_now: bool
    badRecordsPath: str
    bad_records_path: str
    basePath: str
    base_path: str
    batchBytes: int | str
    batch_bytes: int | str
    charToEscapeQuoteEscaping: str
    char_to_escape_quote_escaping: str
    charset: str
    checkpointLocation: str
    checkpoint_location: str
    checkpointsAhead: int
    checkpoints_ahead: int
    cleanSource: Literal["off", "delete", "archive"]
    cleanSourceRetention: int | str
    cleanSourceWhileRetained: bool
    clean_source: Literal["off", "delete", "archive"]
    clean_source_retention: int | str
    clean_source_while_retained: bool
    columnNameOfCorruptRecord: str
    column_name_of_corrupt_record: str
    comment: str
    compression: Literal["auto", "none", "gzip", "bzip2", "zstd", "xz", "lz4", "snappy", "deflate"]
    dateFormat: str
    date_format: str
    datetimeRebaseMode: Literal["CORRECTED", "LEGACY", "EXCEPTION"]
    datetime_rebase_mode: Literal["CORRECTED", "LEGACY", "EXCEPTION"]
    deadLetterQueueUrl: str
    dead_letter_queue_url: str
    delimiter: str
    discoveryAttempts: int
    discoveryInterval: int | str
    discoveryMode: Literal["full", "incremental", "notifications", "journal"]
    discoveryTimeout: int | str
    discovery_attempts: int
    discovery_interval: int | str
    discovery_mode: Literal["full", "incremental", "notifications", "journal"]
    discovery_timeout: int | str
    emptyValue: str
    empty_value: str
    encoding: str
    endAt: str
    end_at: str
    enforceSchema: bool
    enforce_schema: bool
    escape: str
    eventTimeColumn: str
    eventTimePattern: str
    eventTimeUnit: Literal["", "s", "ms", "us", "ns"]
    event_time_column: str
    event_time_pattern: str
    event_time_unit: Literal["", "s", "ms", "us", "ns"]
    excludeAttribute: bool
    exclude_attribute: bool
    failOnMissingPath: bool
    fail_on_missing_path: bool
    fileFormat: str
    fileOrder: Literal["mtime", "name", "newestFirst", "eventTime"]
    file_format: str
    file_order: Literal["mtime", "name", "newestFirst", "eventTime"]
    filter: str
    formatOptions: Mapping[str, object] | str
    format_options: Mapping[str, object] | str
    freshShare: float
    fresh_share: float
    fullListingInterval: int | str
    full_listing_interval: int | str
    header: bool
    identity: Literal["path", "content"]
    ignoreCorruptFiles: bool
    ignoreLeadingWhiteSpace: bool
    ignoreMissingFiles: Literal["false", "true", "replaced"]
    ignoreNamespace: bool
    ignoreSurroundingSpaces: bool
    ignoreTrailingWhiteSpace: bool
    ignore_corrupt_files: bool
    ignore_leading_white_space: bool
    ignore_missing_files: Literal["false", "true", "replaced"]
    ignore_namespace: bool
    ignore_surrounding_spaces: bool
    ignore_trailing_white_space: bool
    ignoredPathSegmentRegex: str
    ignored_path_segment_regex: str
    includeExistingFiles: bool
    include_existing_files: bool
    inferColumnTypes: bool
    inferSampleBytes: int | str
    inferSampleFiles: int
    infer_column_types: bool
    infer_sample_bytes: int | str
    infer_sample_files: int
    int96RebaseMode: Literal["CORRECTED", "LEGACY", "EXCEPTION"]
    int96_rebase_mode: Literal["CORRECTED", "LEGACY", "EXCEPTION"]
    keepFileRows: bool
    keep_file_rows: bool
    lineSep: str
    line_sep: str
    locale: str
    logLevel: Literal["debug", "info", "warning", "error"]
    log_level: Literal["debug", "info", "warning", "error"]
    maxBadRecordShare: float
    maxBatchDuration: int | str
    maxBytesPerTrigger: int | str
    maxEventTimeSkew: int | str
    maxFileAge: int | str
    maxFilesPerTrigger: int
    maxNewColumns: int
    maxRecordBytes: int | str
    maxRowsPerTrigger: int
    maxSplitAttempts: int
    maxSplitBytes: int | str
    max_bad_record_share: float
    max_batch_duration: int | str
    max_bytes_per_trigger: int | str
    max_event_time_skew: int | str
    max_file_age: int | str
    max_files_per_trigger: int
    max_new_columns: int
    max_record_bytes: int | str
    max_rows_per_trigger: int
    max_split_attempts: int
    max_split_bytes: int | str
    minFileSize: int | str
    min_file_size: int | str
    mode: Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]
    modifiedAfter: str
    modifiedBefore: str
    modified_after: str
    modified_before: str
    multiLine: bool
    multi_line: bool
    nanValue: str
    nan_value: str
    negativeInf: str
    negative_inf: str
    nullValue: str
    null_value: str
    onDelete: Literal["ignore", "retract"]
    onLateFile: Literal["read", "quarantine", "fail"]
    onMissingEventTime: Literal["fail", "mtime"]
    onOverwrite: Literal["ignore", "reprocess", "replace", "fail", "appendTail"]
    onSplitError: Literal["fail", "return"]
    on_delete: Literal["ignore", "retract"]
    on_late_file: Literal["read", "quarantine", "fail"]
    on_missing_event_time: Literal["fail", "mtime"]
    on_overwrite: Literal["ignore", "reprocess", "replace", "fail", "appendTail"]
    on_split_error: Literal["fail", "return"]
    parallelism: int | str
    path: str
    pathGlobFilter: str
    path_glob_filter: str
    paths: Sequence[str] | str
    positiveInf: str
    positive_inf: str
    primitivesAsString: bool
    primitives_as_string: bool
    queueUrl: str
    queue_url: str
    quote: str
    readyMarker: str
    ready_marker: str
    recordPath: str
    record_path: str
    recursiveFileLookup: bool
    recursive_file_lookup: bool
    rescuedDataColumn: str
    rescued_data_column: str
    retainCheckpointsFor: int | str
    retain_checkpoints_for: int | str
    retractAfter: int | str
    retract_after: int | str
    rowTag: str
    rowValidationXSDPath: str
    row_tag: str
    row_validation_xsd_path: str
    schemaEvolutionMode: Literal[
        "addNewColumns",
        "addNewColumnsWithTypeWidening",
        "rescue",
        "failOnNewColumns",
        "none",
    ]
    schemaHints: str
    schema_evolution_mode: Literal[
        "addNewColumns",
        "addNewColumnsWithTypeWidening",
        "rescue",
        "failOnNewColumns",
        "none",
    ]
    schema_hints: str
    sep: str
    settleTime: int | str
    settle_time: int | str
    singleVariantColumn: str
    single_variant_column: str
    skipRows: int
    skip_rows: int
    source: str
    sourceArchiveDir: str
    sourceName: str
    sourceOptions: Mapping[str, object] | str
    source_archive_dir: str
    source_name: str
    source_options: Mapping[str, object] | str
    startAt: str
    start_at: str
    startingState: str
    starting_state: str
    stateLocation: str
    state_location: str
    storageOptions: Mapping[str, object] | str
    storage_options: Mapping[str, object] | str
    timeZone: str
    time_zone: str
    timestampFormat: str
    timestampNTZFormat: str
    timestamp_format: str
    timestamp_ntz_format: str
    unescapedQuoteHandling: str
    unescaped_quote_handling: str
    valueTag: str
    value_tag: str
    wholetext: bool
    wildcardColName: str
    wildcard_col_name: str
    writeCompression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"]
    writeCopy: Literal["always", "never"]
    writeFileBytes: int | str
    writeFileColumn: str
    writePartitionBy: Sequence[str] | str
    writeSchema: str
    writeSortBy: Sequence[str] | str
    writeTo: str
    writeTransform: str
    writeTransformSchema: str
    write_compression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"]
    write_copy: Literal["always", "never"]
    write_file_bytes: int | str
    write_file_column: str
    write_partition_by: Sequence[str] | str
    write_schema: str
    write_sort_by: Sequence[str] | str
    write_to: str
    write_transform: str
    write_transform_schema: str
