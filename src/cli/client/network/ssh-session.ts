// A session of the built-in SSH client: interactive at a terminal (keys, window size), otherwise three pipes. The host key is not checked,
// because the tunnel has authenticated the other side (rule CN-2).
import { constants } from "node:os";
import type { Client, ClientChannel, ConnectConfig } from "ssh2";
import { usageError } from "#base/usage-error.ts";
import type { NetworkPeer } from "#src/tailnet/index.ts";
import { AGENT_PORT, toNodeStream } from "#src/wire/index.ts";
import { VerbFailure } from "../../failure.ts";
import { getStreams, type Streams } from "../../streams.ts";
import type { VerbInput } from "../../verb.ts";

export type SessionOptions = { command: string | undefined; env: readonly string[]; forwardsAgent: boolean };

/** OpenSSH's exit code for a session that ended without one. */
const NO_EXIT_CODE = 255;
/** Shells add this to the signal number for a program killed by a signal. */
const SIGNAL_EXIT_OFFSET = 128;
const KEEPALIVE_INTERVAL_MS = 15_000;

/** Loads only the package's client, because loading the whole package takes longer than a handshake. */
export const loadSshLibrary = () => import("ssh2/lib/client.js");

/** Runs the command or a shell, and returns its exit code. */
export const runSshSession = async (
  input: VerbInput,
  peer: NetworkPeer,
  agent_id: string,
  options: SessionOptions,
): Promise<number> => {
  const env = parseVariables(options.env);
  const agent = options.forwardsAgent ? input.env.SSH_AUTH_SOCK : undefined;
  if (options.forwardsAgent && !agent)
    throw new VerbFailure("there is no SSH agent to forward: SSH_AUTH_SOCK is not set");
  const streams = getStreams(input);
  const connection = await peer.dial(agent_id, AGENT_PORT.ssh, input.signal);
  const { default: SshClient } = await loadSshLibrary();
  const client = new SshClient();
  await connectClient(client, {
    sock: toNodeStream(connection) as never,
    username: "slipway",
    authHandler: ["none"],
    hostVerifier: () => true,
    keepaliveInterval: KEEPALIVE_INTERVAL_MS,
    keepaliveCountMax: 4,
    ...(agent ? { agent } : {}),
    algorithms: { compress: ["none"] },
  } as ConnectConfig);
  const hasTerminal = options.command === undefined && streams.inputIsTerminal && streams.outputIsTerminal;
  try {
    return hasTerminal
      ? await runInTerminal(client, streams, input, env, agent !== undefined)
      : await runPiped(client, streams, { ...options, env }, agent !== undefined);
  } finally {
    client.end();
  }
};

const parseVariables = (given: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    given.map((pair) => {
      const equals = pair.indexOf("=");
      if (equals < 1) throw usageError("--env", `expected NAME=VALUE, got ${JSON.stringify(pair)}`);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );

const connectClient = (client: Client, config: ConnectConfig): Promise<void> =>
  new Promise((resolve, reject) => {
    client.once("ready", resolve);
    client.on("error", (error) => reject(new VerbFailure(`the connection was lost: ${error.message}`)));
    client.once("close", () => reject(new VerbFailure("the connection was closed")));
    client.connect(config);
  });

/** A channel, its end, and its exit code. All three may arrive in one packet, so listeners must be attached immediately. */
type OpenChannel = { readonly channel: ClientChannel; readonly closed: Promise<void>; readonly code: Promise<number> };

const openChannel = (
  open: (done: (error: Error | undefined, channel: ClientChannel) => void) => unknown,
): Promise<OpenChannel> =>
  new Promise((resolve, reject) => {
    open((error, channel) => {
      if (error) {
        reject(new VerbFailure(`the workspace refused: ${error.message}`));
        return;
      }
      const closed = new Promise<void>((done) => channel.once("close", () => done()));
      const code = new Promise<number>((done) => {
        channel.on("exit", (exit: number | null, signal?: string) =>
          done(exit ?? (signal ? SIGNAL_EXIT_OFFSET + toSignalNumber(signal) : NO_EXIT_CODE)),
        );
        void closed.then(() => done(NO_EXIT_CODE));
      });
      resolve({ channel, closed, code });
    });
  });

const runInTerminal = async (
  client: Client,
  streams: Streams,
  { env: localEnv }: VerbInput,
  env: Record<string, string>,
  agentForward: boolean,
): Promise<number> => {
  const { height, width } = streams.size() ?? { height: 24, width: 80 };
  const terminal = { rows: height, cols: width, height: 0, width: 0, term: localEnv.TERM || "xterm-256color" };
  const session = await openChannel((done) => client.shell(terminal, { env, agentForward } as never, done));
  using _raw = streams.raw();
  using _resize = streams.onResize(() => {
    const size = streams.size();
    if (size) session.channel.setWindow(size.height, size.width, 0, 0);
  });
  return await pipeStreams(session, streams);
};

const runPiped = async (
  client: Client,
  streams: Streams,
  { command, env }: { command: string | undefined; env: Record<string, string> },
  agentForward: boolean,
): Promise<number> => {
  const options = { env, agentForward } as never;
  const session = await openChannel((done) =>
    command === undefined ? client.shell(false, options, done) : client.exec(command, options, done),
  );
  return await pipeStreams(session, streams);
};

const pipeStreams = async ({ channel, closed, code }: OpenChannel, streams: Streams): Promise<number> => {
  const feeding = (async () => {
    for await (const chunk of streams.input()) {
      if (channel.destroyed) return;
      if (!channel.write(chunk)) await Promise.race([closed, new Promise((resolve) => channel.once("drain", resolve))]);
    }
    channel.end();
  })();
  feeding.catch(() => channel.end());
  const errors = (async () => {
    // If standard error is closed, standard output continues.
    for await (const chunk of channel.stderr as AsyncIterable<Buffer>)
      await streams.writeError(new Uint8Array(chunk)).catch(() => {});
  })();
  for await (const chunk of channel as AsyncIterable<Buffer>) await streams.write(new Uint8Array(chunk));
  await errors;
  await closed;
  return await code;
};

/** Uses the signal numbers of this system, like its shells. */
const toSignalNumber = (signal: string): number =>
  constants.signals[`SIG${signal.replace("SIG", "")}` as NodeJS.Signals] ?? 0;
