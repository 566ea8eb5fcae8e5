#!/usr/bin/env bash
# MinIO, source of 2026-02-12 (module v0.0.0-20260212201848-7aac2a2c5b7c, go1.26): DeleteObject with If-Match.
#
# One would guess: 412 and the object stays, as in S3, whose DeleteObject has If-Match; MinIO itself
#   answers 412 to a GetObject and a PutObject of the same condition.
# Seen: 204, and the object is gone, on 2026-11-29. A client that deletes only what it has looked at
#   deletes a newer object.
# Source: run below. It needs Go, and takes some minutes to build the server.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet boto3==1.43.117
if [ -z "${MINIO:-}" ]; then
    GOBIN="$folder/bin" go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
    MINIO="$folder/bin/minio"
fi
export MINIO_ROOT_USER=someone MINIO_ROOT_PASSWORD=something
"$MINIO" server "$folder/data" --address 127.0.0.1:19123 --console-address 127.0.0.1:0 --quiet > "$folder/log" 2>&1 &
server=$!
"$folder/venv/bin/python" - <<'PYTHON'
import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError

s3 = boto3.client(
    "s3", endpoint_url="http://127.0.0.1:19123", region_name="us-east-1",
    aws_access_key_id="someone", aws_secret_access_key="something",
)
for _ in range(100):
    try:
        s3.create_bucket(Bucket="lake")
        break
    except (BotoCoreError, ClientError):
        time.sleep(0.2)


def status(call, **arguments):
    try:
        answer = call(Bucket="lake", Key="a", **arguments)
    except ClientError as error:
        answer = error.response
    return answer["ResponseMetadata"]["HTTPStatusCode"]


old = s3.put_object(Bucket="lake", Key="a", Body=b"old")["ETag"]
s3.put_object(Bucket="lake", Key="a", Body=b"new")
got, put = status(s3.get_object, IfMatch=old), status(s3.put_object, Body=b"x", IfMatch=old)
deleted = status(s3.delete_object, IfMatch=old)
left = s3.list_objects_v2(Bucket="lake")["KeyCount"]
print(f"If-Match of an old version: GET {got}, PUT {put}, DELETE {deleted}; objects left: {left}")
assert (got, put, deleted, left) == (412, 412, 204, 0), "the behaviour has changed"
PYTHON
