// As loop.py, in Node.
const fs = require('fs'), now = process.hrtime.bigint, text = Buffer.alloc(100);
const log = fs.openSync(process.argv[2], 'w'), counted = fs.openSync('/proc/thread-self/schedstat');
let turn = 0;
setInterval(() => {
  const start = now(), length = turn++ % 40 === 20 ? 5000000n : 100000n;
  while (now() - start < length) ;
  const waited = text.toString('latin1', 0, fs.readSync(counted, text, 0, 100, 0)).split(' ')[1];
  fs.writeSync(log, `${start} ${now()} ${waited}\n`);
}, 5);
