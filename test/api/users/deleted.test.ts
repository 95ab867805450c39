// A user is deleted while something is created for them: one of the two is rejected, in either order.
import { beforeAll, expect, spyOn } from "bun:test";
import type { Statement } from "#db/engine/sql.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Organization } from "#schema/users/organization.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInside as test } from "#test/support/inside.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { createWorkspace, seedTemplate } from "#test/support/workspaces.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const { server, admin, anybody } = await serverForFile({ models: new ScriptedModels() });

/** Runs `action` before the first batch with a statement that matches `pattern` is committed, on any node. */
const runBeforeCommit = (pattern: RegExp, action: () => Promise<unknown>) => {
  let isHeld = false;
  const spies = server.contexts.map(({ store }) => {
    const commit = store.commit.bind(store);
    return spyOn(store, "commit").mockImplementation(async (batch: readonly Statement[], ...more) => {
      if (!isHeld && batch.some(({ sql }) => pattern.test(sql))) {
        isHeld = true;
        await action();
      }
      await commit(batch, ...more);
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

type Making = { readonly commits: RegExp; readonly make: (own: Client, name: string) => Promise<number> };

const secret = { name: "token", value: "hidden", env_name: "TOKEN" };
const skill = { name: "sums", description: "adds", content: "# Sums" };
const MAKING: Readonly<Record<string, Making>> = {
  "a workspace": {
    commits: /^insert into "workspaces"/,
    make: (own) => fetchStatus(own, "POST", "/users/me/workspaces", { name: "dev", template_id }),
  },
  "a workspace that an administrator makes": {
    commits: /^insert into "workspaces"/,
    make: (_, name) => fetchStatus(admin, "POST", `/users/${name}/workspaces`, { name: "dev", template_id }),
  },
  "a chat": {
    commits: /^insert into "chats"/,
    make: (own) => fetchStatus(own, "POST", "/chats", { organization_id, content: [{ type: "text", text: "hello" }] }),
  },
  "a session": {
    commits: /^insert into "api_keys"/,
    make: (_, name) =>
      fetchStatus(anybody, "POST", "/users/login", { email: `${name}@example.com`, password: PASSWORD }),
  },
  "a token": {
    commits: /^insert into "api_keys"/,
    make: (own) => fetchStatus(own, "POST", "/users/me/keys/tokens", {}),
  },
  "a secret": {
    commits: /^insert into user_secrets/,
    make: (own) => fetchStatus(own, "POST", "/users/me/secrets", secret),
  },
  "a skill": {
    commits: /^insert into user_skills/,
    make: (own) => fetchStatus(own, "POST", "/users/me/skills", skill),
  },
  "a deploy key": {
    commits: /^insert into deploy_keys/,
    make: (own) => fetchStatus(own, "POST", "/users/me/deploy-keys", { url: "https://git.example.com/a/b" }),
  },
  "a git key": {
    commits: /^insert into "git_ssh_keys"/,
    make: (own) => fetchStatus(own, "GET", "/users/me/gitsshkey"),
  },
};

for (const [what, { commits, make }] of Object.entries(MAKING)) {
  test(`[ID-26] ${what} for a user who is deleted at the same time is refused`, async () => {
    const name = what.replaceAll(" ", "-").slice(0, 28);
    const { client } = await newPerson(admin, name);
    using _ = runBeforeCommit(commits, async () => {
      expect(await fetchStatus(admin, "DELETE", `/users/${name}`)).toBe(200);
    });
    expect([401, 404, 409]).toContain(await make(client, name));
    await expectDeleted(name);
  });
}

test("[ID-26] a prebuild is not given to a user who is deleted in the meantime, and can still be claimed", async () => {
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

test("[ID-26] a user for whom a workspace is created while they are deleted stays, with their keys", async () => {
  const { client } = await newPerson(admin, "stays");
  using _ = runBeforeCommit(/^update "users" set (?=.*"deleted" = \?).* and not exists/, async () => {
    await createWorkspace(client, template_id);
  });
  expect(await fetchStatus(admin, "DELETE", "/users/stays")).toBe(409);
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(200);
});
