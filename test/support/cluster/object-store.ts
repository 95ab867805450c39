// An object store over a real socket that implements the needed part of S3. It validates requests: it recomputes each signature and
// compares checksums. It simulates faults on request.
import { createHash, createHmac } from "node:crypto";

export const BUCKET = "uploads";
export const REGION = "eu-test-1";
export const ACCESS_KEY = "AKIATESTTESTTEST";
export const SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+a/secret+of/tests";

/** Answers a request instead of the store; undefined leaves it to the store. `bytes`: the body. */
type Fault = (
  request: Request,
  bytes: Uint8Array,
  object: string,
) => Response | undefined | Promise<Response | undefined>;

const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
const encodeStrictly = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

const toErrorResponse = (status: number, code: string): Response =>
  new Response(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`, { status });

/** Returns the error code for an invalid query signature (AWS Signature Version 4, unsigned payload). */
const findSignatureProblem = (request: Request): string | undefined => {
  const url = new URL(request.url);
  const signed = [...url.searchParams].filter(([name]) => name !== "X-Amz-Signature");
  const [key, day, region, service, end] = (url.searchParams.get("X-Amz-Credential") ?? "").split("/");
  const date = url.searchParams.get("X-Amz-Date") ?? "";
  if (key !== ACCESS_KEY) return "InvalidAccessKeyId";
  if (region !== REGION || service !== "s3" || end !== "aws4_request") return "AuthorizationQueryParametersError";
  const query = signed
    .map(([name, value]) => `${encodeStrictly(name)}=${encodeStrictly(value)}`)
    .sort()
    .join("&");
  const host = `host:${request.headers.get("host")}\n`;
  const canonical = [request.method, url.pathname, query, host, "host", "UNSIGNED-PAYLOAD"].join("\n");
  const scope = [day, region, service, end].join("/");
  const hashed = createHash("sha256").update(canonical).digest("hex");
  const stringToSign = ["AWS4-HMAC-SHA256", date, scope, hashed].join("\n");
  const signer = hmac(hmac(hmac(hmac(`AWS4${SECRET_KEY}`, day ?? ""), REGION), "s3"), "aws4_request");
  return hmac(signer, stringToSign).toString("hex") === url.searchParams.get("X-Amz-Signature")
    ? undefined
    : "SignatureDoesNotMatch";
};

export const startObjectStore = (options: { tls?: { cert: string; key: string } } = {}) => {
  const objects = new Map<string, Uint8Array>();
  const requestLog: string[] = [];
  let fault: Fault | undefined;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...options,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const [, bucket, ...names] = decodeURIComponent(pathname).split("/");
      const object = names.join("/");
      requestLog.push(`${request.method} ${object}`);
      const problem = findSignatureProblem(request);
      if (problem) return toErrorResponse(403, problem);
      if (bucket !== BUCKET) return toErrorResponse(404, "NoSuchBucket");
      const bytes = await request.bytes();
      const faultResponse = await fault?.(request, bytes, object);
      return faultResponse ?? answer(request, object, bytes);
    },
  });
  const answer = (request: Request, object: string, bytes: Uint8Array): Response => {
    const found = objects.get(object);
    if (request.method === "PUT") {
      if (request.headers.get("content-length") === null) return toErrorResponse(411, "MissingContentLength");
      const md5 = request.headers.get("content-md5");
      if (md5 !== null && md5 !== createHash("md5").update(bytes).digest("base64"))
        return toErrorResponse(400, "BadDigest");
      objects.set(object, bytes);
      return new Response();
    }
    if (request.method === "DELETE") {
      objects.delete(object);
      return new Response(null, { status: 204 });
    }
    return found ? new Response(found) : toErrorResponse(404, "NoSuchKey");
  };
  return {
    /** All stored objects by name. */
    objects,
    /** Methods and names of all requests. */
    requestLog,
    url: server.url.origin,
    /** Injects this fault into all further requests; undefined ends it. */
    inject: (newFault: Fault | undefined): void => {
      fault = newFault;
    },
    toErrorResponse,
    settings: {
      SLIPWAY_S3_ENDPOINT: server.url.origin,
      SLIPWAY_S3_BUCKET: BUCKET,
      SLIPWAY_S3_REGION: REGION,
      SLIPWAY_S3_ACCESS_KEY: ACCESS_KEY,
      SLIPWAY_S3_SECRET_KEY: SECRET_KEY,
    },
    /** The options of `Bucket` for this store. */
    location: {
      endpoint: server.url.origin,
      region: REGION,
      bucket: BUCKET,
      prefix: "slipway/",
      access_key: ACCESS_KEY,
      secret_key: SECRET_KEY,
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
};

export type ObjectStore = ReturnType<typeof startObjectStore>;
