// A model that runs commands in its chat's workspace. For "Run COMMAND", it calls the tool `execute` and then answers with the result. It
// speaks OpenAI's protocol on a real socket.
import { ModelServer } from "#test/support/models/model-server.ts";

type PromptMessage = { readonly role: string; readonly content?: unknown; readonly tool_calls?: readonly unknown[] };

const toText = (content: unknown): string =>
  typeof content === "string"
    ? content
    : ((content ?? []) as { text?: string }[]).map(({ text = "" }) => text).join("");

export const startRunningModel = async (): Promise<ModelServer> => {
  const server = await ModelServer.start();
  void server.answerAll((call) => {
    const messages = (call.body.messages ?? []) as PromptMessage[];
    const promptIndex = messages.findLastIndex(({ role }) => role === "user");
    const command = /Run (.+)/.exec(toText(messages[promptIndex]?.content))?.[1] ?? "true";
    const toolResults = messages.slice(promptIndex + 1).filter(({ role }) => role === "tool");
    const args = JSON.stringify({ command, timeout: "1m" });
    if (toolResults.length === 0) {
      call.say({ call: { id: `call-${messages.length}`, name: "execute", args } }, { finish: "tool_calls" }).end();
    } else call.say({ text: `It said: ${toText(toolResults.at(-1)?.content)}` }, { finish: "stop" }).end();
  });
  return server;
};
