#!/usr/bin/env bash
# uv 0.13.9: a source distribution whose hash the index and the requirement both give, installed
#   twice with one cache, from an index whose answers have neither an ETag nor Cache-Control.
#
# One would guess: it is built once, since the hash says that it is the same file.
# Seen: it is fetched and built again for each environment, and the cache keeps two unpacked copies
#   of its source for each installation (PySpark 4.3.0: 1.4 GB with the wheel), on 2026-11-30. With
#   an ETag or Cache-Control, which PyPI sends, there is one build and one copy.
# Source: run below, with an index on the loopback address.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet uv==0.13.9
venv/bin/python - <<'PYTHON'
import hashlib
import http.server
import io
import os
import subprocess
import tarfile
import threading
from pathlib import Path

BACKEND = '''
import os, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    with open(os.environ["BUILDS"], "a") as builds:
        builds.write("built\\n")
    with zipfile.ZipFile(os.path.join(folder, "tiny-1.0-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("tiny.py", "")
        info = "tiny-1.0.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return "tiny-1.0-py3-none-any.whl"
'''
PROJECT = """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1.0"
"""
PKG_INFO = "Metadata-Version: 2.2\nName: tiny\nVersion: 1.0\n"

packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w:gz") as archive:
    for name, text in (("pyproject.toml", PROJECT), ("backend.py", BACKEND), ("PKG-INFO", PKG_INFO)):
        member = tarfile.TarInfo(f"tiny-1.0/{name}")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
sdist = packed.getvalue()
digest = hashlib.sha256(sdist).hexdigest()
Path("pinned.txt").write_text(f"tiny==1.0 --hash=sha256:{digest}\n")


def builds_of_two(headers):
    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            of_file = self.path.endswith(".gz")
            page = f'<a href="/tiny-1.0.tar.gz#sha256={digest}">tiny-1.0.tar.gz</a>'
            is_known = "ETag" in headers and self.headers["If-None-Match"] == headers["ETag"]
            body = b"" if is_known else sdist if of_file else page.encode()
            self.send_response(304 if is_known else 200)
            self.send_header("Content-Type", "application/gzip" if of_file else "text/html")
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = Path(f"home-{len(list(Path().glob('home-*')))}")
    home.mkdir()
    for number in (1, 2):
        subprocess.run(
            ["venv/bin/uv", "pip", "install", "--quiet", "--require-hashes", "--requirement", "pinned.txt",
             "--python", "venv/bin/python", "--cache-dir", home / "cache", "--target", home / f"site{number}",
             "--default-index", f"http://127.0.0.1:{server.server_port}/simple"],
            check=True, timeout=120, env={**os.environ, "BUILDS": str(home.resolve() / "builds")},
        )
    server.shutdown()
    sources = len(list((home / "cache").glob("sdists-*/**/src")))
    return len((home / "builds").read_text().splitlines()), sources


for headers, expected in (
    ({}, (2, 4)),
    ({"ETag": '"a"'}, (1, 1)),
    ({"Cache-Control": "max-age=600"}, (1, 1)),
):
    seen = builds_of_two(headers)
    print(headers, "builds, unpacked sources in the cache:", seen)
    assert seen == expected, "the behaviour has changed"
PYTHON
