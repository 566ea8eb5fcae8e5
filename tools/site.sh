#!/bin/sh
# Makes the site of the documentation with the tools in the folder given: build/site/index.html.
# A link that leads nowhere, a page that nobody links to and any other warning is an error.
set -eu
bin="$1"
cd "$(dirname "$0")/.."
rm -rf build/site
"$bin/sphinx-build" -W -E --keep-going -q -c docs -d build/doctrees . build/site
