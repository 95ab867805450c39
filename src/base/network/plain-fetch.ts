// `fetch` for servers that are not trusted. The runtime unpacks a compressed answer completely, even if it is never read, so two kilobytes
// could fill the memory. Here no compression is requested, and an answer that is compressed anyway is unpacked while it is read.

/** Thrown for an answer with a content encoding that was not requested and can't be unpacked while it is read. */
export class UnknownEncoding extends Error {
  override readonly name = "UnknownEncoding";
}

/** Like `fetch`. Throws `UnknownEncoding` when the answer has another content encoding than gzip or deflate. */
export const fetchPlain = async (url: URL, init: RequestInit): Promise<Response> => {
  const headers = new Headers(init.headers);
  headers.set("accept-encoding", "identity");
  // Bun's types lack this option.
  const response = await fetch(url, { ...init, headers, decompress: false } as RequestInit);
  const encoding = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  const { status, statusText, body: packed } = response;
  if (encoding === "" || encoding === "identity" || !packed || hasNoContent(status, init.method)) return response;
  const format = encoding === "gzip" || encoding === "x-gzip" ? "gzip" : encoding === "deflate" ? "deflate" : undefined;
  if (!format) {
    void packed.cancel().catch(() => {});
    throw new UnknownEncoding(`it answered with the content encoding ${encoding}, which was not requested`);
  }
  const plainHeaders = new Headers(response.headers);
  for (const name of ["content-encoding", "content-length"]) plainHeaders.delete(name);
  const body = packed.pipeThrough(new DecompressionStream(format) as TransformStream<Uint8Array, Uint8Array>);
  return new Response(body, { status, statusText, headers: plainHeaders });
};

const hasNoContent = (status: number, method = "GET"): boolean =>
  method.toUpperCase() === "HEAD" || status === 204 || (status >= 300 && status < 400);
