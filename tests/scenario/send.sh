#!/bin/bash
# What weir send takes besides lines of standard input: a text, a file, keys within lines, and the
# lines of weir tail --json; and weir tail from so long ago.
. "$(dirname "$0")/serving.bash"
export WEIR_DATA=d
: >out
: >err

tailed() { "$WEIR" tail "$@" --until-end >lines 2>err || fail "tail $*"; }
same() { [ "$(cat lines)" = "$1" ] || fail "came: $(cat lines)"; }

expect 0 "$WEIR" hub create q --partitions 4
expect 0 "$WEIR" hub create copy --partitions 4

# ---- a text; the input is not touched ----
expect 0 "$WEIR" send q 'door open'
said 'acknowledged 1 event'
expect 0 "$WEIR" send q -- --property
tailed q
[ "$(sort lines)" = "$(printf '%s\n' --property 'door open' | sort)" ] || fail "came: $(cat lines)"

# ---- a file ----
printf 'one\ntwo\nthree' >file
expect 0 "$WEIR" send q --partition 2 --file file
said 'acknowledged 3 events'
tailed q --partition 2 --count 10
[ "$(tail -n 3 lines)" = "$(cat file)" ] || fail "came: $(cat lines)"
expect 3 "$WEIR" send q --file nowhere
said 'nowhere: No such file or directory' err
expect 2 "$WEIR" send q text --file file

# ---- bytes that are no text, where text is needed ----
expect 2 "$WEIR" send q text --key $'\xff'
said 'the partition key is not UTF-8' err
expect 2 "$WEIR" send q text --property $'n=\xff'
said "property 'n' is not UTF-8" err

# ---- a key in each line: each goes where its key belongs, in order ----
for i in $(seq 50); do echo "home-$((i % 7)): $i"; done >keyed
expect 0 "$WEIR" send copy --file keyed --key-separator ': '
said 'acknowledged 50 events'
tailed copy --json
for home in 0 1 2 3 4 5 6; do
    grep "\"key\":\"home-$home\"" lines >mine || fail "no event of home-$home"
    [ "$(sed 's/{"partition":"\([0-9]*\)".*/\1/' mine | sort -u | wc -l)" = 1 ] || fail "two partitions"
    [ "$(sed 's/.*"body":"\([0-9]*\)".*/\1/' mine)" = "$(seq 50 | awk "\$1 % 7 == $home")" ] ||
        fail "home-$home has other events"
done
printf 'a: 1\nno key\n' >keyed
expect 2 "$WEIR" send copy --file keyed --key-separator ': '
said "line 2: there is no key before ': '" err
said 'acknowledged 1 event'
expect 2 "$WEIR" send copy --key k --key-separator ,
expect 2 "$WEIR" send copy --key-separator ''

# ---- what tail --json prints is what send --json takes ----
expect 0 "$WEIR" hub create from --partitions 1
expect 0 "$WEIR" hub create to --partitions 1
echo 'plain "quoted" \ ü' | "$WEIR" send from --property a=b --property n= >out 2>err || fail "send"
printf '\xff\xfe\x00\x01\n' | "$WEIR" send from --key home-7 >out 2>err || fail "send"
printf 'a\0b\r\n' | "$WEIR" send from >out 2>err || fail "send"
cat >given <<'J'
{"body":"","properties":{"i":-7,"u":18446744073709551615,"d":1.5,"w":-3.0,"t":true,"f":false,"z":null,"s":"é\n"}}
{"body":"x","system_properties":{"message_id":"m","correlation_id":"c","user_id":"AQID","to":"t","subject":"s","reply_to":"r","content_type":"text/plain","content_encoding":"utf-8","absolute_expiry_time":"2030-01-01T00:00:00.000Z","creation_time":"2026-01-31T08:30:00.125Z","group_id":"g","group_sequence":4294967295,"reply_to_group_id":"rg"}}
{"body":"key only","key":"k"}
{"body":"\u0000","key":"k\u0000","properties":{"n\u0000":"v\u0000","n":"v"}}
J
expect 0 "$WEIR" send from --json --file given
said 'acknowledged 4 events'
tailed from --json
cp lines first
grep -qF '"body":"","properties":{"i":-7,"u":18446744073709551615,"d":1.5,"w":-3.0,"t":true,"f":false,"z":null,"s":"é\n"}' first ||
    fail "other properties: $(cat first)"
grep -qF '"body":"a\u0000b\r"' first || fail "another body: $(cat first)"
grep -qF '"key":"k\u0000","body":"\u0000","properties":{"n\u0000":"v\u0000","n":"v"}' first ||
    fail "no NULs: $(cat first)"
"$WEIR" send to --json <first >out 2>err || fail "send --json"
said 'acknowledged 7 events'
tailed to --json
bare() { sed 's/.*"key":/"key":/' "$1"; }
[ "$(bare lines)" = "$(bare first)" ] || fail "not the same: $(diff first lines)"
seq 300 | sed 's/.*/{"body":"&"}/' | "$WEIR" send to --json >out 2>err || fail "send --json"
said 'acknowledged 300 events'

# ---- and what is no such line ----
# bad LINE WORDS: it is refused with these.
bad() {
    printf '{"body":"good"}\n%s\n' "$1" >given
    expect 2 "$WEIR" send to --json --file given
    said 'acknowledged 1 event'
    said "line 2: .*$2" err
    ! grep -q 'line 1' err || fail "two lines are named: $(cat err)"
}
bad 'text' 'column 1'
bad '{"body\u0000":"x"}' 'no such member'
bad '{"body":"x","system_properties":{"creation_time":"2026-01-31T08:30:00Z\u0000"}}' 'must be a time'
bad '{"body":"x","properties":{"a":18446744073709551616}}' 'column 31: the number is too large'
bad '{"body":"x","properties":{"a":-9223372036854775809}}' 'column 31: the number is too large'
bad '{"body":"x","properties":{"a":1e999}}' 'column 31: the number is too large'
bad '[]' 'an object'
bad '{}' 'no body'
bad '{"body":7}' 'it must be text'
bad '{"body_base64":"###="}' 'not base64'
bad '{"body":"x","bdoy":"y"}' 'no such member'
bad '{"body":"x","body":"y"}' 'this name is there twice'
bad '{"body":"x","properties":{"a":1,"b":2,"a":3}}' 'this name is there twice'
bad '{"body":"x","body_base64":"eQ=="}' 'there are two bodies'
bad '{"body":"x","properties":{"a":[1]}}' 'must stand here'
bad '{"body":"x","system_properties":{"colour":"red"}}' 'no such system property'
bad '{"body":"x","body_type":"value"}' 'another type'
bad '{"body":"x"} more' ''
expect 2 "$WEIR" send to --json --property a=b

# ---- so long ago ----
tailed to --from time:-1h
[ "$(wc -l <lines)" -gt 300 ] || fail "not all of the last hour"
expect 2 "$WEIR" tail to --from time:-1 --until-end
expect 2 "$WEIR" tail to --from time:-h --until-end
