// The stored agent token of a daemon: replaced, refused and restored after a restart.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AgentToken } from "#src/daemon/agent-token.ts";
import { TOKEN, tempFolder } from "./support/daemon.ts";

const NEXT = "22222222-2222-4333-8444-555555555555";

test("[DM-30] a new token and the previous one are tried alternately after the server refuses one", () => {
  using home = tempFolder();
  const token = new AgentToken(TOKEN, { HOME: home.path });
  expect(token.refuse(TOKEN)).toBe(true);
  token.renew(NEXT);
  expect(token.value).toBe(NEXT);
  // The server stopped before it stored the new token.
  expect([token.refuse(NEXT), token.value]).toEqual([false, TOKEN]);
  token.accept(TOKEN);
  // It delivers the same token again.
  token.renew(NEXT);
  expect(token.value).toBe(NEXT);
  expect([token.refuse(NEXT), token.refuse(TOKEN), token.value]).toEqual([false, true, NEXT]);
});

test("[DM-30] a daemon that restarts continues with the newest token, which is encrypted with the first one", () => {
  using home = tempFolder();
  new AgentToken(TOKEN, { HOME: home.path }).renew(NEXT);
  expect(new AgentToken(TOKEN, { HOME: home.path }).value).toBe(NEXT);
  expect(new AgentToken(NEXT, { HOME: home.path }).value).toBe(NEXT);
  const folder = join(home.path, ".local/state/slipway/agent-tokens");
  const [name = "", ...others] = readdirSync(folder);
  expect(others).toEqual([]);
  const text = readFileSync(join(folder, name), "utf8");
  for (const readable of [text, Buffer.from(text, "base64").toString("latin1"), name])
    for (const secret of [TOKEN, NEXT]) expect(readable).not.toContain(secret);
  // An altered file is ignored.
  writeFileSync(join(folder, name), "nonsense");
  expect(new AgentToken(TOKEN, { HOME: home.path }).value).toBe(TOKEN);
});
