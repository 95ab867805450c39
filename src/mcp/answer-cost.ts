// Rejects responses of MCP servers that would take long to parse: 16 MiB are allowed for images and documents, and could hold five million
// objects. Checks a response as a whole, and an event stream event by event.
import type { Clock } from "#base/clock.ts";
import { tooCostly } from "#base/json-cost.ts";
import { restAfter } from "#base/retry.ts";
import type { Fetch } from "./fetch.ts";

/** Wraps `fetch` so that responses with too many values fail. */
export const bounded =
  (clock: Clock, fetch: Fetch): Fetch =>
  async (url, init) => {
    const response = await fetch(url, init);
    const { body, status, headers } = response;
    if (!body) return response;
    const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
    return new Response(body.pipeThrough(isStream ? events(clock) : whole()), { status, headers });
  };

const check = (bytes: Uint8Array): void => {
  const problem = tooCostly(bytes);
  if (problem !== undefined) throw new Error(`The answer of the server ${problem}`);
};

const whole = (): TransformStream<Uint8Array, Uint8Array> => {
  const pieces: Uint8Array[] = [];
  return new TransformStream({
    transform(bytes) {
      pieces.push(bytes);
    },
    flush(controller) {
      const all = Buffer.concat(pieces);
      check(all);
      controller.enqueue(all);
    },
  });
};

const NEWLINE = 10;
const RETURN = 13;

/** An event ends with an empty line, as `\n\n` or `\n\r\n`. An incomplete event is buffered. */
const events = (clock: Clock): TransformStream<Uint8Array, Uint8Array> => {
  let open: Uint8Array[] = [];
  /** The last bytes of the previous piece. */
  let before: Uint8Array = new Uint8Array();
  return new TransformStream({
    async transform(bytes, controller) {
      const began = clock.monotonic();
      const byteAt = (at: number): number | undefined => (at < 0 ? before.at(at) : bytes[at]);
      let from = 0;
      for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) {
        const last = byteAt(at - 1);
        if (last !== NEWLINE && !(last === RETURN && byteAt(at - 2) === NEWLINE)) continue;
        const event = Buffer.concat([...open, bytes.subarray(from, at + 1)]);
        open = [];
        from = at + 1;
        check(event);
        controller.enqueue(event);
      }
      if (from < bytes.byteLength) open.push(bytes.subarray(from));
      before = Buffer.concat([before, bytes.subarray(-2)]).subarray(-2);
      // One piece may contain hundreds of events, so other work runs in between.
      await restAfter(clock, began);
    },
    flush(controller) {
      const rest = Buffer.concat(open);
      check(rest);
      if (rest.byteLength > 0) controller.enqueue(rest);
    },
  });
};
