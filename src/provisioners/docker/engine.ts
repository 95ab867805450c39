// A client for one Docker Engine over HTTP. Every call ends with a response or with an EngineError, at the latest after its timeout or when
// its signal aborts.

import type { Clock } from "#base/clock.ts";
import { readEngineError } from "#base/engine-words.ts";
import { JsonProblem, parseJson, readBytes, tryParseJson } from "#base/json/read.ts";
import { trimEnd } from "#base/text/trim.ts";
import { ProvisionError } from "../provisioner.ts";

const DEFAULT_DOCKER_HOST = "unix:///var/run/docker.sock";

/** The address of an engine. `shown`: for messages; `base` and `socket`: for `fetch`. */
type DockerHost = { readonly shown: string; readonly base: string; readonly socket?: string };

/** Parses the setting `docker_host`. Throws ProvisionError for a scheme other than unix, tcp, http or https. */
const parseDockerHost = (text: string = DEFAULT_DOCKER_HOST): DockerHost => {
  const [, scheme = "", address = ""] = /^([a-z]+):\/\/(.+)$/.exec(text) ?? [];
  if (scheme === "unix") return { shown: text, base: "http://docker", socket: address };
  const webUrl = scheme === "tcp" ? `http://${address}` : text;
  if (["tcp", "http", "https"].includes(scheme) && URL.canParse(webUrl)) {
    // The address is shown in build logs, so its user and password are removed.
    return { shown: text.replace(/\/\/[^/]*@/, "//"), base: trimEnd(webUrl, "/") };
  }
  throw new ProvisionError(
    `The setting docker_host cannot be used: ${text} is not a unix, tcp, http or https address.`,
  );
};

/** An error returned by the engine; status 0 if it cannot be reached. */
export class EngineError extends ProvisionError {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Call = {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** A tar stream to send as the body. */
  readonly tar?: ReadableStream<Uint8Array>;
  /** Headers such as registry credentials; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Timeout of the whole response in milliseconds; for streamed responses, the timeout between two chunks. */
  readonly timeout?: number;
  /** Statuses that count as success, such as 304 for a container that has already stopped. */
  readonly expectedStatuses?: readonly number[];
};

export type ContainerFile = {
  readonly isRegular: boolean;
  readonly size: number;
  /** The target of a link, inside of the container; empty for other files. */
  readonly link: string;
};

/** Go's `os.ModeType`: folder, link, device, pipe, socket, character device, irregular. None is set for a regular file. */
const NON_REGULAR_BITS = (1 << 31) | (1 << 27) | (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19);
const TIMEOUT_MS = 60_000;
/** Timeouts of a file copy: between chunks, and in total. */
const COPY_IDLE_TIMEOUT_MS = 10 * 60_000;
const COPY_TIMEOUT_MS = 6 * 3_600_000;
/** Maximum size of a response, which is enough for a list of ten thousand containers or images. */
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;
const JSON_LIMITS = { maxValues: 500_000 };
const SPACE = 0x20;
const MAX_LINE_CHARS = 256 * 1024;

export class Engine {
  readonly #host: DockerHost;
  readonly #clock: Clock;
  #prefix = "";

  /** `host`: the setting `docker_host`. Throws ProvisionError if the setting is invalid. */
  constructor(host: string | undefined, clock: Clock) {
    this.#host = parseDockerHost(host);
    this.#clock = clock;
  }

  /** Checks that the engine responds, and uses its API version from now on. */
  async connect(signal?: AbortSignal): Promise<void> {
    const version = await this.#call("GET", "/_ping", { signal }, "answer", async (response) => {
      await response.body?.cancel();
      return response.headers.get("api-version") ?? "";
    });
    if (/^\d+\.\d+$/.test(version)) this.#prefix = `/v${version}`;
  }

  /** Returns the response as JSON; undefined if it is empty. `doing` completes the sentence "The Docker Engine could not ...". */
  json<T>(doing: string, method: string, path: string, call: Call = {}): Promise<T | undefined> {
    return this.#call(method, this.#prefix + path, call, doing, async (response) => {
      const bytes = await this.#readBytes(doing, response, MAX_RESPONSE_BYTES);
      if (!response.ok || bytes.every((byte) => byte <= SPACE)) return undefined;
      return this.#parse<T>(doing, bytes);
    });
  }

  /** Returns the body of the response, of which at most `max` bytes are read. */
  bytes(doing: string, path: string, call: Call, max: number): Promise<Uint8Array> {
    return this.#call("GET", this.#prefix + path, call, doing, (response) => this.#readBytes(doing, response, max));
  }

  /** Returns the kind and size of a file of a container, without following a link; undefined if it does not exist. */
  findFile(container: string, path: string, signal: AbortSignal): Promise<ContainerFile | undefined> {
    const call = { query: { path }, signal, expectedStatuses: [404] };
    const archivePath = `${this.#prefix}/containers/${container}/archive`;
    return this.#call("HEAD", archivePath, call, "look at a file of the container", async ({ headers }) => {
      const text = Buffer.from(headers.get("x-docker-container-path-stat") ?? "", "base64").toString();
      const found = tryParseJson(text) as { size?: unknown; mode?: unknown; linkTarget?: unknown } | undefined;
      if (typeof found?.mode !== "number") return undefined;
      const link = typeof found.linkTarget === "string" ? found.linkTarget : "";
      return { isRegular: (found.mode & NON_REGULAR_BITS) === 0, size: Number(found.size), link };
    });
  }

  #readBytes(doing: string, response: Response, max: number): Promise<Uint8Array> {
    return readBytes(response, max).catch((error: unknown) => {
      throw this.#describeError(doing, error);
    });
  }

  #parse<T>(doing: string, text: string | Uint8Array): T {
    try {
      return parseJson(text, JSON_LIMITS) as T;
    } catch (error) {
      throw this.#describeError(doing, error);
    }
  }

  #describeError(doing: string, error: unknown): unknown {
    return error instanceof JsonProblem
      ? new EngineError(0, `The Docker Engine could not ${doing}: its answer ${error.message}`)
      : error;
  }

  /** Passes each line of a streamed response, parsed as JSON, to `onLine`. */
  lines(doing: string, method: string, path: string, call: Call, onLine: (line: unknown) => void): Promise<void> {
    return this.#call(method, this.#prefix + path, call, doing, async (response, keepAlive) => {
      const decoder = new TextDecoder();
      let partialLine = "";
      for await (const chunk of response.body ?? []) {
        keepAlive();
        const lines = (partialLine + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
        partialLine = lines.pop() ?? "";
        if (partialLine.length > MAX_LINE_CHARS) throw new EngineError(0, "The Docker Engine sent a line without end.");
        for (const line of lines) if (line.trim() !== "") onLine(this.#parse(doing, line));
      }
      if (partialLine.trim() !== "") onLine(this.#parse(doing, partialLine));
    });
  }

  /** Reads files of a container as a tar archive and passes it to `use`. Throws what `use` throws. */
  async readArchive<T>(
    container: string,
    path: string,
    signal: AbortSignal,
    use: (stream: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<T> {
    const call = { query: { path }, signal, timeout: COPY_IDLE_TIMEOUT_MS };
    const archivePath = `${this.#prefix}/containers/${container}/archive`;
    type Outcome = { readonly value: T } | { readonly error: unknown };
    const outcome = await this.#call(
      "GET",
      archivePath,
      call,
      "read the files of a volume",
      async ({ body }, keepAlive) => {
        if (!body) throw new EngineError(0, "The Docker Engine sent no files.");
        // An error of `use` is wrapped, so that `#call` does not report it as an error of the engine.
        return use(this.#readChunks(body, keepAlive)).then<Outcome, Outcome>(
          (value) => ({ value }),
          (error: unknown) => ({ error }),
        );
      },
    );
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  async *#readChunks(body: ReadableStream<Uint8Array>, keepAlive: () => void): AsyncGenerator<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]();
    for (;;) {
      const next = await chunks.next().catch((error: unknown) => Promise.reject(this.#toUnreachable(error)));
      keepAlive();
      if (next.done) return;
      yield next.value;
    }
  }

  /** Unpacks a tar archive into a folder of a container. Returns the number of bytes of the archive. */
  async writeArchive(
    container: string,
    path: string,
    stream: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<number> {
    let bytes = 0;
    const source = stream[Symbol.asyncIterator]();
    let failure: { readonly error: unknown } | undefined;
    const tar = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const next = await source.next();
          if (next.done) return controller.close();
          bytes += next.value.byteLength;
          controller.enqueue(next.value);
        } catch (error) {
          failure = { error };
          controller.error(error);
        }
      },
      cancel: async () => {
        await source.return?.();
      },
    });
    const call = { query: { path }, tar, signal, timeout: COPY_TIMEOUT_MS };
    const archivePath = `${this.#prefix}/containers/${container}/archive`;
    try {
      await this.#call("PUT", archivePath, call, "write the files of a volume", (response) => response.text());
    } catch (error) {
      throw failure ? failure.error : error;
    }
    if (failure) throw failure.error;
    return bytes;
  }

  async #call<T>(
    method: string,
    path: string,
    call: Call,
    doing: string,
    read: (response: Response, keepAlive: () => void) => Promise<T>,
  ): Promise<T> {
    const { query, body, tar, headers = {}, signal, timeout = TIMEOUT_MS, expectedStatuses = [] } = call;
    signal?.throwIfAborted();
    const aborter = new AbortController();
    const timeoutError = new EngineError(0, `The Docker Engine did not ${doing} within ${timeout / 1000} seconds.`);
    let timer = this.#clock.after(timeout, () => aborter.abort(timeoutError));
    const keepAlive = (): void => {
      timer.cancel();
      timer = this.#clock.after(timeout, () => aborter.abort(timeoutError));
    };
    const cancel = (): void => aborter.abort(signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    aborted.catch(() => {});
    aborter.signal.addEventListener("abort", () => reject(aborter.signal.reason), { once: true });
    try {
      const work = (async () => {
        const response = await fetch(`${this.#host.base}${path}${query ? `?${new URLSearchParams(query)}` : ""}`, {
          method,
          signal: aborter.signal,
          redirect: "manual",
          // Bun's default timeout would end a slow pull.
          timeout: false,
          ...(this.#host.socket === undefined ? {} : { unix: this.#host.socket }),
          headers,
          ...(body === undefined
            ? {}
            : { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } }),
          ...(tar === undefined ? {} : { body: tar, headers: { ...headers, "content-type": "application/x-tar" } }),
        } as RequestInit);
        if (response.ok || expectedStatuses.includes(response.status)) return await read(response, keepAlive);
        throw new EngineError(
          response.status,
          `The Docker Engine could not ${doing}: ${await readEngineError(response)}`,
        );
      })();
      // An aborted fetch may take a while to end, so the call does not wait for it.
      return await Promise.race([work, aborted]);
    } catch (error) {
      if (aborter.signal.aborted) throw aborter.signal.reason;
      throw error instanceof EngineError ? error : this.#toUnreachable(error);
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", cancel);
    }
  }

  #toUnreachable(error: unknown): EngineError {
    const { code, message } = error as { code?: unknown; message?: unknown };
    const reasons: Record<string, string> = {
      ENOENT: "there is no such socket",
      FailedToOpenSocket: "there is no such socket, or this program may not access it",
      EACCES: "this program may not access the socket",
      ECONNREFUSED: "the connection was refused",
      ConnectionRefused: "the connection was refused",
    };
    const reason = reasons[String(code)] ?? String(message);
    return new EngineError(0, `The Docker Engine is not responding at ${this.#host.shown}: ${reason}.`);
  }
}
