// Sleeps for TARGET_NS in a loop and writes the start and end of each sleep: see sleep error in docs/sleep.md.
// The call is setTimeout, the usual one: Node has no blocking sleep.
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
    // After the reader has closed the pipe, an exception ends the program. The next setTimeout is called from the
    // event loop, as in any program.
    writeSync(1, line);
    sleepForEver();
  });
}

warmUp(Number(process.argv[3]), () => {
  writeSync(1, `ready ${process.pid} Node.js ${process.versions.node}\n`);
  if (readSync(0, Buffer.alloc(8)) === 0) process.exit(1);
  sleepForEver();
});
