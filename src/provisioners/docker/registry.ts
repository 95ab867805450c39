// Shares repository images between engines through a registry. Pulls an image that another engine has already built, and pushes new images
// in the background. Errors of the registry do not fail a build: they are logged, and pushes are retried (rules IB-1 to IB-3). Each call
// contains the credentials, so that the engine does not have to store them.
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { type Engine, EngineError } from "./engine.ts";
import { fetchImage, type Pull, toAuthHeader } from "./pull.ts";

export type RegistryOptions = {
  /** Registry, path and name without a tag, such as `registry.example.com/acme/workspaces`; each image has its own tag. */
  readonly name: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
};

/** Timeout for asking a registry whether it has an image, in milliseconds. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Milliseconds without progress after which a push is aborted. */
const PUSH_IDLE_TIMEOUT_MS = 5 * 60_000;
/** How long builds skip a registry that did not respond, so that they do not all wait for it. */
const UNREACHABLE_TTL_MS = 60_000;
/** Initial delay before a push is retried; doubles up to the maximum. */
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 30 * 60_000;
/** Maximum number of images that wait for a push. Other images are pushed when they are next used. */
const MAX_QUEUED = 100;

type SharedImage = {
  readonly image: string;
  readonly key: string;
  /** The names of the image in registries, as the engine reports them. */
  readonly digests: readonly string[];
};
type QueuedPush = { readonly engine: Engine; readonly image: string; readonly key: string };

/** Why the registry cannot be used. `wrong`: the registry refuses the credentials, so a retry does not help. */
export type RegistryProblem = { readonly kind: "wrong" | "unreachable"; readonly message: string };

export class ImageRegistry {
  readonly name: string;
  readonly #clock: Clock;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #queue = new Map<string, QueuedPush>();
  #lastProblem: string | undefined;
  #skippedUntil = 0;
  #pushing: Promise<void> | undefined;
  #retry: Timer | undefined;
  #delay = RETRY_MS;
  readonly #stopped = new AbortController();

  constructor({ name, user, password }: RegistryOptions, clock: Clock) {
    this.name = name;
    this.#clock = clock;
    const signIn = user === undefined ? {} : { username: user, password: password ?? "", serveraddress: toHost(name) };
    this.#headers = toAuthHeader(signIn);
  }

  /** Pulls the image with this key and returns its name. If that fails, returns undefined and reports the reason in the build log. */
  async pull(pull: Pull, key: string): Promise<string | undefined> {
    const { engine, report, stage, signal } = pull;
    const host = toHost(this.name);
    if (this.#clock.now() < this.#skippedUntil) {
      report.log("info", stage, `Skipping the registry ${host}, which did not answer a moment ago.`);
      return undefined;
    }
    try {
      const image = `${this.name}:${await readTag(engine, key, signal)}`;
      if (!(await this.#hasImage(engine, image, signal))) {
        report.log("info", stage, `The registry ${host} does not have the image yet.`);
        return undefined;
      }
      report.log("info", stage, `Pulling the image of the repository from the registry ${host}.`);
      await fetchImage(pull, image, this.#headers);
      return image;
    } catch (error) {
      signal.throwIfAborted();
      this.#recordProblem(error);
      report.log("warn", stage, `The image cannot be pulled from the registry ${host}: ${toReason(error)}`);
      return undefined;
    }
  }

  /** Pushes the image in the background unless the registry already has it. Retries until it succeeds. */
  pushInBackground({ engine, report, stage }: Pull, { image, key, digests }: SharedImage): void {
    if (digests.some((digest) => digest.startsWith(`${this.name}@`))) return;
    const lastProblem = this.#queue.has(key) ? this.#lastProblem : undefined;
    const suffix = lastProblem === undefined ? "" : ` The last try failed: ${lastProblem}`;
    const message = `Pushing the image to the registry ${toHost(this.name)} in the background.${suffix}`;
    report.log(lastProblem === undefined ? "info" : "warn", stage, message);
    if (this.#stopped.signal.aborted || this.#queue.size >= MAX_QUEUED) return;
    this.#queue.set(key, { engine, image, key });
    // While a failed push waits for its retry, all queued pushes wait.
    if (!this.#retry) this.#startPushing();
  }

  /** Checks whether the registry accepts these credentials. Returns undefined if it does. */
  async check(engine: Engine, signal?: AbortSignal): Promise<RegistryProblem | undefined> {
    try {
      await this.#hasImage(engine, `${this.name}:check`, signal);
      return undefined;
    } catch (error) {
      signal?.throwIfAborted();
      return { kind: isRefusal(error) ? "wrong" : "unreachable", message: toReason(error) };
    }
  }

  /** Stops pushing; a queued image is pushed when it is next used. */
  stop(): void {
    this.#stopped.abort(new Error("the server stops"));
    this.#retry?.cancel();
  }

  async #hasImage(engine: Engine, image: string, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      await engine.json("ask the registry for the image", "GET", `/distribution/${image}/json`, {
        signal,
        timeout: REQUEST_TIMEOUT_MS,
        headers: this.#headers,
      });
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  #startPushing(): void {
    if (this.#pushing) return;
    this.#retry = undefined;
    this.#pushing = this.#pushAll().finally(() => {
      this.#pushing = undefined;
    });
  }

  async #pushAll(): Promise<void> {
    for (const push of this.#queue.values()) {
      if (this.#stopped.signal.aborted) return;
      try {
        await this.#pushOne(push);
        this.#queue.delete(push.key);
        this.#lastProblem = undefined;
        this.#delay = RETRY_MS;
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#recordProblem(error);
        this.#lastProblem = toReason(error);
        log("docker").warn("image {image} is not in the registry yet: {reason}", {
          image: push.image,
          reason: this.#lastProblem,
        });
        this.#retry = this.#clock.after(this.#delay, () => this.#startPushing());
        this.#delay = Math.min(this.#delay * 2, MAX_RETRY_MS);
        return;
      }
    }
  }

  async #pushOne({ engine, image, key }: QueuedPush): Promise<void> {
    const { signal } = this.#stopped;
    // The image may have been removed while it was queued.
    const found = await engine.json("look for the image", "GET", `/images/${image}/json`, {
      signal,
      expectedStatuses: [404],
    });
    if (found === undefined) return;
    const tag = await readTag(engine, key, signal);
    await engine.json("tag the image", "POST", `/images/${image}/tag`, { query: { repo: this.name, tag }, signal });
    const onProgress = (line: unknown): void => {
      const { error } = line as { error?: string };
      if (error !== undefined) throw new EngineError(0, error);
    };
    const call = { query: { tag }, signal, timeout: PUSH_IDLE_TIMEOUT_MS, headers: this.#headers };
    await engine.lines("push the image", "POST", `/images/${this.name}/push`, call, onProgress);
    log("docker").info("pushed image {image} to {registry}", { image, registry: this.name });
  }

  #recordProblem(error: unknown): void {
    if (!isRefusal(error)) this.#skippedUntil = this.#clock.now() + UNREACHABLE_TTL_MS;
  }
}

/** Returns the tag of an image. It includes the engine's architecture, because engines of other architectures may share the registry. */
const readTag = async (engine: Engine, key: string, signal: AbortSignal): Promise<string> => {
  const version = await engine.json<{ Arch?: string }>("report its architecture", "GET", "/version", { signal });
  return `${key}-${version?.Arch ?? "unknown"}`;
};

const toHost = (name: string): string => name.split("/")[0] ?? name;

const isMissing = (error: unknown): boolean =>
  error instanceof EngineError &&
  (error.status === 404 || /manifest unknown|not found|name unknown/i.test(error.message));

const isRefusal = (error: unknown): boolean =>
  error instanceof EngineError &&
  ([401, 403].includes(error.status) ||
    /unauthorized|denied|authentication required|no basic auth credentials/i.test(error.message));

const toReason = (error: unknown): string => {
  const { message } = error as Error;
  return isRefusal(error) ? `${message} Check repository_registry_user and repository_registry_password.` : message;
};
