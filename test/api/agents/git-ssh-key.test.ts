// The git key pair: one per user, created on first use, readable by the real OpenSSH and stored only encrypted.
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeSshKeyPair } from "#base/ssh-key.ts";
import type { AgentGitSshKey, GitSshKey } from "#schema/users/git-ssh-key.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { seedAgent, seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer, tempDirectory } from "#test/support/server.ts";
import { readStoredTexts } from "#test/support/stored.ts";

const ME = "/api/v2/workspaceagents/me/gitsshkey";
const loadKeyPair = (server: TestServer, token: string) => new Client(server.url, token).get<AgentGitSshKey>(ME);

/** Runs a program and returns its output. */
const runProgram = async (command: string[], input = ""): Promise<string> => {
  const child = Bun.spawn(command, { stdin: new Blob([input]), stdout: "pipe", stderr: "pipe" });
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command[0]}: ${errors}`);
  return out.trim();
};

test("[GK-1] all agents of a user get the same key pair, even if many request it first; users have different pairs", async () => {
  await using server = await startTestServer();
  const agent = await seedAgent(server);
  const otherAgent = await seedAgent(server);
  const pairs = await Promise.all(Array.from({ length: 8 }, () => loadKeyPair(server, agent.agent_token)));
  expect(new Set(pairs.map(({ public_key }) => public_key)).size).toBe(1);
  expect(new Set(pairs.map(({ private_key }) => private_key)).size).toBe(1);
  expect(pairs[0]?.public_key).toMatch(/^ssh-ed25519 [\w+/]+=*$/);
  expect((await loadKeyPair(server, otherAgent.agent_token)).public_key).not.toBe(pairs[0]?.public_key as string);
  expect(await awaitStatus(loadKeyPair(server, agent.owner_token))).toBe(401);
});

testNeeding(
  [needs.sshKeygen],
  "[GK-2] OpenSSH can derive the public key from each private key, sign and verify",
  async () => {
    using directory = tempDirectory();
    for (let i = 0; i < 5; i++) {
      const { private_key, public_key } = makeSshKeyPair();
      const file = join(directory.path, `key-${i}`);
      writeFileSync(file, private_key, { mode: 0o600 });
      expect(await runProgram([needs.sshKeygen.file, "-y", "-f", file])).toBe(public_key);
      const signature = join(directory.path, `signature-${i}`);
      writeFileSync(
        signature,
        `${await runProgram([needs.sshKeygen.file, "-Y", "sign", "-n", "git", "-f", file], "text")}\n`,
      );
      const signers = join(directory.path, "signers");
      writeFileSync(signers, `me ${public_key}\n`);
      const verify = ["-Y", "verify", "-n", "git", "-I", "me", "-f", signers, "-s", signature];
      expect(await runProgram([needs.sshKeygen.file, ...verify], "text")).toContain("Good");
    }
  },
);

test("[GK-3] an agent without permission to read personal data gets 403", async () => {
  await using server = await startTestServer();
  const { agent_token } = await seedAgent(server, { agent: { api_key_scope: "no_user_data" } });
  expect(await awaitStatus(loadKeyPair(server, agent_token))).toBe(403);
});

test("[GK-4] users and deployment owners can read the user's public key and regenerate the pair; others cannot", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const { owner_id, owner_token, agent_token } = await seedAgent(server);
  const owner = new Client(server.url, owner_token);
  const first = await owner.get<GitSshKey>("/api/v2/users/me/gitsshkey");
  expect(Object.keys(first).sort()).toEqual(["created_at", "public_key", "updated_at", "user_id"]);
  expect([first.user_id, first.created_at]).toEqual([owner_id, first.updated_at]);
  expect((await loadKeyPair(server, agent_token)).public_key).toBe(first.public_key);
  clock.advance(1000);
  const second = await owner.put<GitSshKey>("/api/v2/users/me/gitsshkey");
  expect(second.public_key).not.toBe(first.public_key);
  expect([second.created_at, second.updated_at > first.updated_at]).toEqual([first.created_at, true]);
  expect((await loadKeyPair(server, agent_token)).public_key).toBe(second.public_key);
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  expect(await admin.get<GitSshKey>(`/api/v2/users/${owner_id}/gitsshkey`)).toEqual(second);
  const outsider = new Client(server.url, (await seedUser(server)).token);
  const userAdmin = new Client(server.url, (await seedUser(server, { roles: ["user-admin"] })).token);
  for (const call of [
    (client: Client) => client.get(`/api/v2/users/${owner_id}/gitsshkey`),
    (client: Client) => client.put(`/api/v2/users/${owner_id}/gitsshkey`),
  ]) {
    expect(await awaitStatus(call(outsider))).toBe(404);
    expect(await awaitStatus(call(userAdmin))).toBe(403);
  }
  expect((await loadKeyPair(server, agent_token)).public_key).toBe(second.public_key);
});

test("[GK-5] the private key survives a restart, and no file of the data directory contains it unencrypted", async () => {
  using directory = tempDirectory();
  const dataDirectory = `${directory.path}/data`;
  const { agent_token, pair } = await (async () => {
    await using server = await startTestServer({ directory: dataDirectory });
    const { agent_token } = await seedAgent(server);
    return { agent_token, pair: await loadKeyPair(server, agent_token) };
  })();
  const texts = await readStoredTexts(dataDirectory);
  expect(texts.some((text) => text.includes(pair.public_key))).toBe(true);
  const secretLines = pair.private_key.split("\n").slice(3, 5);
  for (const canary of ["OPENSSH PRIVATE KEY", ...secretLines]) {
    expect(texts.filter((text) => text.includes(canary)).length).toBe(0);
  }
  await using server = await startTestServer({ directory: dataDirectory });
  expect(await loadKeyPair(server, agent_token)).toEqual(pair);
});
