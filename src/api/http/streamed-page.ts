// Sends a page with its initial data in three chunks: the head immediately, so that the browser can fetch what it references; then the data
// that was read in the meantime; then the tail. The parts that are the same for everyone are compressed once, because deflate streams can be
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
  readonly tail: Bytes;
  readonly compressedHead: Bytes;
  readonly compressedTail: Bytes;
};

const toBytes = (text: string): Bytes => new TextEncoder().encode(text);

/** Compresses to a chunk of a deflate stream that ends at a byte boundary; `isLast` ends the stream. */
const deflate = (bytes: Bytes, isLast: boolean): Bytes =>
  new Uint8Array(deflateRawSync(bytes, { finishFlush: isLast ? constants.Z_FINISH : constants.Z_SYNC_FLUSH }));

const splitPages = new WeakMap<Uint8Array, SplitPage>();

/** Returns undefined when the page has no placeholder. */
const splitPage = ({ body }: ServedFile): SplitPage | undefined => {
  const html = new TextDecoder().decode(body);
  const index = html.indexOf(PLACEHOLDER);
  if (index < 0) return undefined;
  const [head, tail] = [toBytes(html.slice(0, index)), toBytes(html.slice(index + PLACEHOLDER.length))];
  const parts = { head, tail, compressedHead: deflate(head, false), compressedTail: deflate(tail, true) };
  splitPages.set(body, parts);
  return parts;
};

const GZIP_HEADER = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/** Returns the gzip trailer of a deflate stream (RFC 1952 2.3). */
const makeGzipTrailer = (pieces: readonly Bytes[]): Bytes => {
  const trailer = new DataView(new ArrayBuffer(8));
  trailer.setUint32(
    0,
    pieces.reduce((sum, piece) => crc32(piece, sum), 0),
    true,
  );
  trailer.setUint32(
    4,
    pieces.reduce((sum, piece) => sum + piece.length, 0),
    true,
  );
  return new Uint8Array(trailer.buffer);
};

/** Reads a page's initial data as JSON that is safe in HTML; undefined when none exists. */
export type LoadInitialData = () => Promise<string | undefined>;

/** Returns the page with the data from `loadData`; undefined when the page has no placeholder. */
export const streamPage = (
  request: Request,
  page: ServedFile,
  { loadData, headers }: { readonly loadData: LoadInitialData; readonly headers: Readonly<Record<string, string>> },
): Response | undefined => {
  const parts = splitPages.get(page.body) ?? splitPage(page);
  if (!parts) return undefined;
  const { head, tail, compressedHead, compressedTail } = parts;
  const isCompressed = chooseEncoding(request.headers.get("accept-encoding"), ["gzip"]) !== undefined;
  const streamChunks = async function* (): AsyncGenerator<Bytes> {
    yield isCompressed ? Uint8Array.from([...GZIP_HEADER, ...compressedHead]) : head;
    // Lets the head be sent in this turn of the event loop, before the read can occupy it.
    await nextTurn();
    const json = await loadData();
    const data = toBytes(json === undefined ? "" : toDataBlock(json));
    if (!isCompressed) {
      yield data;
      yield tail;
      return;
    }
    const last = [deflate(data, false), compressedTail, makeGzipTrailer([head, data, tail])];
    yield new Uint8Array(Bun.concatArrayBuffers(last));
  };
  const type = `${page.type}; charset=utf-8`;
  const allHeaders = { ...headers, "content-type": type, vary: "accept-encoding", "cache-control": "no-store" };
  return new Response(streamChunks(), {
    headers: isCompressed ? { ...allHeaders, "content-encoding": "gzip" } : allHeaders,
  });
};
