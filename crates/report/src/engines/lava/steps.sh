shard=<<SHARD>>
cd "$(mktemp -d)"
cat >plan.toml <<'<<END>>'
<<PLAN>><<END>>
wget -q -O punctual <<PROGRAM>>
chmod 755 punctual
(
<<MEASURE>>) && result=pass || result=fail
lava-test-case measured --result $result
