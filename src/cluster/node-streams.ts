// Opens streams between two nodes, on either side.
import type { Clock } from "#base/clock.ts";
import { NotStartedError } from "#base/errors.ts";
import type { OtherNode } from "#base/shards.ts";
import type { Duplex } from "#src/wire/index.ts";
import { formatCall, runCall } from "./node-calls.ts";
import { formatWireError, parseWireError } from "./node-errors.ts";
import { KIND } from "./node-frames.ts";
import { type LinkOptions, openLink } from "./node-open.ts";
import { NodeStream } from "./node-stream.ts";
import type { WireSocket } from "./node-wire.ts";

/**
 * Accepts a stream that another node opens. Once the promise resolves, the stream is open and the service must end it. Throws errors that
 * the opener should get.
 */
export type StreamService = (args: unknown, stream: Duplex, from: string) => Promise<void>;

/** Opens a stream to a service of another node. Rejects as described at `NodeLinks.open`. */
export const openStream = async (
  options: LinkOptions,
  node: OtherNode,
  service: string,
  args: unknown,
): Promise<Duplex> => {
  const text = formatCall(service, args);
  const { promise: answered, resolve, reject } = Promise.withResolvers<void>();
  const opened: { stream?: NodeStream } = {};
  const isOpen = await openLink(options, node.address, (socket) => {
    opened.stream = new NodeStream(options.clock, socket, ({ kind, body }) => {
      if (kind === KIND.answer) resolve();
      if (kind === KIND.failure) reject(parseWireError(body.toString(), node.id));
    });
    return opened.stream;
  });
  const { stream } = opened;
  if (!isOpen || !stream) throw new NotStartedError(`Node ${node.id} cannot be reached.`);
  void stream.closed.then((failure) => (failure ? reject(failure) : resolve()));
  try {
    await stream.sendControl(KIND.open, text);
    await answered;
    return stream;
  } catch (error) {
    stream.reset();
    throw error;
  }
};

/** Answers a request for a stream. */
export const answerStream = (
  clock: Clock,
  socket: WireSocket,
  run: (service: string, args: unknown, stream: Duplex) => Promise<void>,
): NodeStream => {
  const answer = async (requested: string): Promise<void> => {
    try {
      await runCall(requested, (service, args) => run(service, args, stream));
      await stream.sendControl(KIND.answer, "");
    } catch (error) {
      await stream.sendControl(KIND.failure, formatWireError(error, "a stream")).catch(() => {});
      await stream.end();
    }
  };
  const stream: NodeStream = new NodeStream(clock, socket, ({ kind, body }) => {
    if (kind === KIND.open) void answer(body.toString());
  });
  return stream;
};
