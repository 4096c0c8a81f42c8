#!/bin/bash
# The man page names every command and every option that the program has.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
page=$TMPDIR/page missing=

# Without the marks of roff: \- is a dash, \fB and its kin change the font.
sed 's/\\-/-/g; s/\\f.//g' "$here/man/weir.1" >"$page"
names() { "$WEIR" help | sed -n 's/^  \([a-z][a-z0-9]*\( [a-z][a-z0-9]*\)\{0,1\}\) .*/\1/p'; }
while read -r first second; do
    case $first in
    hub | group | checkpoint | key | bench) name="$first $second" pattern="weir $first.*$second" ;;
    *) name=$first pattern="weir $first" ;;
    esac
    grep -q "$pattern" "$page" || missing="$missing; weir $name"
    case $name in 'bench wire' | 'bench log') continue ;; esac # the page refers to their --help
    # shellcheck disable=SC2086
    for option in $("$WEIR" help $name | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'); do
        grep -q -- "$option\b" "$page" || missing="$missing; $option of $name"
    done
done < <(names)
[ -z "$missing" ] || { echo "man.sh: the page lacks ${missing#; }"; exit 1; }
