// Free ports for servers whose port is configured before they listen.

/** Below the ephemeral port range, so that no outgoing connection takes a port between this check and its use. */
const FIRST = 10_000;
const LAST = 29_999;

let next = FIRST + Math.floor(Math.random() * (LAST - FIRST));

/** Returns a free port that this process does not get again for a long time. */
export const freePort = (): number => {
  for (;;) {
    const port = next;
    next = port === LAST ? FIRST : port + 1;
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch {
      // The port is in use.
    }
  }
};
