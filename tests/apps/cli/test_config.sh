#!/bin/sh
# Configuration files and presets of akunu-cli: which value
# wins, and what is said of a bad file.
# $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
source=$AK_TEST_SOURCE
unset AKUNU_IDS AKUNU_CONFIG AKUNU_CPU AKUNU_BACKEND
mkdir -p "$work/config/akunu" "$work/data/akunu/models" "$work/home"
cp "$data/model.gguf" "$work/data/akunu/models/tiny.gguf"
config=$work/config/akunu/config.yaml

# fail NAME: counts a check that did not hold.
fail() {
    false
    check "$1"
}
# given LINES: the user's file.
given() {
    printf -- "$1" >"$config"
}
# refused LINES TEXT: a file that no command takes, and what is said behind its name.
refused() {
    given "$1"
    exits 2 tokenize -m tiny -p abc
    says "$2"
}

# ---- Which value wins ----
given 'ids: true\nmodel: tiny\n'
exits 0 tokenize -p abc
ids=$(cat "$out")
[ "$(wc -l <"$out")" -eq 1 ] || fail "a switch of the configuration holds"
given 'ids: false\nmodel: tiny\n'
exits 0 tokenize -p abc
[ "$(cat "$out")" != "$ids" ] || fail "a switch that is false is off"
exits 0 tokenize --ids -p abc
prints "$ids"
AKUNU_IDS=1 exits 0 tokenize -p abc
prints "$ids"
given 'model: /nonexistent/a.gguf\n'
exits 3 tokenize -p abc
exits 0 tokenize -m tiny -p abc
AKUNU_MODEL=tiny exits 0 tokenize -p abc
AKUNU_MODEL=/nonexistent/b.gguf exits 3 tokenize -p abc
says b.gguf
given '# nothing but words\n'
exits 0 tokenize -m tiny -p abc
given ''
exits 0 tokenize -m tiny -p abc
given '---\n...\n'
exits 0 tokenize -m tiny -p abc

# ---- One file alone ----
given 'nonsense: 1\n'
printf 'model: tiny\n' >"$work/other.yaml"
exits 0 tokenize --config "$work/other.yaml" -p abc
AKUNU_CONFIG=$work/other.yaml exits 0 tokenize -p abc
exits 0 tokenize --config /dev/null -m tiny -p abc
exits 0 tokenize --help
exits 2 tokenize --config "$work/absent.yaml" -m tiny -p abc
says absent.yaml
exits 2 tokenize --config "$work" -m tiny -p abc
says "not a plain file"
mkfifo "$work/pipe"
exits 2 tokenize --config "$work/pipe" -m tiny -p abc
says "not a plain file"
head -c 70000 /dev/zero | tr '\0' '#' >"$work/large.yaml"
exits 2 tokenize --config "$work/large.yaml" -m tiny -p abc
says "70000 bytes"

# ---- Presets ----
given 'ids: false\ntemp: 0.8\nmodels:\n  short:\n    model: tiny\n    ids: true\n  other:\n    model: /nonexistent/c.gguf\n'
exits 0 tokenize -m short -p abc
prints "$ids"
AKUNU_MODEL=short exits 0 tokenize -p abc
prints "$ids"
AKUNU_IDS=0 exits 0 tokenize -m short -p abc
[ "$(cat "$out")" != "$ids" ] || fail "the environment wins over a preset"
exits 3 tokenize -m other -p abc
says c.gguf
exits 3 tokenize -m neither -p abc
says "no preset of that name"
exits 2 bench -m short -m tiny
says "stands alone"
given 'model: short\nmodels: {short: {model: tiny, ids: yes}}\n'
exits 0 tokenize -p abc
prints "$ids"
cp "$data/model.gguf" "$work/home/at-home.gguf"
given 'models: {short: {model: ~/at-home.gguf, ids: True}}\n'
HOME=$work/home exits 0 tokenize -m short -p abc
prints "$ids"

# ---- Lists ----
given 'override-kv: [a.b=int:1, "c.d=str:x"]\n'
exits 0 inspect -m tiny --json
prints '"c.d": "x"'
refused 'model: [a, b]\n' "config.yaml:1: 'model' takes one value, not a list"

# ---- What is wrong is named ----
refused 'threads: 2\ntemprature: 1\n' "config.yaml:2: unknown key 'temprature'; did you mean 'temperature'?"
refused 'ctx_size: 2\n' "did you mean 'ctx-size'?"
given 'c: 2\nmodel: tiny\n'
exits 0 tokenize --ids -p abc
refused '--temp: 2\n' "did you mean 'temp'?"
refused 'model: {short: tiny}\n' "'model' is a mapping"
refused 'modles: {}\n' "did you mean 'models'?"
refused 'help: true\n' "unknown key 'help'"
refused 'config: x\n' "unknown key 'config'"
refused 'zzzzzzzzzz: 1\n' "keys are the flags"
given 'cache-limit: ""\n'
exits 2 run -m tiny -p abc
says "config.yaml:1: cache-limit: : expected a size such as 500M or 3.5G, or a number of GB, above 0 and up to 1000000G"
refused 'temp: 1\nids: true\nthreads: 2: 3\n' "config.yaml:3: no valid YAML: "
refused 'ids: perhaps\n' "config.yaml:1: ids: perhaps: expected true or false"
refused 'models: {a: {model: tiny, ids: 3}}\n' "config.yaml:1: ids: 3: expected true or false"
refused 'models: {a: {temp: 3}}\n' "preset 'a' has no model"
refused 'models: {a: tiny}\n' "expected keys and values"
refused 'models:\n  a: {model: x}\n  a: {model: y}\n' "config.yaml:3: preset 'a' is given twice"
refused 'models: {}\nmodels: {}\n' "given twice"
refused 'temp: 1\ntemp: 2\n' "config.yaml:2: 'temp' is given twice, first on line 1"
refused 'temp: 1\ntemperature: 2\n' "given twice"
refused 'temp:\n' "'temp' has no value"
refused 'temp: ~\n' "'temp' has no value"
refused '[temp]\n' "expected keys and values"
refused 'temp\n' "expected keys and values"
refused 'override-kv: []\n' "empty list"
refused 'override-kv: [[a]]\n' "expected a value"
refused 'temp: 1\n---\ntemp: 2\n' "a second document"
given 'threads: many\n'
exits 2 run -m tiny -p abc
says "config.yaml:1: threads: many: expected a whole number from 1 to 1024"
exits 0 tokenize -m tiny -p abc # it has no threads
given 'threads: -1\npredict: -2\ndevice: none\nrope-freq-base: 0\n' # as on the command line: the defaults
exits 0 run --raw -m tiny -p abc --temp 0 -n 2
given 'cpu: z80\n'
exits 2 run -m tiny -p abc
says "config.yaml:1: cpu: z80: there is no such instruction set"

# ---- Hostile ones ----
refused 'aa: &a [x]\ntemp: *a\n' "unknown key 'aa'"
refused 'temp: &a 1\ntop-k: *a\n' "an alias"
refused 'temp: {? {? {? {}}}}\n' "a mapping"
refused 'temp: "\\0"\n' "has a NUL"
refused '"te\\0mp": 1\n' "has a NUL"
refused 'temp: 1\n\000' "no valid YAML"
refused 'temp: \377\n' "no valid YAML"
refused 'temp: [1\n' "no valid YAML"
refused '\t- : :\n' "no valid YAML"
head -c 60000 /dev/zero | tr '\0' '[' >"$config"
exits 2 tokenize -m tiny -p abc
says "expected keys and values"
{ printf 'temp: '; head -c 60000 /dev/zero | tr '\0' '['; } >"$config"
exits 2 tokenize -m tiny -p abc
awk 'BEGIN { print "models:"; for (i = 0; i < 4000; i++) print " p" i ": {}" }' >"$config"
exits 2 tokenize -m tiny -p abc
says "preset 'p0' has no model"
printf '"a\\e[31mb": 1\n' >"$config"
exits 2 tokenize -m tiny -p abc
says 'a\x1b[31mb'

# ---- The example: every key that it shows exists ----
sed 's/^#\([a-z ]\)/\1/' "$source/data/config.yaml" | sed '/^[# ]*$/d' | grep -E '^ *[a-z-]+:' >"$config"
exits 0 tokenize -m tiny -p abc
[ "$(grep -c : "$config")" -gt 10 ] || fail "the example shows keys"

finish test_config
