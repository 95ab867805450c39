// Coding agents that chats can be led with: what everyone may choose, and what administrators set up.
import { forbidden, invalidField, notFound } from "#base/errors.ts";
import { FIRST_PART } from "#base/parts.ts";
import { deleteCodingAgent, findCodingAgent, listCodingAgents, putCodingAgent } from "#db/models/coding-agents.ts";
import { audited } from "#db/reports/audit/audit.ts";
import type { AvailableAgents, CodingAgent, CodingAgentInput, CodingAgents } from "#schema/ai/coding-agents.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { resolveProfile, withPresets } from "#src/acp/presets.ts";
import { mayConfigureChats } from "../access.ts";
import type { DomainContext } from "../context.ts";

type Context = Pick<DomainContext, "store" | "clock">;

const checkAdmin = (caller: UserCaller): void => {
  if (!mayConfigureChats(caller)) throw forbidden("Only owners of the deployment manage coding agents.");
};

/** Returns the agents that chats can be begun with. */
export const availableAgents = async ({ store }: Context): Promise<AvailableAgents> => {
  const agents = withPresets(await listCodingAgents(store)).filter(({ enabled }) => enabled);
  return {
    agents: agents.map(({ name, display_name, icon, dialect }) => ({ name, display_name, icon, dialect })),
  };
};

/** Returns all agents with their settings. 403 for everyone but owners. */
export const codingAgents = async ({ store }: Context, caller: UserCaller): Promise<CodingAgents> => {
  checkAdmin(caller);
  return { agents: [...withPresets(await listCodingAgents(store))] };
};

/** Adds an agent, or replaces the settings of one. 403. */
export const setCodingAgent = async (
  { store, clock }: Context,
  caller: UserCaller,
  name: string,
  input: CodingAgentInput,
): Promise<CodingAgent> => {
  checkAdmin(caller);
  const agent = Object.assign({ name, is_preset: resolveProfile(name, undefined) !== undefined }, input);
  const before = resolveProfile(name, await findCodingAgent(store, name));
  const about = { now: clock.now(), ...audit(name) };
  await store.commit([putCodingAgent(agent), audited({ ...about, before, after: agent })], undefined, FIRST_PART);
  return agent;
};

/** Removes an agent, or brings a preset's own settings back. Chats that are led with it can be read. 403, 404. */
export const removeCodingAgent = async ({ store, clock }: Context, caller: UserCaller, name: string): Promise<void> => {
  checkAdmin(caller);
  const before = await findCodingAgent(store, name);
  if (!before) throw notFound();
  const entry = audited({ now: clock.now(), ...audit(name), before });
  await store.commit([deleteCodingAgent(name), entry], undefined, FIRST_PART);
};

/** Returns the name to store with a new chat; null for none. 400 for one that cannot be chosen, and without a workspace. */
export const checkCodingAgent = async (
  { store }: Context,
  name: string | undefined,
  workspace_id: string | null,
): Promise<string | null> => {
  if (name === undefined) return null;
  const agent = resolveProfile(name, await findCodingAgent(store, name));
  if (!agent?.enabled) throw invalidField("coding_agent", "names no coding agent that is enabled");
  if (workspace_id === null) throw invalidField("workspace_id", "is needed: a coding agent works in a workspace");
  return agent.name;
};

const audit = (name: string) =>
  ({ action: "write", resource_type: "chat_settings", target: "coding_agents", additional: { name } }) as const;
