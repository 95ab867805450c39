// A page with what it begins with, in three pieces: its head at once, so that the browser makes itself ready and fetches what the page
// names, then what was read in the meantime, then the rest. What is the same for everyone is pressed once: deflate can be cut and joined.
import { constants, crc32, deflateRawSync } from "node:zlib";
import type { ServedFile } from "#src/web/files.ts";
import { chosenCoding } from "./encoding.ts";

/** Where a page takes what it begins with. */
const PLACE = "<!-- first -->";
/** As data, which nothing runs: the policy needs not name it. */
const asData = (json: string): string => `<script type="application/json" id="first">${json}</script>`;

type Bytes = Uint8Array<ArrayBuffer>;
/** The parts of a page around the place, as they are and pressed. */
type Parts = { readonly head: Bytes; readonly rest: Bytes; readonly pressedHead: Bytes; readonly pressedRest: Bytes };

const toBytes = (text: string): Bytes => new TextEncoder().encode(text);

/** As a piece of a deflate stream that ends at a whole byte; `isLast` ends the stream. */
const pressed = (bytes: Bytes, isLast: boolean): Bytes =>
  new Uint8Array(deflateRawSync(bytes, { finishFlush: isLast ? constants.Z_FINISH : constants.Z_SYNC_FLUSH }));

const known = new WeakMap<Uint8Array, Parts>();

/** Undefined where the page has no place for it. */
const splitPage = ({ body }: ServedFile): Parts | undefined => {
  const html = new TextDecoder().decode(body);
  const at = html.indexOf(PLACE);
  if (at < 0) return undefined;
  const [head, rest] = [toBytes(html.slice(0, at)), toBytes(html.slice(at + PLACE.length))];
  const parts = { head, rest, pressedHead: pressed(head, false), pressedRest: pressed(rest, true) };
  known.set(body, parts);
  return parts;
};

const GZIP_HEAD = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/** What follows a deflate stream in gzip (RFC 1952 2.3). */
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

/** Reads what a page begins with, as JSON that may stand in it; undefined where there is nothing to tell now. */
export type Tell = () => Promise<string | undefined>;

/** The page with what `tell` reads; undefined where the page has no place for it. */
export const streamedPage = (
  request: Request,
  page: ServedFile,
  { tell, headers }: { readonly tell: Tell; readonly headers: Readonly<Record<string, string>> },
): Response | undefined => {
  const parts = known.get(page.body) ?? splitPage(page);
  if (!parts) return undefined;
  const { head, rest, pressedHead, pressedRest } = parts;
  const isPressed = chosenCoding(request.headers.get("accept-encoding"), ["gzip"]) !== undefined;
  const pieces = async function* (): AsyncGenerator<Bytes> {
    yield isPressed ? Uint8Array.from([...GZIP_HEAD, ...pressedHead]) : head;
    // What was given goes out in this turn of the loop, which reading may fill.
    await new Promise((resolve) => setImmediate(resolve));
    const json = await tell();
    const data = toBytes(json === undefined ? "" : asData(json));
    if (!isPressed) {
      yield data;
      yield rest;
      return;
    }
    const last = [pressed(data, false), pressedRest, gzipEnd([head, data, rest])];
    yield new Uint8Array(Bun.concatArrayBuffers(last));
  };
  const type = `${page.type}; charset=utf-8`;
  const all = { ...headers, "content-type": type, vary: "accept-encoding", "cache-control": "no-store" };
  return new Response(pieces(), { headers: isPressed ? { ...all, "content-encoding": "gzip" } : all });
};
