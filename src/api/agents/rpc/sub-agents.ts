// The part of the Agent service that creates, deletes and lists sub-agents, such as those of devcontainers (facts/wire 1.5 and 1.6, rules
// SA-1 to SA-5). A token is returned once and stored only as a digest.
import type { SubAgentApp } from "#actors/agent/sub-agents.ts";
import { forbidden } from "#base/errors.ts";
import { NIL_UUID, sha256, uuid, uuidToBytes } from "#base/ids.ts";
import { listSubAgents } from "#db/agents/sub-agents.ts";
import { SHARING_LEVELS } from "#schema/workspaces/app.ts";
import type { CreateSubAgentRequest_App } from "#src/wire/gen/agent_pb.ts";
import type { AgentHandlers } from "#src/wire/index.ts";
import type { ApiContext } from "../../context.ts";
import { toId, toWord } from "./translate.ts";

const DISPLAY_APPS = ["vscode", "vscode_insiders", "web_terminal", "ssh_helper", "port_forwarding_helper"] as const;
const OPEN_IN = ["slim-window", "tab"] as const;

type Handlers = Pick<AgentHandlers, "createSubAgent" | "deleteSubAgent" | "listSubAgents">;

export const subAgentService = (
  { store, agents }: Pick<ApiContext, "store" | "agents">,
  { agent_id, actsForAgent }: { agent_id: string; actsForAgent: boolean },
): Handlers => ({
  async createSubAgent({ name, directory, architecture, operatingSystem, apps, displayApps }) {
    checkActsForAgent(actsForAgent);
    const [id, token] = [uuid(), uuid()];
    const { refused } = await agents.ask(agent_id, "createSubAgent", {
      id,
      token_hash: sha256(token),
      name,
      directory,
      architecture,
      operating_system: operatingSystem,
      display_apps: [...new Set(displayApps.map((app) => toWord(DISPLAY_APPS, app, 0, "display_apps")))],
      apps: apps.map(toApp),
    });
    return {
      agent: { name, id: uuidToBytes(id), authToken: uuidToBytes(token) },
      appCreationErrors: refused,
    };
  },

  async deleteSubAgent({ id }) {
    checkActsForAgent(actsForAgent);
    await agents.ask(agent_id, "deleteSubAgent", { id: toId(id, "id") });
    return {};
  },

  async listSubAgents() {
    const children = await store.all(listSubAgents({ parent_id: agent_id }));
    // Tokens are stored only as digests, but the field must contain 16 bytes.
    return {
      agents: children.map(({ id, name }) => ({ name, id: uuidToBytes(id), authToken: uuidToBytes(NIL_UUID) })),
    };
  },
});

/** Anyone with a copy of the token can open a passive connection, even while the agent's daemon is connected. */
const checkActsForAgent = (actsForAgent: boolean): void => {
  if (!actsForAgent) throw forbidden("Only a connection with the role `agent` can create and delete sub-agents.");
};

const toApp = (app: CreateSubAgentRequest_App): SubAgentApp => ({
  slug: app.slug,
  command: app.command ?? "",
  display_name: app.displayName ?? "",
  external: app.external ?? false,
  group: app.group ?? "",
  healthcheck: app.healthcheck
    ? { url: app.healthcheck.url, interval: app.healthcheck.interval, threshold: app.healthcheck.threshold }
    : { url: "", interval: 0, threshold: 0 },
  hidden: app.hidden ?? false,
  icon: app.icon ?? "",
  open_in: toWord(OPEN_IN, app.openIn ?? 0, 0, "open_in"),
  order: app.order ?? 0,
  // This message's enum starts at 0, unlike the manifest's.
  sharing_level: toWord(SHARING_LEVELS, app.share ?? 0, 0, "share"),
  subdomain: app.subdomain ?? false,
  url: app.url ?? "",
});
