// Declares how the node of an operation is determined. Pure. Each operation declares its strategy (../operation.ts).
import type { ShardedKind } from "#db/find-shard.ts";

/**
 * `first`: the node that owns cluster-wide singletons. `here`: the node that received the request. `token`: the agent of the token.
 * `owner`: the user who will own the new resource. `named_workspace`: names in the path. `chat_workspace`: where the tunnel of the chat's
 * workspace ends. All others use the ID in a path variable; a task can also be given by name.
 */
export type PlacementKind = "first" | "here" | "owner" | "named_workspace" | "chat_workspace" | ShardedKind;

/** A strategy, with the path variable that has the ID or name. */
export type RequestPlacement = { readonly way: PlacementKind; readonly variable: string };

/** The path variables for each strategy. */
const VARIABLES: Readonly<Partial<Record<PlacementKind, readonly string[]>>> = {
  owner: ["user"],
  named_workspace: ["workspacename"],
  workspace: ["workspace"],
  // Page paths use `agent` for short.
  agent: ["workspaceagent", "agent"],
  build: ["workspacebuild"],
  chat: ["chat"],
  chat_workspace: ["chat"],
  // A dry run belongs to the shard of its version.
  template_version: ["templateversion"],
  task: ["task"],
  trial: ["trial"],
  job: ["job"],
};

const findVariable = (route: string, names: readonly string[]): string | undefined => {
  const segments = route.split("/");
  return names.find((name) => segments.includes(`:${name}`));
};

type PlacedOperation = { readonly route: string; readonly declared: { readonly placement?: PlacementKind } };

export const findPlacement = ({
  route,
  declared: { placement: way = "first" },
}: PlacedOperation): RequestPlacement => ({
  way,
  variable: findVariable(route, VARIABLES[way] ?? []) ?? "",
});

/** Returns whether a path names a resource that belongs to a node; its operation must then declare a placement. */
export const needsPlacement = (route: string): boolean =>
  route.startsWith("/api/v2/workspaceagents/me/") || findVariable(route, NODE_VARIABLES) !== undefined;

const NODE_VARIABLES = [
  ...["workspacename", "workspace", "workspaceagent", "workspacebuild", "chat", "templateversion", "task"],
];
