#!/bin/sh
# What bash, zsh and fish offer for words of akunu-cli, each
# asked in the shell itself. AKUNU_REQUIRE_TOOLS=1: a shell that is not here is a failure.
set -u
cli=${AK_CLI:?}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bin=$work/bin
mkdir -p "$bin" "$work/config/akunu" "$work/data/akunu/models" "$work/here/folder" "$work/home"
ln -s "$cli" "$bin/akunu-cli"
export PATH="$bin:$PATH" XDG_CONFIG_HOME="$work/config" XDG_DATA_HOME="$work/data" HOME="$work/home" TERM=dumb
printf 'models: {coder: {model: x.gguf, temp: 0.1}, small: {model: y.gguf}}\n' >"$work/config/akunu/config.yaml"
: >"$work/data/akunu/models/tiny.gguf"
: >"$work/here/here.gguf"
cd "$work/here" || exit 1
n_checks=0 n_failed=0

# is_here TOOL: false, and a line or a failure, where there is none.
is_here() {
    command -v "$1" >/dev/null && return
    if [ "${AKUNU_REQUIRE_TOOLS:-}" = 1 ]; then
        n_checks=$((n_checks + 1)) n_failed=$((n_failed + 1))
        echo "FAIL: no $1, which AKUNU_REQUIRE_TOOLS=1 requires"
    else
        echo "SKIPPED: completion, no $1"
    fi
    return 1
}

# offers SHELL WORD LINE, offers_not SHELL WORD LINE: whether the completion of the
# last word of LINE has WORD as one of its lines.
has() {
    "ask_$1" "$3" "$2" >"$work/out" 2>"$work/err"
    cut -f1 "$work/out" | grep -qxF -e "$2"
}
offers() {
    n_checks=$((n_checks + 1))
    has "$@" && return
    n_failed=$((n_failed + 1))
    echo "FAIL $1: '$3' offers '$2'"
    head -n 8 "$work/out" "$work/err" | sed 's/^/    /'
}
offers_not() {
    n_checks=$((n_checks + 1))
    has "$@" || return
    n_failed=$((n_failed + 1))
    echo "FAIL $1: '$3' does not offer '$2'"
}

ask_bash() {
    "$cli" completion bash >"$work/bash"
    bash --norc --noprofile -c '
        source "$1"
        COMP_LINE=$2
        read -ra COMP_WORDS <<< "${2//=/ = }"
        [[ $2 == *" " || $2 == *= ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        compopt() { :; }
        _akunu_cli
        printf "%s\n" "${COMPREPLY[@]}"' bash "$work/bash" "$1"
}

ask_fish() {
    "$cli" completion fish >"$work/fish"
    fish --no-config -c "source $work/fish; complete -C '$1'"
}

# zsh completes only at a prompt: one in a pseudo-terminal is given each line and a Tab,
# and shows the word where it is the only one.
zsh_lines() {
    "$cli" completion zsh >"$work/_akunu-cli"
    python3 - "$work" "$@" <<'PROGRAM'
import os, pty, select, sys, time

pid, fd = pty.fork()
if pid == 0:
    os.execvp("zsh", ["zsh", "-f", "-i"])

# As long as a slow machine takes: what is there ends the wait.
SECONDS = 60 * float(os.environ.get("CK_TIMEOUT_MULTIPLIER") or 1)

def shown_until(text):
    got, end = b"", time.monotonic() + SECONDS
    while text not in got and time.monotonic() < end:
        if select.select([fd], [], [], 0.05)[0]:
            got += os.read(fd, 4096)
    return got

def send(text):
    os.write(fd, text.encode())

shown_until(b"#")
send('fpath=(%s $fpath); autoload -U compinit; compinit -u -D; PS1=; print REA""DY\n' % sys.argv[1])
shown_until(b"READY")
bad = 0
for wanted, line in zip(sys.argv[2::2], sys.argv[3::2]):
    send("\x15" + line + "\t")
    shown = shown_until(wanted.encode())
    if wanted.encode() not in shown:
        print("FAIL zsh: '%s' offers '%s': %r" % (line, wanted, shown))
        bad = 1
os.close(fd)
sys.exit(bad)
PROGRAM
}

for shell in bash fish; do
    is_here $shell || continue
    offers $shell tokenize "akunu-cli tok"
    offers $shell bench "akunu-cli "
    offers $shell completion "akunu-cli "
    offers $shell --ctx-size "akunu-cli run --ct"
    offers $shell --ctx-size "akunu-cli --ct" # run is the default
    offers_not $shell --ctx-size "akunu-cli tokenize --ct"
    offers $shell --older-than "akunu-cli cache --o"
    offers $shell prune "akunu-cli cache pr"
    offers $shell q8_0 "akunu-cli run -ctk q"
    offers $shell q4_0 "akunu-cli run --cache-type-v "
    offers $shell opencl "akunu-cli run --backend o"
    offers $shell scalar "akunu-cli run --cpu sc"
    offers $shell coder "akunu-cli run -m co"
    offers $shell tiny.gguf "akunu-cli tokenize --model ti"
    offers $shell here.gguf "akunu-cli inspect -m he"
    offers $shell here.gguf "akunu-cli run -f he"
    offers_not $shell here.gguf "akunu-cli run --temp he"
done
if command -v bash >/dev/null; then
    offers bash bf16 "akunu-cli run --cache-type-k=bf"
    offers bash -ngl "akunu-cli run -ng"
    offers bash folder "akunu-cli run --cache-dir fo"
fi
if command -v fish >/dev/null; then
    offers fish --cache-type-k=bf16 "akunu-cli run --cache-type-k=bf"
    offers fish folder/ "akunu-cli run --cache-dir fo"
fi
if is_here zsh && is_here python3; then
    n_checks=$((n_checks + 1))
    zsh_lines tokenize "akunu-cli tok" --ctx-size "akunu-cli run --ctx" --ctx-size "akunu-cli run --ctx" q8_0 "akunu-cli run -ctk q8" \
        prune "akunu-cli cache pr" coder "akunu-cli run -m co" here.gguf "akunu-cli run -m he" || n_failed=$((n_failed + 1))
fi

[ $n_checks -gt 0 ] || exit 77
[ $n_failed -eq 0 ] && echo "$n_checks checks" && exit 0
echo "$n_failed of $n_checks checks failed"
exit 1
