# cache.bash - packages of other people's package managers, installed once into a cache outside the
# tree; LANG/run scripts source it. $cache is its folder: STAND_CACHE, or weir-interop in the user's.
cache=${STAND_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/weir-interop}
mkdir -p "$cache"

skip() { echo "$*"; exit 77; }

# key_of FILE...: a short name for what they hold.
key_of() { cat "$@" | sha256sum | cut -c 1-12; }

# once FOLDER COMMAND...: runs the command, which fills FOLDER, unless it has done so before. One at a
# time, also among several test runs. What it said is shown when it fails.
once() {
    local folder=$1
    shift
    (
        flock 9
        [ ! -e "$folder/installed" ] || exit 0
        rm -rf "$folder"
        mkdir -p "$folder"
        "$@" >"$folder/install.log" 2>&1 || { tail -n 5 "$folder/install.log" >&2; exit 1; }
        touch "$folder/installed"
    ) 9>"$folder.lock"
}
