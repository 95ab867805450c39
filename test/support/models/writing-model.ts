// A model that, for the prompt "Write WORD", writes WORD to the file `answer`, and otherwise says hello. It derives its next step only
// from the history, so a server may repeat calls.
import type { Client } from "#src/client.ts";
import { ModelServer } from "./model-server.ts";
import { MODEL_KEY } from "./model-world.ts";

type PromptMessage = { readonly role: string; readonly content?: unknown; readonly tool_calls?: unknown[] };

/** Starts the model's server. */
export const startWritingModel = async (): Promise<ModelServer> => {
  const server = await ModelServer.start();
  void server.answerAll((call) => {
    const history = (call.body.messages ?? []) as PromptMessage[];
    const promptIndex = history.findLastIndex(({ role }) => role === "user");
    const word = /Write ([\w-]+)/.exec(JSON.stringify(history[promptIndex]?.content ?? ""))?.[1];
    const hasWritten = history.slice(promptIndex + 1).some(({ tool_calls }) => (tool_calls ?? []).length > 0);
    if (word === undefined || hasWritten) {
      const text = word === undefined ? "Hello." : `The answer is ${word}.`;
      call.say({ text }, { finish: "stop", usage: { input: 1_000, output: 20 } }).end();
      return;
    }
    const args = JSON.stringify({ path: "answer", content: `${word}\n` });
    call.say({ call: { id: `write-${word}`, name: "write_file", args } }, { finish: "tool_calls" }).end();
  });
  return server;
};

/** Makes the model a server's default model, with a price. */
export const addWritingModel = async (admin: Client, server: ModelServer): Promise<void> => {
  const provider = await admin.post<{ id: string }>("/api/v2/chats/providers", {
    provider: "openai-compat",
    display_name: "Writers",
    base_url: `${server.url}/v1`,
    api_key: MODEL_KEY,
  });
  await admin.post("/api/v2/chats/model-configs", {
    provider_id: provider.id,
    model: "writer",
    display_name: "Writer",
    is_default: true,
    context_limit: 64_000,
    model_config: { cost: { input: 3_000_000, output: 15_000_000 } },
  });
};
