// The fixed piece of work that pace.ts measures a machine with, on a thread of its own.
declare const self: Worker;

const BLOCK = new Uint8Array(1024 * 1024);
/** How often the block is hashed. */
const WORK = 300;

self.onmessage = () => {
  const begun = performance.now();
  for (let round = 0; round < WORK; round += 1) new Bun.SHA256().update(BLOCK).digest();
  postMessage(performance.now() - begun);
};
