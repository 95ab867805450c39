// A server with models on a test model server, configured through the public API as an administrator would.
import type { ModelConfig } from "#schema/chats/model-config.ts";
import type { ModelProvider, ProviderKind } from "#schema/chats/model-provider.ts";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer, type TestServerOptions } from "../server.ts";
import { ModelServer } from "./model-server.ts";

export const MODEL_KEY = "canary-key-0123456789abcdef";

/** The path of each protocol on the model server. */
const BASES: Readonly<Record<ProviderKind, string>> = {
  anthropic: "/anthropic/v1",
  openai: "/openai/v1",
  google: "/google/v1beta",
  "openai-compat": "/v1",
  demo: "",
};

export const openModelWorld = async (options: TestServerOptions = {}) => {
  const upstream = await ModelServer.start();
  const server = await startTestServer(options);
  const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const [organization] = await owner.get<{ id: string }[]>("/api/v2/organizations");
  const organization_id = organization?.id ?? "";
  return {
    server,
    upstream,
    owner,
    organization_id,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
};
export type ModelWorld = Awaited<ReturnType<typeof openModelWorld>>;

/** Adds a provider of this kind on the model server, with one default model. */
export const addModel = async (
  { owner, upstream }: Pick<ModelWorld, "owner" | "upstream">,
  kind: ProviderKind = "openai-compat",
  fields: Record<string, unknown> = {},
  display_name = `My ${kind}`,
  base = BASES[kind],
): Promise<{ provider: ModelProvider; model: ModelConfig }> => {
  const provider = await owner.post<ModelProvider>("/api/v2/chats/providers", {
    provider: kind,
    display_name,
    base_url: `${upstream.url}${base}`,
    api_key: MODEL_KEY,
  });
  const model = await owner.post<ModelConfig>("/api/v2/chats/model-configs", {
    provider_id: provider.id,
    model: "test-model",
    is_default: true,
    context_limit: 64_000,
    ...fields,
  });
  return { provider, model };
};
