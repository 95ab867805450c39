// The part of the fake Docker Engine for hijacked connections. Terminal programs run on this machine, which stands for the container. A
// socket in front of the engine forwards all other connections unchanged. A program that is missing on this machine is missing in the
// container, too. The agent's program, which a compiled daemon copies into containers, is accepted but does not run.
import { connect, createServer, type Server, type Socket } from "node:net";

export type FakeExec = {
  id: string;
  container: string;
  body: { Cmd: string[]; Env?: string[]; User?: string; Tty?: boolean };
  child?: Bun.Subprocess;
  /** Null while it is running. */
  exit_code: number | null;
};

/** The engine's exit code for a missing program. */
const EXIT_NOT_FOUND = 127;

/** Runs a program without a terminal until it exits. */
export const runDetached = async (exec: FakeExec): Promise<void> => {
  const { body } = exec;
  exec.exit_code = hasProgram(exec)
    ? await Bun.spawn(body.Cmd, { env: toEnvironment(body), stdio: ["ignore", "ignore", "ignore"] }).exited
    : EXIT_NOT_FOUND;
};

const hasProgram = ({ body }: FakeExec): boolean => Bun.which(body.Cmd[0] ?? "") !== null;

const toEnvironment = ({ Env = [] }: FakeExec["body"]): Record<string, string> => ({
  PATH: process.env.PATH ?? "",
  HOME: "/",
  ...Object.fromEntries(
    Env.map((variable) => [variable.slice(0, variable.indexOf("=")), variable.slice(variable.indexOf("=") + 1)]),
  ),
});

/** Listens on `outer`; serves connections that will be hijacked, and forwards all others to `inner`. */
export const listenInFront = (outer: string, inner: string, execs: ReadonlyMap<string, FakeExec>): Server => {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on("error", () => {});
    client.once("data", (firstChunk: Buffer) => {
      const head = firstChunk.toString("latin1");
      const [, id = ""] = /^POST \/v[\d.]+\/exec\/([^/ ]+)\/start HTTP/.exec(head) ?? [];
      const exec = /^upgrade: tcp\r$/im.test(head) ? execs.get(id) : undefined;
      if (exec) {
        attach(client, exec);
        return;
      }
      const engine = connect(inner);
      engine.on("error", () => client.destroy());
      client.on("close", () => engine.destroy());
      engine.on("close", () => client.destroy());
      engine.write(firstChunk);
      client.pipe(engine);
      engine.pipe(client);
    });
  });
  server.listen(outer);
  return server;
};

const attach = (client: Socket, exec: FakeExec): void => {
  client.write(
    "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
  );
  if (!hasProgram(exec)) {
    exec.exit_code = EXIT_NOT_FOUND;
    client.end(
      toErrorFrame(`OCI runtime exec failed: exec: "${exec.body.Cmd[0]}": stat: no such file or directory\r\n`),
    );
    return;
  }
  if (!exec.body.Tty) {
    attachPiped(client, exec);
    return;
  }
  const child = Bun.spawn(exec.body.Cmd, {
    env: toEnvironment(exec.body),
    detached: true,
    terminal: { cols: 80, rows: 80, data: (_, chunk) => void client.write(Buffer.from(chunk)) },
  });
  exec.child = child;
  client.on("data", (bytes: Buffer) => void child.terminal?.write(bytes));
  client.on("close", () => child.terminal?.close());
  void child.exited.then(async (code) => {
    exec.exit_code = code;
    // Reads the rest of the output before the connection ends.
    await new Promise((resolve) => setImmediate(resolve));
    client.end();
  });
};

/** Runs the program without a terminal: forwards its input, and sends both outputs in frames. */
const attachPiped = (client: Socket, exec: FakeExec): void => {
  const child = Bun.spawn(exec.body.Cmd, {
    env: toEnvironment(exec.body),
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  exec.child = child;
  client.on("data", (bytes: Buffer) => {
    child.stdin.write(Uint8Array.from(bytes));
    void child.stdin.flush();
  });
  client.on("end", () => void child.stdin.end());
  const copy = async (stream: 1 | 2, from: ReadableStream<Uint8Array>): Promise<void> => {
    for await (const chunk of from) client.write(frame(stream, Buffer.from(chunk)));
  };
  void Promise.all([copy(1, child.stdout), copy(2, child.stderr), child.exited]).then(([, , code]) => {
    exec.exit_code = code;
    client.end();
  });
};

/** Returns a frame of an output without a terminal: the stream's number, the length and the bytes. */
const frame = (stream: 1 | 2, bytes: Buffer): Buffer => {
  const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(bytes.byteLength, 4);
  return Buffer.concat([head, bytes]);
};

const toErrorFrame = (message: string): Buffer => frame(2, Buffer.from(message));
