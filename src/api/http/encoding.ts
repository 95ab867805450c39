// Which encoding a client takes, and files and JSON in it (rules WB-1 to WB-3). Files have their twins; JSON is compressed on Bun's
// own threads, alongside the event loop, when it is large enough to gain by it. Streams are never touched: a compressor would hold back
// what should be seen now.
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { ServedFile } from "#src/web/files.ts";

type Coding = "br" | "zstd" | "gzip";

/** Below this a compressed answer saves no packet. Bytes. */
const WORTH_BYTES = 4_096;

/** Quality by coding, as RFC 9110 12.5.3 has it: absent is 1, `*` stands for all that are not named. */
const qualities = (header: string): ((coding: string) => number) => {
  const named = new Map<string, number>();
  for (const part of header.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = part.split(";").map((one) => one.trim());
    const quality = parameters.find((one) => one.startsWith("q="))?.slice(2);
    if (coding !== "") named.set(coding, quality === undefined ? 1 : Number(quality) || 0);
  }
  return (coding) => named.get(coding) ?? named.get("*") ?? 0;
};

/** The first of these that the client likes best; undefined when it wants the bytes as they are. */
export const chosenCoding = <C extends string>(header: string | null, offered: readonly C[]): C | undefined => {
  if (!header) return undefined;
  const quality = qualities(header);
  let best: C | undefined;
  for (const one of offered) if (quality(one) > (best === undefined ? 0 : quality(best))) best = one;
  return best;
};

/** True when the client has this version: `If-None-Match` names it or is `*`; weak tags count (RFC 9110 13.1.2). */
export const isKnown = (request: Request, etag: string): boolean => {
  const asked = request.headers.get("if-none-match");
  if (asked === null) return false;
  return asked.split(",").some((one) => one.trim() === "*" || one.trim().replace(/^W\//, "") === etag);
};

/** A file in the best form for this client: 304 when it has it already. */
export const fileAnswer = (request: Request, file: ServedFile, headers: Readonly<Record<string, string>>): Response => {
  const coding = chosenCoding(request.headers.get("accept-encoding"), ["br", "gzip"] as const);
  const twin = coding && file.twins[coding];
  // One tag for each form: a cache that joins parts must not mix them.
  const etag = twin ? file.etag.replace(/"$/, `-${coding}"`) : file.etag;
  const all = { ...headers, "content-type": `${file.type}; charset=utf-8`, vary: "accept-encoding", etag };
  if (isKnown(request, etag)) return new Response(null, { status: 304, headers: all });
  return new Response(twin ?? file.body, { headers: twin ? { ...all, "content-encoding": coding } : all });
};

const compressors: Record<Coding, (body: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>> = {
  zstd: (body) => Bun.zstdCompress(body, { level: 3 }),
  gzip: promisify(gzip) as (body: Uint8Array) => Promise<Uint8Array>,
  br: (body) =>
    promisify(brotliCompress)(body, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 4 },
    } as never) as Promise<Uint8Array>,
};

/**
 * The same answer, compressed when it is JSON that a page has asked for and is worth it. Only reads: what answers a change may hold a
 * secret alongside what a stranger has sent (BREACH).
 */
export const compressed = async (request: Request, response: Response): Promise<Response> => {
  if (request.method !== "GET" || response.status !== 200 || response.headers.has("content-encoding")) return response;
  if (!response.headers.get("content-type")?.startsWith("application/json")) return response;
  const coding = chosenCoding(request.headers.get("accept-encoding"), ["zstd", "gzip", "br"] as const);
  if (!coding) return response;
  const { headers, status } = response;
  headers.append("vary", "accept-encoding");
  const body = new Uint8Array(await response.arrayBuffer());
  if (body.length < WORTH_BYTES) return new Response(body, { status, headers });
  headers.set("content-encoding", coding);
  headers.delete("content-length");
  return new Response((await compressors[coding](body)) as Uint8Array<ArrayBuffer>, { status, headers });
};
