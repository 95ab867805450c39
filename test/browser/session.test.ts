// User data in a shared, real browser: signing out, sessions that expire or are ended, and permission changes during use.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { runStory } from "./story.ts";

const GRACE = { email: "grace@example.com", username: "grace", password: "nine grey herons at noon" };
const ADA = { email: "ada@example.com", username: "ada", password: "four wet ponies at dusk" };

testNeeding(
  [needs.chromium, needs.node],
  "[WB-89][WB-90] signing out removes a user's data from the browser in every tab, and permission changes are shown live",
  async () => {
    await using world = await openWorld();
    const { admin } = world;
    const { id } = await admin.post<{ id: string }>("/api/v2/users", GRACE);
    await admin.post("/api/v2/users", ADA);
    const organization = await admin.post<{ id: string }>("/api/v2/organizations", { name: "other" });
    const setRoles = (...names: string[]) => admin.put(`/api/v2/users/${id}/roles`, { roles: names });
    const member = `/api/v2/organizations/${organization.id}/members/${id}`;
    const { template_id } = await seedTemplate(world.server);
    const workspace = await createWorkspace(admin, template_id, "shared");
    await awaitBuild(admin, workspace.id);
    const share = (role: string) =>
      admin.patch(`/api/v2/workspaces/${workspace.id}/acl`, { user_roles: { [id]: role } });
    await share("use");
    const actions = {
      unshare: () => share(""),
      end: () => admin.put(`/api/v2/users/${id}/status/suspend`),
      back: () => admin.put(`/api/v2/users/${id}/status/activate`),
      promote: () => setRoles("auditor"),
      demote: () => setRoles(),
      join: () => admin.post(member),
      lead: () => admin.put(`${member}/roles`, { roles: ["organization-admin"] }),
      leave: () => admin.delete(member),
    };
    const args = [world.server.url.href, ADA.email, ADA.password, GRACE.email, GRACE.password, workspace.id];
    const result = await runStory<{ slowest: number }>("session.mjs", args, actions);
    expect(result).toMatchObject({
      problems: [],
      keysAfterSignOut: [],
      draftOfNextUser: "",
      afterExpiry: "",
      containsOtherDraft: false,
      keysAfterEnd: [],
      before: 0,
    });
    expect(result.slowest).toBeLessThan(10_000);
  },
  scaleTimeout(240_000),
);
