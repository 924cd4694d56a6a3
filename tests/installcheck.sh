#!/bin/sh
# Uses the installed library as a stranger would: through
# akunu.pc and CMake, in C11 and C++17, shared and static; and looks at what it exports.
# usage: installcheck.sh DESTDIR PREFIX BINDIR LIBDIR MANDIR DOCDIR SOURCE-ROOT
set -eu
destdir=$1 prefix=$2 bindir=$destdir$3 libdir=$destdir$4 mandir=$destdir$5 examples=$destdir$6/examples source=$7
: "${CC:=cc}" "${CXX:=c++}" "${CFLAGS:=}" "${AK_LDFLAGS:=}" "${PKG_CONFIG:=pkg-config}"
warnings="-Wall -Wextra -Wpedantic -Werror"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "installcheck: $*" >&2
    exit 1
}

pc() {
    PKG_CONFIG_PATH=$libdir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH} \
        $PKG_CONFIG --define-variable=prefix="$destdir$prefix" "$@" akunu
}

# What an example says about the model of the tests, run the given way.
generates() {
    out=$("$@" "$source/tests/data/model.gguf" "abc" 2>"$work/stderr") || fail "$1 failed: $(cat "$work/stderr")"
    [ -n "$out" ] || fail "$1 generated nothing"
}

version=$(pc --modversion)
export LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

cat > "$work/hello.cc" <<'PROGRAM'
#include <akunu/akunu.h>

#include <cstdio>
#include <string>

int main()
{
    akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    akunu_model *model = akunu_model_load("/nonexistent/model.gguf", &params);
    const bool refused = model == nullptr && !std::string(akunu_last_error()).empty();
    akunu_model_free(model);
    std::printf("%s\n", akunu_version());
    return refused ? 0 : 1;
}
PROGRAM

headers=$(cd "$source/include" && printf '%s\n' akunu/*.h)
functions=$(cat "$source"/include/akunu/*.h | tr '\n' ' ' | grep -o 'AKUNU_API [^(]*(' | sed -n 's/.*[ *]\(akunu_[a-z0-9_]*\)($/\1/p')

# Every function has a C name in C++ too, and the library has it.
# Lists of words.
# shellcheck disable=SC2086
{
    printf '#include <%s>\n' $headers
    echo 'using function = void (*)();'
    echo 'static const function all[] = {'
    printf '    reinterpret_cast<function>(&%s),\n' $functions
    echo '};'
    echo 'int main()'
    echo '{'
    echo '    for (function one : all)'
    echo '        if (!one)'
    echo '            return 1;'
    echo '    return 0;'
    echo '}'
} >"$work/every.cc"

# $1: a name; the rest: what the linker is given for akunu.
try() {
    name=$1
    shift
    # Flags are lists of words.
    # shellcheck disable=SC2046,SC2086
    for example in batch chat embed json schedule simple tools transcribe; do
        $CC -std=c11 $warnings $CFLAGS $(pc --cflags) "$examples/$example.c" -o "$work/$example-$name" $AK_LDFLAGS "$@" -lm
        case $example in
        chat | transcribe) ;; # one waits for input, the other needs audio
        *) generates "$work/$example-$name" ;;
        esac
    done
    if command -v "$CXX" >/dev/null; then
        # shellcheck disable=SC2046,SC2086
        $CXX -std=c++17 $warnings $CFLAGS $(pc --cflags) "$work/hello.cc" -o "$work/hello-$name" $AK_LDFLAGS "$@"
        # shellcheck disable=SC2046,SC2086
        $CXX -std=c++17 $warnings -Wno-cast-function-type $CFLAGS $(pc --cflags) "$work/every.cc" -o "$work/every-$name" $AK_LDFLAGS "$@"
        "$work/every-$name" || fail "the C++ program of all functions failed"
        hello=$("$work/hello-$name") || fail "the C++ program failed"
        [ "$hello" = "$version" ] || fail "akunu_version() is $hello, akunu.pc says $version"
        echo "installcheck: $name: C11 and C++17"
    else
        echo "installcheck: $name: C11 (no C++ compiler: C++17 not tried)"
    fi
}

# Who links the shared library needs nothing of what it was built with, not even its packages' files.
alone=$(PKG_CONFIG_LIBDIR=$libdir/pkgconfig PKG_CONFIG_PATH='' $PKG_CONFIG --define-variable=prefix="$destdir$prefix" \
    --cflags --libs akunu 2>&1) || fail "akunu.pc does not serve alone: $alone"
for flag in $alone; do
    case $flag in
    -I"$destdir$prefix"/* | -L"$libdir" | -lakunu) ;;
    *) fail "akunu.pc gives $flag to those who link the shared library" ;;
    esac
done

# Each header stands alone.
for header in $headers; do
    echo "#include <$header>" >"$work/header.c"
    # shellcheck disable=SC2046,SC2086
    $CC -std=c11 $warnings $(pc --cflags) -fsyntax-only "$work/header.c" || fail "$header does not compile as C11"
    # shellcheck disable=SC2046,SC2086
    ! command -v "$CXX" >/dev/null || $CXX -std=c++17 $warnings $(pc --cflags) -fsyntax-only -x c++ "$work/header.c" ||
        fail "$header does not compile as C++17"
done

library=$libdir/libakunu.so
if [ -e "$library" ]; then
    # shellcheck disable=SC2046
    try shared $(pc --libs)
    readelf -d "$library" | grep -q 'SONAME.*\[libakunu\.so\.0\]' || fail "$library has no SONAME libakunu.so.0"
    others=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^akunu_' || true)
    [ -z "$others" ] || fail "$library exports more than akunu_…: $others"
    for name in $functions; do
        nm -D --defined-only "$library" | grep -q " T $name\$" || fail "$library lacks $name"
    done
fi
if [ -e "$libdir/libakunu.a" ]; then
    # shellcheck disable=SC2046
    try static "$libdir/libakunu.a" $(pc --static --libs | sed 's/-lakunu//')
fi

# A project of three lines that asks for akunu, as CMake's are; what it must not be given is refused.
if command -v cmake >/dev/null; then
    mkdir "$work/project"
    cp "$source/examples/simple.c" "$work/project"
    minor=${version%.*}
    printf 'cmake_minimum_required(VERSION 3.13)\nproject(simple C)\nfind_package(akunu %s REQUIRED)\nadd_executable(simple simple.c)\n' \
        "$minor" >"$work/project/CMakeLists.txt"
    echo 'target_link_libraries(simple akunu::akunu)' >>"$work/project/CMakeLists.txt"
    project() {
        cmake -S "$work/project" -B "$work/made" -DCMAKE_PREFIX_PATH="$destdir$prefix" -DCMAKE_C_COMPILER="${CC##* }" \
            -DCMAKE_C_FLAGS="$CFLAGS $AK_LDFLAGS" -Dakunu_DIR="$libdir/cmake/akunu" >"$work/cmake" 2>&1
    }
    project && cmake --build "$work/made" >>"$work/cmake" 2>&1 || fail "CMake does not build with akunu: $(cat "$work/cmake")"
    generates "$work/made/simple"
    sed -i "s/akunu $minor/akunu 99.0/" "$work/project/CMakeLists.txt"
    rm -rf "$work/made"
    ! project || fail "CMake takes akunu $version for 99.0"
    echo "installcheck: CMake"
else
    echo "installcheck: no cmake: the package file is not tried"
fi

for page in "" $("$bindir/akunu-cli" --help | sed -n '/^Commands/,/^$/s/^  \([a-z-]*\) .*/-\1/p'); do
    [ -e "$mandir/man1/akunu-cli$page.1" ] || fail "no man page akunu-cli$page.1 in $mandir/man1"
done

"$bindir/akunu-cli" --version | grep -q "$version" || fail "akunu-cli --version does not say $version"
echo "installcheck: fine"
