// Server administration in a real browser, with real model and MCP servers.
import { expect } from "bun:test";
import { configureLogging, log, resetLogging } from "#base/log.ts";
import { Client } from "#src/client.ts";
import { startOllama } from "#test/api/administration/model-servers.ts";
import { startMcpHost } from "#test/mcp/support.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

/** Returns the streamed answer of an Ollama chat. */
const answerHello = (): Response => {
  const toChunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const firstChunk = toChunk({ role: "assistant", content: "Hello there." });
  return new Response(`${firstChunk}${toChunk({}, "stop")}data: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream" },
  });
};

testNeeding(
  [needs.chromium, needs.node],
  "[WB-4] [WB-6] [WB-40] an administrator manages the server in the browser, and sees changes as they happen",
  async () => {
    using ollama = startOllama({ "POST /v1/chat/completions": answerHello });
    await using mcp = startMcpHost();
    await using server = await startTestServer({
      env: {
        SLIPWAY_LOCAL_MODEL_SERVERS: `http://127.0.0.1:${ollama.port}`,
        SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8",
      },
    });
    const owner = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    configureLogging({ level: "info", format: "text", write: () => {} });
    // Repeated, because the log belongs to the whole process and other tests may write many lines.
    const logTimer = setInterval(() => log("harbour").warn("the tide is late", { by: "40 min" }), 500);
    await owner.post("/api/v2/users", { username: "grace", name: "Grace", service_account: true, login_type: "none" });
    const args = [server.url.href, owner.token ?? "", mcp.url];
    const result = await runStory<{ commands: string; key: string }>("administration-server.mjs", args).finally(() => {
      clearInterval(logTimer);
      resetLogging();
    });
    expect(result).toMatchObject({ problems: [], tools: 7, isInView: true, isCut: false });
    expect(result.refused).not.toBe("");
    expect(result.commands).toContain("mcp-servers");
    expect(result.commands).not.toContain("canary-of-the-server");
    expect(result.key).toMatch(/SLIPWAY_WORKER_KEY=\S+ slipway provisioner --url http/);
    const limits = await owner.get("/api/v2/chats/usage-limits");
    expect(limits).toMatchObject({ spend_limit_micros: 25_000_000, overrides: [{ spend_limit_micros: 5_000_000 }] });
  },
  scaleTimeout(360_000),
);
