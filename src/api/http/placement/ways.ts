// By what it is known which node of a cluster an operation belongs to. Pure. Each operation declares its way (../operation.ts).
import type { Parted } from "#db/part-of.ts";

/**
 * `first`: the node that has what there is once. `here`: whichever node the request came to. `token`: by the agent's token. `owner`: by the
 * user who will own what is made. `named_workspace`: by names. `chat_workspace`: where the tunnel of the chat's workspace ends. All others
 * are by the id in a variable of the path, a task also by its name.
 */
export type Way = "first" | "here" | "owner" | "named_workspace" | "chat_workspace" | Parted;

/** A way with the variable of the path that has the id or the name. */
export type Found = { readonly way: Way; readonly variable: string };

/** The variables of a path that have it. */
const VARIABLES: Readonly<Partial<Record<Way, readonly string[]>>> = {
  owner: ["user"],
  named_workspace: ["workspacename"],
  workspace: ["workspace"],
  // A page names an agent in short.
  agent: ["workspaceagent", "agent"],
  build: ["workspacebuild"],
  chat: ["chat"],
  chat_workspace: ["chat"],
  // A dry run is of the part of its version.
  template_version: ["templateversion"],
  task: ["task"],
  trial: ["trial"],
  job: ["job"],
};

const inPath = (route: string, names: readonly string[]): string | undefined => {
  const segments = route.split("/");
  return names.find((name) => segments.includes(`:${name}`));
};

type Placed = { readonly route: string; readonly declared: { readonly placement?: Way } };

export const findWay = ({ route, declared: { placement: way = "first" } }: Placed): Found => ({
  way,
  variable: inPath(route, VARIABLES[way] ?? []) ?? "",
});

/** Whether a path names a thing that has a node of its own: its operation must declare a placement. */
export const namesPlace = (route: string): boolean =>
  route.startsWith("/api/v2/workspaceagents/me/") || inPath(route, NAMED) !== undefined;

const NAMED = [
  ...["workspacename", "workspace", "workspaceagent", "workspacebuild", "chat", "templateversion", "task"],
];
