// A test consumer of lifecycle hooks, in Python (consumer.py), and a server that calls it.
import { join } from "node:path";
import { needs } from "#test/support/needs.ts";

export const SECRET = "the-secret-of-the-hooks-of-32-bytes-or-more";
export const OLD_SECRET = "the-secret-before-that-of-32-bytes-or-more";

/** How the consumer answers incorrectly (consumer.py). */
export type FaultMode =
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
  /** The tool that the rule applies to; all tools if absent. */
  readonly tool?: string;
  /** How often the rule applies; always if absent. */
  readonly times?: number;
  readonly answer?: unknown;
  readonly raw?: string;
  readonly how?: FaultMode;
  readonly status?: number;
  readonly seconds?: number;
};

export type ReceivedHook = {
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

  /** Starts a consumer. With port 0, on any free port. */
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

  /** Returns the settings of a server that calls this consumer. */
  env(settings: Record<string, string> = {}): Record<string, string> {
    return { SLIPWAY_HOOK_URL: this.url, SLIPWAY_HOOK_SECRET: SECRET, ...settings };
  }

  /** Sets the rules. Other requests get an empty answer with a valid signature. */
  async rule(...rules: readonly Rule[]): Promise<void> {
    await fetch(new URL("/control", this.url), { method: "POST", body: JSON.stringify(rules) });
  }

  async listReceived(event?: string): Promise<ReceivedHook[]> {
    const received = (await (await fetch(new URL("/seen", this.url))).json()) as ReceivedHook[];
    return event === undefined ? received : received.filter((hook) => hook.event === event);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
