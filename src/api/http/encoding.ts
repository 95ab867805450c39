// Negotiates the content encoding and compresses files and JSON (rules WB-1 to WB-3). Files are precompressed; JSON is compressed on Bun's
// own threads, off the event loop, if it is large enough to benefit. Streams are never compressed, because a compressor would delay their
// events.
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { ServedFile } from "#src/web/files.ts";

type Coding = "br" | "zstd" | "gzip";

/** In bytes. A smaller response does not save a packet when compressed. */
const MIN_COMPRESSED_BYTES = 4_096;

/** Returns the quality of a coding per RFC 9110 12.5.3: absent is 1, `*` stands for all that are not named. */
const parseQualities = (header: string): ((coding: string) => number) => {
  const qualities = new Map<string, number>();
  for (const part of header.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = part.split(";").map((one) => one.trim());
    const quality = parameters.find((one) => one.startsWith("q="))?.slice(2);
    if (coding !== "") qualities.set(coding, quality === undefined ? 1 : Number(quality) || 0);
  }
  return (coding) => qualities.get(coding) ?? qualities.get("*") ?? 0;
};

/** Returns the offered coding with the highest quality, the first of them on a tie; undefined when the client prefers no encoding. */
export const chooseEncoding = <C extends string>(header: string | null, offered: readonly C[]): C | undefined => {
  if (!header) return undefined;
  const quality = parseQualities(header);
  let best: C | undefined;
  for (const coding of offered) if (quality(coding) > (best === undefined ? 0 : quality(best))) best = coding;
  return best;
};

/** Returns whether the client has this version: `If-None-Match` names it or is `*`; weak tags match (RFC 9110 13.1.2). */
export const matchesEtag = (request: Request, etag: string): boolean => {
  const requested = request.headers.get("if-none-match");
  if (requested === null) return false;
  return requested.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
};

/** Returns a file in the best encoding for this client, or 304 when the client already has it. */
export const fileResponse = (
  request: Request,
  file: ServedFile,
  headers: Readonly<Record<string, string>>,
): Response => {
  const encoding = chooseEncoding(request.headers.get("accept-encoding"), ["br", "gzip"] as const);
  const compressed = encoding && file.twins[encoding];
  // Each encoding has its own ETag, because a cache that joins ranges must not mix encodings.
  const etag = compressed ? file.etag.replace(/"$/, `-${encoding}"`) : file.etag;
  const allHeaders = { ...headers, "content-type": `${file.type}; charset=utf-8`, vary: "accept-encoding", etag };
  if (matchesEtag(request, etag)) return new Response(null, { status: 304, headers: allHeaders });
  return new Response(compressed ?? file.body, {
    headers: compressed ? { ...allHeaders, "content-encoding": encoding } : allHeaders,
  });
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
 * Compresses a response if it is JSON for a page and large enough. Only for reads: the response to a write can contain a secret next to
 * attacker-controlled input (BREACH). `isSentInParts`: the body is compressed while the client reads it.
 */
export const compress = async (request: Request, response: Response, isSentInParts = false): Promise<Response> => {
  if (request.method !== "GET" || response.status !== 200 || response.headers.has("content-encoding")) return response;
  if (!response.headers.get("content-type")?.startsWith("application/json")) return response;
  const encoding = chooseEncoding(request.headers.get("accept-encoding"), ["zstd", "gzip", "br"] as const);
  if (!encoding) return response;
  const { headers, status } = response;
  headers.append("vary", "accept-encoding");
  if (isSentInParts) {
    headers.set("content-encoding", encoding);
    const parts = response.body?.pipeThrough(new CompressionStream(encoding === "br" ? "brotli" : encoding));
    return new Response(parts, { status, headers });
  }
  const body = new Uint8Array(await response.arrayBuffer());
  if (body.length < MIN_COMPRESSED_BYTES) return new Response(body, { status, headers });
  headers.set("content-encoding", encoding);
  headers.delete("content-length");
  return new Response((await compressors[encoding](body)) as Uint8Array<ArrayBuffer>, { status, headers });
};
