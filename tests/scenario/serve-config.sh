#!/bin/bash
# weir serve --config: the emulator's Config.json makes what is missing, and nothing else.
. "$(dirname "$0")/serving.bash"
free='--amqp 127.0.0.1:0 --amqps off --http off'

cat >Config.json <<'END'
{
  "UserConfig": {
    "NamespaceConfig": [
      {
        "Type": "EventHub",
        "Name": "emulatorNs1",
        "Entities": [
          { "Name": "eh1", "PartitionCount": 2, "ConsumerGroups": [ { "Name": "cg1" } ] },
          { "Name": "eh2", "PartitionCount": "4", "ConsumerGroups": null, "Retention": { "Days": [7] } }
        ]
      }
    ],
    "LoggingConfig": { "Type": "File" }
  }
}
END
start --data d $free --config Config.json --hub other:1 --json
said '"ready":true'
said "Config.json:9:75: 'Retention' is not known and is passed over" log
said '"warnings":\["Config.json:9:75'
stop
expect 0 "$WEIR" hub list --data d
[ "$(awk '$1 ~ /^(eh1|eh2|other)$/ { print $1, $2 }' out | sort | tr '\n' ' ')" = "eh1 2 eh2 4 other 1 " ] ||
    fail "other hubs"
expect 0 "$WEIR" hub show eh1 --data d
said 'groups      $Default cg1'

# ---- again: what is there stays, what is new comes ----
seq 1 10 | "$WEIR" send eh1 --data d >out 2>err
sed -i 's/{ "Name": "cg1" }/{ "Name": "cg2" }, {"name":"$Default"}/; s/eh2/eh3/; s/, "Retention.*\] }/ /' Config.json
start --data d $free --config Config.json --json
silent warnings
stop
expect 0 "$WEIR" hub show eh1 --data d
said 'groups      $Default cg1 cg2'
expect 0 "$WEIR" tail eh1 --from earliest --until-end --data d
[ "$(wc -l <out)" = 10 ] || fail "events are gone"
for hub in eh2 eh3 other; do expect 0 "$WEIR" hub show $hub --data d; done

# ---- a mismatch names both, before anything is made ----
sed 's/"eh3"/"eh4"/; s/"PartitionCount": 2/"PartitionCount": 3/' Config.json >other.json
expect 2 "$WEIR" serve --data d $free --config other.json
said "other.json:8:11: hub 'eh1' has 2 partitions, and 3 are asked for" err
expect 3 "$WEIR" hub show eh4 --data d

# ---- what is wrong is told with its place ----
# wrong TEXT COMPLAINT
wrong() {
    printf '%s' "$1" >bad.json
    expect 2 "$WEIR" serve --data new $free --config bad.json
    said "weir: serve: bad.json: $2" err
    [ ! -e new ] || fail "it made a folder"
}
entity() { printf '{"UserConfig":{"NamespaceConfig":[{"Entities":[%s]}]}}' "$1"; }
wrong '' 'line 1, column 1: a value should be here'
wrong '{"hubs":[]}' "line 1, column 1: 'UserConfig' is missing"
wrong '[]' 'line 1, column 1: an object, {...}, should be here'
wrong '{"UserConfig":{},}' "line 1, column 15: 'NamespaceConfig' is missing"
wrong '{"UserConfig":{"NamespaceConfig":[]},}' 'line 1, column 38: a name in quotes should be here'
wrong '{"UserConfig":{"NamespaceConfig":[]}} x' 'line 1, column 39: something follows the end'
wrong '{"UserConfig":{"NamespaceConfig":[{"Type":"ServiceBus","Entities":[]}]}}' \
    "line 1, column 43: a namespace of type 'ServiceBus'"
wrong '{"UserConfig":{"NamespaceConfig":[{"Entities":[]},{"Entities":[]}]}}' 'line 1, column 51: a second namespace'
wrong "$(entity '{"Name":"a"}')" "line 1, column 48: 'PartitionCount' is missing"
wrong "$(entity '{"Name":"a","PartitionCount":0}')" "line 1, column 77: a hub has 1 to 1024 partitions, not '0'"
wrong "$(entity '{"Name":"a","PartitionCount":2.5}')" "line 1, column 77: a hub has 1 to 1024 partitions, not '2.5'"
wrong "$(entity '{"Name":"a","PartitionCount":[2]}')" 'line 1, column 77: a number should be here'
wrong "$(entity '{"Name":"a","Name":"b"}')" "line 1, column 60: 'Name' stands here twice"
wrong "$(entity '{"Name":"a b"}')" 'line 1, column 56: hub name: byte 0x20'
wrong "$(entity '{"Name":"a","PartitionCount":1,"ConsumerGroups":[{"Name":"-"}]}')" 'line 1, column 105: consumer group'
wrong "$(head -c 2000000 /dev/zero | tr '\0' ' ')" 'it is longer than'
expect 3 "$WEIR" serve --data new $free --config missing.json
said 'missing.json: No such file or directory; check the path' err
