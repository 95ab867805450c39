// `fetch` for answers of servers that are not trusted. The runtime unpacks a compressed answer whole, even if no one reads it, so that two
// kilobytes could fill the memory. Here no compression is requested, and what is compressed nevertheless is unpacked as it is read.

/** The answer has a content encoding that was not requested and can't be unpacked as it is read. */
export class UnknownEncoding extends Error {
  override readonly name = "UnknownEncoding";
}

/** Like `fetch`. Throws `UnknownEncoding` when the answer has another content encoding than gzip or deflate. */
export const fetchPlain = async (url: URL, init: RequestInit): Promise<Response> => {
  const headers = new Headers(init.headers);
  headers.set("accept-encoding", "identity");
  // Bun's types lack this option.
  const response = await fetch(url, { ...init, headers, decompress: false } as RequestInit);
  const coding = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  const { status, statusText, body: packed } = response;
  if (coding === "" || coding === "identity" || !packed || hasNoContent(status, init.method)) return response;
  const format = coding === "gzip" || coding === "x-gzip" ? "gzip" : coding === "deflate" ? "deflate" : undefined;
  if (!format) {
    void packed.cancel().catch(() => {});
    throw new UnknownEncoding(`it answered with the content encoding ${coding}, which was not requested`);
  }
  const plain = new Headers(response.headers);
  for (const name of ["content-encoding", "content-length"]) plain.delete(name);
  const body = packed.pipeThrough(new DecompressionStream(format) as TransformStream<Uint8Array, Uint8Array>);
  return new Response(body, { status, statusText, headers: plain });
};

const hasNoContent = (status: number, method = "GET"): boolean =>
  method.toUpperCase() === "HEAD" || status === 204 || (status >= 300 && status < 400);
