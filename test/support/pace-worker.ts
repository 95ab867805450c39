// The fixed piece of work with which pace.ts measures a machine, on its own thread.
declare const self: Worker;

const BLOCK = new Uint8Array(1024 * 1024);
/** Number of times the block is hashed. */
const WORK = 300;

self.onmessage = () => {
  const started = performance.now();
  for (let round = 0; round < WORK; round += 1) new Bun.SHA256().update(BLOCK).digest();
  postMessage(performance.now() - started);
};
