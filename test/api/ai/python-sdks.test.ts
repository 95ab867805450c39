// The Python SDKs of OpenAI, Anthropic and Google, as in their first examples, with and without the gateway.
import { expect } from "bun:test";
import { join } from "node:path";
import { openGatewayWorld } from "#test/support/models/gateway-world.ts";
import { addModel, MODEL_KEY } from "#test/support/models/model-world.ts";
import { needs, testNeeding } from "#test/support/needs.ts";

const SCRIPT = join(import.meta.dir, "python-sdks.py");

testNeeding(
  [needs.pythonSdks],
  "[GW-2] Python SDKs read the same bytes and texts of streams with and without the gateway",
  async () => {
    await using world = await openGatewayWorld();
    await addModel(world, "openai-compat", { model: "chat-model" });
    await addModel(world, "openai", { model: "response-model" });
    await addModel(world, "anthropic", { model: "message-model" });
    await addModel(world, "google", { model: "content-model" });
    void world.upstream.answerAll((call) =>
      call.say({ text: "Grüße " }, { text: "aus 東京" }, { finish: "stop" }).end(),
    );
    const { base, token, upstream } = world;
    const endpoints = [
      [token, `${base}/openai/v1`, `${base}/anthropic`, `${base}/google`],
      [MODEL_KEY, `${upstream.url}/v1`, `${upstream.url}/anthropic`, `${upstream.url}/google`],
    ];
    const python = join(needs.pythonSdks.file, "bin/python");
    const child = Bun.spawn([python, SCRIPT, ...endpoints.flat()], { stdout: "pipe", stderr: "pipe" });
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    if ((await child.exited) !== 0) throw new Error(errors);
    const streams = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { api: string; text: string; bytes: string[] });
    const [throughGateway, direct] = [streams.slice(0, 4), streams.slice(4)];
    expect(throughGateway.map(({ api, text, bytes }) => [api, text, bytes.length])).toEqual([
      ["chat completions", "Grüße aus 東京", 1],
      ["responses", "Grüße aus 東京", 1],
      ["messages", "Grüße aus 東京", 1],
      ["generateContent", "Grüße aus 東京", 1],
    ]);
    expect(throughGateway).toEqual(direct);
  },
);
