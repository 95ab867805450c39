// The stored agent token of a daemon: replaced, refused and restored after a restart.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AgentToken } from "#src/daemon/agent-token.ts";
import { TOKEN, tempFolder } from "./support/daemon.ts";

const NEW_TOKEN = "22222222-2222-4333-8444-555555555555";

test("[DM-30] alternates between the new and the previous token while the server refuses them", () => {
  using home = tempFolder();
  const token = new AgentToken(TOKEN, { HOME: home.path });
  expect(token.refuse(TOKEN)).toBe(true);
  token.renew(NEW_TOKEN);
  expect(token.value).toBe(NEW_TOKEN);
  // The server stopped before it stored the new token.
  expect([token.refuse(NEW_TOKEN), token.value]).toEqual([false, TOKEN]);
  token.accept(TOKEN);
  // The server sends the same token again.
  token.renew(NEW_TOKEN);
  expect(token.value).toBe(NEW_TOKEN);
  expect([token.refuse(NEW_TOKEN), token.refuse(TOKEN), token.value]).toEqual([false, true, NEW_TOKEN]);
});

test("[DM-30] a restarted daemon continues with the newest token, which is encrypted with the first", () => {
  using home = tempFolder();
  new AgentToken(TOKEN, { HOME: home.path }).renew(NEW_TOKEN);
  expect(new AgentToken(TOKEN, { HOME: home.path }).value).toBe(NEW_TOKEN);
  expect(new AgentToken(NEW_TOKEN, { HOME: home.path }).value).toBe(NEW_TOKEN);
  const folder = join(home.path, ".local/state/slipway/agent-tokens");
  const [name = "", ...others] = readdirSync(folder);
  expect(others).toEqual([]);
  const text = readFileSync(join(folder, name), "utf8");
  for (const stored of [text, Buffer.from(text, "base64").toString("latin1"), name])
    for (const secret of [TOKEN, NEW_TOKEN]) expect(stored).not.toContain(secret);
  // An altered file is ignored.
  writeFileSync(join(folder, name), "nonsense");
  expect(new AgentToken(TOKEN, { HOME: home.path }).value).toBe(TOKEN);
});
