// Identifies the caller of the gateway: a program in a workspace with the workspace's token, the coding agent of a chat with the chat's
// token, or a person with an API key that has the scope `ai:use`.
import { AppError } from "#base/errors.ts";
import { isWorkspaceToken } from "#base/secrets/workspace-token.ts";
import { findSignedInAgent } from "#db/agents/tokens.ts";
import { findChatPayer } from "#db/chats/spend.ts";
import { findHomeOrganization, readMemberships } from "#db/users/members.ts";
import { findWorkspacePlace } from "#db/workspaces/workspaces.ts";
import { mayUseWorkspace, mayWorkIn } from "#domain/access.ts";
import { isChatToken, isTokenOf, namesInChatToken } from "#domain/ai/chat-token.ts";
import type { Payer } from "#domain/ai/ledger.ts";
import type { Asker } from "#domain/ai/names.ts";
import { agentOfToken } from "#domain/ai/workspace-token.ts";
import type { Access } from "#domain/live-access.ts";
import { asCaller } from "#domain/users/as-caller.ts";
import { allows } from "#schema/users/scopes.ts";
import type { Dialect } from "#src/llm/gateway/endpoint.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";
import type { ApiContext } from "../context.ts";
import { identify, type Who } from "../http/identify.ts";
import { whenAccessLost } from "../http/revocation.ts";
import { presentedToken } from "./headers.ts";

/** The scope that an API key needs. */
export const GATEWAY_SCOPE = "ai:use";

export type GatewayCaller = {
  readonly payer: Payer;
  readonly asker: Asker;
  /** Calls `end` with a reason when the token becomes invalid. Returns a function that stops listening. */
  readonly whenLost: WhenLost;
};

type WhenLost = (ctx: ApiContext, who: Who, end: (reason: string) => void) => () => void;

const unknown = (message: string): Refusal => ({ status: 401, code: "invalid_api_key", message });

/** Returns the caller, or the reason for rejecting the request. */
export const gatewayCaller = async (request: Request, dialect: Dialect, who: Who): Promise<GatewayCaller | Refusal> => {
  const token = presentedToken(request, dialect);
  if (token === undefined) {
    return unknown("Send a Slipway token where the provider's API key would be. Create one with the scope ai:use.");
  }
  if (isWorkspaceToken(token)) return workspaceCaller(token, who);
  return isChatToken(token) ? chatCaller(token, who) : personCaller(token, request, who);
};

/** What a token depends on: the workspace and its agent, and the accounts of people with their roles and groups. */
type Depends = { readonly agent_id: string; readonly workspace_id: string; readonly user_ids: readonly string[] };

/** Looks at the token again whenever something ends that it depends on. */
const whenTokenLost =
  (
    { agent_id, workspace_id, user_ids }: Depends,
    identifyAgain: (who: Who) => Promise<GatewayCaller | Refusal>,
  ): WhenLost =>
  ({ topics }, who, end) => {
    const look = (): void => {
      identifyAgain(who).then(
        (found) => {
          if ("status" in found) end(ENDED);
        },
        () => end(ENDED),
      );
    };
    const stops = [
      topics.subscribe("agent_gone", agent_id, look),
      topics.subscribe("missed", "", look),
      topics.subscribe("access_changed", workspace_id, look),
      ...user_ids.map((id) => topics.subscribe("key_gone", id, look)),
      ...user_ids.map((id) => topics.subscribe("access_changed", id, look)),
    ];
    // The token may have become invalid while the call was being set up.
    look();
    return () => {
      for (const stop of stops) stop();
    };
  };

const ENDED = "its token counts no more";

const NO_CHAT = { chat_id: "", root_chat_id: "" } as const;

const NO_ACCESS: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The template doesn't give this agent access to models.",
};

const NO_MEMBER: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The owner of this token is not a member of the organization.",
};

/** What they spent would count for no organization and for no group's budget. */
const NO_ORGANIZATION: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The owner of this token is not a member of any organization.",
};

const workspaceCaller = async (token: string, who: Who): Promise<GatewayCaller | Refusal> => {
  const agent_id = agentOfToken(who.encryption, token);
  const agent = agent_id === undefined ? undefined : await who.store.get(findSignedInAgent({ id: agent_id }));
  if (!agent || agent_id === undefined)
    return unknown("The token of this workspace is no longer valid. Restart the workspace to get a new one.");
  if (agent.owner_status === "suspended") return unknown("The owner of this workspace is suspended.");
  if (agent.api_key_scope !== "all") return NO_ACCESS;
  const { groups, organizations } = await readMemberships(who.store, agent.owner_id);
  if (!mayWorkIn({ organizations }, agent.organization_id)) return NO_MEMBER;
  return {
    payer: {
      ...NO_CHAT,
      user_id: agent.owner_id,
      workspace_id: agent.workspace_id,
      key_id: "",
      organization_id: agent.organization_id,
      template_id: agent.template_id,
    },
    asker: { groups, template_id: agent.template_id },
    whenLost: whenTokenLost({ agent_id, workspace_id: agent.workspace_id, user_ids: [agent.owner_id] }, (again) =>
      workspaceCaller(token, again),
    ),
  };
};

/** The chat's owner pays, who need not be the workspace's: then only while a turn runs, and as long as they may use the workspace. */
const chatCaller = async (token: string, who: Who): Promise<GatewayCaller | Refusal> => {
  const named = namesInChatToken(token);
  const chat = named && (await who.store.get(findChatPayer({ id: named.chat_id })));
  if (!chat || !isTokenOf(who.encryption, token, { ...named, owner_id: chat.owner_id })) return TOKEN_ENDED;
  const agent = await who.store.get(findSignedInAgent({ id: named.agent_id }));
  if (!agent || agent.workspace_id !== chat.workspace_id || chat.coding_agent === null) return TOKEN_ENDED;
  if (chat.owner_status === "suspended") return unknown("The owner of this chat is suspended.");
  if (agent.owner_status === "suspended") return unknown("The owner of this workspace is suspended.");
  if (agent.api_key_scope !== "all") return NO_ACCESS;
  const { groups, organizations } = await readMemberships(who.store, chat.owner_id);
  if (!mayWorkIn({ organizations }, chat.organization_id)) return NO_MEMBER;
  if (chat.owner_id !== agent.owner_id) {
    if (!BUSY.has(chat.status)) return NO_TURN;
    const guest = await asCaller(who.store, chat.owner_id);
    const place = await who.store.get(findWorkspacePlace({ id: agent.workspace_id }));
    if (!guest || !place || !mayUseWorkspace(guest, place)) return NO_WORKSPACE;
  }
  return {
    payer: {
      user_id: chat.owner_id,
      workspace_id: agent.workspace_id,
      key_id: "",
      organization_id: chat.organization_id,
      template_id: agent.template_id,
      chat_id: named.chat_id,
      root_chat_id: chat.root_chat_id,
    },
    asker: { groups, template_id: agent.template_id },
    whenLost: whenTokenLost(
      {
        agent_id: named.agent_id,
        workspace_id: agent.workspace_id,
        user_ids: [chat.owner_id, agent.owner_id],
      },
      (again) => chatCaller(token, again),
    ),
  };
};

/** A turn that runs, ends, or waits for its owner. */
const BUSY: ReadonlySet<string> = new Set(["running", "interrupting", "requires_action"]);

const NO_TURN = unknown(
  "The token of this chat counts only while the chat works: its workspace belongs to someone else.",
);

const NO_WORKSPACE: Refusal = {
  status: 403,
  code: "permission_denied",
  message: "The owner of this chat may no longer use the workspace.",
};

const TOKEN_ENDED = unknown(
  "The token of this chat is no longer valid. It is valid until the chat or its workspace ends.",
);

const anyMembership = (user_id: string): Access => ({
  key: "any membership",
  topic: user_id,
  holds: async ({ organizations }) => Object.keys(organizations).length > 0,
  lost: ENDED,
});

const personCaller = async (token: string, request: Request, who: Who): Promise<GatewayCaller | Refusal> => {
  const identity = await identify({ token, place: "header", compat: false }, request, who);
  if (identity instanceof AppError) {
    const words = [identity.message, identity.detail].filter((part) => part !== "").join(" ");
    return identity.kind === "unauthenticated"
      ? unknown(words)
      : { status: 403, code: "permission_denied", message: words };
  }
  if (identity.kind === "agent") return unknown("The agent's own token cannot call models. Use the workspace's token.");
  if (!allows(identity.scopes, GATEWAY_SCOPE)) {
    const message = `This API key cannot call models. Create one with the scope ${GATEWAY_SCOPE}.`;
    return { status: 403, code: "permission_denied", message };
  }
  const home = await who.store.get(findHomeOrganization({ user_id: identity.user_id }));
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
    asker: { groups: identity.groups, template_id: undefined },
    whenLost: (ctx, _who, end) => whenAccessLost(ctx, identity, anyMembership(identity.user_id), end),
  };
};
