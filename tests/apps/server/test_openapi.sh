#!/bin/sh
# docs/openapi.yaml has every route of route.c, with its method, and no other; and the numbers of
# include/akunu/sampling.def with their types and ranges.
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
sed -n 's/^AKUNU_SAMPLING(\([a-z0-9]*\), \([a-z_]*\), [^,]*, \([^,]*\), \([^,]*\),.*/\1 \2 \3 \4/p' include/akunu/sampling.def |
    while read -r type name low high; do
        case $type in f32) type=number ;; i32) type=integer ;; esac
        case $low in AKUNU_ABOVE_ZERO) low=9.5367431640625e-7 ;; esac
        case $high in INT32_MAX) high=2147483647 ;; esac
        grep -qxF "        $name: {type: [$type, \"null\"], minimum: $low, maximum: $high}" docs/openapi.yaml ||
            echo "docs/openapi.yaml: expected $name to be a $type from $low to $high, as in include/akunu/sampling.def"
    done | grep . && exit 1
diff "$work/routes" "$work/document" >"$work/difference" && exit 0
echo "src/apps/server/route.c (<) and docs/openapi.yaml (>) differ:"
cat "$work/difference"
exit 1
