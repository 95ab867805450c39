// What each operation that changes something leaves in the audit log when it is refused, read by everything.test.ts. A new operation
// either declares its `audit` target where its route is, or is listed here with the reason; until then the test fails (rule AU-17).
import { rowOf } from "../edge/matrix-call.ts";
import type { Row } from "../edge/matrix-table.ts";
import { A, K, O, T, U, W } from "../edge/paths.ts";
import { AUDITED, toldOf, UNTOLD } from "./table.ts";

const LINKED = [`DELETE ${O}/mcp-servers/{mcp_server}/oauth2`, "DELETE /api/v2/external-auth/{externalauth}"];

/** `action resource_type` where the refusal is notified of in other words than the success, or the success elsewhere than in the table. */
const OTHERWISE: Readonly<Record<string, string>> = {
  // Which versions would have been archived nobody knows.
  [`POST ${T}/versions/archive`]: "write template",
  // A success makes the first pair, and a refusal is notified of where there is one.
  [`PUT ${U}/gitsshkey`]: "write git_ssh_key",
  [`PATCH ${W}`]: "write workspace",
  // The stop comes first; what was wanted is the start.
  [`POST ${W}/restart`]: "start workspace_build",
  // It is the task that someone may not touch, and with it the workspace.
  ...Object.fromEntries(["pause", "resume"].map((word) => [`POST ${K}/${word}`, "write task"])),
  [`DELETE ${K}`]: "delete task",
  // The port is shared already when it is asked for.
  [`POST ${W}/port-share`]: "write port_share",
  ...Object.fromEntries(LINKED.map((name) => [name, "delete external_auth_link"])),
  [`POST ${W}/restore`]: "write workspace",
  [`POST ${W}/snapshots`]: "create workspace_snapshot",
  [`POST ${W}/snapshots/{snapshot}/restore`]: "write workspace_snapshot",
  [`POST ${W}/home-backups`]: "create workspace_snapshot",
  [`POST ${W}/home-backups/{backup}/fetch`]: "create workspace_snapshot",
  [`DELETE ${W}/home-backups/{backup}`]: "delete workspace_snapshot",
  [`POST ${W}/forks`]: "create workspace_snapshot",
  [`DELETE ${W}/snapshots/{snapshot}`]: "delete workspace_snapshot",
};

/** A port that is shared beforehand. */
export const REFUSED_PORT = { agent_name: "dev", port: 9090, protocol: "http", share_level: "owner" };

/** Calls on what is there beforehand, and not used up by others. */
const ROWS: Readonly<Record<string, Partial<Row>>> = {
  [`PUT ${U}/gitsshkey`]: { path: { user: "{bob}" } },
  [`POST ${W}/port-share`]: { body: REFUSED_PORT },
  [`DELETE ${W}/port-share`]: { body: REFUSED_PORT },
};

export const refusedRow = (name: string): Row => ({ ...rowOf(name), ...ROWS[name] });

/** What the entry of a refusal is: as a rule what that of a success would have been. */
export const refusedAs = (name: string): readonly string[] => {
  const otherwise = OTHERWISE[name];
  return otherwise === undefined ? toldOf(name).is.split(", ") : [otherwise];
};

/** Operations on what is not there in the town of the matrix: their refusals must leave no entry there. */
export const ABSENT: ReadonlySet<string> = new Set([
  ...LINKED,
  `POST ${W}/snapshots/{snapshot}/restore`,
  `DELETE ${W}/snapshots/{snapshot}`,
  `DELETE ${W}/home-backups/{backup}`,
  "PUT /api/v2/chats/config/user-compaction-thresholds/{model}",
  "DELETE /api/v2/chats/config/user-compaction-thresholds/{model}",
  "DELETE /api/v2/ai/budgets/{budget}",
  "POST /api/v2/ai/budgets/{budget}/raise",
  "DELETE /api/v2/chats/usage-limits/overrides/{user}",
  "DELETE /api/v2/chats/usage-limits/group-overrides/{group}",
]);

const MAKES = [
  ...[
    "POST /api/v2/users",
    `POST ${U}/keys`,
    `POST ${A}/keys`,
    `POST ${A}/apps/{app}/link`,
    `POST ${U}/keys/tokens`,
    `POST ${U}/skills`,
    `POST ${U}/secrets`,
    `POST ${U}/deploy-keys`,
    "POST /api/v2/oauth2-provider/apps",
    "POST /api/v2/oauth2-provider/apps/{oauth2_app}/secrets",
    "POST /api/v2/files",
  ],
  ...[
    "POST /api/v2/organizations",
    `POST ${O}/mcp-servers`,
    `POST ${O}/groups`,
    `POST ${O}/provisionerkeys`,
    `POST ${O}/templates`,
  ],
  ...[`POST ${O}/templateversions`, `POST ${U}/workspaces`, `POST ${O}/members/{user}/workspaces`],
  ...["POST /api/v2/tasks/{user}", "POST /api/v2/chats", "POST /api/v2/chats/{chat}/fork"],
  ...["POST /api/v2/chats/providers", "POST /api/v2/chats/model-configs"],
];

/** Operations whose refusal leaves no entry, and why. */
export const UNTOLD_REFUSALS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.keys(UNTOLD)
      .filter((name) => !(name in OTHERWISE))
      .map((name) => [name, "leaves no entry of its own when it succeeds"]),
  ),
  ...Object.fromEntries(MAKES.map((name) => [name, "makes what is not there yet"])),
  "POST /api/v2/users/login": "is told of by itself (rule AU-6)",
  "POST /api/v2/users/logout": "nobody who is signed in is refused",
};

/** Every operation that is known to the two tables of successes. */
export const KNOWN: readonly string[] = [...Object.keys(AUDITED), ...Object.keys(UNTOLD)];
