// Prints who may do what, from the reviewed tables that the tests use: by role for `bun run docs`, and by call for `bun run access`, which
// writes dist/operations.md. That page is not committed, because every new endpoint changes it.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ScopeNeed } from "#src/api/http/operation.ts";
import { formatScopeNeed } from "#src/api/http/scope-gate.ts";
import { startTestServer } from "#test/support/server.ts";
import { ACTIONS, ALL_NAMES, type Name } from "./access-table.ts";
import { readDeclaredScopes } from "./declared-scopes.ts";
import { getRow, NAMES } from "./edge/matrix-call.ts";
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
    ["", ...ALL_NAMES.map((name) => ROLES[name])],
    ACTIONS.map(([action, , who]) => [action, ...ALL_NAMES.map((name) => (who.includes(name) ? "●" : ""))]),
  );

type Scopes = ReadonlyMap<string, ScopeNeed>;

/** Returns the scope that an operation requires of a scoped key; empty if none. */
const formatScope = (scopes: Scopes, name: string, is: string): string => {
  const isOfUsers =
    is
      .split(" ")
      .slice(3)
      .some((status) => status !== "401") && is.startsWith("401");
  const needed = scopes.get(name) ?? "all";
  return isOfUsers ? (needed === "all" ? needed : formatScopeNeed(needed)) : "";
};

/** Returns the status of each operation for each caller. */
const operations = (scopes: Scopes): string =>
  table(
    ["", "access", "scope of a key", ...CALLERS],
    NAMES.map((name) => {
      const { is, why, access = "" } = getRow(name);
      return [
        `\`${name}\`${why === undefined ? "" : `<br>${why}`}`,
        access,
        formatScope(scopes, name, is),
        ...is.split(" "),
      ];
    }),
  );

/** The page of roles. */
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

/** The page of operations. */
export const operationDocs = (scopes: Scopes): string => `# What each operation answers to whom

*stranger* has no token, a wrong, an expired or a revoked one; *agent* is the one of ada's workspace; *foreigner* belongs to another
organization; *colleague* to ada's; *ada* is whose thing it is; *admin* has the role owner. The *access* is what its
route declares (src/api/http/operation.ts), the *scope* what a token with scopes needs for it: *any* is every one but \`application_connect\`, *all* a key for everything.

${operations(scopes)}
`;

if (import.meta.main) {
  await using server = await startTestServer();
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  writeFileSync(join(ROOT, "dist/operations.md"), operationDocs(readDeclaredScopes(server)));
}
