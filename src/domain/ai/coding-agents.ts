// Coding agents for chats: the list that users choose from, and its configuration by administrators.
import { forbidden, invalid, invalidField, notFound } from "#base/errors.ts";
import { deleteCodingAgent, findCodingAgent, listCodingAgents, upsertCodingAgent } from "#db/models/coding-agents.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findTemplateEvenDeleted, type TemplateRow } from "#db/templates/templates.ts";
import type {
  AvailableAgents,
  CodingAgent,
  CodingAgentInput,
  CodingAgents,
  DefaultAgent,
} from "#schema/ai/coding-agents.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { mergePresets, resolveProfile } from "#src/acp/presets.ts";
import { canConfigureChats } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadTemplate } from "../templates/find.ts";
import { loadWorkspace } from "../workspaces/find.ts";

type Context = Pick<DomainContext, "store" | "clock">;

const checkAdmin = (caller: UserCaller): void => {
  if (!canConfigureChats(caller)) throw forbidden("Only owners of the deployment can manage coding agents.");
};

/** Where a chat or task is to start: an existing workspace, or a new one from a template. */
type StartLocation = { readonly workspace_id?: string | undefined; readonly template_id?: string | undefined };

/**
 * Returns the coding agents available for new chats, and the default of the template or of the workspace's template. Rejects with 400
 * when both a workspace and a template are given, and with 404 when the caller cannot see the given one.
 */
export const listAvailableAgents = async (
  ctx: DomainContext,
  caller: UserCaller,
  location: StartLocation,
): Promise<AvailableAgents> => {
  const template = await findTemplateFor(ctx, caller, location);
  const agents = mergePresets(await listCodingAgents(ctx.store)).filter(({ enabled }) => enabled);
  const default_agent = template && (await findDefaultAgent(ctx, template));
  return {
    agents: agents.map(({ name, display_name, icon, dialect }) => ({ name, display_name, icon, dialect })),
    ...(default_agent ? { default_agent } : {}),
  };
};

const findTemplateFor = async (
  ctx: DomainContext,
  caller: UserCaller,
  { workspace_id, template_id }: StartLocation,
): Promise<TemplateRow | undefined> => {
  if (workspace_id === undefined) {
    return template_id === undefined ? undefined : (await loadTemplate(ctx, template_id, caller)).template;
  }
  if (template_id !== undefined) throw invalidField("template_id", "cannot be given together with workspace_id");
  const { template_id: id } = await loadWorkspace(ctx, workspace_id, caller);
  return ctx.store.get(findTemplateEvenDeleted({ id }));
};

/**
 * Returns the coding agent that the template sets as the default for chats and tasks, with any problem it has; undefined if it sets none.
 */
export const findDefaultAgent = async (
  { store }: Pick<DomainContext, "store">,
  { default_coding_agent: name }: Pick<TemplateRow, "default_coding_agent">,
): Promise<DefaultAgent | undefined> => {
  if (name === "") return undefined;
  const agent = resolveProfile(name, await findCodingAgent(store, name));
  return { name, display_name: agent?.display_name ?? name, problem: describeProblem(name, agent) };
};

/** Returns why a coding agent cannot be used, as a sentence; empty if it can. */
const describeProblem = (name: string, agent: CodingAgent | undefined): string => {
  if (!agent) return `There is no coding agent "${name}".`;
  return agent.enabled ? "" : `The coding agent "${agent.display_name}" is disabled.`;
};

/** Rejects with 400 for this field when the coding agent cannot be used. */
export const requireCodingAgent = async (
  { store }: Pick<DomainContext, "store">,
  name: string,
  field: "coding_agent" | "default_coding_agent",
): Promise<void> => {
  const problem = describeProblem(name, resolveProfile(name, await findCodingAgent(store, name)));
  if (problem !== "") throw invalid(problem, [{ field, detail: "must be an enabled coding agent" }]);
};

/** Returns all coding agents with their settings. Rejects with 403 for everyone but owners. */
export const presentCodingAgents = async ({ store }: Context, caller: UserCaller): Promise<CodingAgents> => {
  checkAdmin(caller);
  return { agents: [...mergePresets(await listCodingAgents(store))] };
};

/** Adds a coding agent or replaces its settings. Rejects with 403. */
export const setCodingAgent = async (
  { store, clock }: Context,
  caller: UserCaller,
  name: string,
  input: CodingAgentInput,
): Promise<CodingAgent> => {
  checkAdmin(caller);
  const agent = Object.assign({ name, is_preset: resolveProfile(name, undefined) !== undefined }, input);
  const before = resolveProfile(name, await findCodingAgent(store, name));
  const base = { now: clock.now(), ...toAuditFields(name) };
  await store.commit([upsertCodingAgent(agent), insertAudit({ ...base, before, after: agent })], { of: "deployment" });
  return agent;
};

/** Removes a coding agent, or resets a preset to its default settings. Its chats stay readable. Rejects with 403 or 404. */
export const removeCodingAgent = async ({ store, clock }: Context, caller: UserCaller, name: string): Promise<void> => {
  checkAdmin(caller);
  const before = await findCodingAgent(store, name);
  if (!before) throw notFound();
  const entry = insertAudit({ now: clock.now(), ...toAuditFields(name), before });
  await store.commit([deleteCodingAgent(name), entry], { of: "deployment" });
};

/** Returns the name to store with a new chat; null for none. Rejects with 400 when it is unavailable or there is no workspace. */
export const chooseCodingAgent = async (
  ctx: Context,
  name: string | undefined,
  workspace_id: string | null,
): Promise<string | null> => {
  if (name === undefined) return null;
  await requireCodingAgent(ctx, name, "coding_agent");
  if (workspace_id === null) throw invalidField("workspace_id", "is required: coding agents work in a workspace");
  return name;
};

const toAuditFields = (name: string) =>
  ({ action: "write", resource_type: "chat_settings", target: "coding_agents", additional: { name } }) as const;
