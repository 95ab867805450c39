// Follows a chat's stream until its turn has ended, or until interrupted. A broken connection is resumed at the same position, so that
// nothing is shown twice (rules CV-12, CV-13).
import { pause } from "#base/retry.ts";
import { escapeHidden } from "#base/visible-text.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatEvent } from "#schema/chats/chat-event.ts";
import type { ChatStatus } from "#schema/chats/chat-status.ts";
import { ApiError } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { getStreams } from "../../streams.ts";
import { toPlainLine } from "../../text.ts";
import { EXIT, type VerbInput } from "../../verb.ts";
import { FINAL_CODES, openSocket, type Remote } from "../remote.ts";
import { PermissionDesk, type PermissionPolicy } from "./approve-calls.ts";
import { ChatPrinter } from "./printer.ts";
import { SubRequests } from "./sub-requests.ts";

export type FollowOptions = {
  chat_id: string;
  /** ID of the newest message that is already known. */
  after: number;
  /** Stops at the end of the turn. */
  untilIdle: boolean;
  json: boolean;
  showsUsers: boolean;
  /** How calls that wait for approval are answered. */
  permissions: PermissionPolicy;
};

/** How long to retry while the server is unreachable. */
const RETRY_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 500;

/** Prints the chat's events. Returns 0 if the turn succeeded. Throws VerbFailure with the chat's error. */
export const follow = async (input: VerbInput, { client }: Remote, options: FollowOptions): Promise<number> => {
  const path = `/api/v2/chats/${options.chat_id}` as const;
  const sink = makeSink(input, options);
  const { chat_id, json, permissions: policy } = options;
  const desk = new PermissionDesk(input, { client, policy, json, note: (text) => sink.note(text) });
  using subRequests = new SubRequests({
    client,
    clock: input.clock,
    chat_id,
    onEvent: (event, title) => desk.handleEvent(event, title),
  });
  void subRequests.follow();
  const position = new StreamPosition(options.after);
  let lostAt: number | undefined;
  for (let isFirst = true; ; isFirst = false) {
    const socket = await openSocket(client, `${path}/stream?after_id=${position.after}`).catch((error) => {
      if (isFirst || (error instanceof ApiError && error.status < 500)) throw error;
    });
    if (socket) {
      lostAt = undefined;
      using _open = socket;
      for await (const frame of socket) {
        for (const event of JSON.parse(String(frame)) as ChatEvent[]) {
          if (!position.accept(event)) continue;
          sink.show(event);
          desk.handleEvent(event);
        }
        await sink.written();
        if (!options.untilIdle || !position.isIdle) continue;
        await desk.close();
        await sink.end();
        return toExitCode(await client.get(path));
      }
      const { code, reason } = await socket.closed;
      if (FINAL_CODES.includes(code))
        throw new VerbFailure(`the server ended the stream: ${toPlainLine(reason) || code}`);
    }
    lostAt ??= input.clock.monotonic();
    if (input.clock.monotonic() - lostAt > RETRY_TIMEOUT_MS)
      throw new VerbFailure("the server did not respond for too long");
    await pause(input.clock, RETRY_INTERVAL_MS);
  }
};

/** The position in the stream, so that events are not shown again after a reconnect. */
class StreamPosition {
  after: number;
  #status: ChatStatus | undefined;
  /** The turn waits for client-side tools, which this command does not provide. */
  #waitsForResults = false;
  #queuedCount = 0;
  #step = "";
  #seq = 0;

  constructor(after: number) {
    this.after = after;
  }

  /** Records the event. Returns false if it was shown before. */
  accept(event: ChatEvent): boolean {
    if (event.type === "status") this.#status = event.status.status as ChatStatus;
    if (event.type === "status") this.#waitsForResults = false;
    if (event.type === "action_required") this.#waitsForResults = event.action_required.kind === undefined;
    if (event.type === "queue_update") this.#queuedCount = event.queued_messages.length;
    // An edited history is printed from its beginning.
    if (event.type === "history_reset") this.after = 0;
    if (event.type === "message") {
      if (event.message.id <= this.after) return false;
      this.after = event.message.id;
    }
    if (event.type !== "message_part") return true;
    const { history_version, generation_attempt, seq } = event.message_part;
    const step = `${history_version}.${generation_attempt}`;
    if (step === this.#step && seq <= this.#seq) return false;
    this.#step = step;
    this.#seq = seq;
    return true;
  }

  /** True if no turn is running and no message is queued. */
  get isIdle(): boolean {
    if (this.#status === "waiting") return this.#queuedCount === 0;
    return this.#status === "error" || (this.#status === "requires_action" && this.#waitsForResults);
  }
}

const toExitCode = ({ status, last_error }: Chat): number => {
  if (status === "requires_action") throw new VerbFailure("the chat is waiting for tool results from another client");
  if (status !== "error") return EXIT.ok;
  throw new VerbFailure(
    [last_error?.message ?? "the turn failed", last_error?.detail]
      .filter(Boolean)
      .map((one) => toPlainLine(one ?? ""))
      .join(" "),
  );
};

type Sink = { show(event: ChatEvent): void; note(text: string): void; written(): Promise<void>; end(): Promise<void> };

const makeSink = (input: VerbInput, { json, showsUsers }: FollowOptions): Sink => {
  const streams = getStreams(input);
  let writing = Promise.resolve();
  const writeAnswer = (text: string): void => {
    writing = writing.then(() => streams.write(text));
  };
  const written = (): Promise<void> => writing;
  const printLine = (text: string): void => input.printError(`${text}\n`);
  if (json)
    return {
      show: (event) => writeAnswer(`${escapeHidden(JSON.stringify(event))}\n`),
      note: printLine,
      written,
      end: written,
    };
  const isColored = input.isTerminal && !input.env.NO_COLOR && input.env.TERM !== "dumb";
  const printer = new ChatPrinter({ writeAnswer, writeNote: input.printError, showsUsers, isColored });
  return {
    show: (event) => printer.show(event),
    note: (text) => printer.printNote(text),
    written,
    async end() {
      printer.endLine();
      await writing;
    },
  };
};
