#!/bin/sh
# docs/openapi.yaml has every route of route.c, with its method, and no other.
set -u
cd "${AK_TEST_SOURCE:?}" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
sed -n 's/^    [A-Z]*("\([A-Z]*\)", "\([^"]*\)".*/\1 \2/p' src/apps/server/route.c | sort >"$work/routes"
# A path that ends in "/" stands for one name more; aliases (&, *) say what a path has.
awk '
/^[a-z]/ { in_paths = $1 == "paths:" }
!in_paths { next }
/^  \// {
    path = $1
    sub(/:$/, "", path)
    if (sub(/^\*/, "", $2))
        print method[$2], path
    else if (sub(/^&/, "", $2))
        anchor = $2
    else
        anchor = ""
}
/^    [a-z]+:/ {
    name = toupper($1)
    sub(/:$/, "", name)
    print name, path
    method[anchor] = name
}' docs/openapi.yaml | sed 's,/{[a-z]*}$,/,' | sort >"$work/document"
[ -s "$work/routes" ] || { echo "no routes in src/apps/server/route.c"; exit 1; }
diff "$work/routes" "$work/document" >"$work/difference" && exit 0
echo "src/apps/server/route.c (<) and docs/openapi.yaml (>) differ:"
cat "$work/difference"
exit 1
