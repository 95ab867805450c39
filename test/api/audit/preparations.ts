// Prepares operations for the audit log test: creates what an operation needs in the test data of the authorization matrix.
import { Client } from "#src/client.ts";
import { importVersion } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import type { MatrixWorld, TestObjects } from "../edge/matrix-world.ts";

const HOUR = 3_600_000;

const adminClient = (world: MatrixWorld): Client => new Client(world.server.url, world.tokens.admin);
const adaClient = (world: MatrixWorld): Client => new Client(world.server.url, world.tokens.ada);

const createVersion = async (world: MatrixWorld, overrides: object = {}): Promise<string> => {
  const { template, file } = world.things;
  const body = { template_id: template, storage_method: "file", file_id: file, provisioner: "echo", ...overrides };
  const created = await adminClient(world).post<{ id: string }>("/api/v2/organizations/default/templateversions", body);
  return created.id;
};

const getDefaultModel = async (world: MatrixWorld): Promise<string> => {
  const models =
    await adaClient(world).get<{ id: string; enabled: boolean; is_default: boolean }[]>("/api/v2/chats/model-configs");
  return models.find((model) => model.is_default)?.id ?? "none";
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
  codingAgent: async (world) => {
    await adminClient(world).put<unknown>("/api/v2/ai/agents/mine", CODING_AGENT);
    return {};
  },
  imported: async (world) => ({ imported: (await importVersion(adminClient(world), JSON.stringify(ECHO))).id }),
  /** Stays pending because no worker has its tag. */
  pendingVersion: async (world) => ({ templateversion: await createVersion(world, { tags: { unmatched: "true" } }) }),
  spareVersion: async (world) => ({ templateversion: await createVersion(world, { tags: { unmatched: "true" } }) }),
  archivedVersion: async (world) => {
    const templateversion = await createVersion(world, { tags: { unmatched: "true" } });
    await adminClient(world).post(`/api/v2/templateversions/${templateversion}/archive`);
    return { templateversion };
  },
  unusedVersion: async (world) => {
    const template = (await seedTemplate(world.server)).template_id;
    const templateversion = await createVersion(world, { template_id: template, tags: { unmatched: "true" } });
    await adminClient(world).patch(`/api/v2/templateversions/${templateversion}/cancel`);
    return { template };
  },
  favorite: async (world) => {
    await adaClient(world).put(`/api/v2/workspaces/${world.things.workspace}/favorite`);
    return {};
  },
  shared: async (world) => {
    const acl = { user_roles: { [world.things.bob ?? ""]: "admin" } };
    await adaClient(world).patch(`/api/v2/workspaces/${world.things.workspace}/acl`, acl);
    return {};
  },
  /** A running workspace with a deadline. */
  running: async (world) => {
    const template = await seedTemplate(world.server);
    const created = await createWorkspace(adaClient(world), template.template_id, "timed", { ttl_ms: 8 * HOUR });
    await awaitBuild(adaClient(world), created.id);
    return { workspace: created.id, later: new Date(world.clock.now() + 2 * HOUR).toISOString() };
  },
  stopped: async (world) => {
    const template = await seedTemplate(world.server);
    const created = await createWorkspace(adaClient(world), template.template_id, "sleeper");
    await awaitBuild(adaClient(world), created.id);
    await createBuild(adaClient(world), created.id, "stop");
    await awaitBuild(adaClient(world), created.id);
    return { workspace: created.id };
  },
  pendingBuild: async (world) => {
    const template = await seedTemplate(world.server, { ...ECHO, provisioner: "external" });
    const created = await createWorkspace(adaClient(world), template.template_id, "waits");
    return { workspacebuild: created.latest_build.id };
  },
  /** A chat whose turn was interrupted. */
  idleChat: async (world) => {
    const content = [{ type: "text", text: "hang: on" }];
    const { organization_id } = world.things;
    const { id } = await adaClient(world).post<{ id: string }>("/api/v2/chats", { organization_id, content });
    await adaClient(world).post(`/api/v2/chats/${id}/interrupt`);
    using stream = await adaClient(world).socket(`/api/v2/chats/${id}/stream`);
    for await (const batch of stream) if (/"status":"(waiting|error)"/.test(String(batch))) break;
    return { chat: id };
  },
  allowed: async (world) => {
    await adminClient(world).put("/api/v2/chats/config/personal-model-overrides", { allow_users: true });
    await adminClient(world).put("/api/v2/chats/config/debug-logging", { allow_users: true });
    return {};
  },
  model: async (world) => ({ usable: await getDefaultModel(world) }),
  threshold: async (world) => {
    const model = await getDefaultModel(world);
    await adminClient(world).put(`/api/v2/chats/config/user-compaction-thresholds/${model}`, { threshold_percent: 60 });
    return { usable: model };
  },
  budget: async (world) => {
    const budgetBody = { scope: "everyone", period: "week", unit: "tokens", amount: 1_000_000_000 } as const;
    const { id } = await adminClient(world).put<{ id: string }>("/api/v2/ai/budgets", budgetBody);
    return { budget: id };
  },
  limits: async (world) => {
    const path = "/api/v2/chats/usage-limits";
    await adminClient(world).put(`${path}/overrides/ada`, { spend_limit_micros: 1_000_000 });
    await adminClient(world).put(`${path}/group-overrides/${world.things.organization_id}`, {
      spend_limit_micros: 1_000_000,
    });
    return {};
  },
} satisfies Record<string, (world: MatrixWorld) => Promise<TestObjects>>;

export type Preparation = keyof typeof PREPARATIONS;
