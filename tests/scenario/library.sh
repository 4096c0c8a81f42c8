#!/bin/sh
# libweir as a stranger meets it: installed, found by pkg-config, linked, run; it exports weir_
# names only, and cannot print, exit or touch signal handlers because it does not call what does.
# gcc only
set -eu

cmake --install "$BUILD" --prefix "$TMPDIR/usr" >/dev/null
PKG_CONFIG_PATH=$TMPDIR/usr/lib/pkgconfig
export PKG_CONFIG_PATH
cat >"$TMPDIR/use.c" <<'C'
#include <stdio.h>
#include <weir/error.h>
int main(void) { return puts(weir_error_name(WEIR_EBUSY)) < 0; }
C
for how in shared static; do
    case $how in
    shared) libs="$(pkg-config --libs weir) -Wl,-rpath,$TMPDIR/usr/lib" ;;
    static) libs="-L$TMPDIR/usr/lib -l:libweir.a $(pkg-config --libs libcrypto) -pthread" ;;
    esac
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags weir) \
        "$TMPDIR/use.c" -o "$TMPDIR/use" $libs
    said=$("$TMPDIR/use")
    [ "$said" = WEIR_EBUSY ] || { echo "the $how program said '$said'"; exit 1; }
done

# The line of the README that compiles a program, for one with a processor, too.
top=$(cd "$(dirname "$0")/../.." && pwd)
line=$(sed -n 's/^make && \(cc .*\) && .*/\1/p' "$top/README.md" | sed "s, build/, $BUILD/,; s,-o first,-o $TMPDIR/made,")
for example in first simple_processor; do
    (cd "$top" && eval "$(echo "$line" | sed "s,examples/first,examples/$example,")")
    [ -x "$TMPDIR/made" ] || { echo "the README's line made no $example"; exit 1; }
    rm "$TMPDIR/made"
done

# Every header stands alone, in C and, where there is a compiler for it, in C++.
for header in "$TMPDIR"/usr/include/weir/*.h; do
    printf '#include <weir/%s>\nextern int nothing;\n' "${header##*/}" >"$TMPDIR/alone.c"
    set -- -Wall -Wextra -Werror -fsyntax-only "-I$TMPDIR/usr/include"
    cc -std=c11 -Wpedantic "$@" "$TMPDIR/alone.c"
    ! command -v c++ >/dev/null || c++ "$@" -x c++ "$TMPDIR/alone.c"
done

library=$TMPDIR/usr/lib/libweir.so
readelf -d "$library" | grep -q 'soname: \[libweir.so.0\]' || { echo "wrong soname"; exit 1; }
strangers=$(nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /^weir_[a-z]/ { print $3 }')
[ -z "$strangers" ] || { echo "it exports" $strangers; exit 1; }
noise=$(nm -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $2); print $2 }' |
    grep -xE '(__)?v?f?printf(_chk)?|f?puts|f?putc|putchar|perror|_?exit|signal|sigaction' || true)
[ -z "$noise" ] || { echo "it calls" $noise; exit 1; }
