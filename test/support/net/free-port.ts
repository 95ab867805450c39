// Free ports for servers whose port is configured before they listen.

/** Below the ephemeral port range, so that no outgoing connection takes a port between this check and its use. */
const FIRST_PORT = 10_000;
const LAST_PORT = 29_999;

let nextPort = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));

/** Returns a free port that this process does not get again for a long time. */
export const findFreePort = (): number => {
  for (;;) {
    const port = nextPort;
    nextPort = port === LAST_PORT ? FIRST_PORT : port + 1;
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch {
      // The port is in use.
    }
  }
};
