// Detects containers of workspaces that were killed at their memory limit, from the engine's events. A daemon cannot report this, because
// it is killed with its container or runs in another one. The engine keeps a few hundred events, so a short disconnect usually loses none.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import type { ContainerKill } from "../provisioner.ts";
import { Engine } from "./engine.ts";
import { getContainerPrefix, WORKSPACE_LABEL } from "./volumes.ts";

/** Initial delay before reconnecting to an engine that does not respond; doubles up to the maximum. */
const INITIAL_RETRY_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** How long the event stream may be silent; a day without events is normal. */
const EVENTS_IDLE_TIMEOUT_MS = 86_400_000;
/** The first request includes the events of the last hour. */
const LOOKBACK_S = 3_600;
/** Maximum time between the kernel's kill and the end of the container. Their events may arrive in either order. */
const MAX_PAIR_GAP_MS = 10_000;
/** The exit code after SIGKILL. */
const KILLED_EXIT_CODE = "137";

type Event = {
  readonly Action?: string;
  readonly time?: number;
  readonly timeNano?: number;
  readonly Actor?: { readonly ID?: string; readonly Attributes?: Readonly<Record<string, string>> };
};

/** Matches the event of a kernel kill in a container with the event of the container's end. */
export class KillPairs {
  readonly #kernelKills = new Map<string, number>();
  readonly #ended = new Map<string, { readonly at: number; readonly kill: ContainerKill }>();

  /** Processes an event. Returns the kill once both of its events have arrived. */
  matchKill({ Action: action, time = 0, timeNano = time * 1e9, Actor: actor }: Event): ContainerKill | undefined {
    const { ID: id, Attributes: attributes = {} } = actor ?? {};
    const workspace_id = attributes[WORKSPACE_LABEL];
    if (id === undefined || workspace_id === undefined) return undefined;
    // A step of an image's build may have the same labels, but its name is not the name of a workspace's container.
    if (!attributes.name?.startsWith(getContainerPrefix(workspace_id))) return undefined;
    const at = Math.round(timeNano / 1e6);
    const isNear = (other: number | undefined): boolean =>
      other !== undefined && Math.abs(at - other) <= MAX_PAIR_GAP_MS;
    if (action === "oom") {
      const ended = this.#ended.get(id);
      this.#ended.delete(id);
      if (ended && isNear(ended.at)) return ended.kill;
      this.#kernelKills.set(id, at);
    }
    if (action !== "die") return undefined;
    const kill = { workspace_id, resource: attributes["slipway.resource"] ?? "", killed_at: at };
    const kernelKilledAt = this.#kernelKills.get(id);
    this.#kernelKills.delete(id);
    if (attributes.exitCode !== KILLED_EXIT_CODE) return undefined;
    if (isNear(kernelKilledAt)) return kill;
    this.#ended.set(id, { at, kill });
    return undefined;
  }
}

type FollowOptions = {
  readonly host: string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onKill: (kill: ContainerKill) => void;
};

/** Follows the engine's events until the signal aborts. Never rejects. May report a kill twice after a reconnect. */
export const followMemoryKills = async ({ host, clock, signal, onKill }: FollowOptions): Promise<void> => {
  const pairs = new KillPairs();
  let since = Math.floor(clock.now() / 1000) - LOOKBACK_S;
  let delay_ms = INITIAL_RETRY_MS;
  const onEvent = (line: unknown): void => {
    const event = line as Event;
    delay_ms = INITIAL_RETRY_MS;
    since = Math.max(since, event.time ?? 0);
    const kill = pairs.matchKill(event);
    if (kill) onKill(kill);
  };
  const filters = JSON.stringify({ type: ["container"], event: ["oom", "die"], label: [WORKSPACE_LABEL] });
  for (; !signal.aborted; delay_ms = Math.min(delay_ms * 2, MAX_WAIT_MS)) {
    try {
      const engine = new Engine(host, clock);
      await engine.connect(signal);
      const query = { filters, since: String(since) };
      await engine.lines(
        "follow container events",
        "GET",
        "/events",
        { query, signal, timeout: EVENTS_IDLE_TIMEOUT_MS },
        onEvent,
      );
    } catch (error) {
      if (!signal.aborted) log("docker").debug("containers are not followed: {error}", { error });
    }
    await pause(clock, delay_ms, signal);
  }
};
