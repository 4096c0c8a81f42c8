# interop.bash - the core set of tests/interop/CASES.md with the clients of one language; the scenarios
# source it and call `run_language LANG`. One that could not install a client in time is skipped and
# says so; package managers keep what they have fetched, so that the next run goes on from there.
INSTALL_S=90
CASES_S=400 # a minute is usual

run_language() {
    local root code=0 said=$TMPDIR/said
    root=$(cd "$(dirname "$0")/../.." && pwd)
    "$root/scripts/interop" --language "$1" --install-limit "$INSTALL_S" --limit "$CASES_S" >"$said" || code=$?
    cat "$said"
    if [ "$code" = 77 ]; then # the last line names who was skipped and why, and what passed nevertheless
        echo "$(sed -n 's/ skipped, because /: /p' "$said" | paste -sd '|' | sed 's/|/; /g') ($(tail -n 1 "$said"))"
    fi
    exit "$code"
}
