// A user is deleted while an object is created for them: the server rejects one of the two requests.
import { beforeAll, expect, spyOn } from "bun:test";
import type { Statement } from "#db/engine/sql.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Organization } from "#schema/users/organization.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInProcess as test } from "#test/support/in-process.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { createWorkspace, seedTemplate } from "#test/support/workspaces.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const { server, admin, anonymous } = await serverForFile({ models: new ScriptedModels() });

/** Runs `action` before the first batch with a statement that matches `pattern` is committed, on any node. */
const runBeforeCommit = (pattern: RegExp, action: () => Promise<unknown>) => {
  let hasRun = false;
  const spies = server.contexts.map(({ store }) => {
    const commit = store.commit.bind(store);
    return spyOn(store, "commit").mockImplementation(async (batch: readonly Statement[], ...options) => {
      if (!hasRun && batch.some(({ sql }) => pattern.test(sql))) {
        hasRun = true;
        await action();
      }
      await commit(batch, ...options);
    });
  });
  return {
    [Symbol.dispose]() {
      for (const spy of spies) spy.mockRestore();
    },
  };
};

/** The shared template and organization. */
let template_id: string;
let organization_id: string;
beforeAll(async () => {
  ({ template_id } = await seedTemplate(server, { provisioner: "echo", resources: [{ name: "main" }] }));
  organization_id = (await admin.get<Organization>("/api/v2/organizations/default")).id;
});

const expectDeleted = async (name: string): Promise<void> => {
  expect(await fetchStatus(admin, "GET", `/users/${name}`)).toBe(404);
  const { count } = await admin.get<{ count: number }>(`/api/v2/workspaces?q=${encodeURIComponent(`owner:${name}`)}`);
  expect(count).toBe(0);
};

type Creation = { readonly sql: RegExp; readonly create: (client: Client, name: string) => Promise<number> };

const secret = { name: "token", value: "hidden", env_name: "TOKEN" };
const skill = { name: "sums", description: "adds", content: "# Sums" };
const CREATIONS: Readonly<Record<string, Creation>> = {
  "a workspace": {
    sql: /^insert into "workspaces"/,
    create: (client) => fetchStatus(client, "POST", "/users/me/workspaces", { name: "dev", template_id }),
  },
  "a workspace that an administrator creates": {
    sql: /^insert into "workspaces"/,
    create: (_, name) => fetchStatus(admin, "POST", `/users/${name}/workspaces`, { name: "dev", template_id }),
  },
  "a chat": {
    sql: /^insert into "chats"/,
    create: (client) =>
      fetchStatus(client, "POST", "/chats", { organization_id, content: [{ type: "text", text: "hello" }] }),
  },
  "a session": {
    sql: /^insert into "api_keys"/,
    create: (_, name) =>
      fetchStatus(anonymous, "POST", "/users/login", { email: `${name}@example.com`, password: PASSWORD }),
  },
  "a token": {
    sql: /^insert into "api_keys"/,
    create: (client) => fetchStatus(client, "POST", "/users/me/keys/tokens", {}),
  },
  "a secret": {
    sql: /^insert into user_secrets/,
    create: (client) => fetchStatus(client, "POST", "/users/me/secrets", secret),
  },
  "a skill": {
    sql: /^insert into user_skills/,
    create: (client) => fetchStatus(client, "POST", "/users/me/skills", skill),
  },
  "a deploy key": {
    sql: /^insert into deploy_keys/,
    create: (client) => fetchStatus(client, "POST", "/users/me/deploy-keys", { url: "https://git.example.com/a/b" }),
  },
  "a git key": {
    sql: /^insert into "git_ssh_keys"/,
    create: (client) => fetchStatus(client, "GET", "/users/me/gitsshkey"),
  },
};

for (const [kind, { sql, create }] of Object.entries(CREATIONS)) {
  test(`[ID-26] rejects ${kind} for a user who is deleted at the same time`, async () => {
    const name = kind.replaceAll(" ", "-").slice(0, 28);
    const { client } = await newPerson(admin, name);
    using _ = runBeforeCommit(sql, async () => {
      expect(await fetchStatus(admin, "DELETE", `/users/${name}`)).toBe(200);
    });
    expect([401, 404, 409]).toContain(await create(client, name));
    await expectDeleted(name);
  });
}

test("[ID-26] a user who is deleted in the meantime does not get a prebuild, which remains available", async () => {
  const manifest: Manifest = {
    provisioner: "echo",
    resources: [{ name: "main" }],
    presets: [{ name: "Ready", parameters: {}, prebuilds: 1 }],
  };
  const template = await makeTemplate(admin, JSON.stringify(manifest));
  const prebuild = await until(async () => {
    await server.context?.scheduler.tick();
    const page = await admin.get<{ workspaces: Workspace[] }>("/api/v2/workspaces?q=owner%3Aprebuilds");
    return page.workspaces.find(({ latest_build }) => latest_build.status === "running");
  });
  const [preset] = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${template.active_version_id}/presets`);
  const workspaceBody = { template_id: template.id, template_version_preset_id: preset?.id, name: "mine" };
  const { client } = await newPerson(admin, "claimer");
  {
    using _ = runBeforeCommit(/^update "workspaces" set "owner_id"/, async () => {
      expect(await fetchStatus(admin, "DELETE", "/users/claimer")).toBe(200);
    });
    expect(await fetchStatus(client, "POST", "/users/me/workspaces", workspaceBody)).toBe(409);
  }
  await expectDeleted("claimer");
  expect((await admin.post<Workspace>("/api/v2/users/me/workspaces", workspaceBody)).id).toBe(prebuild.id);
});

test("[ID-26] does not delete a user for whom a workspace is created at the same time", async () => {
  const { client } = await newPerson(admin, "stays");
  using _ = runBeforeCommit(/^update "users" set (?=.*"deleted" = \?).* and not exists/, async () => {
    await createWorkspace(client, template_id);
  });
  expect(await fetchStatus(admin, "DELETE", "/users/stays")).toBe(409);
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(200);
});
