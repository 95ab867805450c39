// Presents lists with large items, such as workspaces with all resources of their builds, in steps. A list of more than a few MiB is sent
// while it is presented, so that no list fills the memory, however many items it has (rule HT-52).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { PageSlots } from "./page-slots.ts";

/** Maximum items presented in one step; fewer if the items are large, and in the first step. */
const MAX_STEP_ITEMS = 50;
const FIRST_STEP_ITEMS = 10;
/** Approximate characters presented in one step, unless a single item is larger. */
const STEP_CHARS = 2 * 1024 * 1024;
/** A larger list needs a slot until it has been sent (rule HT-51). */
export const LARGE_CHARS = 1024 * 1024;
/** A list is sent while it is presented once it has this many characters. */
const STREAM_CHARS = 4 * 1024 * 1024;
/** A client that takes longer to read is disconnected, because its access was checked only at the start. */
const MAX_SEND_MS = 60_000;

export const JSON_HEADERS = { "content-type": "application/json; charset=utf-8" };

export type LargeList = {
  /** The text before the items: `[` or `{"workspaces":[`. */
  readonly head: string;
  readonly ids: readonly string[];
  /** The text after the items. */
  readonly tail: string;
  /** Returns the cached JSON of an item, if any. */
  readonly find?: (id: string) => string | undefined;
  /** Returns the JSON of items by ID. Items that were deleted in the meantime are missing. */
  readonly present: (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>;
};

type ListOptions = {
  readonly pages: PageSlots;
  readonly clock: Clock;
  readonly request: Request;
  readonly holder: string;
};

/** Returns a list as JSON, or as a stream of its parts if it is large. A large list takes a slot of `holder`. */
export const presentList = async (
  list: LargeList,
  options: ListOptions,
): Promise<string | ReadableStream<Uint8Array>> => {
  const { pages, request, holder } = options;
  const parts = presentInSteps(list);
  let text = list.head;
  let hasSlot = false;
  for (;;) {
    const { value, done } = await parts.next();
    if (done) return text + list.tail;
    text += value;
    if (!hasSlot && text.length >= LARGE_CHARS) {
      hasSlot = true;
      await pages.acquireUntilAnswered(request, holder);
    }
    if (text.length >= STREAM_CHARS) return streamRest(text, parts, list.tail, options);
  }
};

/** Responds to a request with a list, presented by `presentList`. */
export const answerList = async (
  { clock, requests: { pages } }: { readonly clock: Clock; readonly requests: { readonly pages: PageSlots } },
  request: Request,
  holder: string,
  list: LargeList,
): Promise<Response> =>
  new Response(await presentList(list, { pages, clock, request, holder }), { headers: JSON_HEADERS });

/** Yields the items in order as JSON text. Each text but the first begins with a comma. */
async function* presentInSteps({ ids, find, present }: LargeList): AsyncGenerator<string, undefined> {
  let stepItems = FIRST_STEP_ITEMS;
  let presentedCount = 0;
  let presentedChars = 0;
  let isFirst = true;
  for (let index = 0; index < ids.length; ) {
    const cached = new Map<string, string>();
    const missing: string[] = [];
    let cachedChars = 0;
    const stepStart = index;
    for (; index < ids.length && missing.length < stepItems && cachedChars < STEP_CHARS; index += 1) {
      const id = ids[index] as string;
      const json = find?.(id);
      if (json === undefined) missing.push(id);
      else {
        cached.set(id, json);
        cachedChars += json.length;
      }
    }
    const texts = missing.length > 0 ? await present(missing) : cached;
    const items = ids.slice(stepStart, index).flatMap((id) => cached.get(id) ?? texts.get(id) ?? []);
    presentedCount += missing.length;
    for (const id of missing) presentedChars += texts.get(id)?.length ?? 0;
    if (presentedCount > 0)
      stepItems = Math.min(
        MAX_STEP_ITEMS,
        Math.max(1, Math.floor(STEP_CHARS / Math.max(presentedChars / presentedCount, 1))),
      );
    if (items.length === 0) continue;
    yield (isFirst ? "" : ",") + items.join(",");
    isFirst = false;
  }
}

const encoder = new TextEncoder();

/** Sends the text, and then each part when the client has read the previous one. */
const streamRest = (
  text: string,
  parts: AsyncGenerator<string, undefined>,
  tail: string,
  { pages, clock, request }: ListOptions,
): ReadableStream<Uint8Array> => {
  const freeSlot = pages.takeOver(request);
  let next: string | undefined = text;
  let sentChars = 0;
  let isOver = false;
  let hasClientLeft = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    timer.cancel();
    freeSlot(sentChars);
    void parts.return(undefined);
  };
  const timer = clock.after(MAX_SEND_MS, end);
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          if (isOver) throw new Error("the client took too long to read the list");
          const part = next ?? (await parts.next()).value;
          if (hasClientLeft) return;
          next = undefined;
          sentChars += part?.length ?? tail.length;
          controller.enqueue(encoder.encode(part ?? tail));
          if (part !== undefined) return;
          end();
          controller.close();
        } catch (error) {
          end();
          log("http").warning("a list was cut off: {error}", { error });
          controller.error(error);
        }
      },
      cancel() {
        hasClientLeft = true;
        end();
      },
    },
    { highWaterMark: 0 },
  );
};
