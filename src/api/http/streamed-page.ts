// Sends a page with its initial data in three chunks: the head immediately, so that the browser can fetch what it references; then the data
// that was read in the meantime; then the rest. The parts that are the same for everyone are compressed once, because deflate streams can be
// split and joined.

import { constants, crc32, deflateRawSync } from "node:zlib";
import { nextTurn } from "#base/retry.ts";
import type { ServedFile } from "#src/web/files.ts";
import { chooseEncoding } from "./encoding.ts";

/** Marks where the initial data is inserted. */
const PLACEHOLDER = "<!-- first -->";
/** A data block that is not executed, so the policy need not include its hash. */
const toDataBlock = (json: string): string => `<script type="application/json" id="first">${json}</script>`;

type Bytes = Uint8Array<ArrayBuffer>;
/** The page before and after the placeholder, plain and compressed. */
type SplitPage = {
  readonly head: Bytes;
  readonly rest: Bytes;
  readonly pressedHead: Bytes;
  readonly pressedRest: Bytes;
};

const toBytes = (text: string): Bytes => new TextEncoder().encode(text);

/** Compresses to a chunk of a deflate stream that ends at a byte boundary; `isLast` ends the stream. */
const deflate = (bytes: Bytes, isLast: boolean): Bytes =>
  new Uint8Array(deflateRawSync(bytes, { finishFlush: isLast ? constants.Z_FINISH : constants.Z_SYNC_FLUSH }));

const splitPages = new WeakMap<Uint8Array, SplitPage>();

/** Returns undefined when the page has no placeholder. */
const splitPage = ({ body }: ServedFile): SplitPage | undefined => {
  const html = new TextDecoder().decode(body);
  const at = html.indexOf(PLACEHOLDER);
  if (at < 0) return undefined;
  const [head, rest] = [toBytes(html.slice(0, at)), toBytes(html.slice(at + PLACEHOLDER.length))];
  const parts = { head, rest, pressedHead: deflate(head, false), pressedRest: deflate(rest, true) };
  splitPages.set(body, parts);
  return parts;
};

const GZIP_HEAD = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/** Returns the gzip trailer of a deflate stream (RFC 1952 2.3). */
const gzipEnd = (pieces: readonly Bytes[]): Bytes => {
  const end = new DataView(new ArrayBuffer(8));
  end.setUint32(
    0,
    pieces.reduce((sum, piece) => crc32(piece, sum), 0),
    true,
  );
  end.setUint32(
    4,
    pieces.reduce((sum, piece) => sum + piece.length, 0),
    true,
  );
  return new Uint8Array(end.buffer);
};

/** Reads a page's initial data as JSON that is safe in HTML; undefined when none exists. */
export type LoadInitialData = () => Promise<string | undefined>;

/** Returns the page with the data from `tell`; undefined when the page has no placeholder. */
export const streamPage = (
  request: Request,
  page: ServedFile,
  { tell, headers }: { readonly tell: LoadInitialData; readonly headers: Readonly<Record<string, string>> },
): Response | undefined => {
  const parts = splitPages.get(page.body) ?? splitPage(page);
  if (!parts) return undefined;
  const { head, rest, pressedHead, pressedRest } = parts;
  const isPressed = chooseEncoding(request.headers.get("accept-encoding"), ["gzip"]) !== undefined;
  const streamChunks = async function* (): AsyncGenerator<Bytes> {
    yield isPressed ? Uint8Array.from([...GZIP_HEAD, ...pressedHead]) : head;
    // Lets the head be sent in this turn of the event loop, before the read can occupy it.
    await nextTurn();
    const json = await tell();
    const data = toBytes(json === undefined ? "" : toDataBlock(json));
    if (!isPressed) {
      yield data;
      yield rest;
      return;
    }
    const last = [deflate(data, false), pressedRest, gzipEnd([head, data, rest])];
    yield new Uint8Array(Bun.concatArrayBuffers(last));
  };
  const type = `${page.type}; charset=utf-8`;
  const all = { ...headers, "content-type": type, vary: "accept-encoding", "cache-control": "no-store" };
  return new Response(streamChunks(), { headers: isPressed ? { ...all, "content-encoding": "gzip" } : all });
};
