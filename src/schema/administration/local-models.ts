// Wire shapes of model servers found on this machine.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

export const LOCAL_MODEL_KINDS = ["ollama", "llama.cpp", "vllm", "lm-studio", "other"] as const;

export const LocalModel = namedObject("LocalModel", {
  model: t.String({ description: "The name of the model on its server." }),
  size_bytes: t.Union([t.Integer(), t.Null()], { description: "The model's size on disk in bytes; null if unknown." }),
  parameters: t.String({ description: "The number of parameters, such as `30.5B`; empty if unknown." }),
  context_limit: t.Union([t.Integer(), t.Null()], {
    description: "The size of the model's context window in tokens; null if unknown.",
  }),
  tools: t.Union([t.Boolean(), t.Null()], {
    description: "Whether the model supports tools, which chats need to work in a workspace.",
  }),
});
export type LocalModel = Static<typeof LocalModel>;

export const LocalModelServer = namedObject("LocalModelServer", {
  kind: oneOf(LOCAL_MODEL_KINDS, "The program of the server. `other`: any with OpenAI's API."),
  name: t.String({ description: "The display name of the server." }),
  version: t.String({ description: "The server's version; empty if it doesn't report one." }),
  base_url: t.String({ description: "The base URL to use for a provider of kind `openai-compat`." }),
  provider_id: t.Union([t.String({ format: "uuid" }), t.Null()], {
    description: "The ID of the existing provider with this base URL.",
  }),
  models: t.Array(LocalModel, { description: "The models that the server lists." }),
});
export type LocalModelServer = Static<typeof LocalModelServer>;

export const LocalModelServers = namedObject("LocalModelServers", { servers: t.Array(LocalModelServer) });
export type LocalModelServers = Static<typeof LocalModelServers>;
