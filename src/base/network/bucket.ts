// A bucket of S3-compatible object storage. Bun's client signs each request and fetch sends it, because the client has no timeouts, sends
// no checksum, and leaves parts of a large object behind when interrupted. Bodies are streams, because fetch would read a file into memory
// completely for an https request.

import { open } from "node:fs/promises";
import { type Clock, systemClock } from "../clock.ts";
import { uuid } from "../ids.ts";
import { readStart } from "../json/read.ts";
import { systemRandom } from "../random.ts";
import { backoff, retry } from "../retry.ts";
import { BucketError } from "./bucket-error.ts";

const MAX_ATTEMPTS = 4;
const MAX_PAUSE_MS = 5_000;
/** Timeout for the store's response, and for each further chunk. */
const RESPONSE_TIMEOUT_MS = 15_000;
/** Uploads slower than this are restarted. */
const MIN_BYTES_PER_MS = 256;
const SIGNATURE_TTL_S = 3600;

export type BucketLocation = {
  /** Undefined means Amazon S3 in the region. */
  readonly endpoint?: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** Prefix of each object's name. */
  readonly prefix: string;
  readonly access_key: string;
  readonly secret_key: string;
};

type Options = { readonly clock?: Clock; readonly answer_ms?: number };

/** List errors that a retry cannot fix. */
const PERMANENT_ERRORS =
  /^(AccessDenied|NoSuchBucket|InvalidAccessKeyId|SignatureDoesNotMatch|AuthorizationHeaderMalformed)$/;

type Call = {
  readonly headers?: Record<string, string>;
  readonly body?: ReadableStream | Uint8Array<ArrayBuffer>;
  readonly ms?: number;
};

export class Bucket {
  readonly prefix: string;
  /** For example `slipway at https://storage.example.com`. */
  readonly name: string;
  readonly #client: Bun.S3Client;
  readonly #clock: Clock;
  readonly #answer_ms: number;

  constructor(location: BucketLocation, { clock = systemClock, answer_ms = RESPONSE_TIMEOUT_MS }: Options = {}) {
    const { endpoint, region, bucket, prefix, access_key: accessKeyId, secret_key: secretAccessKey } = location;
    const custom = endpoint === undefined ? {} : { endpoint };
    this.#client = new Bun.S3Client({ ...custom, region, bucket, accessKeyId, secretAccessKey });
    this.prefix = prefix;
    this.name = `${bucket} at ${endpoint ?? `Amazon S3 in ${region}`}`;
    this.#clock = clock;
    this.#answer_ms = answer_ms;
  }

  /** Stores the bytes of a file. The store verifies a checksum, and the stored size is checked. Throws BucketError. */
  async put(object: string, path: string, size: number): Promise<void> {
    const md5 = new Bun.CryptoHasher("md5");
    for await (const bytes of Bun.file(path).stream()) md5.update(bytes);
    const headers = { "content-md5": md5.digest("base64"), "content-length": String(size) };
    await this.#withRetry(async () => {
      const body = size > 0 ? { body: Bun.file(path).stream() } : {};
      await this.#call("PUT", object, { headers, ...body, ms: this.#answer_ms + size / MIN_BYTES_PER_MS });
      const storedSize = await this.#loadSize(object);
      if (storedSize !== size) throw new BucketError(this.name, { code: "ObjectIsNotThere", isPassing: true });
    });
  }

  /** Downloads an object to a new file and verifies its SHA-256. Throws BucketError. */
  async getTo(object: string, path: string, hash: string): Promise<void> {
    await this.#withRetry(async () => {
      const { response, stopTimer, extend } = await this.#open("GET", object, {});
      try {
        const hasher = new Bun.CryptoHasher("sha256");
        await using file = await open(path, "w", 0o600);
        for await (const bytes of response.body ?? []) {
          extend();
          hasher.update(bytes);
          for (let offset = 0; offset < bytes.length; ) offset += (await file.write(bytes, offset)).bytesWritten;
        }
        if (hasher.digest("hex") !== hash) throw new BucketError(this.name, { code: "OtherBytes", isPassing: true });
      } catch (error) {
        throw this.#toBucketError(error);
      } finally {
        stopTimer();
      }
    });
  }

  /** Stores bytes from memory. Throws BucketError. */
  async putBytes(object: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const md5 = new Bun.CryptoHasher("md5").update(bytes).digest("base64");
    const headers = { "content-md5": md5, "content-length": String(bytes.length) };
    const ms = this.#answer_ms + bytes.length / MIN_BYTES_PER_MS;
    await this.#withRetry(() => this.#call("PUT", object, { headers, body: bytes, ms }));
  }

  /** Returns the bytes of an object; undefined if it does not exist. Throws BucketError, also for an object with more than `max` bytes. */
  getBytes(object: string, max: number): Promise<Uint8Array | undefined> {
    return this.#withRetry(async () => {
      const download = await this.#open("GET", object, {}).catch(toUndefinedIfMissing);
      if (!download) return undefined;
      const { response, stopTimer, extend } = download;
      try {
        const pieces: Uint8Array[] = [];
        let length = 0;
        for await (const bytes of response.body ?? []) {
          extend();
          length += bytes.length;
          if (length > max) throw new BucketError(this.name, { code: "OtherBytes", isPassing: false });
          pieces.push(bytes);
        }
        return Buffer.concat(pieces, length);
      } catch (error) {
        throw this.#toBucketError(error);
      } finally {
        stopTimer();
      }
    });
  }

  /** Yields the objects whose names have the prefix, one page at a time. Throws BucketError. */
  async *list(prefix: string): AsyncGenerator<{ readonly name: string; readonly modified_at: number }> {
    let continuationToken: string | undefined;
    do {
      const page = await this.#withRetry(() =>
        this.#listPage({ prefix, ...(continuationToken ? { continuationToken } : {}) }),
      );
      for (const { key, lastModified = "" } of page.contents ?? []) {
        yield { name: key, modified_at: Date.parse(lastModified) };
      }
      continuationToken = page.isTruncated ? page.nextContinuationToken : undefined;
    } while (continuationToken !== undefined);
  }

  /** Bun's client lists objects itself and has no timeout. */
  async #listPage(options: { readonly prefix: string; readonly continuationToken?: string }) {
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const onTimeout = (): void => reject(new BucketError(this.name, { code: "TooSlow", isPassing: true }));
    const timer = this.#clock.after(this.#answer_ms, onTimeout);
    try {
      return await Promise.race([this.#client.list(options), timeout]);
    } catch (error) {
      if (error instanceof BucketError) throw error;
      const { code = "" } = error as { code?: string };
      throw new BucketError(this.name, { code, isPassing: !PERMANENT_ERRORS.test(code) });
    } finally {
      timer.cancel();
    }
  }

  /** Returns the size of an object in bytes; undefined if it does not exist. Throws BucketError. */
  getSize(object: string): Promise<number | undefined> {
    return this.#withRetry(() => this.#loadSize(object));
  }

  /** Removes an object; succeeds if it does not exist. Throws BucketError. */
  async remove(object: string): Promise<void> {
    await this.#withRetry(() => this.#call("DELETE", object).catch(toUndefinedIfMissing));
  }

  /** Writes, reads and removes a test object. Throws BucketError, whose message says what to check. */
  async check(): Promise<void> {
    const object = `${this.prefix}probe-${uuid()}`;
    await this.#withRetry(async () => {
      const text = "Slipway checks whether it can write here.";
      const body = new Blob([text]).stream();
      await this.#call("PUT", object, { body, headers: { "content-length": String(text.length) } });
      const { response, stopTimer } = await this.#open("GET", object, {});
      const storedText = await readStart(response, 2 * text.length)
        .catch((error: unknown) => Promise.reject(this.#toBucketError(error)))
        .finally(stopTimer);
      if (storedText !== text) throw new BucketError(this.name, { code: "OtherBytes", isPassing: true });
    });
    await this.remove(object);
  }

  async #loadSize(object: string): Promise<number | undefined> {
    const headers = await this.#call("HEAD", object).catch(toUndefinedIfMissing);
    return headers && Number(headers.get("content-length"));
  }

  #withRetry<T>(work: () => Promise<T>): Promise<T> {
    return retry(this.#clock, work, (error, failures) =>
      error instanceof BucketError && error.isPassing && failures < MAX_ATTEMPTS
        ? backoff(failures, MAX_PAUSE_MS, systemRandom)
        : undefined,
    );
  }

  /** Returns the headers of a response and discards its body. */
  async #call(method: Method, object: string, call: Call = {}): Promise<Headers> {
    const { response, stopTimer } = await this.#open(method, object, call);
    await response.body?.cancel();
    stopTimer();
    return response.headers;
  }

  /** Returns a successful response; `stopTimer` cancels the timeout, `extend` restarts it. */
  async #open(method: Method, object: string, { headers = {}, body, ms = this.#answer_ms }: Call) {
    const url = this.#client.presign(object, { method, expiresIn: SIGNATURE_TTL_S });
    const timeout = new AbortController();
    const onTimeout = (): void => timeout.abort(new BucketError(this.name, { code: "TooSlow", isPassing: true }));
    let timer = this.#clock.after(ms, onTimeout);
    const stopTimer = (): void => timer.cancel();
    const extend = (): void => {
      timer.cancel();
      timer = this.#clock.after(ms, onTimeout);
    };
    try {
      const init = { method, headers, redirect: "manual" as const, signal: timeout.signal, ...(body ? { body } : {}) };
      const response = await fetch(url, init);
      if (response.ok) return { response, stopTimer, extend };
      const text = method === "HEAD" ? "" : await readStart(response, 4096);
      const [, code = ""] = /<Code>([A-Za-z0-9]{1,60})<\/Code>/.exec(text) ?? [];
      throw new BucketError(this.name, { status: response.status, code });
    } catch (error) {
      stopTimer();
      throw this.#toBucketError(error);
    }
  }

  /** Returns a network error without its URL: anyone who reads a signed URL could repeat the request. */
  #toBucketError(error: unknown): unknown {
    if (error instanceof BucketError) return error;
    const { code, name } = error as { code?: string; name: string };
    // A local disk error is not an error of the store.
    if (code !== undefined && /^E(NOSPC|DQUOT|IO|ROFS|ACCES|PERM|NOENT)$/.test(code)) return error;
    return new BucketError(this.name, { code: String(code ?? name), isPassing: true });
  }
}

type Method = "GET" | "PUT" | "HEAD" | "DELETE";

/** A store's 404 may mean the bucket or the key; a response to HEAD has no error code. */
const toUndefinedIfMissing = (error: unknown): undefined => {
  if (!(error instanceof BucketError) || error.status !== 404 || !/^(NoSuchKey|)$/.test(error.code)) throw error;
};
