// X11 forwarding for an SSH client: a display on this machine's loopback interface, shown by the client's X server. `xauth` stores the
// client's cookie where programs look for it. Without `xauth` there is no forwarding, because any user of this machine could use the
// display. [WN-9]
import { createServer, type Server, type Socket } from "node:net";

const MIN_DISPLAY = 10;
const MAX_DISPLAY = 1_000;
const BASE_PORT = 6_000;
const XAUTH_TIMEOUT_MS = 10_000;

export type X11Request = {
  /** Accepts only one connection. */
  single: boolean;
  protocol: string;
  cookie: string;
  screen: number;
};

export type X11Display = {
  /** The value of DISPLAY. */
  name: string;
  close(): void;
};

/** Validates values that become part of a line in `xauth`'s command language. */
const isValid = ({ protocol, cookie, screen }: X11Request): boolean =>
  /^[A-Za-z0-9-]{1,64}$/.test(protocol) && /^[0-9a-f]{2,256}$/i.test(cookie) && Number.isInteger(screen) && screen >= 0;

/**
 * Opens a display. Returns undefined if `xauth` is missing, no display is free, or the request is invalid. `onConnection` receives each
 * connection.
 */
export const openDisplay = async (
  request: X11Request,
  env: Readonly<Record<string, string>>,
  onConnection: (socket: Socket) => void,
): Promise<X11Display | undefined> => {
  const xauth = Bun.which("xauth", { PATH: env.PATH ?? "" });
  if (xauth === null || !isValid(request)) return undefined;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    onConnection(socket);
    if (request.single) server.close();
  });
  const display = await listen(server);
  if (display === undefined) return undefined;
  const entry = `unix:${display}.${request.screen}`;
  const isAdded = await runXauth(xauth, env, `remove ${entry}\nadd ${entry} ${request.protocol} ${request.cookie}\n`);
  if (!isAdded) {
    server.close();
    return undefined;
  }
  return {
    name: `localhost:${display}.${request.screen}`,
    close: () => {
      server.close();
      void runXauth(xauth, env, `remove ${entry}\n`);
    },
  };
};

/** Returns the number of the first free display. */
const listen = async (server: Server): Promise<number | undefined> => {
  for (let display = MIN_DISPLAY; display < MAX_DISPLAY; display += 1) {
    const isFree = await new Promise<boolean>((resolve) => {
      const onTaken = (): void => resolve(false);
      server.once("error", onTaken);
      server.listen(BASE_PORT + display, "127.0.0.1", () => {
        server.removeListener("error", onTaken);
        resolve(true);
      });
    });
    if (isFree) return display;
  }
  return undefined;
};

/** Passes cookies on standard input, because other users can read command lines. */
const runXauth = async (xauth: string, env: Readonly<Record<string, string>>, lines: string): Promise<boolean> => {
  const child = Bun.spawn([xauth, "-q", "-"], {
    env: { ...env },
    stdin: new TextEncoder().encode(lines),
    stdout: "ignore",
    stderr: "ignore",
    timeout: XAUTH_TIMEOUT_MS,
  });
  return (await child.exited) === 0;
};
