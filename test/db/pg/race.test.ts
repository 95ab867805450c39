// Two nodes that write at the same time: if each guard reads the other's rows, one of the two batches is rejected, as on a single server.
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { insertChat } from "#db/chats/chats.ts";
import {
  dropSnapshots,
  findChatContext,
  insertSnapshot,
  markDirty,
  pinContextOnce,
  upsertWorkspaceContext,
} from "#db/chats/context.ts";
import type { Statement } from "#db/engine/sql.ts";
import { deleteOAuth2App, insertOAuth2App, updateOAuth2App } from "#db/oauth2/apps.ts";
import { deleteKeysOfApp, insertOAuth2Grant } from "#db/oauth2/grants.ts";
import { Primary } from "#db/pg/primary.ts";
import { openPgStore, PgStore } from "#db/pg/store.ts";
import { deleteTemplate, guardTemplate, insertTemplate } from "#db/templates/templates.ts";
import { deleteKeysByUser, findKey, insertKey } from "#db/users/api-keys.ts";
import { addToGroup, insertGroup, listGroupMemberIds } from "#db/users/groups.ts";
import { endMembership, insertMember } from "#db/users/members.ts";
import { insertOrganization } from "#db/users/organizations.ts";
import { insertUserSecret } from "#db/users/secrets.ts";
import { deleteUser, guardOwner, guardUser, updateUser } from "#db/users/users.ts";
import { insertBuild, updateBuild } from "#db/workspaces/builds.ts";
import { guardQuota } from "#db/workspaces/quota.ts";
import { guardSharing, listForbiddenSharing, storeSharingDisabled } from "#db/workspaces/sharing.ts";
import { insertWorkspace, updateWorkspace } from "#db/workspaces/workspaces.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { randomFrom } from "#test/support/random.ts";
import { insertUser, makeUser } from "../batches.ts";
import { awaitOutcome } from "../contract.ts";

const ROUNDS = 60;
const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

let database: TestDatabase;
let nodes: readonly [PgStore, PgStore];
beforeAll(async () => {
  if (!needs.postgres.found) return;
  database = await createDatabase();
  const opened = await openPgStore({ url: database.url, now: 0, fatal: () => {} });
  // Both have the same epoch, so that neither fences the other, and only the database isolates them.
  nodes = [opened, new PgStore(new Primary(database.url), "", opened.epoch, { fatal: () => {} })];
  await opened.commit([insertOrganization(makeOrganization("org"))]);
});
afterAll(async () => {
  if (!needs.postgres.found) return;
  await Promise.all(nodes.map((node) => node.close()));
  await database.remove();
});

const TIMES = { created_at: 1, updated_at: 1 };
const makeOrganization = (id: string) => ({ id, name: id, display_name: id, ...TIMES });
const makeTemplate = (id: string, created_by: string, name = id) => ({
  id,
  name,
  organization_id: "org",
  provisioner: "echo",
  active_version_id: "v",
  created_by,
  ...TIMES,
});
const makeWorkspace = (id: string, owner_id: string, template_id: string) => ({
  id,
  owner_id,
  organization_id: "org",
  template_id,
  name: id,
  latest_build_id: `b-${id}`,
  last_used_at: 1,
  ...TIMES,
});
const makeBuild = (workspace_id: string) => ({
  id: `b-${workspace_id}`,
  workspace_id,
  build_number: 1,
  job_id: `j-${workspace_id}`,
  template_version_id: "v",
  initiator_id: "x",
  reason: "initiator",
  ...TIMES,
  transition: "start" as const,
});
const makeSecret = (id: string, user_id: string) => ({
  id,
  user_id,
  name: id,
  description: "",
  env_name: "",
  file_path: "",
  sealed_value: "",
  ...TIMES,
});
const makeKey = (id: string, user_id: string) => ({
  id,
  user_id,
  secret_hash: id,
  login_type: "oauth2_provider_app",
  scope: "all",
  lifetime_seconds: 1,
  ...TIMES,
  last_used: 1,
  expires_at: 1,
});
const makeGrant = (key_id: string, app_id: string, user_id: string) => ({
  key_id,
  app_id,
  user_id,
  scopes: [],
  redirect_uri: "",
  code_hash: key_id,
  code_challenge: "",
  ...TIMES,
  code_expires_at: 1,
});

type Race = {
  readonly before: readonly Statement[];
  /** The concurrent writes of the two nodes. */
  readonly writes: readonly [readonly Statement[], readonly Statement[]];
  /** A query that the first node runs as soon as its write is answered. */
  readState?(): Promise<unknown>;
  /** Checks the outcomes of both writes; by default, exactly one has succeeded. */
  check?(outcomes: readonly string[], state: unknown): Promise<void>;
};

const expectOneWinner = async (outcomes: readonly string[]): Promise<void> => {
  expect(outcomes.filter((outcome) => outcome === "done")).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === "stale" || outcome === "constraint")).toHaveLength(1);
};

/** Returns each race, with a name that its objects use. */
const RACES: Readonly<Record<string, (n: string) => Race>> = {
  "a template is deleted and a workspace is created from it": (n) => ({
    before: [insertTemplate(makeTemplate(n, "u"))],
    writes: [
      [deleteTemplate({ id: n, now: 2 })],
      [guardTemplate({ id: n }), insertWorkspace(makeWorkspace(n, "u", n))],
    ],
  }),
  "a user is deleted and a workspace is created for them": (n) => ({
    before: [insertUser(makeUser(n))],
    writes: [
      [deleteUser({ id: `id-of-${n}`, now: 2 })],
      [guardUser({ id: `id-of-${n}` }), insertWorkspace(makeWorkspace(n, `id-of-${n}`, "t"))],
    ],
  }),
  "a user is deleted and a key is created for them": (n) => ({
    before: [insertUser(makeUser(n))],
    writes: [
      [deleteUser({ id: `id-of-${n}`, now: 2 }), deleteKeysByUser({ user_id: `id-of-${n}`, except: "" })],
      [guardUser({ id: `id-of-${n}` }), insertKey(makeKey(n, `id-of-${n}`))],
    ],
    async check([deleted]) {
      expect(deleted).toBe("done");
      expect(await nodes[0].get(findKey({ id: n }))).toBeUndefined();
    },
  }),
  "the last two owners take the role from each other": (n) => ({
    before: [insertUser(["a", "b"].map((prefix) => ({ ...makeUser(prefix + n), roles: ["owner"] })))],
    writes: [
      [guardOwner({ id: `id-of-a${n}` }), updateUser(`id-of-b${n}`, { roles: [] })],
      [guardOwner({ id: `id-of-b${n}` }), updateUser(`id-of-a${n}`, { roles: [] })],
    ],
  }),
  "two templates of one name": (n) => ({
    before: [],
    writes: [[insertTemplate(makeTemplate(`a${n}`, "u", n))], [insertTemplate(makeTemplate(`b${n}`, "u", n))]],
  }),
  "the last secret that somebody may have, twice": (n) => ({
    before: [insertUser(makeUser(n))],
    writes: [
      [insertUserSecret(makeSecret(`a${n}`, `id-of-${n}`), 1)],
      [insertUserSecret(makeSecret(`b${n}`, `id-of-${n}`), 1)],
    ],
  }),
  "two workspaces of one owner, each of which uses up the remaining quota": (n) => {
    const ids = [`a${n}`, `b${n}`] as const;
    const start = (id: string): Statement[] => [
      guardQuota({ workspace_id: id, daily_cost: 6 }),
      updateBuild(`b-${id}`, { daily_cost: 6 }),
    ];
    return {
      before: [
        insertUser(makeUser(n)),
        insertWorkspace(ids.map((id) => makeWorkspace(id, `id-of-${n}`, "t"))),
        insertBuild(ids.map(makeBuild)),
      ],
      writes: [start(ids[0]), start(ids[1])],
    };
  },
  "sharing is switched off and a workspace is shared": (n) => ({
    before: [
      insertOrganization(makeOrganization(n)),
      insertWorkspace({ ...makeWorkspace(n, "u", "t"), organization_id: n }),
    ],
    writes: [
      [storeSharingDisabled(n, true)],
      [guardSharing({ organization_id: n }), updateWorkspace(n, { user_acl: { somebody: "use" } })],
    ],
    // After disabling sharing, the node reads what is still shared.
    readState: () => nodes[0].all(listForbiddenSharing({ organization_id: n })),
    async check([, shared], forbiddenShares) {
      expect(forbiddenShares).toHaveLength(shared === "done" ? 1 : 0);
    },
  }),
  "an application is deleted and granted something": (n) => ({
    before: [insertOAuth2App({ id: n, name: n, redirect_uris: [], auth_method: "none", ...TIMES })],
    writes: [
      [deleteKeysOfApp({ app_id: n }), deleteOAuth2App(n)],
      [
        updateOAuth2App(n, { updated_at: 2 }, { expect: 1 }),
        insertKey(makeKey(n, "u")),
        insertOAuth2Grant(makeGrant(n, n, "u")),
      ],
    ],
    async check() {
      expect(await nodes[0].get(findKey({ id: n }))).toBeUndefined();
    },
  }),
  "a membership ends and the member is put into a group": (n) => ({
    before: [
      insertUser(makeUser(n)),
      insertGroup({ id: n, organization_id: "org", name: n, ...TIMES }),
      insertMember({ organization_id: "org", user_id: `id-of-${n}`, ...TIMES }),
    ],
    writes: [
      endMembership({ organization_id: "org", user_id: `id-of-${n}` }, 2),
      addToGroup([{ group_id: n, organization_id: "org", user_id: `id-of-${n}` }]),
    ],
    async check([ended]) {
      expect(ended).toBe("done");
      expect(await nodes[0].all(listGroupMemberIds({ group_id: n }))).toEqual([]);
    },
  }),
  "a workspace reports another context while a chat pins the previous one": (n) => {
    const chat = Number(n.slice(1));
    const toContextBatch = (version: number): Statement[] => {
      const id = `${n}-${version}`;
      return [
        insertSnapshot({ id, hash: id, resources: [], error: "" }),
        upsertWorkspaceContext({ workspace_id: n, agent_id: "a", version, snapshot: id, updated_at: 1 }),
        markDirty(n, id, 1),
        dropSnapshots(),
      ];
    };
    return {
      before: [
        insertWorkspace(makeWorkspace(n, "u", "t")),
        insertChat({
          key: chat,
          id: n,
          organization_id: "org",
          owner_id: "u",
          workspace_id: n,
          last_model_config_id: "m",
          title: n,
          client_type: "api",
          status: "waiting",
          snapshot_version: 1,
          history_version: 1,
          ...TIMES,
        }),
        ...toContextBatch(1),
      ],
      writes: [toContextBatch(2), [pinContextOnce(chat, n, 1)]],
      async check(outcomes) {
        expect(outcomes).toEqual(["done", "done"]);
        const pinned = await nodes[0].get(findChatContext({ chat }));
        expect(pinned?.dirty_since === null).toBe(pinned?.snapshot === `${n}-2`);
      },
    };
  },
};

describe("[PQ-14] two nodes make conflicting changes", () => {
  let round = 0;
  beforeAll(async () => {
    if (!needs.postgres.found) return;
    await nodes[0].commit([
      insertUser({ ...makeUser("u"), id: "u" }),
      insertTemplate(makeTemplate("t", "u")),
      insertGroup({ id: "org", organization_id: "org", name: "all", quota_allowance: 10, ...TIMES }),
    ]);
  });

  for (const [name, race] of Object.entries(RACES)) {
    testNeeding([needs.postgres], `${name} (seed ${SEED})`, async () => {
      const random = randomFrom(SEED);
      for (let i = 0; i < ROUNDS; i++) {
        const { before, writes, readState, check = expectOneWinner } = race(`r${++round}`);
        await nodes[0].commit(before);
        let state: unknown;
        const commit = async (nodeIndex: 0 | 1): Promise<string> => {
          const outcome = await awaitOutcome(nodes[nodeIndex].commit(writes[nodeIndex]));
          if (nodeIndex === 0) state = await readState?.();
          return outcome;
        };
        const commitLater = async (nodeIndex: 0 | 1): Promise<string> => {
          for (let turns = Math.floor(random() * 3); turns > 0; turns--)
            await nodes[nodeIndex].get(findKey({ id: "" }));
          return commit(nodeIndex);
        };
        const isFirst = random() < 0.5;
        const outcomes = await Promise.all(isFirst ? [commit(0), commitLater(1)] : [commitLater(0), commit(1)]);
        await check(outcomes, state);
      }
    });
  }
});

testNeeding(
  [needs.postgres],
  `[PQ-15] no number is assigned twice, and a chat's numbers ascend while it moves between nodes (seed ${SEED})`,
  async () => {
    const random = randomFrom(SEED);
    const ranges: [number, number][] = [];
    /** The last value of each chat, and its node. */
    const chats = Array.from({ length: 8 }, () => ({ last: 0, nodeIndex: 0 as 0 | 1 }));
    const work = async (chat: (typeof chats)[number]): Promise<void> => {
      for (let i = 0; i < 40; i++) {
        if (random() < 0.2) {
          chat.nodeIndex = chat.nodeIndex === 0 ? 1 : 0;
          nodes[chat.nodeIndex].discardNumbers();
        }
        // A block has 40,000 numbers, so the nodes often compete for the next one.
        const count = 1 + Math.floor(random() * 30_000);
        const first = await nodes[chat.nodeIndex].reserve("messages", count);
        expect(first).toBeGreaterThan(chat.last);
        chat.last = first + count - 1;
        ranges.push([first, chat.last]);
      }
    };
    await Promise.all(chats.map(work));
    const sorted = ranges.toSorted(([a], [b]) => a - b);
    expect(sorted.filter(([first], i) => first <= (sorted[i - 1]?.[1] ?? 0))).toEqual([]);
  },
);
