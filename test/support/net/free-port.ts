// For servers whose port is set before they listen.

/** Below what the system gives to connections: none of them takes a port between this look and its use. */
const FIRST = 10_000;
const LAST = 29_999;

let next = FIRST + Math.floor(Math.random() * (LAST - FIRST));

/** A port that is free now, and that this process does not get again for long. */
export const freePort = (): number => {
  for (;;) {
    const port = next;
    next = port === LAST ? FIRST : port + 1;
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch {
      // Someone else has it.
    }
  }
};
