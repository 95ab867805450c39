// An interactive terminal: forwards keys, window size and output. `~.` at the beginning of a line disconnects and leaves it running. After
// a disconnect the same terminal is attached again and its screen restored (rules CV-8, CV-9).
import { pause } from "#base/retry.ts";
import { ApiError, type ClientSocket } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { getStreams } from "../../streams.ts";
import { EXIT, type VerbInput } from "../../verb.ts";
import { openSocket, type Remote } from "../remote.ts";
import { createMarks, MarkReader, toTerminalCommand } from "./shell-command.ts";
import { EscapeKeys } from "./shell-keys.ts";
import { describeClose, toTerminalPath } from "./shell-socket.ts";
import type { TerminalTarget } from "./shell-target.ts";

/** The server keeps a detached terminal for five minutes. */
const REATTACH_TIMEOUT_MS = 5 * 60_000;
const RETRY_INTERVAL_MS = 1_000;
const NORMAL_CLOSE = 1000;
/** Resets the terminal before its screen is redrawn. */
const RESET_SEQUENCE = "\u001bc";

type End = { exit: number } | { detached: true } | { closed: { code: number; reason: string } };

/** Returns the exit code, or 0 if the user has left the terminal running. */
export const runTerminal = async (input: VerbInput, remote: Remote, target: TerminalTarget): Promise<number> => {
  const streams = getStreams(input);
  const { printError, clock } = input;
  const session = new TerminalSession(input, target);
  let end: End;
  {
    using raw = streams.raw();
    using _resize = streams.onResize(() => session.resize());
    remote.onInterrupt(() => raw[Symbol.dispose]());
    void session.forwardKeys();
    end = await session.attach(await openSocket(remote.client, session.path));
    let lostAt = clock.monotonic();
    while ("closed" in end && canReconnect(end.closed) && clock.monotonic() - lostAt < REATTACH_TIMEOUT_MS) {
      printError("\r\nConnection lost. Reconnecting… Type ~. to quit.\r\n");
      const socket = await session.reattach(remote, lostAt + REATTACH_TIMEOUT_MS);
      if (!socket) break;
      await streams.write(RESET_SEQUENCE);
      end = await session.attach(socket);
      lostAt = clock.monotonic();
    }
  }
  session.close();
  if ("exit" in end) return end.exit;
  if ("detached" in end) {
    const { workspace, id } = target;
    printError(`\nLeft running for five minutes: \`slipway workspaces shell ${workspace.name} --reconnect ${id}\`\n`);
    return EXIT.ok;
  }
  if (end.closed.code === NORMAL_CLOSE) return EXIT.ok;
  throw new VerbFailure(describeClose(end.closed, target));
};

/** 1008 means that access was revoked. Other close codes may be temporary. */
const canReconnect = ({ code }: { code: number }): boolean => code !== NORMAL_CLOSE && code !== 1008 && code !== 1009;

/** The local side: one connection at a time, while keys are read continuously. */
class TerminalSession {
  readonly #input: VerbInput;
  readonly #target: TerminalTarget;
  readonly #keys = new EscapeKeys();
  readonly #disconnected = Promise.withResolvers<End>();
  #typing: AsyncIterator<Uint8Array> | undefined;
  #socket: ClientSocket | undefined;
  #isOver = false;

  constructor(input: VerbInput, target: TerminalTarget) {
    this.#input = input;
    this.#target = target;
  }

  get path(): string {
    const { query, id, command, container } = this.#target;
    const { height, width } = this.#getSize();
    // In a container, the daemon determines the login shell.
    const isLoginShell = container !== undefined && command === undefined;
    const shellCommand = isLoginShell ? "" : toTerminalCommand(command, createMarks(id));
    return toTerminalPath(this.#target, {
      ...query,
      command: shellCommand,
      height: String(height),
      width: String(width),
    });
  }

  /** Forwards keys until the user disconnects or the terminal no longer exists. */
  async forwardKeys(): Promise<void> {
    const decoder = new TextDecoder();
    this.#typing = getStreams(this.#input).input()[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await this.#typing.next();
      if (done || this.#isOver) break;
      const { data, disconnects } = this.#keys.press(decoder.decode(value, { stream: true }));
      if (data !== "") this.#socket?.send(JSON.stringify({ data }));
      if (disconnects) break;
    }
    this.#disconnected.resolve({ detached: true });
  }

  resize(): void {
    this.#socket?.send(JSON.stringify(this.#getSize()));
  }

  /** Shows a terminal until it ends, its connection is lost, or the user disconnects. */
  async attach(socket: ClientSocket): Promise<End> {
    this.#socket = socket;
    // The window may have been resized while disconnected.
    this.resize();
    const end = await Promise.race([this.#show(socket), this.#disconnected.promise]);
    this.#socket = undefined;
    socket.close();
    return end;
  }

  /** Attaches to the same terminal again; undefined if the user disconnects or the deadline has passed. Throws permanent errors. */
  async reattach({ client }: Remote, until: number): Promise<ClientSocket | undefined> {
    const { clock } = this.#input;
    while (clock.monotonic() < until) {
      const detached = await Promise.race([pause(clock, RETRY_INTERVAL_MS), this.#disconnected.promise]);
      if (detached) return undefined;
      try {
        return await openSocket(client, this.path);
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) throw error;
      }
    }
    return undefined;
  }

  close(): void {
    this.#isOver = true;
    this.#typing?.return?.();
  }

  async #show(socket: ClientSocket): Promise<End> {
    const streams = getStreams(this.#input);
    const reader = new MarkReader(createMarks(this.#target.id));
    for await (const message of socket) {
      if (typeof message === "string") continue;
      const { output, exit } = reader.read(message);
      await streams.write(output);
      if (exit !== undefined) return { exit };
    }
    await streams.write(reader.takeHeld());
    return { closed: await socket.closed };
  }

  #getSize(): { height: number; width: number } {
    return getStreams(this.#input).size() ?? { height: 24, width: 80 };
  }
}
