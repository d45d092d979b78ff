// Sleeps for TARGET_NS again and again, and writes when each sleep began and ended: see sleep error in docs/sleep.md.
// The call is setTimeout: Node has no sleep that blocks, and this is what every program uses.
'use strict';
const { readSync, writeSync } = require('fs');

function sleepOnce(targetMs, done) {
  const before = process.hrtime.bigint();
  setTimeout(() => {
    const after = process.hrtime.bigint();
    done(`${before} ${after}\n`);
  }, targetMs);
}

function warmUp(times, done) {
  if (times > 0) sleepOnce(0.1, () => warmUp(times - 1, done));
  else done();
}

const targetMs = Number(process.argv[2]) / 1e6;

function sleepForEver() {
  sleepOnce(targetMs, (line) => {
    // Once nobody reads, an exception ends the program. A setTimeout of the next turn, as in any program.
    writeSync(1, line);
    sleepForEver();
  });
}

warmUp(Number(process.argv[3]), () => {
  writeSync(1, `ready ${process.pid} Node.js ${process.versions.node}\n`);
  if (readSync(0, Buffer.alloc(8)) === 0) process.exit(1);
  sleepForEver();
});
