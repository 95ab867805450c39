// External workers for tests: the real program as a second process, or a bare socket that speaks the protocol of workers.
import type { Manifest } from "#schema/templates/manifest.ts";
import type { NewProvisionerKey } from "#schema/templates/provisioner.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { printTags, type Tags } from "#src/provisioners/external/tags.ts";
import { toProgramCommand } from "./program.ts";

const SERVE = "/api/v2/organizations/default/provisionerdaemons/serve";

let workerCount = 0;

/** Creates a provisioner key of the default organization. */
export const makeKey = async (admin: Client, tags: Tags = {}): Promise<NewProvisionerKey> =>
  admin.post<NewProvisionerKey>("/api/v2/organizations/default/provisionerkeys", {
    name: `key-${++workerCount}`,
    tags,
  });

export type WorkerProcess = AsyncDisposable & {
  readonly name: string;
  /** Resolves once the server has accepted the worker `times` times. */
  connected(times?: number): Promise<void>;
  signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT" | "SIGTERM"): void;
  readonly exited: Promise<number>;
  /** Returns the worker's error output so far. */
  errors(): string;
  /** Resolves once the worker has written more error output. */
  wrote(): Promise<void>;
};

/** Starts `slipway provisioner` as a process, which is killed when disposed. */
export const startWorker = (options: {
  url: URL;
  key: string;
  name: string;
  directory: string;
  tags?: Tags;
  slots?: number;
  kinds?: string;
  env?: Record<string, string>;
}): WorkerProcess => {
  const child = Bun.spawn([...toProgramCommand(), "provisioner"], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: options.directory,
      SLIPWAY_TEST_EVEN: "1",
      SLIPWAY_WORKER_URL: options.url.origin,
      SLIPWAY_WORKER_KEY: options.key,
      SLIPWAY_WORKER_NAME: options.name,
      SLIPWAY_WORKER_DATA_DIR: options.directory,
      SLIPWAY_WORKER_PROVISIONERS: options.kinds ?? "echo",
      SLIPWAY_WORKER_SLOTS: String(options.slots ?? 2),
      ...options.env,
      ...(options.tags ? { SLIPWAY_WORKER_TAGS: printTags(options.tags) } : {}),
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = new OutputReader(child.stdout);
  const errors = new OutputReader(child.stderr);
  return {
    name: options.name,
    connected: (times = 1) => output.until((text) => text.split("is connected to").length > times),
    signal: (name) => child.kill(name),
    exited: child.exited,
    errors: () => errors.text,
    wrote: () => errors.nextOutput(),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
};

class OutputReader {
  text = "";
  #ended = false;
  readonly #waiting = new Set<() => void>();

  constructor(output: ReadableStream<Uint8Array>) {
    void this.#read(output);
  }

  async until(isReached: (text: string) => boolean): Promise<void> {
    while (!isReached(this.text)) {
      if (this.#ended) throw new Error(`the process ended first: ${this.text}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  nextOutput(): Promise<void> {
    const length = this.text.length;
    return this.until((text) => text.length > length);
  }

  async #read(output: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of output as unknown as AsyncIterable<Uint8Array>) {
      this.text += decoder.decode(chunk, { stream: true });
      this.#wake();
    }
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
    this.#waiting.clear();
  }
}

/** Opens a socket that has signed in as a worker, and reads the server's welcome. */
export const openWorker = async (
  url: URL,
  key: string,
  query: Record<string, string> = {},
): Promise<{ socket: ClientSocket; id: string; say: (message: object) => void }> => {
  const search = new URLSearchParams({ name: "raw", provisioners: "echo", ...query });
  const socket = await new Client(url, key).socket(`${SERVE}?${search}`);
  const { id } = await socket.json<{ id: string }>();
  return { socket, id, say: (message) => socket.send(JSON.stringify(message)) };
};

export type JobMessage = {
  type: string;
  job_id?: string;
  request: { job_id: string; agents: { token: string }[]; manifest: Pick<Manifest, "provisioner"> };
};
