// The reference consumer of docs/hooks.md, run unchanged.
import { expect } from "bun:test";
import { join } from "node:path";
import { runVerb } from "#test/cli/run-verb.ts";
import { createChat, loadHistory, openChatWorld, toTextContent } from "#test/support/chats.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { SECRET } from "./world.ts";

const readReference = async (): Promise<string> => {
  const text = await Bun.file(join(import.meta.dir, "../../docs/hooks.md")).text();
  return /```python\n([\s\S]*?)```/.exec(text)?.[1] ?? "";
};

testNeeding(
  [needs.python3],
  "[HK-18] the consumer in the documentation runs as printed, and `doctor` checks it",
  async () => {
    using directory = tempDirectory();
    const port = findFreePort();
    const url = `http://127.0.0.1:${port}/hooks`;
    await Bun.write(join(directory.path, "consumer.py"), await readReference());
    const child = Bun.spawn([needs.python3.file, join(directory.path, "consumer.py"), String(port)], {
      env: { HOOK_URL: url, HOOK_SECRETS: SECRET },
      stdout: "ignore",
      stderr: "ignore",
    });
    try {
      await until(() => fetch(url).catch(() => undefined), { what: "the consumer to answer" });
      const env = { SLIPWAY_HOOK_URL: url, SLIPWAY_HOOK_SECRET: SECRET };
      await using world = await openChatWorld({ env });
      const chat = await createChat(world, "hello");
      const call = await world.models.next();
      call.callTool("c1", "list_templates", { query: "curl" }).finish("tool_calls");
      const nextCall = await world.models.next();
      expect(JSON.stringify(nextCall.request.messages)).toContain("There is no network here.");
      nextCall.say("All right.").finish();
      const response = await world.owner.fetch("POST", `/api/v2/chats/${chat.id}/messages`, {
        content: toTextContent("my key is sk-0123456789abcdefghij"),
      });
      expect([response.status, await response.json()]).toEqual([
        ...[403, { message: "Do not paste keys into chats.", kind: "hook_denied" }],
      ]);
      expect((await loadHistory(world.owner, chat.id)).join()).not.toContain("sk-0123");
      const runDoctor = (secret: string) =>
        runVerb([
          ...["doctor", "--json", "--data-dir", join(directory.path, "none"), "--address", "127.0.0.1:0"],
          ...["--hook-url", url, "--hook-secret", secret],
        ]);
      expect((await runDoctor(SECRET)).printed).toContain("the consumer responds");
      expect((await runDoctor("another-secret-of-more-than-32-bytes")).printed).toContain(
        "http_error: the consumer answered 401",
      );
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
  },
);
