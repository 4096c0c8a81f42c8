#!/bin/bash
# Tokens of an issuer: signed here by openssl, shown to weir serve over HTTP by curl; what the command
# says about options and files that are wrong; keys that are replaced at SIGHUP. Over AMQP the same is
# in tests/interop/raw/issuer.py, which ends this.
# about 25 s
here=$(cd "$(dirname "$0")" && pwd)
. "$here/serving.bash"
for tool in curl openssl; do
    command -v $tool >/dev/null || { echo "$tool is not installed"; exit 77; }
done
issuer=https://issuer.test/tenant/ azure=https://eventhubs.azure.net

# ---- the issuer ----
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d =; }
from_hex() { printf "$(sed 's/../\\x&/g')"; }
# jwk_rsa KEY KID, jwk_ec KEY KID: the public half.
jwk_rsa() {
    printf '{"kty":"RSA","use":"sig","kid":"%s","n":"%s","e":"AQAB"}' "$2" \
        "$(openssl rsa -in "$1" -noout -modulus | cut -d= -f2 | from_hex | base64url)"
}
jwk_ec() {
    printf '{"kty":"EC","crv":"P-256","kid":"%s","x":"%s","y":"%s"}' "$2" \
        "$(openssl pkey -in "$1" -pubout -outform DER | tail -c 64 | head -c 32 | base64url)" \
        "$(openssl pkey -in "$1" -pubout -outform DER | tail -c 32 | base64url)"
}
# r and s of a DER signature, 32 bytes each.
raw_ec() {
    openssl asn1parse -inform DER | sed -n 's/.*INTEGER *://p' | while read -r number; do
        printf '%64s' "$number" | tr ' ' 0
    done | from_hex
}
# token KEY HEADER CLAIMS: signed by openssl.
token() {
    local text
    text=$(printf %s "$2" | base64url).$(printf %s "$3" | base64url)
    case $1 in
    ec*) echo "$text.$(printf %s "$text" | openssl dgst -sha256 -sign "$1" | raw_ec | base64url)" ;;
    *) echo "$text.$(printf %s "$text" | openssl dgst -sha256 -sign "$1" | base64url)" ;;
    esac
}
# claims ROLES [ISSUER [AUDIENCE [SECONDS [MORE]]]]
claims() {
    printf '{"iss":"%s","aud":"%s","exp":%s,"roles":%s%s}' "${2:-$issuer}" "${3:-$azure}" \
        $(($(date +%s) + ${4:-600})) "$1" "${5:-}"
}
rs256='{"alg":"RS256","typ":"JWT","kid":"r"}' es256='{"alg":"ES256","typ":"JWT","kid":"e"}'
owner='["Azure Event Hubs Data Owner"]' sender='["Azure Event Hubs Data Sender"]'
receiver='["Azure Event Hubs Data Receiver"]'
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.key 2>/dev/null
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out stranger.key 2>/dev/null
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ec.key
printf '{"keys":[%s]}' "$(jwk_rsa rsa.key r)" >rsa.json
printf '{"keys":[%s]}' "$(jwk_ec ec.key e)" >ec.json
printf '{"keys":[%s,%s]}' "$(jwk_rsa rsa.key r)" "$(jwk_ec ec.key e)" >keys.json

# ---- options and files ----
none='--in-memory --amqp 127.0.0.1:0 --amqps off --http off'
wrong() { # CODE WORDS OPTIONS...
    local code=$1 words=$2
    shift 2
    expect "$code" "$WEIR" serve $none "$@"
    said "$words" err
}
wrong 2 '--issuer URL and --jwks FILE belong together' --issuer "$issuer"
wrong 2 '--issuer URL and --jwks FILE belong together' --jwks keys.json
wrong 2 'go with --issuer' --audience x
wrong 2 'go with --issuer' --role x=send
wrong 2 'go with --issuer' --role-claim groups
use="--issuer $issuer --jwks keys.json"
wrong 2 "--role is NAME=RIGHTS .*, not 'x'" $use --role x
wrong 2 "--role is NAME=RIGHTS .*, not 'x=sned'" $use --role x=sned
wrong 2 "--role is NAME=RIGHTS .*, not '=send'" $use --role =send
wrong 2 '--role-claim cannot be iss, aud, exp or nbf' $use --role-claim aud
wrong 2 '--role-claim has 1 to 255 characters' $use --role-claim ''
hint='the JSON that lies at the jwks_uri in its /.well-known/openid-configuration'
wrong 3 "weir: serve: --jwks missing.json: No such file or directory; .*$hint" \
    --issuer "$issuer" --jwks missing.json
wrong 2 'weir: serve: --jwks \.: it cannot be read: Is a directory; ' --issuer "$issuer" --jwks .
echo rubbish >bad.json
wrong 2 '--jwks bad.json: line 1, column 1: a value should be here; ' --issuer "$issuer" --jwks bad.json
head -c 100 keys.json >bad.json
wrong 2 '--jwks bad.json: line 1, column 101: .*the text ends; ' --issuer "$issuer" --jwks bad.json
echo '{"keys":[]}' >bad.json
wrong 2 '--jwks bad.json: it has no key for RS256 (RSA) or ES256 (P-256)' --issuer "$issuer" --jwks bad.json
cp rsa.key bad.json
wrong 2 '--jwks bad.json: line 1, column 2: ' --issuer "$issuer" --jwks bad.json
expect 0 "$WEIR" serve --help
said '--issuer URL'
said '--role NAME=RIGHTS'

# ---- HTTP ----
# ask STATUS TOKEN METHOD PATH [CURL OPTIONS...]: what came is in head and out.
ask() {
    local want=$1 bearer=$2 method=$3 path=$4 got
    shift 4
    got=$(curl -sS -m 20 -D head -o out -w '%{http_code}' -H "Authorization: $bearer" -X "$method" \
        "$@" "http://$http$path" 2>curl.err) || fail "curl: $method $path"
    [ "$got" = "$want" ] || fail "$method $path gave $got instead of $want"
}
send() { ask "$1" "Bearer $2" POST /eh1/messages -d x; }
refused() { # WORDS TOKEN
    send 401 "$2"
    said "<Error><Code>401</Code><Detail>$1.* 'Send' claim(s) are required to perform this operation.</Detail></Error>"
}
cp keys.json served.json
start --data d --hub eh1:2 --amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0 --json \
    --issuer "$issuer" --jwks served.json
http=$(field http)
good=$(token rsa.key "$rs256" "$(claims "$sender")")
good_ec=$(token ec.key "$es256" "$(claims "$owner" "$issuer" "$azure/")")
send 201 "$good"
send 201 "$good_ec"
ask 201 "bearer $good" POST /eh1/partitions/1/messages -d x
ask 200 "Bearer $good_ec" GET '/$weir/hubs'
ask 401 "Bearer $good" GET '/$weir/hubs'
said "\"detail\":\"Unauthorized access. 'Manage' claim(s) are required"
ask 401 "Bearer $good" DELETE '/$weir/hubs/eh1'
said "'Manage' claim(s) are required"
refused 'Unauthorized access\.' "$(token rsa.key "$rs256" "$(claims "$receiver")")"
said '^WWW-Authenticate: SharedAccessSignature, Bearer' head
invalid='InvalidSignature: The token has an invalid signature\.'
refused "$invalid" "$(token stranger.key "$rs256" "$(claims "$sender")")"
refused "$invalid" "${good%.*}.$(echo "${good##*.}" | tr 'A-Za-z' 'B-ZAb-za')"
refused "$invalid The issuer has no key" \
    "$(token rsa.key '{"alg":"RS256","kid":"x"}' "$(claims "$sender")")"
refused "$invalid" "$(token ec.key '{"alg":"RS256","kid":"e"}' "$(claims "$sender")")"
refused 'MalformedToken: alg is not' "$(token rsa.key '{"alg":"none"}' "$(claims "$owner")")"
refused 'MalformedToken: alg is not' "$(token rsa.key '{"alg":"HS256","kid":"r"}' "$(claims "$owner")")"
refused 'InvalidIssuer: Token issuer is invalid\.' \
    "$(token rsa.key "$rs256" "$(claims "$sender" https://issuer.test/tenant)")"
refused 'InvalidAudience: Invalid authorization token audience\.' \
    "$(token rsa.key "$rs256" "$(claims "$sender" "$issuer" https://storage.azure.com)")"
refused "ExpiredToken: The token is expired. Expiration time: '20" \
    "$(token rsa.key "$rs256" "$(claims "$sender" "$issuer" "$azure" -61)")"
refused 'InvalidToken: The token is not valid yet' \
    "$(token rsa.key "$rs256" "$(claims "$sender" "$issuer" "$azure" 900 ",\"nbf\":$(($(date +%s) + 300))")")"
refused 'Unauthorized access. The token has no role' "$(token rsa.key "$rs256" "$(claims '["Reader"]')")"
refused 'MalformedToken: ' "$good.x"
refused "$invalid" "${good}x"
refused "$invalid" "$good x"
refused "$invalid" "${good:0:-4}"
refused 'MalformedToken: ' ''
refused 'MalformedToken: ' "$(head -c 9000 /dev/zero | tr '\0' x)"
ask 401 "$good" POST /eh1/messages -d x # without a scheme it is none that we know
said "MalformedToken: The token does not begin with 'SharedAccessSignature '"

# ---- keys are replaced; what is bad changes nothing ----
cp ec.json served.json
hup "INFO serve: the issuer's key set was read again"
refused "$invalid" "$good"
send 201 "$good_ec"
echo '{"keys":[{"kty":"RSA"}]}' >served.json
hup "ERROR serve: the issuer's key set stays as it was: served.json: line 1, column 10: an RSA key has n and e"
rm served.json
hup "ERROR serve: the issuer's key set stays as it was: served.json: No such file or directory"
send 201 "$good_ec"
cp keys.json served.json
hup "INFO serve: the issuer's key set was read again"
send 201 "$good"
stop

# ---- an audience, a claim and roles of one's own; options from the environment ----
WEIR_ISSUER=$issuer WEIR_ROLE='ops=manage a=b=send' start --in-memory --hub eh1:1 --amqp 127.0.0.1:0 \
    --amqps off --http 127.0.0.1:0 --json --jwks rsa.json --audience api://weir --role-claim groups
http=$(field http)
groups() { claims "$owner" "$issuer" "${2:-api://weir}" 600 ",\"groups\":$1"; }
send 201 "$(token rsa.key "$rs256" "$(groups '"a=b"')")"
ask 200 "Bearer $(token rsa.key "$rs256" "$(groups '["x","ops"]')")" GET '/$weir/hubs'
ask 401 "Bearer $(token rsa.key "$rs256" "$(groups '["a=b"]')")" GET '/$weir/hubs'
refused "Unauthorized access. The token has no role, in its claim 'groups'" \
    "$(token rsa.key "$rs256" "$(groups "$owner")")" # Azure's count no more
refused 'InvalidAudience: ' "$(token rsa.key "$rs256" "$(groups '["ops"]' "$azure")")"
stop

# ---- without --issuer ----
start --in-memory --hub eh1:1 --amqp 127.0.0.1:0 --amqps off --http 127.0.0.1:0 --json
http=$(field http)
refused "InvalidToken: Tokens of type 'jwt' are not accepted here; .* start the server with --issuer" "$good"
said '^WWW-Authenticate: SharedAccessSignature.$' head
stop

command -v python3 >/dev/null || { echo "python3 is not installed: nothing over AMQP"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 python3 "$here/../interop/raw/issuer.py" 2>err || fail "issuer.py"
