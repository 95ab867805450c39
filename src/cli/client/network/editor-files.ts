// Files that an editor's plug-in reads while OpenSSH holds a connection through this program: network statistics, and a log. Their names
// contain the process ID of the ssh that started this program, by which the plug-in finds them (docs/editors.md).
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "#src/client.ts";
import type { NetworkPeer } from "#src/tailnet/index.ts";
import type { ConnectionUse } from "#src/wire/index.ts";
import type { VerbInput } from "../../verb.ts";

/** Plug-ins consider the file stale after five intervals. */
const WRITE_INTERVAL_MS = 3_000;
const PING_TIMEOUT_MS = 5_000;
/** A log stops growing at this size, with a final note. */
const MAX_LOG_BYTES = 10 * 1024 * 1024;

/** Counts the bytes transferred since the last read. */
export class Traffic {
  readonly #use: ConnectionUse | undefined;
  #up = 0;
  #down = 0;

  /** `use` counts sent bytes. */
  constructor(use?: ConnectionUse) {
    this.#use = use;
  }

  addUp(bytes: number): void {
    this.#up += bytes;
    this.#use?.onSent(bytes);
  }

  addDown(bytes: number): void {
    this.#down += bytes;
  }

  takeCounts(): { up: number; down: number } {
    const counts = { up: this.#up, down: this.#down };
    this.#up = 0;
    this.#down = 0;
    return counts;
  }
}

type TrackedConnection = { client: Client; peer: NetworkPeer; agent_id: string; traffic: Traffic };

/** Writes `<pid>.json` into the folder periodically until disposed, which removes it. */
export class NetworkInfo implements Disposable {
  readonly #input: VerbInput;
  readonly #connection: TrackedConnection;
  readonly #file: string;
  readonly #timer: { cancel(): void };
  #region: Promise<string> | undefined;
  #isBusy = false;
  #isDisposed = false;
  #measuredAt: number;

  constructor(input: VerbInput, connection: TrackedConnection, folder: string) {
    this.#input = input;
    this.#connection = connection;
    mkdirSync(folder, { recursive: true });
    this.#file = join(folder, `${input.parentPid ?? 0}.json`);
    this.#measuredAt = input.clock.monotonic();
    this.#timer = input.clock.every(WRITE_INTERVAL_MS, () => void this.#measure());
    void this.#measure();
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#timer.cancel();
    rmSync(this.#file, { force: true });
  }

  async #measure(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      const { client, peer, agent_id, traffic } = this.#connection;
      this.#region ??= loadRegionName(client);
      const [latency, relay, region] = await Promise.all([
        peer.ping(agent_id, PING_TIMEOUT_MS),
        measureRelayLatency(client, this.#input),
        this.#region,
      ]);
      const now = this.#input.clock.monotonic();
      const seconds = (now - this.#measuredAt) / 1_000;
      this.#measuredAt = now;
      const { up, down } = traffic.takeCounts();
      // If a workspace does not answer, the file is left unchanged and becomes stale, which plug-ins check.
      if (latency !== undefined && !this.#isDisposed) {
        this.#write({
          p2p: false,
          latency,
          preferred_derp: region,
          derp_latency: { [region]: relay },
          upload_bytes_sec: seconds > 0 ? Math.round(up / seconds) : 0,
          download_bytes_sec: seconds > 0 ? Math.round(down / seconds) : 0,
          using_coder_connect: false,
        });
      }
    } catch {
      // The server may be unreachable, or the disk full. The next interval retries.
      this.#region = undefined;
    } finally {
      this.#isBusy = false;
    }
  }

  #write(info: object): void {
    const partFile = `${this.#file}.part`;
    writeFileSync(partFile, JSON.stringify(info));
    renameSync(partFile, this.#file);
  }
}

/** Returns the name of the server's only relay region. */
const loadRegionName = async (client: Client): Promise<string> => {
  const { derp_map } = await client.get("/api/v2/workspaceagents/connection");
  return Object.values(derp_map.regions)[0]?.regionName ?? "relay";
};

const measureRelayLatency = async (client: Client, { clock }: Pick<VerbInput, "clock">): Promise<number> => {
  const startedAt = clock.monotonic();
  await client.fetch("GET", "/derp/latency-check");
  return clock.monotonic() - startedAt;
};

/** Returns a function that logs one line per event to a file in the folder; without a folder nothing is written. */
export const createProxyLog = (
  { clock, parentPid = 0 }: VerbInput,
  folder: string | undefined,
): ((line: string) => void) => {
  if (folder === undefined) return () => {};
  mkdirSync(folder, { recursive: true });
  const stamp = new Date(clock.now())
    .toISOString()
    .replaceAll(/[-:]|\.\d+Z/g, "")
    .replace("T", "-");
  const file = join(folder, `coder-ssh-${stamp}-${parentPid}.log`);
  let size = 0;
  return (line) => {
    if (size > MAX_LOG_BYTES) return;
    size += line.length;
    const text = `${new Date(clock.now()).toISOString()} ${size > MAX_LOG_BYTES ? "log truncated: the size limit was reached" : line}\n`;
    try {
      appendFileSync(file, text, { mode: 0o600 });
    } catch {
      // A connection continues if its log can't be written.
    }
  };
};
