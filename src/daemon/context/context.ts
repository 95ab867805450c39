// Reports the context that the workspace provides to its chats. Scans when the start scripts have ended and after every change, and pushes
// each new snapshot to the server (facts/wire 1.5 PushContextState, rules CX-1, CX-5, CX-6). Stops after one attempt if the server does not
// support contexts.
import type { Clock } from "#base/clock.ts";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { RESOURCE_STATUSES, type StoredResource } from "#schema/chats/chat-context.ts";
import { RpcError } from "#src/wire/index.ts";
import { type Connection, DaemonStopped } from "../connection/connection.ts";
import type { WorkspaceMcp } from "./mcp.ts";
import { findContextRoots, LIMITS, scanContext } from "./scan.ts";
import { FolderWatch } from "./watch.ts";

/** Delay between a change and the scan, so that several changes cause one scan. */
const SETTLE_DELAY_MS = 250;
/** Rescan interval, in case the system misses a change notification. */
const POLL_INTERVAL_MS = 30_000;
const UNIMPLEMENTED = 12;

export type ContextOptions = {
  connection: Pick<Connection, "ask">;
  clock: Clock;
  signal: AbortSignal;
  directory: string;
  home: string;
  /** Additional folders to scan. */
  extra: readonly string[];
  mcp: WorkspaceMcp;
};

type Snapshot = { readonly version: number; readonly hash: string; readonly error: string } & {
  readonly resources: readonly StoredResource[];
};

export class WorkspaceContext {
  readonly #options: ContextOptions;
  #wake = Promise.withResolvers<void>();
  /** Resolves when the next scan has been pushed. */
  #pushed = Promise.withResolvers<void>();
  #snapshot: Snapshot = { version: 0, hash: "", error: "", resources: [] };

  constructor(options: ContextOptions) {
    this.#options = options;
  }

  /** The last pushed snapshot, without bodies. */
  get current() {
    const { resources, ...summary } = this.#snapshot;
    return { ...summary, resources: resources.map(({ body: _, ...one }) => one) };
  }

  /** Runs until the signal fires; never rejects. */
  async run(): Promise<void> {
    const { clock, signal, mcp } = this.#options;
    const wake = (): void => this.#wake.resolve();
    const folders = new FolderWatch(wake);
    mcp.onChange(() => {
      wake();
      return this.#pushed.promise;
    });
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        this.#wake = Promise.withResolvers();
        const pushed = this.#pushed;
        this.#pushed = Promise.withResolvers();
        const scan = await scanContext(await findContextRoots(this.#options));
        folders.set(scan.watched);
        mcp.use(scan.configs);
        const resources = [...scan.resources, ...mcp.resources].slice(0, LIMITS.count);
        if (!(await this.#push(resources, scan.error))) return;
        pushed.resolve();
        await Promise.race([this.#wake.promise, pause(clock, POLL_INTERVAL_MS, signal)]);
        await pause(clock, SETTLE_DELAY_MS, signal);
      }
    } catch (error) {
      if (!(error instanceof DaemonStopped))
        log("daemon").error("the context can no longer be reported: {error}", { error });
    } finally {
      folders.close();
    }
  }

  /** Returns false if the server does not support contexts. */
  async #push(resources: readonly StoredResource[], error: string): Promise<boolean> {
    const hash = sha256(JSON.stringify([error, resources]));
    const { version, hash: before } = this.#snapshot;
    if (hash === before) return true;
    const next = { version: version + 1, hash, error, resources };
    const request = {
      version: BigInt(next.version),
      aggregateHash: Buffer.from(hash, "hex"),
      initial: version === 0,
      snapshotError: error,
      resources: resources.map(toMessage),
    };
    try {
      await this.#options.connection.ask((api, abort) => api.pushContextState(request, abort));
      this.#snapshot = next;
    } catch (refusal) {
      if (!(refusal instanceof RpcError)) throw refusal;
      if (refusal.code === UNIMPLEMENTED) return false;
      log("daemon").warn("the server refused the context: {error}", { error: refusal });
    }
    return true;
  }
}

const encoder = new TextEncoder();

const toMessage = (resource: StoredResource) => {
  const {
    kind,
    status,
    source,
    size_bytes,
    error,
    body = "",
    skill_name = "",
    skill_description = "",
    tools,
  } = resource;
  const content = encoder.encode(body);
  const bodies = {
    instruction_file: { case: "instructionFile" as const, value: { content } },
    skill: { case: "skill" as const, value: { meta: content, name: skill_name, description: skill_description } },
    mcp_config: { case: "mcpConfig" as const, value: {} },
    mcp_server: {
      case: "mcpServer" as const,
      value: {
        serverName: source,
        tools: (tools ?? []).map(({ name, description, input_schema }) => ({
          name,
          description,
          inputSchema: input_schema as Record<string, never>,
        })),
      },
    },
  };
  return {
    source,
    sizeBytes: BigInt(size_bytes),
    status: 1 + RESOURCE_STATUSES.indexOf(status),
    error,
    contentHash: Buffer.from(sha256(body), "hex"),
    body: bodies[kind],
  };
};
