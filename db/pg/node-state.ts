// A node's state: its role, the lease holder, whether the database answers, and its standbys. Used by the log, /readyz and metrics. Pure.
import type { NodeState } from "#schema/readiness.ts";
import { type ClusterView, isStandbyMissing } from "./lease.ts";

/** The state, and the other node that holds the lease. */
export type SeenState = NodeState & { readonly holder: string | undefined };

type StateInput = {
  readonly isActive: boolean;
  readonly serves: boolean;
  readonly isSilent: boolean;
  /** Another node that holds the lease. */
  readonly leader: string | undefined;
  readonly view: ClusterView | undefined;
};

export const toSeenState = ({ isActive, serves, isSilent, leader, view }: StateInput): SeenState => ({
  node: isActive ? "active" : "spare",
  lease: isActive ? (serves ? "held" : "lapsed") : leader === undefined ? "free" : "elsewhere",
  database: isSilent ? "silent" : "answers",
  standby: toStandby(view),
  holder: isActive ? undefined : leader,
});

const toStandby = (view: ClusterView | undefined): NodeState["standby"] => {
  if (!view?.standby.required) return "not required";
  if (isStandbyMissing(view)) return "missing";
  return view.standby.synchronous === undefined ? "hidden" : "connected";
};

/** `text` has placeholders for {id}, {epoch}, {holder} and {reason}. */
export type LogLine = { readonly level: "info" | "warn" | "error"; readonly text: string };

/** Returns one line per change. `before`: undefined for a node that has just joined. */
export const describeChanges = (before: SeenState | undefined, after: SeenState): LogLine[] => {
  const database = before?.database ?? "answers";
  const lines = [
    after.lease !== before?.lease || after.holder !== before.holder ? describeLease(before, after) : undefined,
    after.database !== database ? DATABASE_LINES[after.database] : undefined,
    after.standby !== before?.standby ? describeStandby(before?.standby, after.standby) : undefined,
  ];
  return lines.filter((line) => line !== undefined);
};

const describeLease = (before: SeenState | undefined, { lease }: SeenState): LogLine | undefined => {
  if (lease === "held") return { level: "info", text: "node {id} is active, epoch {epoch}" };
  if (lease === "lapsed") {
    return { level: "error", text: "node {id} could not renew its lease: it answers no requests until it can" };
  }
  if (lease === "elsewhere") return { level: "info", text: "node {id} stands by: {holder} is active" };
  return before
    ? { level: "warn", text: "node {id} sees no active node: requests wait until there is one" }
    : undefined;
};

const DATABASE_LINES: Readonly<Record<NodeState["database"], LogLine>> = {
  silent: { level: "warn", text: "the database does not answer node {id}: {reason}" },
  answers: { level: "info", text: "the database answers node {id} again" },
};

const describeStandby = (
  before: NodeState["standby"] | undefined,
  after: NodeState["standby"],
): LogLine | undefined => {
  if (after === "missing") {
    return { level: "error", text: "no synchronous standby of the database is connected: writes wait until one is" };
  }
  if (before === "missing") {
    return after === "not required"
      ? { level: "warn", text: "the database requires no synchronous standby any more: writes wait for none" }
      : { level: "info", text: "a synchronous standby of the database is connected again" };
  }
  if (after === "hidden") {
    return {
      level: "warn",
      text: "whether a standby is connected cannot be seen: grant pg_monitor to the database's user",
    };
  }
  return undefined;
};
