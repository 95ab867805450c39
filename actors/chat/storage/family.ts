// Changes a root chat together with its sub-chats in one batch, so that a crash never leaves a sub-chat with more permissions than its root
// (rules SB-1 and SB-3). Used by the root's actor; the sub-chats' actors reload their rows afterwards.
import { AppError, conflict, invalidField } from "#base/errors.ts";
import { listChildren, unpinChat } from "#db/chats/chats.ts";
import { repinContext } from "#db/chats/context.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { ChosenOptions } from "#schema/chats/agent-option.ts";
import type { PermissionMode } from "#schema/chats/chat-permissions.ts";
import { applyPermissionMode, requireAsking } from "#src/tools/permission-mode.ts";
import type { Outcome } from "../../runtime/actor.ts";
import { announce, announceListChanges, notifyOwner } from "../announce.ts";
import { auditChatChanges } from "../audit.ts";
import { decide } from "../decide.ts";
import type { ChatDeps } from "../deps.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { Change, PendingCall } from "../machine/decision.ts";
import type { ChangeChat, ChatPatch } from "../messages.ts";
import { readChat, requireRoot } from "./read.ts";
import { buildPinWrites, buildWrites, toPatchWrites } from "./writes.ts";

type Member = {
  readonly before: ChatState;
  /** Absent if the execution state is unchanged. */
  readonly change: Change<ChatState> | undefined;
  readonly patch: ChatPatch;
};

/** Changes this chat and its sub-chats together. Throws, without changing anything, if one of them rejects the change. */
export const changeFamily = async (
  deps: ChatDeps,
  state: ChatState,
  { archived, patch: basePatch, agent_options, permission_mode, asks = false, pin, silent_since }: ChangeChat,
): Promise<Outcome<ChatState, void>> => {
  const { clock, topics } = deps;
  if (silent_since !== undefined && (state.updated_at >= silent_since || state.pin_order > 0)) {
    throw conflict("The chat has changed. Reload it and try again.");
  }
  if (pin !== null && pin > 0 && (archived ?? state.archived)) {
    throw new AppError("invalid", "An archived chat cannot be pinned.");
  }
  const requested = agent_options === undefined ? basePatch : withAgentOptions(state, basePatch, agent_options);
  const withModeApplied = permission_mode === undefined ? requested : withMode(state, requested, permission_mode);
  const patch = asks ? { ...withModeApplied, permissions: requireAsking(state.permissions) } : withModeApplied;
  const type = archived ? "archive" : "unarchive";
  const { workspace_id = state.workspace_id } = patch;
  const change =
    archived !== undefined
      ? await decide(deps, requireRoot(state), { type })
      : workspace_id === state.workspace_id
        ? undefined
        : await withdrawApprovals(deps, state);
  const children = await loadChildren(deps, state, { archived, patch }, (child) => decide(deps, child, { type }));
  const next = { ...(change?.state ?? state), ...patch };
  const unpins = archived === true || pin === 0;
  const members: readonly Member[] = [{ before: state, change, patch }, ...children];
  const announceMembers = () => {
    for (const { before, change } of members) {
      if (!change) continue;
      if (before === state) announce(deps, state, { ...change, state: next });
      if (archived !== undefined) notifyOwner(topics, change.state, archived ? "deleted" : "created");
    }
    announceListChanges(topics, state, next);
    reloadChildren(deps, children);
  };
  return {
    state: { ...next, ...(unpins ? { pin_order: 0 } : pin === null ? {} : { pin_order: pin }) },
    writes: [
      ...members.flatMap(toMemberWrites),
      ...(unpins ? unpinChat(state.id, state.owner_id) : pin === null ? [] : buildPinWrites(state, pin)),
      ...(workspace_id === state.workspace_id ? [] : repinContext(state.key, workspace_id, clock.now())),
      ...children.flatMap((child) => writeAuditEntries(child, clock.now())),
    ],
    after: announceMembers,
    reply: undefined,
  };
};

/** Adds to the outcome of a message what it changes for the sub-chats of its root chat: plan mode begins and ends for all of them. */
export const withChildren = async <Reply>(
  deps: ChatDeps,
  state: ChatState,
  { plan_mode = state.plan_mode }: ChatPatch,
  outcome: Outcome<ChatState, Reply>,
): Promise<Outcome<ChatState, Reply>> => {
  if (plan_mode === state.plan_mode) return outcome;
  const children = await loadChildren(deps, state, { patch: { plan_mode } });
  return {
    ...outcome,
    writes: [
      ...(outcome.writes ?? []),
      ...children.flatMap(toMemberWrites),
      ...children.flatMap((child) => writeAuditEntries(child, deps.clock.now())),
    ],
    after: () => {
      outcome.after?.();
      reloadChildren(deps, children);
    },
  };
};

/** Has the sub-chats' actors read their rows again. */
const reloadChildren = (deps: ChatDeps, children: readonly Member[]): void => {
  for (const { before } of children) {
    void deps
      .chats()
      .ask(before.id, "reload", {})
      .catch(() => {});
  }
};

const WITHDRAWN = { permission: "refused", is_withdrawn: true } as const;

/**
 * Returns the change of a chat that gets another workspace: calls that wait for approval, and approved ones that still have no result, do not
 * run there, because the person saw them for the previous workspace (rule PE-19).
 */
const withdrawApprovals = async (deps: ChatDeps, state: ChatState): Promise<Change<ChatState> | undefined> => {
  const { status, workspace_id, pending_calls } = state;
  const asked = pending_calls.filter(({ permission }) => permission === "asked");
  if (status === "requires_action" && asked.length > 0) {
    const answers = asked.map(({ tool_call_id }) => ({ tool_call_id, ...WITHDRAWN }));
    return decide(deps, state, { type: "answer_permissions", answers });
  }
  // Neither the calls of a chat that gets its first workspace, nor the call that creates the workspace, were approved for another one.
  const isApproved = ({ permission, tool_name }: PendingCall): boolean =>
    workspace_id !== null && permission === "granted" && tool_name !== "create_workspace";
  if (status !== "running" || !pending_calls.some(isApproved)) return undefined;
  const withdrawn = pending_calls.map((call) => (isApproved(call) ? { ...call, ...WITHDRAWN } : call));
  const next = { ...state, pending_calls: withdrawn };
  return { kind: "change", state: next, inserted: [], promoted: [], deleted_from: null, effects: [] };
};

/** Throws 400 for options that the agent does not offer. Until its first answer, it offers none. */
const withAgentOptions = (state: ChatState, patch: ChatPatch, requested: ChosenOptions): ChatPatch => {
  const session = state.agent_session;
  for (const [id, choice] of Object.entries(requested)) {
    const option = session?.options?.find((one) => one.id === id);
    if (!option) throw invalidField(`agent_options.${id}`, "is not an option of the chat's coding agent");
    if (!option.choices.some((one) => one.id === choice)) {
      throw invalidField(`agent_options.${id}`, "is not a choice that the chat's coding agent offers");
    }
  }
  if (!session) return patch;
  return { ...patch, agent_session: { ...session, chosen: { ...session.chosen, ...requested } } };
};

/** Applies the mode to the chat's current rules, so that rules added in the meantime are kept. */
const withMode = (state: ChatState, patch: ChatPatch, mode: PermissionMode): ChatPatch => {
  const { permissions = state.permissions, plan_mode = state.plan_mode } = patch;
  const next = applyPermissionMode(mode, { permissions, plan_mode });
  const isChanged = "permissions" in patch || next.permissions !== state.permissions;
  return { ...patch, plan_mode: next.plan_mode, ...(isChanged ? { permissions: next.permissions } : {}) };
};

/** Loads the sub-chats that change with their root: they are archived with the root, and have its permissions and its plan mode. */
const loadChildren = async (
  { store }: ChatDeps,
  root: ChatState,
  { archived, patch }: Pick<ChangeChat, "archived" | "patch">,
  decideArchiving?: (child: ChatState) => Promise<Change<ChatState>>,
): Promise<Member[]> => {
  const inherited = toInherited(patch);
  const isInherited = Object.keys(inherited).length > 0;
  if (root.parent_chat_id !== null || (archived === undefined && !isInherited)) return [];
  const found: Member[] = [];
  for (const { id } of await store.all(listChildren({ root: root.id }))) {
    const before = await readChat(store, id);
    if (!before) continue;
    const isMoving = archived !== undefined && before.archived !== archived;
    const change = isMoving ? await decideArchiving?.(before) : undefined;
    if (change || isInherited) found.push({ before, change, patch: inherited });
  }
  return found;
};

const toInherited = ({ permissions, plan_mode }: ChatPatch): ChatPatch => {
  if (plan_mode === undefined) return permissions === undefined ? {} : { permissions };
  return permissions === undefined ? { plan_mode } : { permissions, plan_mode };
};

const toMemberWrites = ({ before, change, patch }: Member): Statement[] => [
  ...(change ? buildWrites(before, change) : []),
  ...toPatchWrites(before, patch),
];

/** Records the changed permissions of a sub-chat. Archiving a sub-chat has no entry of its own, because its root's archiving has one. */
const writeAuditEntries = ({ before, patch }: Member, now: number): Statement[] =>
  auditChatChanges(before, { state: { ...before, ...patch } }, now).map(insertAudit);
