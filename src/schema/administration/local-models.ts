// Wire shapes of model servers found on this machine.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const LOCAL_MODEL_KINDS = ["ollama", "llama.cpp", "vllm", "lm-studio", "other"] as const;

export const LocalModel = namedObject("LocalModel", {
  model: t.String({ description: "The server's name for it." }),
  size_bytes: t.Union([t.Integer(), t.Null()], { description: "On disk; null if unknown." }),
  parameters: t.String({ description: "Such as 30.5B; empty if unknown." }),
  context_limit: t.Union([t.Integer(), t.Null()]),
  tools: t.Union([t.Boolean(), t.Null()], { description: "It supports tools, which working chats need." }),
});
export type LocalModel = Static<typeof LocalModel>;

export const LocalModelServer = namedObject("LocalModelServer", {
  kind: oneOf(LOCAL_MODEL_KINDS),
  name: t.String({ description: "For display." }),
  version: t.String({ description: "Empty if it is not reported." }),
  base_url: t.String({ description: "What a provider of the kind `openai-compat` is given." }),
  provider_id: t.Union([t.String({ format: "uuid" }), t.Null()], {
    description: "The existing provider with this address.",
  }),
  models: t.Array(LocalModel),
});
export type LocalModelServer = Static<typeof LocalModelServer>;

export const LocalModelServers = namedObject("LocalModelServers", { servers: t.Array(LocalModelServer) });
export type LocalModelServers = Static<typeof LocalModelServers>;
