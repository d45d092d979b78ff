<<PROGRAM>> run <<PLAN>><<OPTION>> --wait --out <<OUT>><<MORE>>
status=$?
# 2 and 3 are verdicts on the limits of the plan.
case $status in 0|2|3) ;; *) exit $status;; esac
gzip -c <<OUT>>/run.jsonl | base64 | sed "s/^/punctual-shard-$shard /"
