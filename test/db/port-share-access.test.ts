// The statement that decides who may share ports of a workspace, compared with the access rules for every combination of roles and shares.
import { expect } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Statement } from "#db/engine/sql.ts";
import { addToGroup, insertGroup } from "#db/users/groups.ts";
import { insertMember } from "#db/users/members.ts";
import { insertUser } from "#db/users/users.ts";
import { findSharableBy } from "#db/workspaces/port-shares.ts";
import { canStartStop, canUseWorkspace } from "#domain/access.ts";
import { loadCaller } from "#domain/users/as-caller.ts";
import type { Acl } from "#schema/workspaces/acl.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";

const SITE_ROLES = [[], ["owner"], ["template-admin"], ["user-admin"], ["auditor"]];
/** Roles in the organization; null: not a member. */
const ORGANIZATION_ROLES = [
  null,
  [],
  ["organization-admin"],
  ["organization-template-admin"],
  ["organization-user-admin"],
  ["organization-auditor"],
];
const STATUSES = ["active", "suspended"] as const;
const SHARED_ROLES = [undefined, "use", "admin"] as const;

const combine = <A, B>(first: readonly A[], second: readonly B[]): [A, B][] =>
  first.flatMap((a) => second.map((b): [A, B] => [a, b]));

testInProcess(
  "[SH-14] the statement allows sharing ports to exactly the people whom the access rules allow it",
  async () => {
    await using server = await startTestServer();
    const { store, clock } = getContext(server);
    const now = clock.now();
    const times = { created_at: now, updated_at: now };
    const { workspace_id, owner_id, organization_id } = await seedAgent(server);
    const group_id = uuid();
    const people = combine(combine(SITE_ROLES, ORGANIZATION_ROLES), STATUSES).map(
      ([[roles, memberRoles], status], i) => ({
        id: uuid(),
        username: `person-${i}`,
        roles,
        memberRoles,
        status,
        isInGroup: memberRoles !== null && i % 4 < 2,
      }),
    );
    await store.commit([
      insertGroup({ id: group_id, organization_id, name: "crew", display_name: "Crew", avatar_url: "", ...times }),
      ...people.flatMap(({ id, username, roles, memberRoles, status, isInGroup }): Statement[] => [
        insertUser({ id, username, email: `${username}@example.com`, login_type: "none", roles, status, ...times }),
        ...(memberRoles ? [insertMember({ organization_id, user_id: id, roles: memberRoles, ...times })] : []),
        ...(isInGroup ? addToGroup([{ group_id, organization_id, user_id: id }]) : []),
      ]),
    ]);
    const toAcl = (id: string, role: (typeof SHARED_ROLES)[number]): Acl => (role === undefined ? {} : { [id]: role });
    let allowed = 0;
    for (const person of people) {
      const caller = await loadCaller(store, person.id);
      for (const [[ownRole, groupRole], everyoneRole] of combine(combine(SHARED_ROLES, SHARED_ROLES), SHARED_ROLES)) {
        const user_acl = toAcl(person.id, ownRole);
        const group_acl = Object.assign(toAcl(group_id, groupRole), toAcl(organization_id, everyoneRole));
        const workspace = { id: workspace_id, owner_id, organization_id, user_acl, group_acl };
        const expected = caller !== undefined && canStartStop(caller, workspace) && canUseWorkspace(caller, workspace);
        const sharable = await store.get(
          findSharableBy({
            workspace_id,
            user_id: person.id,
            user_acl: JSON.stringify(user_acl),
            group_acl: JSON.stringify(group_acl),
          }),
        );
        expect({ person, user_acl, group_acl, may: sharable !== undefined }).toMatchObject({ may: expected });
        allowed += expected ? 1 : 0;
      }
    }
    expect(allowed).toBeGreaterThan(0);
    expect(allowed).toBeLessThan(people.length * SHARED_ROLES.length ** 3);
  },
);
