#!/bin/sh
# Finds a Python 3.11+ and lets it prepare the virtual environment named by the argument.
set -eu
cd "$(dirname "$0")/.."

for python in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
    # Being on the path is not enough: version managers put names there that do not start.
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        exec "$python" tools/prepare.py "$@"
    fi
done
echo "sluice: no Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python3" >&2
exit 1
