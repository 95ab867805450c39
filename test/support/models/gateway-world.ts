// A server with the AI gateway enabled, and tokens that may call it.

import type { GatewayCalls, GatewaySettings } from "#schema/ai/gateway.ts";
import type { Client } from "#src/client.ts";
import type { TestServerOptions } from "../server.ts";
import { type ModelWorld, openModelWorld } from "./model-world.ts";

export const GATEWAY_SETTINGS = "/api/v2/ai/settings";

/** Replaces all gateway settings: enabled, with defaults except for the given settings. */
export const putGatewaySettings = async (owner: Client, more: Partial<GatewaySettings> = {}): Promise<void> => {
  const settings: GatewaySettings = { enabled: true, in_workspaces: true, names: [], default_names: {} };
  await owner.put(GATEWAY_SETTINGS, Object.assign(settings, more));
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
