// Someone loses access to a workspace, and the server dies before it has renewed the tokens of the workspace's agents: the next server
// does.
import { expect } from "bun:test";
import { ACCESS_FAILPOINTS } from "#base/failpoint.ts";
import type { Client } from "#src/client.ts";
import { TestTerminal } from "#test/api/agents/reach.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { command, ServerSlot } from "./server.ts";
import { signInAdmin } from "./server-world.ts";

const test = testSingleServer("needsLocalServerProcess");

const TEMPLATE = "provisioner: local\nresources: [{name: main, agents: [{name: main}]}]\n";
const PASSWORD = "a-long-password-of-bob-1";

/** Opens a server with a running workspace that its owner has shared with the group of `bob`. */
const openStory = async () => {
  const place = await ServerSlot.make();
  await place.start();
  const { admin, organization_id } = await signInAdmin(place);
  const { id: bob } = await admin.post<{ id: string }>("/api/v2/users", {
    email: "bob@example.com",
    username: "bob",
    password: PASSWORD,
    organization_ids: [organization_id],
  });
  const { id: group } = await admin.post<{ id: string }>(`/api/v2/organizations/${organization_id}/groups`, {
    name: "helpers",
  });
  await admin.patch(`/api/v2/groups/${group}`, { add_users: [bob] });
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id);
  const { latest_build } = await awaitBuild(admin, id);
  await admin.patch(`/api/v2/workspaces/${id}/acl`, { group_roles: { [group]: "use" } });
  const agent_id = latest_build.resources[0]?.agents[0]?.id ?? "";
  const path = (action: string) => `/api/v2/workspaceagents/${agent_id}/${action}`;
  const readToken = async (person: Client): Promise<string> => {
    using terminal = await TestTerminal.open(
      { owner: person, path },
      { command: 'echo "<$(cat "$SLIPWAY_AGENT_TOKEN_FILE")>"; cat' },
    );
    return /<([0-9a-f-]{36})>/.exec(await terminal.until(/<[0-9a-f-]{36}>/))?.[1] ?? "";
  };
  const fetchStatus = async (token: string): Promise<number> =>
    (await place.client.withToken(token).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey")).status;
  const isConnected = async (): Promise<boolean> =>
    (await admin.get<{ status: string }>(path("").slice(0, -1))).status === "connected";
  await until(isConnected);
  const copiedToken = await readToken(await place.client.signIn("bob@example.com", PASSWORD));
  expect(await fetchStatus(copiedToken)).toBe(200);
  return {
    place,
    admin,
    group,
    bob,
    /** Resolves when bob's copy of the token is invalid and the daemon has another token. */
    awaitRenewal: async (): Promise<void> => {
      await until(async () => (await fetchStatus(copiedToken)) === 401);
      await until(isConnected);
      await until(async () => (await fetchStatus(await readToken(admin))) === 200);
    },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
};

test(
  "[AG-28] a server that is killed right after a member left a group renews the tokens at its next start",
  async () => {
    await using story = await openStory();
    const { place, admin, group, bob, awaitRenewal } = story;
    for (const point of ACCESS_FAILPOINTS) {
      await place.stop();
      const server = await place.start({ env: { SLIPWAY_FAILPOINT: point } });
      // The server may die before it answers.
      await admin.patch(`/api/v2/groups/${group}`, { remove_users: [bob] }).catch(() => {});
      expect((await server.ended).signal).toBe("SIGKILL");
      await place.start();
      await awaitRenewal();
    }
  },
  scaleTimeout(180_000),
);

test(
  "[AG-28] a suspension on the command line, while no server runs, renews the tokens at the next start",
  async () => {
    await using story = await openStory();
    const { place, awaitRenewal } = story;
    await place.stop();
    const suspended = Bun.spawnSync([...command(), "offline", "users", "suspend", "bob"], {
      env: { PATH: Bun.env.PATH ?? "", HOME: place.directory, SLIPWAY_DATA_DIR: place.directory, ...place.database },
    });
    expect(suspended.stderr.toString()).toBe("");
    await place.start();
    await awaitRenewal();
  },
  scaleTimeout(180_000),
);
