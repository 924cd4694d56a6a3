#!/bin/sh
# The OpenCL backend, on the device that --device names or the first there is: what the
# command says where there is none, and the models and quantized folders of other tests, whose
# tables must be the CPU's and whose logits, texts and samples as the CPU's. Without a device it
# skips; AKUNU_REQUIRE_OPENCL=1 makes that a failure.
set -u
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAILED: $1"
    cat "$work/out"
    failed=1
}

# Without a loader: a sentence, and the CPU goes on.
AKUNU_OPENCL=/nonexistent.so "$AK_CLI" run --list-devices >"$work/out" 2>&1 || fail "--list-devices without a loader"
grep -q "^no OpenCL device: " "$work/out" || fail "says why there is no device"
AKUNU_OPENCL=/nonexistent.so "$AK_CLI" logits -m "$AK_TEST_DATA/models/qwen2.gguf" --backend opencl --ids 1 --out "$work/l.npy" >"$work/out" 2>&1 &&
    fail "--backend opencl without a loader"
grep -qi "opencl" "$work/out" || fail "says that there is no OpenCL"
AKUNU_OPENCL=libm.so.6 "$AK_CLI" run --list-devices >"$work/out" 2>&1 || fail "--list-devices with another library"
grep -q "^no OpenCL device: .*\(has no clGetPlatformIDs\|configured without\)" "$work/out" || fail "says what is not a loader"
[ $failed = 0 ] || exit 1

"$AK_CLI" run --list-devices >"$work/out" 2>&1
if grep -q "^no OpenCL device" "$work/out"; then
    cat "$work/out"
    [ "${AKUNU_REQUIRE_OPENCL:-}" != 1 ] || { echo "FAILED: AKUNU_REQUIRE_OPENCL=1 requires a device"; exit 1; }
    echo "SKIPPED: opencl, no device"
    exit 77
fi
cat "$work/out"
"$AK_CLI" logits -m "$AK_TEST_DATA/models/qwen2.gguf" --backend opencl --device "no such thing" --ids 1 --out "$work/l.npy" >"$work/out" 2>&1 &&
    fail "a device that is not there"
grep -q "no such thing" "$work/out" || fail "names the device that is not there"

# The leak sanitizer's search would read what the thread-local storage of PoCL's threads points
# to; where one ends meanwhile, the search crashes.
export LSAN_OPTIONS="${LSAN_OPTIONS:+$LSAN_OPTIONS:}use_tls=0"
AKUNU_TEST_DEVICE=1 ./tests/opencl/test_opencl_host || failed=1
# A folder that cannot be: of a program that is kept, PoCL compiles each kernel, used or not.
export AKUNU_CACHE_DIR=/dev/null/none
for program in api/test_adapter api/test_model engine/pack/test_adapter engine/session/test_encode engine/session/test_load files/weights/test_hf_quant speech/transcribe/test_transcribe; do
    AKUNU_BACKEND=opencl AKUNU_TEST_FEW=1 CK_RUN_CASE=any "./tests/$program" || failed=1
done
exit $failed
