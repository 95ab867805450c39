// Lists whose items can be large, such as workspaces with all resources of their builds: presented in steps, and sent step by step once they
// are larger than a few MiB, so that no list fills the memory, however many items its caller sees (rule HT-52).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { PageSlots } from "./page-slots.ts";

/** Items presented at a time, fewer if they are large, and at first. */
const STEP = 50;
const FIRST_STEP = 10;
/** About the characters of the items presented at a time, if one item isn't larger. */
const STEP_CHARS = 2 * 1024 * 1024;
/** A larger list needs a slot until it has been sent (rule HT-51). */
export const LARGE_CHARS = 1024 * 1024;
/** A larger list is sent while it is presented. */
const WHOLE_CHARS = 4 * 1024 * 1024;
/** A client that reads longer is cut off, because its access was checked at the start. */
const MAX_SEND_MS = 60_000;

export const JSON_HEADERS = { "content-type": "application/json; charset=utf-8" };

export type LargeList = {
  /** What comes before the items: `[` or `{"workspaces":[`. */
  readonly head: string;
  readonly ids: readonly string[];
  /** What comes after the items. */
  readonly tail: string;
  /** Returns the JSON of an item that need not be presented. */
  readonly find?: (id: string) => string | undefined;
  /** Returns the JSON of items by ID. Items that were deleted in the meantime are missing. */
  readonly present: (ids: readonly string[]) => Promise<ReadonlyMap<string, string>>;
};

type Deps = { readonly pages: PageSlots; readonly clock: Clock; readonly request: Request; readonly holder: string };

/** Returns a list as JSON, or as a stream of its parts if it is large. `holder`: the person whose slot it takes. */
export const presentList = async (list: LargeList, deps: Deps): Promise<string | ReadableStream<Uint8Array>> => {
  const { pages, request, holder } = deps;
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
    if (text.length >= WHOLE_CHARS) return streamRest(text, parts, list.tail, deps);
  }
};

/** Answers a request with a list, as `presentList` presents it for this person. */
export const answerList = async (
  { clock, requests: { pages } }: { readonly clock: Clock; readonly requests: { readonly pages: PageSlots } },
  request: Request,
  holder: string,
  list: LargeList,
): Promise<Response> =>
  new Response(await presentList(list, { pages, clock, request, holder }), { headers: JSON_HEADERS });

/** Yields the items in order, as JSON with commas in front of all but the first. */
async function* presentInSteps({ ids, find, present }: LargeList): AsyncGenerator<string, undefined> {
  let step = FIRST_STEP;
  let presented = 0;
  let chars = 0;
  let isFirst = true;
  for (let at = 0; at < ids.length; ) {
    const known = new Map<string, string>();
    const missing: string[] = [];
    let knownChars = 0;
    const from = at;
    for (; at < ids.length && missing.length < step && knownChars < STEP_CHARS; at += 1) {
      const id = ids[at] as string;
      const json = find?.(id);
      if (json === undefined) missing.push(id);
      else {
        known.set(id, json);
        knownChars += json.length;
      }
    }
    const texts = missing.length > 0 ? await present(missing) : known;
    const items = ids.slice(from, at).flatMap((id) => known.get(id) ?? texts.get(id) ?? []);
    presented += missing.length;
    for (const id of missing) chars += texts.get(id)?.length ?? 0;
    if (presented > 0) step = Math.min(STEP, Math.max(1, Math.floor(STEP_CHARS / Math.max(chars / presented, 1))));
    if (items.length === 0) continue;
    yield (isFirst ? "" : ",") + items.join(",");
    isFirst = false;
  }
}

const encoder = new TextEncoder();

/** Sends the text, and then each part once the client has read the one before. */
const streamRest = (
  text: string,
  parts: AsyncGenerator<string, undefined>,
  tail: string,
  { pages, clock, request }: Deps,
): ReadableStream<Uint8Array> => {
  const free = pages.takeOver(request);
  let next: string | undefined = text;
  let sent = 0;
  let isOver = false;
  let hasLeft = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    timer.cancel();
    free(sent);
    void parts.return(undefined);
  };
  const timer = clock.after(MAX_SEND_MS, end);
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          if (isOver) throw new Error("the client took too long to read the list");
          const part = next ?? (await parts.next()).value;
          if (hasLeft) return;
          next = undefined;
          sent += part?.length ?? tail.length;
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
        hasLeft = true;
        end();
      },
    },
    { highWaterMark: 0 },
  );
};
