// Routes of coding agents: those available to chats, and their configuration by administrators.
import { t } from "elysia";
import {
  listAvailableAgents,
  presentCodingAgents,
  removeCodingAgent,
  setCodingAgent,
} from "#domain/ai/coding-agents.ts";
import {
  AvailableAgents,
  CodingAgent,
  CodingAgentInput,
  CodingAgents,
  codingAgentName,
} from "#schema/ai/coding-agents.ts";
import { writesSetting } from "../audit/setting-targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const user = true;
const tags = ["Coding agents"];
const params = t.Object({ coding_agent: codingAgentName("The name of the coding agent.") });

export const agents = (ctx: ApiContext) =>
  routes({ prefix: "/ai" })
    .use(callers)
    .get("/agents/available", ({ caller, query }) => listAvailableAgents(ctx, caller, query), {
      user,
      query: t.Object({
        workspace_id: t.Optional(
          t.String({ format: "uuid", description: "Also return the default agent for chats in this workspace." }),
        ),
        template_id: t.Optional(
          t.String({ format: "uuid", description: "Also return the default agent for tasks from this template." }),
        ),
      }),
      response: { 200: AvailableAgents, ...fails(400, 401, 404) },
      detail: operation({
        tags,
        operationId: "listAvailableCodingAgents",
        summary: "List available coding agents",
        description:
          "Returns the agents that chats and tasks can use. Send an agent's name as `coding_agent` to start a chat or task with it. `default_agent` is the template's default, if it has one.",
        access: "users",
        scope: "chat:read",
      }),
    })
    .get("/agents", ({ caller }) => presentCodingAgents(ctx, caller), {
      user,
      response: { 200: CodingAgents, ...fails(401, 403) },
      detail: operation({
        tags,
        operationId: "listCodingAgents",
        summary: "List coding agents with their settings",
        description: "Available to deployment owners. Includes the presets, which are disabled by default.",
        access: "admins",
        scope: "chat_config:read",
      }),
    })
    .put(
      "/agents/:coding_agent",
      ({ caller, params: { coding_agent }, body }) => setCodingAgent(ctx, caller, coding_agent, body),
      {
        user,
        params,
        body: CodingAgentInput,
        response: { 200: CodingAgent, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: "setCodingAgent",
          summary: "Create or update a coding agent",
          description: "Replaces all settings of the agent. Existing chats use them the next time the agent starts.",
          example: {
            display_name: "My agent",
            icon: "",
            enabled: true,
            command: "my-agent",
            arguments: ["--acp"],
            variables: {},
            install_script: "",
            dialect: "openai",
            auth_method: "",
            mode: "",
          },
          audit: writesSetting("coding_agents"),
          access: "admins",
          outlivesGrant: true,
          scope: ["chat_config:update", "workspace:ssh"],
        }),
      },
    )
    .delete(
      "/agents/:coding_agent",
      async ({ caller, params: { coding_agent }, status }) => {
        await removeCodingAgent(ctx, caller, coding_agent);
        return status(204, undefined);
      },
      {
        user,
        params,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteCodingAgent",
          summary: "Delete a coding agent",
          description:
            "Deletes an agent, or restores the original settings of a preset. Chats with a deleted agent remain readable.",
          audit: writesSetting("coding_agents"),
          access: "admins",
          scope: "chat_config:update",
          outlivesGrant: true,
        }),
      },
    );
