// A turn that kills its server must not also kill every server that is started afterwards.
import { expect, test } from "bun:test";
import type { Chat } from "#schema/chats/chat.ts";
import { ModelServer } from "#test/support/models/model-server.ts";
import { until } from "#test/support/until.ts";
import { read } from "../oracle/calls.ts";
import { ServerSlot } from "../server.ts";
import { signInAdmin } from "../server-world.ts";

test("[CH-52] after two kills, a turn is not tried a third time until another message retries it; orderly stops do not count", async () => {
  await using place = await ServerSlot.make();
  await using model = await ModelServer.start();
  const start = () => place.start({ env: { SLIPWAY_CHAT_TITLES: "false" } });
  let server = await start();
  const { admin, organization_id } = await signInAdmin(place);
  const provider = { provider: "openai-compat", display_name: "Heavy", base_url: `${model.url}/v1`, api_key: "key" };
  const { id: provider_id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
  await admin.post("/api/v2/chats/model-configs", { provider_id, model: "heavy", is_default: true });
  const content = [{ type: "text", text: "hello" }];
  const { id } = await admin.post<Chat>("/api/v2/chats", { organization_id, content });
  const path = `/api/v2/chats/${id}`;
  const crash = async (): Promise<void> => {
    server.kill("SIGKILL");
    await server.ended;
    server = await start();
  };
  await model.next();
  for (let stops = 0; stops < 2; stops++) {
    await place.stop();
    server = await start();
    await model.next();
  }
  await crash();
  await model.next();
  await crash();
  await until(async () => (await read<Chat>(admin, path)).status === "error");
  const { last_error } = await read<Chat>(admin, path);
  expect(last_error?.message).toStartWith("The server stopped twice while it worked on this message");
  expect(last_error?.retryable).toBe(true);
  // A third start does not try the turn again either.
  await crash();
  expect((await read<Chat>(admin, path)).status).toBe("error");
  await admin.post(`${path}/messages`, { content });
  (await model.next()).say({ text: "well" }, { finish: "stop" }).end();
  await until(async () => (await read<Chat>(admin, path)).status === "waiting");
});
