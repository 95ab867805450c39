// Preparations for operations in the audit log test; each creates what the operation needs in the town of the authorization matrix.
import { Client } from "#src/client.ts";
import { importVersion } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import type { TestObjects, Town } from "../edge/matrix-world.ts";

const HOUR = 3_600_000;

const adminClient = (town: Town): Client => new Client(town.server.url, town.tokens.admin);
const ada = (town: Town): Client => new Client(town.server.url, town.tokens.ada);

const newVersion = async (town: Town, more: object = {}): Promise<string> => {
  const { template, file } = town.things;
  const body = { template_id: template, storage_method: "file", file_id: file, provisioner: "echo", ...more };
  const created = await adminClient(town).post<{ id: string }>("/api/v2/organizations/default/templateversions", body);
  return created.id;
};

const usable = async (town: Town): Promise<string> => {
  const models =
    await ada(town).get<{ id: string; enabled: boolean; is_default: boolean }[]>("/api/v2/chats/model-configs");
  return models.find((one) => one.is_default)?.id ?? "none";
};

const CODING_AGENT = {
  display_name: "Mine",
  icon: "",
  enabled: true,
  command: "mine",
  arguments: [],
  variables: {},
  install_script: "",
  dialect: "openai",
  auth_method: "",
  mode: "",
};

export const PREPARATIONS = {
  codingAgent: async (town) => {
    await adminClient(town).put<unknown>("/api/v2/ai/agents/mine", CODING_AGENT);
    return {};
  },
  imported: async (town) => ({ imported: (await importVersion(adminClient(town), JSON.stringify(ECHO))).id }),
  /** Stays pending because no worker has its tag. */
  pendingVersion: async (town) => ({ templateversion: await newVersion(town, { tags: { unmatched: "true" } }) }),
  spareVersion: async (town) => ({ templateversion: await newVersion(town, { tags: { unmatched: "true" } }) }),
  archivedVersion: async (town) => {
    const templateversion = await newVersion(town, { tags: { unmatched: "true" } });
    await adminClient(town).post(`/api/v2/templateversions/${templateversion}/archive`);
    return { templateversion };
  },
  unusedVersion: async (town) => {
    const template = (await seedTemplate(town.server)).template_id;
    const templateversion = await newVersion(town, { template_id: template, tags: { unmatched: "true" } });
    await adminClient(town).patch(`/api/v2/templateversions/${templateversion}/cancel`);
    return { template };
  },
  favorite: async (town) => {
    await ada(town).put(`/api/v2/workspaces/${town.things.workspace}/favorite`);
    return {};
  },
  shared: async (town) => {
    const acl = { user_roles: { [town.things.bob ?? ""]: "admin" } };
    await ada(town).patch(`/api/v2/workspaces/${town.things.workspace}/acl`, acl);
    return {};
  },
  /** A running workspace with a deadline. */
  running: async (town) => {
    const template = await seedTemplate(town.server);
    const created = await createWorkspace(ada(town), template.template_id, "timed", { ttl_ms: 8 * HOUR });
    await awaitBuild(ada(town), created.id);
    return { workspace: created.id, later: new Date(town.clock.now() + 2 * HOUR).toISOString() };
  },
  stopped: async (town) => {
    const template = await seedTemplate(town.server);
    const created = await createWorkspace(ada(town), template.template_id, "sleeper");
    await awaitBuild(ada(town), created.id);
    await createBuild(ada(town), created.id, "stop");
    await awaitBuild(ada(town), created.id);
    return { workspace: created.id };
  },
  pendingBuild: async (town) => {
    const template = await seedTemplate(town.server, { ...ECHO, provisioner: "external" });
    const created = await createWorkspace(ada(town), template.template_id, "waits");
    return { workspacebuild: created.latest_build.id };
  },
  /** A chat whose turn was interrupted. */
  idleChat: async (town) => {
    const content = [{ type: "text", text: "hang: on" }];
    const { organization_id } = town.things;
    const { id } = await ada(town).post<{ id: string }>("/api/v2/chats", { organization_id, content });
    await ada(town).post(`/api/v2/chats/${id}/interrupt`);
    using stream = await ada(town).socket(`/api/v2/chats/${id}/stream`);
    for await (const batch of stream) if (/"status":"(waiting|error)"/.test(String(batch))) break;
    return { chat: id };
  },
  allowed: async (town) => {
    await adminClient(town).put("/api/v2/chats/config/personal-model-overrides", { allow_users: true });
    await adminClient(town).put("/api/v2/chats/config/debug-logging", { allow_users: true });
    return {};
  },
  model: async (town) => ({ usable: await usable(town) }),
  threshold: async (town) => {
    const model = await usable(town);
    await adminClient(town).put(`/api/v2/chats/config/user-compaction-thresholds/${model}`, { threshold_percent: 60 });
    return { usable: model };
  },
  budget: async (town) => {
    const budgetBody = { scope: "everyone", period: "week", unit: "tokens", amount: 1_000_000_000 } as const;
    const { id } = await adminClient(town).put<{ id: string }>("/api/v2/ai/budgets", budgetBody);
    return { budget: id };
  },
  limits: async (town) => {
    const path = "/api/v2/chats/usage-limits";
    await adminClient(town).put(`${path}/overrides/ada`, { spend_limit_micros: 1_000_000 });
    await adminClient(town).put(`${path}/group-overrides/${town.things.organization_id}`, {
      spend_limit_micros: 1_000_000,
    });
    return {};
  },
} satisfies Record<string, (town: Town) => Promise<TestObjects>>;

export type Preparation = keyof typeof PREPARATIONS;
