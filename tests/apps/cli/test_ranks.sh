#!/bin/sh
# Several processes that share a model, under Open MPI's mpirun: the same logits and texts as of one,
# and one message on every way to fail, in time. $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in
# test_cli.sh.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
if [ "${AK_EMULATED:-}" ]; then
    echo "SKIPPED: mpirun starts programs of this machine"
    exit 77
fi
if ! command -v mpirun >/dev/null; then
    echo "SKIPPED: no mpirun (apt-get install openmpi-bin)"
    [ "${AKUNU_REQUIRE_TOOLS:-0}" = 1 ] && exit 1
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
# Open MPI keeps what it allocated.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
ids="5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"

# on_ranks N ARGUMENT...: runs the program on N ranks.
on_ranks() {
    n=$1
    shift
    mpirun -n "$n" "$cli" "$@" >"$out" 2>"$err" </dev/null
}

# ---- The same results -----------------------------------------------------------
for model in llama-f32 mixed mixtral gpt-oss-mxfp4 qwen35; do
    file=$data/models/$model.gguf
    exits 0 logits -m "$file" --ids "$ids" --out "$work/one.npy"
    for n in 2 4; do
        [ $n = 4 ] && [ $model = qwen35 ] && continue # it has two heads
        on_ranks $n logits -m "$file" --ids "$ids" --out "$work/many.npy" -t 1
        check "$model on $n ranks runs"
        cmp "$work/one.npy" "$work/many.npy" >"$out" 2>&1
        check "$model on $n ranks has the same logits"
    done
done
for model in mixtral qwen35; do
    file=$data/models/$model.gguf
    exits 0 logits -m "$file" --ids "$ids" --out "$work/one.npy"
    on_ranks 2 logits -m "$file" --ids "$ids" --out "$work/many.npy" -t 1 --split layers --batch-size 2
    check "$model by layers runs"
    cmp "$work/one.npy" "$work/many.npy" >"$out" 2>&1
    check "$model by layers has the same logits"
done
# Each rank quantizes its rows.
file=$data/models/gpt-oss.gguf
exits 0 logits -m "$file" --ids "$ids" --out "$work/one.npy" --quantize Q4_K_M
on_ranks 3 logits -m "$file" --ids "$ids" --out "$work/many.npy" -t 1 --quantize Q4_K_M
check "a model is quantized at load on 3 ranks"
cmp "$work/one.npy" "$work/many.npy" >"$out" 2>&1
check "a model that ranks quantize has the same logits"
# Sums of the inputs of products, which rank 0 has.
file=$data/model.gguf
yes 'one two three four' | head -n 100 >"$work/long"
exits 0 imatrix -m "$file" -f "$work/long" -c 64 --chunks 2 -o "$work/one.imatrix"
for n in 2 3; do
    on_ranks $n imatrix -m "$file" -f "$work/long" -c 64 --chunks 2 -o "$work/$n.imatrix" -t 1
    check "an importance matrix on $n ranks is made"
    cmp "$work/one.imatrix" "$work/$n.imatrix" >"$out" 2>&1
    check "the importance matrix of $n ranks is that of one process"
done
# From the packed cache, too, which the runs above have filled.
for model in mixed gpt-oss-mxfp4; do
    on_ranks 2 logits -m "$data/models/$model.gguf" --ids "$ids" --out "$work/many.npy" -t 1
    exits 0 logits -m "$data/models/$model.gguf" --ids "$ids" --out "$work/one.npy"
    cmp "$work/one.npy" "$work/many.npy" >"$out" 2>&1
    check "the cache of ranks has the same logits of $model"
done
[ "$(find "$AKUNU_CACHE_DIR" -name '*.packed' | wc -l)" -ge 3 ]
check "each rank has a file in the cache, and so has one process"

# ---- What goes wrong, said once -------------------------------------------------
# count WORD: how often standard error has it.
count() {
    grep -cF -e "$1" "$err"
}
on_ranks 2 logits -m "$work/none.gguf" --ids 5 --out "$work/n.npy"
[ $? -eq 3 ] && [ "$(count 'no such file')" = 1 ]
check "a model that is not there is said once"
on_ranks 2 logits --no-such-flag
[ $? -eq 2 ] && [ "$(count 'akunu-cli: ')" = 1 ]
check "a wrong flag is said once"
on_ranks 9 logits -m "$data/models/llama-f32.gguf" --ids 5 --out "$work/n.npy" -t 1
says "attention heads: expected at most as many ranks"
on_ranks 9 logits -m "$data/models/llama-f32.gguf" --ids 5 --out "$work/n.npy" -t 1 --split layers
says "layers: expected at most as many ranks"

# Another file of the same name on one rank.
mkdir "$work/a" "$work/b"
cp "$data/models/qwen2.gguf" "$work/a/model.gguf"
cp "$data/models/qwen3.gguf" "$work/b/model.gguf"
set -- logits -m model.gguf --ids 5 --out "$work/n.npy" -t 1
mpirun -n 1 -wdir "$work/a" "$cli" "$@" : -n 1 -wdir "$work/b" "$cli" "$@" >"$out" 2>"$err"
says "rank 1"
says "another file, or another version of akunu, than on rank 0"

# A rank whose fellow never begins.
mpirun -n 1 sleep 60 : -n 1 "$cli" logits -m "$data/models/llama-f32.gguf" --ids 5 --out "$work/n.npy" --rank-timeout 1 -t 1 >"$out" 2>"$err" </dev/null
[ $? -eq 1 ]
check "it does not wait for ever"
says "akunu-cli: rank 1 ("
says "has not reached the other ranks for 1 s"

# find_rank RANK: sets $victim to its process, once it has joined the others.
find_rank() {
    for process in $(pgrep -P "$job"); do
        tr "\\0" "\\n" 2>/dev/null <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1" &&
            grep -q llama-f32 "/proc/$process/maps" 2>/dev/null && victim=$process && return 0
    done
    return 1
}
# stop_rank SIGNAL RANK: sends the signal to a rank that computes.
stop_rank() {
    mpirun -n 2 "$cli" bench -m "$data/models/llama-f32.gguf" -p 0 -n 64 -r 10000 \
        --rank-timeout 2 -t 1 >"$out" 2>"$err" </dev/null &
    job=$!
    victim=
    within 20 find_rank "$2"
    sleep 0.5
    [ -n "$victim" ] && kill "-$1" "$victim"
    check "rank $2 gets signal $1"
    within 10 is_over
    check "all ranks end"
    [ "$1" = STOP ] && kill -9 "$victim" 2>/dev/null
    wait "$job"
}
is_over() {
    ! kill -0 "$job" 2>/dev/null || ! grep -q '^State:\s*[RSD]' "/proc/$job/status"
}
stop_rank KILL 1
says "akunu-cli: rank 1 ("
says "has ended"
stop_rank KILL 0
says "akunu-cli: rank 0 ("
stop_rank STOP 1
says "akunu-cli: rank 1 ("
says "has not answered for 2 s"
stop_rank STOP 0
says "akunu-cli: rank 0 ("

# ---- A healthy run is not over when the time-out is -----------------------------
# One that works for three times as long, and one whose ranks wait for rank 0's input meanwhile.
# bench_ranks REPETITIONS: sets $took, its seconds.
bench_ranks() {
    began=$(date +%s)
    on_ranks 2 bench -m "$data/models/llama-f32.gguf" -p 0 -n 64 -r "$1" --rank-timeout 1 -t 1 --json
    status=$?
    took=$(($(date +%s) - began))
    return $status
}
bench_ranks 10
n=$(sed -n 's/.*"avg_ts": \([0-9]*\).*/\1/p' "$out")
n=$((n * 4 / 64)) # what takes four seconds
for attempt in 1 2 3 4 5 6; do
    n=$((n * 3 / 2))
    bench_ranks $n || break
    [ $took -lt 4 ] || break
done
[ $status -eq 0 ] && [ $took -ge 4 ]
check "ranks that work for three time-outs"
{ echo abc; sleep 4; echo def; } |
    mpirun -n 2 "$cli" run -m "$data/model.gguf" -cnv --chat-template chatml -n 4 --rank-timeout 1 -t 1 >"$out" 2>"$err"
check "ranks that wait for three time-outs"

# ---- A link that goes down ------------------------------------------------------
# Two network namespaces are two hosts; a cable joins them.
here=akunu-a$$ there=akunu-b$$
lay_cable() {
    ip netns add "$here" && ip netns add "$there" &&
        ip link add akunu-a netns "$here" type veth peer name akunu-b netns "$there" &&
        ip -n "$here" addr add 10.213.7.1/30 dev akunu-a &&
        ip -n "$there" addr add 10.213.7.2/30 dev akunu-b &&
        ip -n "$here" link set lo up && ip -n "$there" link set lo up &&
        ip -n "$here" link set akunu-a up && ip -n "$there" link set akunu-b up
}
remove_cable() {
    ip netns del "$here" 2>/dev/null
    ip netns del "$there" 2>/dev/null
}
# find_ranks: both compute.
find_ranks() {
    [ "$(grep -l llama-f32 $(pgrep -f "^$cli bench" | sed 's,.*,/proc/&/maps,') 2>/dev/null |
        wc -l)" = 2 ]
}
are_over() {
    ! pgrep -f "^$cli bench" >/dev/null
}
if [ "$(id -u)" = 0 ] && command -v ip unshare >/dev/null && lay_cable >/dev/null 2>&1; then
    printf '#!/bin/sh\nshift\nexec ip netns exec %s sh -c "$*"\n' "$there" >"$work/agent"
    chmod +x "$work/agent"
    ip netns exec "$here" mpirun -host 10.213.7.1:1,10.213.7.2:1 -n 2 \
        --mca plm_rsh_agent "$work/agent" --mca btl self,tcp \
        --mca btl_tcp_if_include 10.213.7.0/30 --mca oob_tcp_if_include 10.213.7.0/30 \
        --mca oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1 \
        --mca oob_tcp_keepalive_probes 2 "$cli" bench -m "$data/models/llama-f32.gguf" -p 0 \
        -n 64 -r 10000 --rank-timeout 2 -t 1 >"$out" 2>"$err" </dev/null &
    job=$!
    within 20 find_ranks
    sleep 0.5
    ip -n "$here" link set akunu-a down
    check "a link goes down"
    within 7 are_over
    check "both ranks end"
    ip -n "$here" link set akunu-a up
    within 10 is_over
    check "mpirun ends"
    wait "$job"
    says "has not answered for 2 s"
fi
remove_cable

finish ranks
