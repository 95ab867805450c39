// Identifies the caller of the gateway: a program in a workspace with the workspace's token, the coding agent of a chat with the chat's
// token, or a person with an API key that has the scope `ai:use`.
import { AppError } from "#base/errors.ts";
import { isWorkspaceToken } from "#base/secrets/workspace-token.ts";
import { findSignedInAgent } from "#db/agents/tokens.ts";
import { findChatPayer } from "#db/chats/spend.ts";
import { findHomeOrganization, readMemberships } from "#db/users/members.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import { canUseWorkspace, canWorkIn } from "#domain/access.ts";
import { isChatToken, matchesChatToken, parseChatToken } from "#domain/ai/chat-token.ts";
import type { Payer } from "#domain/ai/ledger.ts";
import type { ModelCaller } from "#domain/ai/names.ts";
import { parseWorkspaceToken } from "#domain/ai/workspace-token.ts";
import type { Access } from "#domain/live-access.ts";
import { loadCaller } from "#domain/users/as-caller.ts";
import { hasScope } from "#schema/users/scopes.ts";
import type { Dialect } from "#src/llm/gateway/endpoint.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";
import type { ApiContext } from "../context.ts";
import { type CallerDeps, identify } from "../http/identify.ts";
import { watchAccess } from "../http/revocation.ts";
import { findToken } from "./headers.ts";

/** The scope that an API key needs. */
export const GATEWAY_SCOPE = "ai:use";

export type GatewayCaller = {
  readonly payer: Payer;
  readonly modelCaller: ModelCaller;
  /** Calls `end` with a reason when the token becomes invalid. Returns a function that stops listening. */
  readonly whenLost: WatchAccess;
};

type WatchAccess = (ctx: ApiContext, deps: CallerDeps, end: (reason: string) => void) => () => void;

const refuseToken = (message: string): Refusal => ({ status: 401, code: "invalid_api_key", message });

/** Returns the caller, or the reason for rejecting the request. */
export const identifyGatewayCaller = async (
  request: Request,
  dialect: Dialect,
  deps: CallerDeps,
): Promise<GatewayCaller | Refusal> => {
  const token = findToken(request, dialect);
  if (token === undefined) {
    return refuseToken("Send a Slipway token where the provider's API key would be. Create one with the scope ai:use.");
  }
  if (isWorkspaceToken(token)) return identifyWorkspace(token, deps);
  return isChatToken(token) ? identifyChat(token, deps) : identifyPerson(token, request, deps);
};

/** The token loses its access when that of its agent, its workspace or one of these users ends. */
type AccessSources = { readonly agent_id: string; readonly workspace_id: string; readonly user_ids: readonly string[] };

/** Checks the token again whenever access that it depends on may have ended. */
const watchToken =
  (
    { agent_id, workspace_id, user_ids }: AccessSources,
    identifyAgain: (deps: CallerDeps) => Promise<GatewayCaller | Refusal>,
  ): WatchAccess =>
  ({ topics }, deps, end) => {
    const recheck = (): void => {
      identifyAgain(deps).then(
        (found) => {
          if ("status" in found) end(ENDED);
        },
        () => end(ENDED),
      );
    };
    const stops = [
      topics.subscribe("agent_gone", agent_id, recheck),
      topics.subscribe("missed", "", recheck),
      topics.subscribe("access_changed", workspace_id, recheck),
      ...user_ids.map((id) => topics.subscribe("key_gone", id, recheck)),
      ...user_ids.map((id) => topics.subscribe("access_changed", id, recheck)),
    ];
    // The token may have become invalid while the call was being set up.
    recheck();
    return () => {
      for (const stop of stops) stop();
    };
  };

const ENDED = "its token is no longer valid";

const NO_CHAT = { chat_id: "", root_chat_id: "" } as const;

const MODELS_DENIED: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The template doesn't give this agent access to models.",
};

const NOT_A_MEMBER: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The owner of this token is not a member of the organization.",
};

/** Usage of a user without an organization would not count toward any budget. */
const NO_ORGANIZATION: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The owner of this token is not a member of any organization.",
};

const identifyWorkspace = async (token: string, deps: CallerDeps): Promise<GatewayCaller | Refusal> => {
  const agent_id = parseWorkspaceToken(deps.encryption, token);
  const agent = agent_id === undefined ? undefined : await deps.store.get(findSignedInAgent({ id: agent_id }));
  if (!agent || agent_id === undefined)
    return refuseToken("The token of this workspace is no longer valid. Restart the workspace to get a new one.");
  if (agent.owner_status === "suspended") return refuseToken("The owner of this workspace is suspended.");
  if (agent.api_key_scope !== "all") return MODELS_DENIED;
  const { groups, organizations } = await readMemberships(deps.store, agent.owner_id);
  if (!canWorkIn({ organizations }, agent.organization_id)) return NOT_A_MEMBER;
  return {
    payer: {
      ...NO_CHAT,
      user_id: agent.owner_id,
      workspace_id: agent.workspace_id,
      key_id: "",
      organization_id: agent.organization_id,
      template_id: agent.template_id,
    },
    modelCaller: { groups, template_id: agent.template_id },
    whenLost: watchToken({ agent_id, workspace_id: agent.workspace_id, user_ids: [agent.owner_id] }, (currentDeps) =>
      identifyWorkspace(token, currentDeps),
    ),
  };
};

/** The chat's owner pays. If they do not own the workspace, the token is valid only during a turn and while they may use the workspace. */
const identifyChat = async (token: string, deps: CallerDeps): Promise<GatewayCaller | Refusal> => {
  const chatToken = parseChatToken(token);
  const chat = chatToken && (await deps.store.get(findChatPayer({ id: chatToken.chat_id })));
  if (!chat || !matchesChatToken(deps.encryption, token, { ...chatToken, owner_id: chat.owner_id })) return TOKEN_ENDED;
  const agent = await deps.store.get(findSignedInAgent({ id: chatToken.agent_id }));
  if (!agent || agent.workspace_id !== chat.workspace_id || chat.coding_agent === null) return TOKEN_ENDED;
  if (chat.owner_status === "suspended") return refuseToken("The owner of this chat is suspended.");
  if (agent.owner_status === "suspended") return refuseToken("The owner of this workspace is suspended.");
  if (agent.api_key_scope !== "all") return MODELS_DENIED;
  const { groups, organizations } = await readMemberships(deps.store, chat.owner_id);
  if (!canWorkIn({ organizations }, chat.organization_id)) return NOT_A_MEMBER;
  if (chat.owner_id !== agent.owner_id) {
    if (!ACTIVE_TURN_STATUSES.has(chat.status)) return CHAT_IDLE;
    const guest = await loadCaller(deps.store, chat.owner_id);
    const workspace = await deps.store.get(findWorkspaceAccessRow({ id: agent.workspace_id }));
    if (!guest || !workspace || !canUseWorkspace(guest, workspace)) return WORKSPACE_DENIED;
  }
  return {
    payer: {
      user_id: chat.owner_id,
      workspace_id: agent.workspace_id,
      key_id: "",
      organization_id: chat.organization_id,
      template_id: agent.template_id,
      chat_id: chatToken.chat_id,
      root_chat_id: chat.root_chat_id,
    },
    modelCaller: { groups, template_id: agent.template_id },
    whenLost: watchToken(
      {
        agent_id: chatToken.agent_id,
        workspace_id: agent.workspace_id,
        user_ids: [chat.owner_id, agent.owner_id],
      },
      (currentDeps) => identifyChat(token, currentDeps),
    ),
  };
};

/** Statuses of a chat whose turn is running, ending or waiting for the chat's owner. */
const ACTIVE_TURN_STATUSES: ReadonlySet<string> = new Set(["running", "interrupting", "requires_action"]);

const CHAT_IDLE = refuseToken(
  "The token of this chat is valid only while a turn is running, because the workspace belongs to someone else.",
);

const WORKSPACE_DENIED: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The owner of this chat may no longer use the workspace.",
};

const TOKEN_ENDED = refuseToken(
  "The token of this chat is no longer valid. It is valid until the chat or its workspace ends.",
);

const toMembershipAccess = (user_id: string): Access => ({
  key: "any membership",
  topic: user_id,
  isStillAllowed: async ({ organizations }) => Object.keys(organizations).length > 0,
  lossReason: ENDED,
});

const identifyPerson = async (token: string, request: Request, deps: CallerDeps): Promise<GatewayCaller | Refusal> => {
  const identity = await identify({ token, source: "header", compat: false }, request, deps);
  if (identity instanceof AppError) {
    const reason = [identity.message, identity.detail].filter((part) => part !== "").join(" ");
    return identity.kind === "unauthenticated"
      ? refuseToken(reason)
      : { status: 403, code: "permission_denied", message: reason };
  }
  if (identity.kind === "agent")
    return refuseToken("The agent's own token cannot call models. Use the workspace's token.");
  if (!hasScope(identity.scopes, GATEWAY_SCOPE)) {
    const message = `This API key cannot call models. Create one with the scope ${GATEWAY_SCOPE}.`;
    return { status: 403, code: "permission_denied", message };
  }
  const home = await deps.store.get(findHomeOrganization({ user_id: identity.user_id }));
  if (!home) return NO_ORGANIZATION;
  return {
    payer: {
      ...NO_CHAT,
      user_id: identity.user_id,
      workspace_id: "",
      key_id: identity.key_id,
      organization_id: home.id,
      template_id: "",
    },
    modelCaller: { groups: identity.groups, template_id: undefined },
    whenLost: (ctx, _who, end) => watchAccess(ctx, identity, toMembershipAccess(identity.user_id), end),
  };
};
