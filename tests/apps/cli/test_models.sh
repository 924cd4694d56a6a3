#!/bin/sh
# docs/models.md is what `akunu-cli models --markdown` prints, and everything in it says
# what it is.
set -u
docs=${AK_TEST_SOURCE:?}/docs/models.md
"${AK_CLI:?}" models --markdown | diff "$docs" - || {
    echo "docs/models.md is out of date: akunu-cli models --markdown > docs/models.md"
    exit 1
}
! grep -n '` |  |' "$docs"
