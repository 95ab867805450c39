// The fixed amount of work with which pace.ts measures a machine, on a separate thread.
declare const self: Worker;

const BLOCK = new Uint8Array(1024 * 1024);
/** Number of times the block is hashed. */
const HASH_COUNT = 300;

self.onmessage = () => {
  const startedAt = performance.now();
  for (let round = 0; round < HASH_COUNT; round += 1) new Bun.SHA256().update(BLOCK).digest();
  postMessage(performance.now() - startedAt);
};
