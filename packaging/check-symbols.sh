#!/usr/bin/env bash
# Checks the built plugin: check-symbols.sh PLUGIN PRIVATE_LIBRDKAFKA MAX_TLS_BYTES MAX_GLIBC
#
# Each check stands for a way in which the library would fail inside Fluent Bit only.
set -euo pipefail

plugin=$1 private=$2 max_tls=$3 max_glibc=$4
NM=${NM:-nm}
READELF=${READELF:-readelf}
failed=0

fail() {
	echo "symbols: $*" >&2
	failed=1
}

exported=$("$NM" -D --defined-only "$plugin" | awk '{print $3}')
others=$(grep -v '^FLBPlugin' <<<"$exported" || true)
[ -z "$others" ] || fail "the plugin exports more than FLBPlugin*: $(head -5 <<<"$others" | tr '\n' ' ')"
for name in PreRegister Register Init Flush FlushCtx OutputPreRun OutputPreExit Exit ExitCtx Unregister; do
	grep -qx "FLBPlugin$name" <<<"$exported" || fail "FLBPlugin$name is not exported"
done

tls_of() {
	local hex
	hex=$("$READELF" -lW "$1" | awk '$1 == "TLS" {print $6}')
	echo $((${hex:-0}))
}
tls=$(tls_of "$plugin")
[ "$tls" -le "$max_tls" ] || fail "the plugin's TLS block is $tls bytes, more than $max_tls: the loader may have no room for it"

# A name without the prefix would bind to the host's own librdkafka.
bare=$("$NM" -D --undefined-only "$plugin" | awk '$2 ~ /^rd_kafka_/ {print $2}')
[ -z "$bare" ] || fail "undefined unprefixed symbols: $(tr '\n' ' ' <<<"$bare")"
leaked=$("$NM" -D --defined-only "$private" | awk '$3 !~ /^okr_rd_kafka_/ {print $3}')
[ -z "$leaked" ] || fail "the private librdkafka exports: $(head -5 <<<"$leaked" | tr '\n' ' ')"

for file in "$plugin" "$private"; do
	need=$("$NM" -D --undefined-only "$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -1)
	[ "$(printf '%s\n%s\n' "$need" "$max_glibc" | sort -V | tail -1)" = "$max_glibc" ] ||
		fail "$(basename "$file") needs glibc $need, the documented minimum is $max_glibc"
done
case $("$READELF" -dW "$plugin") in
*'RUNPATH'*'$ORIGIN'* | *'RPATH'*'$ORIGIN'*) ;;
*) fail "the plugin has no RUNPATH \$ORIGIN: it would not find the library beside it" ;;
esac

[ $failed -eq 0 ] || exit 1
echo "symbols: $(wc -l <<<"$exported") exports, TLS $tls bytes, glibc $max_glibc or newer"
