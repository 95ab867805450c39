// A consumer of lifecycle hooks for tests, in Python (consumer.py), and a server that asks it.
import { join } from "node:path";
import { needs } from "#test/support/needs.ts";

export const SECRET = "the-secret-of-the-hooks-of-32-bytes-or-more";
export const OLD_SECRET = "the-secret-before-that-of-32-bytes-or-more";

/** How an answer is given, where not well: see consumer.py. */
export type How =
  | "reset"
  | "slow"
  | "status"
  | "unsigned"
  | "wrongly signed"
  | "other body"
  | "expired"
  | "reflected"
  | "other event"
  | "replayed";

export type Rule = {
  readonly event: string;
  /** The tool it is for; every one when absent. */
  readonly tool?: string;
  /** How often; always when absent. */
  readonly times?: number;
  readonly answer?: unknown;
  readonly raw?: string;
  readonly how?: How;
  readonly status?: number;
  readonly seconds?: number;
};

export type Seen = {
  readonly event: string;
  readonly problems: readonly string[];
  readonly body: string;
  readonly authorization: string;
  readonly request: {
    readonly meta: Readonly<Record<string, string>>;
    readonly data: Readonly<Record<string, unknown>>;
  };
};

export class Consumer implements AsyncDisposable {
  readonly url: string;
  readonly #child: Bun.Subprocess;

  private constructor(port: number, child: Bun.Subprocess) {
    this.url = `http://127.0.0.1:${port}/hooks`;
    this.#child = child;
  }

  /** `port` 0: any. */
  static async start(secrets: readonly string[] = [SECRET], port = 0): Promise<Consumer> {
    const child = Bun.spawn([needs.python3.file, join(import.meta.dir, "consumer.py"), String(port)], {
      env: { HOOK_SECRETS: secrets.join(",") },
      stdout: "pipe",
      stderr: "inherit",
    });
    const reader = child.stdout.getReader();
    const { value } = await reader.read();
    reader.releaseLock();
    return new Consumer(Number(new TextDecoder().decode(value)), child);
  }

  /** The settings of a server that asks it. */
  env(more: Record<string, string> = {}): Record<string, string> {
    return { SLIPWAY_HOOK_URL: this.url, SLIPWAY_HOOK_SECRET: SECRET, ...more };
  }

  /** From now on it answers by these rules; to everything else it says nothing, well signed. */
  async rule(...rules: readonly Rule[]): Promise<void> {
    await fetch(new URL("/control", this.url), { method: "POST", body: JSON.stringify(rules) });
  }

  async seen(event?: string): Promise<Seen[]> {
    const all = (await (await fetch(new URL("/seen", this.url))).json()) as Seen[];
    return event === undefined ? all : all.filter((one) => one.event === event);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
