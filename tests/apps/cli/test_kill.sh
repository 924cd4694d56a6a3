#!/bin/sh
# Kills at random moments while weights are packed and while a file is quantized, full disks, and
# targets that cannot be written: never a wrong file under a name that counts, the source as it was,
# and nothing left that the next run does not clean up. $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as
# in test_cli.sh. AKUNU_TEST_KILLS=50: so many kills in place of 3, of the model of
# $AK_TEST_MODELS if it is there. AKUNU_TEST_SEED repeats a run.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
kills=${AKUNU_TEST_KILLS:-3} seed=${AKUNU_TEST_SEED:-$(date +%s)}
model=$data/models/mixed.gguf source=$data/model.gguf ids="5 6 7" type=Q4_0
real=${AK_TEST_MODELS:-/nonexistent}/SmolLM2-135M-Instruct.Q4_1.gguf
cache=$work/cache target=$work/target
mkdir "$target"
if [ "$kills" -gt 3 ] && [ -e "$real" ]; then
    model=$real source=$work/source.gguf type=Q4_K_M
    exits 0 convert -m "$real" --outtype bf16 --outfile "$source"
fi

# pack, quantize FLAG...: what is killed.
pack() {
    "$cli" logits -m "$model" --ids "$ids" --out "$work/l.npy" --cache-dir "$cache" "$@" 2>"$err" >"$out"
}
quantize() {
    "$cli" quantize "$source" "$target/q.gguf" --type $type --overwrite "$@" 2>"$err" >"$out"
}
sum_of() {
    sha256sum <"$1"
}
# Milliseconds since 1970.
now() {
    date +%s%3N
}

# kill_during COMMAND FRACTION: starts it and kills it after that part of $duration ms.
kill_during() {
    "$1" &
    shell=$!
    sleep "$(awk -v d="$duration" -v f="$2" 'BEGIN { printf "%.3f", d * f / 1000 }')"
    # the program is a child of the shell that runs the function
    victim=$(cat "/proc/$shell/task/$shell/children" 2>/dev/null)
    [ -n "$victim" ] && kill -9 $victim 2>/dev/null
    wait $shell 2>/dev/null
}

# Fractions of the run, one a line.
moments=$(awk -v n="$kills" -v s="$seed" 'BEGIN { srand(s); for (i = 0; i < n; i++) printf "%.4f\n", rand() * 1.05 }')
echo "seed $seed, $kills kills each"
model_sum=$(sum_of "$model") source_sum=$(sum_of "$source")

# ---- Packing ----
pack --no-cache
cp "$work/l.npy" "$work/base.npy"
started=$(now)
pack
duration=$(($(now) - started))
n_unfinished=0
for moment in $moments; do
    rm -rf "$cache"
    kill_during pack "$moment"
    exits 0 cache list --cache-dir "$cache"
    ! grep -q damaged "$out"
    check "no damaged file after a kill at $moment"
    grep -q unfinished "$out" && n_unfinished=$((n_unfinished + 1))
    pack
    check "a start after a kill at $moment"
    cmp -s "$work/l.npy" "$work/base.npy"
    check "the same logits after a kill at $moment"
    ! grep -q damaged "$err"
    check "it found no damaged file"
    exits 0 cache list --cache-dir "$cache"
    [ "$(grep -c '^ready' "$out")" -eq 1 ] && ! grep -q unfinished "$out" && [ -z "$(find "$cache" -name '*.part')" ]
    check "one file, and nothing beside it, after a kill at $moment"
done
[ "$(sum_of "$model")" = "$model_sum" ]
check "the model is as it was"
echo "packing: $n_unfinished kills left an unfinished file"

# ---- Quantizing ----
started=$(now)
quantize
check "quantize"
duration=$(($(now) - started))
whole=$(sum_of "$target/q.gguf")
n_none=0
for moment in $moments; do
    rm -f "$target/q.gguf"
    kill_during quantize "$moment"
    if [ -e "$target/q.gguf" ]; then
        [ "$(sum_of "$target/q.gguf")" = "$whole" ]
        check "what a kill at $moment left is whole"
    else
        n_none=$((n_none + 1))
    fi
    [ -z "$(find "$target" -mindepth 1 ! -name q.gguf)" ]
    check "nothing beside it after a kill at $moment"
done
# over an older file, which stays or is replaced
for moment in $moments; do
    echo old >"$target/q.gguf"
    kill_during quantize "$moment"
    [ "$(cat "$target/q.gguf" | head -c 3)" = old ] || [ "$(sum_of "$target/q.gguf")" = "$whole" ]
    check "the old file or the whole new one after a kill at $moment"
    # Before it replaces the old file, the new one has a name of its own for a moment: it is whole.
    beside=$(find "$target" -mindepth 1 ! -name q.gguf)
    [ -z "$beside" ] || [ "$(sum_of "$beside")" = "$whole" ]
    check "nothing beside it, or the whole new file, after a kill at $moment"
    rm -f "$target"/akunu-*.part
done
[ "$(sum_of "$source")" = "$source_sum" ]
check "the source is as it was"
echo "quantizing: $n_none kills left no file"

# ---- Targets that cannot be written ----
exits 1 quantize "$source" /proc/no.gguf --type $type
says "/proc/no.gguf"
exits 1 quantize "$source" "$work/l.npy/q.gguf" --type $type
says "q.gguf"
exits 0 logits -m "$model" --ids "$ids" --out "$work/l.npy" --cache-dir /proc/no
says "no cache of the packed weights in /proc/no"
cmp -s "$work/l.npy" "$work/base.npy"
check "the same logits without a cache"
if [ "$(id -u)" -ne 0 ]; then
    chmod 555 "$target"
    exits 1 quantize "$source" "$target/r.gguf" --type $type
    chmod 755 "$target"
fi

# ---- A full disk: a small one in memory, in a name space of its own ----
disk=$work/disk
mkdir "$disk"
cat >"$work/full" <<'END'
mount -t tmpfs -o size=32k none "$1" || exit 9
"$2" quantize "$3" "$1/q.gguf" --type "$4" --pure
echo "quantize $?"
"$2" logits -m "$5" --ids "$6" --out "$7" --cache-dir "$1/cache"
echo "logits $?"
find "$1" -type f | sed 's/^/left /'
END
if unshare -rm sh -c 'mount -t tmpfs -o size=4k none "$1"' sh "$disk" 2>/dev/null; then
    unshare -rm sh "$work/full" "$disk" "$cli" "$source" $type "$model" "$ids" "$work/l.npy" >"$out" 2>"$err"
    prints "quantize 1"
    says "q.gguf"
    prints "logits 0"
    says "no cache of the packed weights"
    ! grep -q '^left .*\(gguf\|part\|packed\)$' "$out"
    check "nothing is left on the full disk"
    cmp -s "$work/l.npy" "$work/base.npy"
    check "the same logits with a full disk"
elif [ "${AKUNU_REQUIRE_MOUNT:-}" = 1 ]; then
    false
    check "a small disk, which AKUNU_REQUIRE_MOUNT=1 requires"
else
    echo "SKIPPED: a full disk, which needs a name space of its own"
fi

finish test_kill
