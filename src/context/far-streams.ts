// Streams to agents whose tunnels end at another node: what chats, their hooks and pull requests ask of a workspace of another part. The other
// node dials and keeps the stream; its bytes go over the link as calls, one piece each way at a time (rule CP-24).
import type { Clock } from "#base/clock.ts";
import { NotBegun } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import type { Parts } from "#base/parts.ts";
import type { PartIndex } from "#db/part-index.ts";
import type { NodeLinks } from "#src/cluster/node-link.ts";
import type { AgentDialer, DialOptions } from "#src/wire/agent-dialer.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { asWireError, WireError, type WireFailure } from "#src/wire/wire-error.ts";
import { FarStream } from "./far-stream.ts";

/** A reader waits so long for bytes, and asks again. */
const READ_MS = 10_000;
/** A stream of which nobody has asked anything for so long is of a node that is gone. */
const IDLE_MS = 60_000;
/** Streams of other nodes. */
const MOST_STREAMS = 512;

export const SERVICE = "agent_stream";

type Dial = { readonly agent_id: string; readonly port: number; readonly tls: boolean };
export type Asked =
  | ({ readonly type: "dial" } & Dial)
  | { readonly type: "read" | "end" | "reset" | "alive"; readonly id: string }
  | { readonly type: "write"; readonly id: string; readonly bytes: string };
/** `bytes` in base64; `over`: the agent has ended its side; nothing of both: ask again. */
export type Said = {
  readonly id?: string;
  readonly bytes?: string;
  readonly over?: true;
  readonly failed?: { readonly failure: WireFailure; readonly message: string };
};

type Needs = {
  readonly clock: Clock;
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "call" | "serve">;
};

/** Dials agents of other nodes there, and those of this one here. */
export const farDialer = ({ clock, parts, index, links }: Needs, here: AgentDialer): AgentDialer => ({
  isDaemon: (agent_id) => here.isDaemon(agent_id),
  async dial(agent_id, port, signal, options: DialOptions = {}): Promise<Duplex> {
    const part = await index.of("agent", agent_id);
    if (part === undefined || parts.has(part)) return here.dial(agent_id, port, signal, options);
    const node = parts.nodeOf(part);
    if (!node) throw new WireError("refused", "No node has this workspace now.");
    const ask = async (asked: Asked): Promise<Said> => {
      const said = (await links.call(node, SERVICE, asked)) as Said;
      if (said.failed) throw new WireError(said.failed.failure, said.failed.message);
      return said;
    };
    const { id = "" } = await ask({ type: "dial", agent_id, port, tls: options.tls ?? false });
    const stream = new FarStream(clock, id, ask);
    if (!signal?.aborted) return stream;
    stream.reset("The caller has gone.");
    throw new WireError("closed", "The caller has gone.");
  },
});

type Kept = { readonly stream: Duplex; reading: Promise<Said> | undefined; asked_at: number; hasEnded: boolean };

/** Dials for other nodes, and keeps what they have open. */
export const answerFarDials = ({ clock, parts, index, links }: Needs, here: AgentDialer): void => {
  const kept = new Map<string, Kept>();
  const dial = async ({ agent_id, port, tls }: Dial): Promise<Said> => {
    const part = await index.of("agent", agent_id);
    if (part === undefined || !parts.has(part)) throw new NotBegun("The node does not have this workspace.");
    if (kept.size >= MOST_STREAMS) throw new WireError("refused", "Too many streams of other nodes.");
    const stream = await here.dial(agent_id, port, undefined, { tls });
    const id = uuid();
    kept.set(id, { stream, reading: undefined, asked_at: clock.monotonic(), hasEnded: false });
    return { id };
  };
  /** One piece, or nothing after a while: what comes then is for whoever asks next. */
  const read = async (one: Kept): Promise<Said> => {
    one.reading ??= one.stream
      .read()
      .then((chunk): Said => (chunk ? { bytes: Buffer.from(chunk).toString("base64") } : { over: true }));
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = clock.after(READ_MS, () => resolve(undefined));
    one.reading.catch(() => {});
    const said = await Promise.race([one.reading, late]).finally(() => timer.cancel());
    if (said && !said.over) one.reading = undefined;
    return said ?? {};
  };
  const answer = async (asked: Asked): Promise<Said> => {
    if (asked.type === "dial") return dial(asked);
    const one = kept.get(asked.id);
    if (!one) throw new WireError("closed", "The stream is over.");
    one.asked_at = clock.monotonic();
    if (asked.type === "write") await one.stream.write(Buffer.from(asked.bytes, "base64"));
    if (asked.type === "end") {
      await one.stream.end();
      one.hasEnded = true;
    }
    if (asked.type === "reset") {
      one.stream.reset("The caller has gone.");
      kept.delete(asked.id);
    }
    if (asked.type !== "read") return {};
    const said = await read(one);
    if (said.over && one.hasEnded) kept.delete(asked.id);
    return said;
  };
  links.serve(SERVICE, (asked) =>
    answer(asked as Asked).catch((error: unknown): Said => {
      if (!(error instanceof WireError)) throw error;
      const { failure, message } = asWireError(error);
      return { failed: { failure, message } };
    }),
  );
  clock.every(IDLE_MS / 2, () => {
    const before = clock.monotonic() - IDLE_MS;
    for (const [id, { stream, asked_at }] of kept) {
      if (asked_at >= before) continue;
      stream.reset("The other node has gone.");
      kept.delete(id);
    }
  });
};
