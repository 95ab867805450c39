// The status that each caller gets from each operation on workspaces, builds and ports. The workspace of ada is shared with amy
// (admin) and uma (use). Operations, bodies and success statuses come from the routes and the authorization matrix; this file only lists
// differences from the declared access.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { fetchDocument, listOperations, type Operation } from "#test/fuzz/operations.ts";
import { describeInProcess } from "#test/support/in-process.ts";
import { callAs, getRow, OPERATION_NAMES } from "../edge/matrix-call.ts";
import { type Row as Call, withStatus } from "../edge/matrix-table.ts";
import { B, O, V, W } from "../edge/paths.ts";
import { CALLERS, type CallerName, openSharedWorkspace } from "./shared-workspace.ts";

type Row = Pick<Call, "body" | "query" | "path" | "answers"> & {
  /** One status for each of CALLERS, with 200 for allowed callers. */
  readonly is?: string;
};

// guest, owner, shared admin, shared use, member, template admin, organization admin, auditor, site owner, agent
const USERS = "401 200 200 200 200 200 200 200 200 401";
/** Forbidden operations return 403 to callers who can see the workspace, and 404 to others. */
const READ = "401 200 200 200 404 200 200 404 200 401";
const CHANGE = "401 200 200 403 404 200 200 404 200 401";
/** The workspace's agent is also allowed. */
const CHANGE_OR_AGENT = CHANGE.replace(/401$/, "200");
/** For its owner, people with the role admin, and the site's owner. */
const USE = "401 200 200 403 404 403 403 404 200 401";
/** For its owner and the site's owner. */
const SHARE = "401 200 403 403 404 403 403 404 200 401";
const OWN = "401 200 403 403 404 403 403 404 403 401";
/** For administrators: it may hold the template's secrets. */
const STATE = "401 403 403 403 404 200 200 404 200 401";
const CREATE = "401 200 404 404 404 403 200 403 200 401";

const VISIBLE = "/api/v2/users/{user}/workspace/{workspacename}";

/** Differences from the default statuses: READ for GET, CHANGE for other methods, OWN for owner-only operations, USERS for lists. */
const EXCEPTIONS: Readonly<Record<string, Row>> = {
  "POST /api/v2/users/{user}/workspaces": { is: CREATE },
  [`POST ${O}/members/{user}/workspaces`]: { is: CREATE },
  [`GET ${O}/members/{user}/workspaces/available-users`]: {
    is: "401 403 403 403 403 403 200 403 200 401",
    path: { user: "me" },
  },
  [`POST ${W}/usage`]: { is: CHANGE_OR_AGENT, answers: 204 },
  // The example body is `always`, which only people who can work in the workspace may set.
  [`PUT ${W}/autoupdates`]: { is: USE },
  // The workspace has no deadline.
  [`PUT ${W}/extend`]: { is: CHANGE_OR_AGENT, answers: 409 },
  [`PATCH ${W}/acl`]: { is: SHARE },
  [`POST ${W}/port-share`]: { is: USE },
  [`DELETE ${W}/port-share`]: { answers: 404, body: { agent_name: "dev", port: 9 } },
  [`GET ${B}/state`]: { is: STATE },
  [`PUT ${B}/state`]: { is: STATE },
  [`POST ${W}/wake`]: { is: READ },
  // The template has no parameter `x`, so the request is rejected instead of restarting the workspace.
  [`POST ${W}/restart`]: { answers: 400, body: { rich_parameter_values: [{ name: "x", value: "y" }] } },
  [`GET ${W}/external-agent/{agent}/credentials`]: { is: "401 200 200 200 404 403 403 404 200 401" },
  [`POST ${W}/forks`]: { is: USE },
  [`POST ${W}/snapshots/{snapshot}/restore`]: { is: USE },
  [`DELETE ${W}/snapshots/{snapshot}`]: { is: USE },
  [`POST ${W}/home-backups`]: { is: USE },
  [`POST ${W}/home-backups/{backup}/fetch`]: { is: USE },
  [`DELETE ${W}/home-backups/{backup}`]: { is: USE },
  [`POST ${W}/builds`]: {
    is: "401 200 200 200 404 200 200 404 200 401",
    answers: 400,
    body: { transition: "delete", orphan: true, state: "x" },
  },
  // Called last, because it ends the shares.
  [`DELETE ${W}/acl`]: { is: "401 200 404 404 404 403 403 404 200 401" },
};

/** Additional calls of the same operations, and the dry run. */
const ADDITIONAL_CALLS: readonly (readonly [name: string, row: Row])[] = [
  ["POST /api/v2/users/{user}/workspaces", { is: USERS, path: { user: "me" } }],
  [`GET ${VISIBLE}`, { query: { include_deleted: "true" } }],
  [`PUT ${W}/autoupdates`, { body: { automatic_updates: "never" } }],
  [`POST ${W}/usage`, { is: CHANGE_OR_AGENT, answers: 204, body: { agent_id: "{workspaceagent}", app_name: "ssh" } }],
  [`POST ${V}/dry-run`, { is: USERS }],
];

const WORKSPACE_OPERATIONS =
  /^\w+ \/api\/v2\/(workspaces|workspacebuilds|users\/\{user\}\/workspace|organizations\/.*\/workspaces)/;
const LAST_OPERATION = `DELETE ${W}/acl`;
const ROWS = [
  ...OPERATION_NAMES.filter((name) => WORKSPACE_OPERATIONS.test(name) && name !== LAST_OPERATION).map(
    (name) => [name, EXCEPTIONS[name] ?? {}] as const,
  ),
  ...ADDITIONAL_CALLS,
  [LAST_OPERATION, EXCEPTIONS[LAST_OPERATION] ?? {}] as const,
].map(
  ([name, row]) => [row.query || row.path || row.body ? `${name} ${JSON.stringify(row)}` : name, name, row] as const,
);

/** Returns the default statuses of an operation by its declared access. */
const getDefaultStatuses = (name: string): string => {
  const { access } = getRow(name);
  if (access === "users") return USERS;
  if (access === "owner_only") return OWN;
  return name.startsWith("GET ") ? READ : CHANGE;
};

describeInProcess("the access of workspaces", () => {
  let shared: Awaited<ReturnType<typeof openSharedWorkspace>>;
  let operations: readonly Operation[];
  beforeAll(async () => {
    shared = await openSharedWorkspace();
    operations = listOperations(await fetchDocument(shared.server.url));
  });
  afterAll(async () => {
    await shared[Symbol.asyncDispose]();
  });

  const fetchStatus = async (name: string, row: Call, caller: CallerName): Promise<number> => {
    const operation = operations.find((operation) => operation.name === name);
    if (!operation) throw new Error(`the document has no operation ${name}`);
    const { workspace, id, template_id, version_id } = shared;
    const pathValues = {
      user: "ada",
      organization: "default",
      workspace: id,
      workspacename: "dev",
      buildnumber: "1",
      workspacebuild: workspace.latest_build.id,
      workspaceagent: workspace.latest_build.resources[0]?.agents[0]?.id ?? "",
      template: template_id,
      templateversion: version_id,
      fresh: `w${crypto.randomUUID().slice(0, 8)}`,
    };
    const response = await callAs(shared, operation, row, shared.clients[caller].token, pathValues);
    await response.body?.cancel();
    return response.status;
  };

  test.each(ROWS)("[WC-7] %s", async (_, name, { is = getDefaultStatuses(name), ...row }) => {
    const call = Object.assign({}, getRow(name), row);
    const statuses: number[] = [];
    for (const caller of CALLERS) statuses.push(await fetchStatus(name, call, caller));
    expect(statuses.join(" ")).toBe(withStatus(is, call.answers ?? call.success));
  });
});
