// A server with the AI gateway enabled, and tokens that may call it.

import OpenAI from "openai";
import type { GatewayCalls, GatewaySettings } from "#schema/ai/gateway.ts";
import type { Client } from "#src/client.ts";
import type { TestServerOptions } from "../server.ts";
import { type ModelWorld, openModelWorld } from "./model-world.ts";

export const GATEWAY_SETTINGS = "/api/v2/ai/settings";

/** Enables the gateway with default settings, except for those in `overrides`. Replaces all earlier settings. */
export const putGatewaySettings = async (owner: Client, overrides: Partial<GatewaySettings> = {}): Promise<void> => {
  const settings: GatewaySettings = { enabled: true, in_workspaces: true, names: [], default_names: {} };
  await owner.put(GATEWAY_SETTINGS, Object.assign(settings, overrides));
};

/** Returns a new API key that may only call models, unless other scopes are given. */
export const createGatewayToken = async (client: Client, scopes: readonly string[] = ["ai:use"]): Promise<string> => {
  const { key } = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes });
  return key;
};

export const listGatewayCalls = async (client: Client, query = ""): Promise<GatewayCalls["calls"]> =>
  (await client.get<GatewayCalls>(`/api/v2/ai/calls${query}`)).calls;

export const openGatewayWorld = async (
  options: TestServerOptions = {},
): Promise<ModelWorld & { readonly token: string; readonly base: string }> => {
  const world = await openModelWorld(options);
  await putGatewaySettings(world.owner);
  const token = await createGatewayToken(world.owner);
  return Object.assign(world, { token, base: new URL("/api/v2/ai", world.server.url).href });
};

export type GatewayWorld = Awaited<ReturnType<typeof openGatewayWorld>>;

/** Returns OpenAI's own client for the gateway. */
export const openai = ({ base, token }: Pick<GatewayWorld, "base" | "token">) =>
  new OpenAI({ baseURL: `${base}/openai/v1`, apiKey: token, maxRetries: 0 });

/** The usage that a model reports at the end of a stream. */
export const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 3,
  total_tokens: 15,
  prompt_tokens_details: { cached_tokens: 8 },
};

/** Formats an event of a stream of chat completions. */
export const chunk = (fields: object): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "test-model", ...fields })}\n\n`;
export const delta = (content: string): string =>
  chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });

/** The settings of a model with a price, in micros of a dollar per million tokens. */
export const PRICE = { model_config: { cost: { input: 1_000_000, output: 10_000_000 } } };
