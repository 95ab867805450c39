// Wire shapes of model servers found on this machine.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../named.ts";
import { oneOf } from "../one-of.ts";

export const LOCAL_MODEL_KINDS = ["ollama", "llama.cpp", "vllm", "lm-studio", "other"] as const;

export const LocalModel = namedObject("LocalModel", {
  model: t.String({ description: "As the server calls it." }),
  size_bytes: t.Union([t.Integer(), t.Null()], { description: "On disk; null where the server does not say." }),
  parameters: t.String({ description: "Such as 30.5B; empty where the server does not say." }),
  context_limit: t.Union([t.Integer(), t.Null()]),
  tools: t.Union([t.Boolean(), t.Null()], { description: "It can use tools, which a chat that works needs." }),
});
export type LocalModel = Static<typeof LocalModel>;

export const LocalModelServer = namedObject("LocalModelServer", {
  kind: oneOf(LOCAL_MODEL_KINDS),
  name: t.String({ description: "For people." }),
  version: t.String({ description: "Empty where it does not say." }),
  base_url: t.String({ description: "What a provider of the kind `openai-compat` is given." }),
  provider_id: t.Union([t.String({ format: "uuid" }), t.Null()], {
    description: "The provider that has this address already.",
  }),
  models: t.Array(LocalModel),
});
export type LocalModelServer = Static<typeof LocalModelServer>;

export const LocalModelServers = namedObject("LocalModelServers", { servers: t.Array(LocalModelServer) });
export type LocalModelServers = Static<typeof LocalModelServers>;
