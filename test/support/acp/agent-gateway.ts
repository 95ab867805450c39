// Coding agents with models behind the gateway: a server with providers of every dialect on ./upstream.ts, a workspace, and its daemon.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { CodingAgent, CodingAgentInput, CodingAgents } from "#schema/ai/coding-agents.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { Client } from "#src/client.ts";
import { startAgentProcess } from "#test/api/agents/reach.ts";
import { openGatewayWorld, putGatewaySettings } from "../models/gateway-world.ts";
import { addModel } from "../models/model-world.ts";
import { seedAgent } from "../seed.ts";
import { AgentUpstream } from "./upstream.ts";

const BASES: readonly (readonly [ProviderKind, string])[] = [
  ["anthropic", "/v1"],
  ["openai", "/v1"],
  ["google", "/v1beta"],
  ["openai-compat", "/v1"],
];
/** An output token costs 10 micros. The model is not the default, so that chats do not ask it for titles. */
const PRICE = { is_default: false, model_config: { cost: { input: 1_000_000, output: 10_000_000 } } };

type Options = {
  readonly env?: Record<string, string>;
  readonly server?: Record<string, string>;
  readonly chats?: number;
};

/**
 * `env`: the daemon's environment; `server`: server settings; `chats`: maximum number of concurrent turns. The name `default` leads to
 * the compatible provider; the agents' own model names lead to the provider of their dialect.
 */
export const openAgentGateway = async ({ env = {}, server: settings = {}, chats = 5 }: Options = {}) => {
  const slots = { SLIPWAY_CHAT_SLOTS: String(chats) };
  const world = await openGatewayWorld({ clock: systemClock, env: Object.assign(slots, settings) });
  const { server, owner: admin } = world;
  const upstream = new AgentUpstream();
  const providers = new Map<string, string>();
  let model_config_id = "";
  for (const [kind, base] of BASES) {
    const { provider, model } = await addModel({ owner: admin, upstream } as never, kind, PRICE, `My ${kind}`, base);
    providers.set(kind, provider.id);
    model_config_id = model.id;
  }
  await putGatewaySettings(admin, {
    names: [{ name: "default", targets: [{ provider_id: providers.get("openai-compat") ?? "", model: "test-model" }] }],
    default_names: { anthropic: "test-model", openai: "test-model", google: "test-model" },
  });
  const seeded = await seedAgent(server);
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const daemon = await startAgentProcess(server, seeded, home, { env });
  return {
    server,
    admin,
    upstream,
    seeded,
    home,
    /** The owner of the workspace and its chats. */
    owner: new Client(server.url, seeded.owner_token),
    organization_id: seeded.organization_id,
    /** A model of the compatible provider. */
    model_config_id,
    async [Symbol.asyncDispose]() {
      await daemon[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};

/** Enables a built-in coding agent, with the administrator's changes in `overrides`. */
export const enablePreset = async (
  admin: Client,
  name: string,
  overrides: Partial<CodingAgentInput> = {},
): Promise<void> => {
  const { agents } = await admin.get<CodingAgents>("/api/v2/ai/agents");
  const { name: _, is_preset: _isPreset, ...preset } = agents.find((agent) => agent.name === name) as CodingAgent;
  await admin.put<unknown>(`/api/v2/ai/agents/${name}`, Object.assign(preset, { enabled: true }, overrides));
};
