#!/usr/bin/env bash
# fsspec 2026.9.0 with paramiko 5.1.0: the paths and options of sftp://.
#
# One would guess: unstrip_protocol gives a URL that opens the same file, as for hdfs:// and smb://;
#   and use_listings_cache=False, which every file system of fsspec documents, is taken.
# Seen on 2026-11-29: the URL is sftp:///data/a.json, without host and user, so it opens nothing; and
#   the option is passed on to paramiko's connect, which raises TypeError before it connects.
# Source: run below; no server is needed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet fsspec==2026.9.0 paramiko==5.1.0
"$folder/venv/bin/python" - <<'PYTHON'
import fsspec
from fsspec.implementations.sftp import SFTPFileSystem

# Without its constructor, which connects.
files = object.__new__(SFTPFileSystem)
files.host = "partner.example.com"
name = files._strip_protocol("sftp://shop@partner.example.com/data/a.json")
url = files.unstrip_protocol(name)
print("sftp://shop@partner.example.com/data/a.json is", url)
assert url == "sftp:///data/a.json", "the behaviour has changed"
try:
    fsspec.filesystem("sftp", host="127.0.0.1", port=1, use_listings_cache=False)
except TypeError as error:
    print("TypeError:", error)
else:
    raise AssertionError("the behaviour has changed: the option is taken")
PYTHON
