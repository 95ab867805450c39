// Limits the answers that a library reads and parses itself. The library accepts no other parser, so its `fetch` fails before the library
// can parse an expensive answer. A body is checked as a whole, an event stream event by event.

import type { Clock } from "../clock.ts";
import { restAfter } from "../retry.ts";
import { LARGE_ANSWER_BYTES, type ReserveMemory } from "../system/answer-memory.ts";
import { findCostProblem, type JsonLimits } from "./cost.ts";
import { EventCost } from "./event-cost.ts";
import { JsonProblem, readBytes } from "./read.ts";

/** `maxBytes`: of a body, or of one event of a stream. `fail` creates an error from the end of the sentence "The answer ...". */
export type AnswerLimits = JsonLimits & {
  readonly maxBytes: number;
  readonly fail: (problem: string) => Error;
  /** Waits for the memory of a large body or event. */
  readonly reserve?: ReserveMemory | undefined;
};

export const isEventStream = ({ headers }: Response): boolean =>
  /^\s*text\/event-stream\b/i.test(headers.get("content-type") ?? "");

/** Returns the answer with a body that fails if it is expensive to parse. */
export const counted = (clock: Clock, response: Response, limits: AnswerLimits): Response =>
  response.body && isEventStream(response)
    ? replaceBody(response, response.body.pipeThrough(checkEvents(clock, limits)))
    : countedWhole(response, limits);

/** Like `counted`, for an answer that is not an event stream. */
export const countedWhole = (response: Response, { maxBytes, fail, reserve, ...limits }: AnswerLimits): Response => {
  if (!response.body) return response;
  const body = reserve ? response.body.pipeThrough(waitForMemory(reserve, fail)) : response.body;
  const read = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const bytes = await readBytes({ body }, maxBytes).catch((error: unknown) => {
      throw error instanceof JsonProblem ? fail(error.message) : error;
    });
    const problem = findCostProblem(bytes, limits);
    if (problem !== undefined) throw fail(problem);
    if (bytes.byteLength > 0) controller.enqueue(bytes);
    controller.close();
  };
  return replaceBody(
    response,
    new ReadableStream({ pull: read, cancel: (reason) => body.cancel(reason) }, { highWaterMark: 0 }),
  );
};

const replaceBody = ({ status, statusText, headers }: Response, body: ReadableStream<Uint8Array>): Response =>
  new Response(body, { status, statusText, headers });

const TOO_SLOW = "arrives too slowly.";

const waitForMemory = (reserve: ReserveMemory, fail: AnswerLimits["fail"]): TransformStream<Uint8Array, Uint8Array> => {
  let size = 0;
  let markRead: (() => void) | undefined;
  return new TransformStream({
    async transform(bytes, controller) {
      size += bytes.byteLength;
      if (size > LARGE_ANSWER_BYTES) markRead ??= await reserve(() => controller.error(fail(TOO_SLOW)));
      controller.enqueue(bytes);
    },
    flush: () => markRead?.(),
  });
};

const checkEvents = (clock: Clock, limits: AnswerLimits): TransformStream<Uint8Array, Uint8Array> => {
  const cost = new EventCost(limits);
  let markRead: (() => void) | undefined;
  return new TransformStream({
    async transform(bytes, controller) {
      const startedAt = clock.monotonic();
      const problem = cost.count(bytes);
      if (problem !== undefined) throw limits.fail(problem);
      if (cost.largest > LARGE_ANSWER_BYTES)
        markRead ??= await limits.reserve?.(() => controller.error(limits.fail(TOO_SLOW)));
      controller.enqueue(bytes);
      if (cost.bytes <= LARGE_ANSWER_BYTES) {
        markRead?.();
        markRead = undefined;
      }
      // One piece may contain hundreds of events, so other work runs in between.
      await restAfter(clock, startedAt);
    },
  });
};
