// By what it is known which node of a cluster a request belongs to, for each operation. Pure; test/cluster/placement/table.ts has all of them.
import type { Parted } from "#db/part-of.ts";
import type { Declared } from "../operation.ts";

/**
 * `first`: the node that has what there is once. `here`: whichever node it came to. `token`: by the agent's token. `owner`: by the user who
 * will own what is made. `named_workspace`: by names. `chat_workspace`: where the tunnel of the chat's workspace ends. All others are by the
 * id in a variable of the path, a task also by its name.
 */
export type Way = "first" | "here" | "owner" | "named_workspace" | "chat_workspace" | Parted;

/** A way with the variable of the path that has the id or the name. */
export type Found = { readonly way: Way; readonly variable: string };

/** The first that a route has counts: what is inside of a workspace is the workspace's. */
const BY_VARIABLE: readonly (readonly [variable: string, way: Way])[] = [
  ["workspacename", "named_workspace"],
  ["workspace", "workspace"],
  ["workspaceagent", "agent"],
  ["workspacebuild", "build"],
  ["chat", "chat"],
  // A dry run is of the part of its version.
  ["templateversion", "template_version"],
  ["task", "task"],
];

const BY_ROUTE: Readonly<Record<string, Found>> = {
  // The keeper of prebuilds and workers of their own are where there is one of each.
  "GET /api/v2/templateversions/:templateversion/presets": { way: "first", variable: "" },
  "GET /api/v2/templateversions/:templateversion/dry-run/:job/matched-provisioners": { way: "first", variable: "" },
  // What the node says of itself.
  "GET /healthz": { way: "here", variable: "" },
  "GET /readyz": { way: "here", variable: "" },
  // They live by the database and by what is heard on all nodes.
  "GET /api/v2/workspaces/watch": { way: "here", variable: "" },
  "POST /api/v2/chats": { way: "owner", variable: "" },
  // All chats of a user are of one part, and are told there in order.
  "GET /api/v2/chats/watch": { way: "owner", variable: "" },
  "POST /api/v2/tasks/:user": { way: "owner", variable: "user" },
  "POST /api/v2/users/:user/workspaces": { way: "owner", variable: "user" },
  "POST /api/v2/organizations/:organization/members/:user/workspaces": { way: "owner", variable: "user" },
  "GET /api/v2/chats/:chat/stream/git": { way: "chat_workspace", variable: "chat" },
  "GET /api/v2/chats/:chat/stream/desktop": { way: "chat_workspace", variable: "chat" },
  "GET /api/v2/organizations/:organization/provisionerjobs/:job": { way: "job", variable: "job" },
  "GET /api/v2/organizations/:organization/provisionerjobs/:job/logs": { way: "job", variable: "job" },
  "GET /terminals/:agent": { way: "agent", variable: "agent" },
};

const OWN_AGENT = "/api/v2/workspaceagents/me/";
const FIRST: Found = { way: "first", variable: "" };
const HERE: Found = { way: "here", variable: "" };

type Placed = { readonly method: string; readonly route: string; readonly declared: Pick<Declared, "anywhere"> };

export const wayOf = ({ method, route, declared }: Placed): Found => {
  // Chats and skills have two addresses.
  const known = BY_ROUTE[`${method} ${route.replace(/^\/api\/experimental\//, "/api/v2/")}`];
  if (known) return known;
  if (declared.anywhere) return HERE;
  if (route.startsWith(OWN_AGENT)) return { way: "token", variable: "" };
  const segments = route.split("/");
  const found = BY_VARIABLE.find(([variable]) => segments.includes(`:${variable}`));
  return found ? { variable: found[0], way: found[1] } : FIRST;
};
