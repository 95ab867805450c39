// Creates a chat: runs the checks of facts/chats 4.3 in order, then its actor stores it with its first message and starts its turn.
import { toFallbackTitle } from "#actors/chat/background/title-text.ts";
import { admitPrompt } from "#actors/chat/hooks/prompts.ts";
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import { NIL_UUID, uuid } from "#base/ids.ts";
import type { RequestKey } from "#db/chats/requests.ts";
import { findWorkspaceAccessRow, type WorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { Chat, CreateChat } from "#schema/chats/chat.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canCreateChat, canUseWorkspace } from "../access.ts";
import { chooseCodingAgent } from "../ai/coding-agents.ts";
import type { DomainContext } from "../context.ts";
import { loadAttachables } from "./attachments.ts";
import { readChat } from "./find.ts";
import { isCreatedByRequest, toChatId } from "./idempotency.ts";
import {
  checkModes,
  parseClientType,
  parseEffort,
  parsePlanMode,
  toContent,
  toDynamicTools,
  toLabels,
} from "./input.ts";
import { chooseServers, listDefaultServers } from "./mcp-choice.ts";
import { toPermissions } from "./permission-rules.ts";
import { loadStartingPermissions } from "./starting-permissions.ts";
import { checkUsageLimit } from "./usage-limits.ts";
import { findPreferredModel } from "./wanted-model.ts";

/** With a `request`, the chat's ID is derived from its key, so that a repeated request creates only one chat. */
export const createChat = async (
  ctx: DomainContext,
  caller: UserCaller,
  body: CreateChat,
  request?: RequestKey,
): Promise<Chat> => {
  const organization_id = body.organization_id.toLowerCase();
  if (!canCreateChat(caller, organization_id)) throw forbidden("You are not a member of this organization.");
  const id = request === undefined ? uuid() : toChatId(caller.user_id, request.key);
  if (await isCreatedByRequest(ctx, id, request)) return readChat(ctx, id);
  await checkUsageLimit(ctx, caller.user_id);
  const chat = { organization_id, key: null };
  const typed = toContent(body.content, await loadAttachables(ctx, caller, body.content, chat));
  const workspace_id = await resolveWorkspace(ctx, caller, organization_id, body.workspace_id);
  const preferred =
    body.model_config_id === undefined ? await findPreferredModel(ctx, caller, organization_id) : undefined;
  const coding_agent = await chooseCodingAgent(ctx, body.coding_agent, workspace_id);
  const model = preferred?.model_config_id ?? chooseModelOrNone(ctx, body.model_config_id, coding_agent);
  const requestedPlan = parsePlanMode(body.plan_mode);
  checkModes(body.permission_mode, requestedPlan);
  const chosenServers = await chooseServers(ctx, organization_id, body.mcp_server_ids);
  const mcp_server_ids = chosenServers ?? (await listDefaultServers(ctx, organization_id));
  const labels = toLabels(body.labels ?? {});
  const dynamic_tools = toDynamicTools(body.unsafe_dynamic_tools);
  const client_type = parseClientType(body.client_type);
  const { permissions, plan_mode } = await loadStartingPermissions(ctx, {
    owner_id: caller.user_id,
    client_type,
    workspace_id,
    plan_mode: requestedPlan ?? null,
    permission_mode: body.permission_mode,
    permissions: body.permissions === undefined ? undefined : toPermissions(body.permissions),
    is_application: caller.is_application,
  });
  const last_reasoning_effort = parseEffort(body.reasoning_effort) ?? preferred?.reasoning_effort ?? "";
  const message = { created_by: caller.user_id, model_config_id: model, usage: null };
  const system = body.system_prompt?.trim() ?? "";
  const owner = { id, owner_id: caller.user_id, workspace_id, parent_chat_id: null, root_chat_id: null };
  const requested = { chat: owner, content: typed, system_prompt: system, dynamic_tools };
  const { content, custom_prompt } = await admitPrompt(ctx, requested);
  ctx.chats.expect(id, caller.user_id);
  const created = ctx.chats.ask(id, "create", {
    request,
    chat: {
      id,
      organization_id,
      owner_id: caller.user_id,
      workspace_id,
      parent_chat_id: null,
      root_chat_id: null,
      coding_agent,
      last_model_config_id: model,
      last_reasoning_effort,
      title: toFallbackTitle(content),
      client_type,
      plan_mode,
      labels,
      permissions,
      mcp_server_ids,
      dynamic_tools,
    },
    messages: [
      ...(system === ""
        ? []
        : [
            {
              role: "system" as const,
              visibility: "model" as const,
              content: [{ type: "text" as const, text: system }],
              created_by: null,
              model_config_id: null,
              usage: null,
            },
          ]),
      { role: "user", visibility: "both", content, custom_prompt, ...message },
    ],
  });
  // If two identical requests race, the second returns what the first created.
  await created.catch(async (error) => {
    if (!(await isCreatedByRequest(ctx, id, request))) throw error;
  });
  return readChat(ctx, id);
};

/**
 * Returns the ID to store; null for none. Rejects with 400 when it does not exist, is in another organization, or the caller cannot use it.
 */
export const resolveWorkspace = async (
  ctx: DomainContext,
  caller: UserCaller,
  organization_id: string,
  id: string | undefined,
): Promise<string | null> => {
  if (id === undefined) return null;
  const workspace = await requireUsableWorkspace(ctx, caller, id);
  if (workspace.organization_id !== organization_id) {
    throw invalidField("workspace_id", "belongs to another organization");
  }
  return workspace.id;
};

/** Rejects with 400 when it does not exist or the caller cannot use it. */
export const requireUsableWorkspace = async (
  { store }: DomainContext,
  caller: UserCaller,
  id: string,
): Promise<WorkspaceAccessRow> => {
  const workspace = await store.get(findWorkspaceAccessRow({ id: id.toLowerCase() }));
  if (workspace && !workspace.deleted && canUseWorkspace(caller, workspace)) return workspace;
  throw invalidField("workspace_id", "names no workspace you can use");
};

/** A coding agent calls models itself, so it works without a configured model. */
const chooseModelOrNone = (ctx: DomainContext, id: string | undefined, coding_agent: string | null): string =>
  coding_agent !== null && id === undefined && !ctx.models.resolve(null) ? NIL_UUID : chooseModel(ctx, id);

/** Returns the model's ID. Rejects with 400 when there is no model, or none with this ID. */
export const chooseModel = ({ models }: DomainContext, id: string | undefined): string => {
  const model = models.resolve(id?.toLowerCase() ?? null);
  if (model) return model.id;
  if (id !== undefined) throw invalidField("model_config_id", "names no model you can use");
  throw new AppError("invalid", "No model is available. An administrator must add a provider.");
};
