// Environment variables that let coding agents and SDKs in a workspace use the gateway without configuration.
import type { Encryption } from "#base/encryption.ts";
import type { Store } from "#db/engine/store.ts";
import { readGatewaySettings } from "#db/models/gateway.ts";
import { makeWorkspaceToken } from "./workspace-token.ts";

/**
 * Returns the variables for an agent that reaches the server at `server`; empty unless an administrator has enabled the gateway in
 * workspaces. The providers' own SDKs and agents read these names. `own` lists the variables set by the template or the owner's secrets. A
 * dialect with its URL or key among them is left out: Slipway's token must not go to another URL, nor the owner's key to Slipway.
 */
export const makeGatewayEnvironment = async (
  { store, encryption }: { readonly store: Store; readonly encryption: Encryption },
  agent_id: string,
  { server, own }: { readonly server: URL; readonly own: readonly string[] },
): Promise<Record<string, string>> => {
  const { enabled, in_workspaces } = await readGatewaySettings(store);
  if (!enabled || !in_workspaces) return {};
  const token = makeWorkspaceToken(encryption, agent_id);
  const toUrl = (path: string): string => new URL(`/api/v2/ai/${path}`, server).href;
  const dialects = [
    { keys: ["ANTHROPIC_API_KEY"], set: { ANTHROPIC_BASE_URL: toUrl("anthropic"), ANTHROPIC_AUTH_TOKEN: token } },
    { keys: [], set: { OPENAI_BASE_URL: toUrl("openai/v1"), OPENAI_API_KEY: token } },
    { keys: ["GOOGLE_API_KEY"], set: { GOOGLE_GEMINI_BASE_URL: toUrl("google"), GEMINI_API_KEY: token } },
  ];
  const offered = dialects.filter(
    ({ keys, set }) => ![...keys, ...Object.keys(set)].some((name) => own.includes(name)),
  );
  return Object.assign({}, ...offered.map(({ set }) => set));
};
