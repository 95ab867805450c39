// Prints which caller may do what, from the reviewed tables that the tests use. `bun run docs` prints the roles. `bun run access` prints
// the operations to dist/operations.md. That page is not committed, because every new endpoint changes it.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ScopeNeed } from "#src/api/http/operation.ts";
import { formatScopeNeed } from "#src/api/http/scope-gate.ts";
import { startTestServer } from "#test/support/server.ts";
import { ACTIONS, type Name, ROLE_NAMES } from "./access-table.ts";
import { readDeclaredScopes } from "./declared-scopes.ts";
import { getRow, OPERATION_NAMES } from "./edge/matrix-call.ts";
import { CALLERS } from "./edge/matrix-world.ts";

const ROOT = join(import.meta.dir, "../..");

const ROLES: Record<Name, string> = {
  owner: "owner",
  "template-admin": "template admin",
  "user-admin": "user admin",
  auditor: "auditor",
  "organization-admin": "org. admin",
  "organization-template-admin": "org. template admin",
  "organization-user-admin": "org. user admin",
  "organization-auditor": "org. auditor",
  member: "member",
  banned: "banned",
  "admin elsewhere": "admin elsewhere",
};

const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
const table = (head: readonly string[], rows: readonly string[][]): string =>
  [line(head), line(head.map((_, i) => (i === 0 ? "---" : ":-:"))), ...rows.map(line)].join("\n");

/** Actions by role: a dot where the role is allowed. */
const actions = (): string =>
  table(
    ["", ...ROLE_NAMES.map((name) => ROLES[name])],
    ACTIONS.map(([action, , allowed]) => [action, ...ROLE_NAMES.map((name) => (allowed.includes(name) ? "●" : ""))]),
  );

type Scopes = ReadonlyMap<string, ScopeNeed>;

/** Returns the scope that an operation requires of a scoped key; empty if none. */
const formatScope = (scopes: Scopes, name: string, statuses: string): string => {
  const rejectsAnonymous = statuses.startsWith("401");
  const acceptsUsers = statuses
    .split(" ")
    .slice(3)
    .some((status) => status !== "401");
  if (!rejectsAnonymous || !acceptsUsers) return "";
  const needed = scopes.get(name) ?? "all";
  return needed === "all" ? needed : formatScopeNeed(needed);
};

/** Returns the status of each operation for each caller. */
const operations = (scopes: Scopes): string =>
  table(
    ["", "access", "scope of a key", ...CALLERS],
    OPERATION_NAMES.map((name) => {
      const { statuses, why, access = "" } = getRow(name);
      return [
        `\`${name}\`${why === undefined ? "" : `<br>${why}`}`,
        access,
        formatScope(scopes, name, statuses),
        ...statuses.split(" "),
      ];
    }),
  );

/** Returns the page of roles. */
export const roleDocs = (): string => `# Permissions

Printed from the permission tables that the tests check. \`bun run docs\` updates this page, and a test fails if it is out of date.
\`bun run access\` writes \`dist/operations.md\`: the response of each API operation to each kind of caller, and the scope that it requires.

## Roles

The rows are the checks in [access.ts](../domain/access.ts), which every route uses. Site roles apply everywhere, organization roles (org.)
only in their organization. *banned* is a member with the role that forbids creating workspaces; *admin elsewhere* is an administrator of
another organization. The API responds with 404 if the caller may not see the resource, and with 403 if they may see it but may not perform
the action.

${actions()}
`;

/** Returns the page of operations. */
export const operationDocs = (scopes: Scopes): string => `# The response of each operation to each caller

*stranger* has no token, or a wrong, expired or revoked one. *agent* is the agent of ada's workspace. *foreigner* belongs to another
organization, *colleague* to ada's. *ada* owns the resource. *admin* has the role owner. *access* is what the route declares
(src/api/http/operation.ts). *scope* is what a scoped token needs: *any* means any scope except \`application_connect\`, *all* means an
unrestricted token.

${operations(scopes)}
`;

if (import.meta.main) {
  await using server = await startTestServer();
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  writeFileSync(join(ROOT, "dist/operations.md"), operationDocs(readDeclaredScopes(server)));
}
