// No token or password that the server issued or received appears in its files or its log.
import { expect, test } from "bun:test";
import { ApiError, Client } from "#src/client.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { startServe } from "./serve-process.ts";

const WRONG_PASSWORD = "a-wrong-Passw0rd-somebody-typed";
const NEW_PASSWORD = "a-new-Passw0rd-for-carol-42";

const ignoreApiError = (error: unknown): void => {
  if (!(error instanceof ApiError)) throw error;
};

testSingleServer("process")("[HT-20] tokens and passwords never appear in the data directory or the log", async () => {
  using directory = tempDirectory();
  const secrets: string[] = [ADMIN.password, WRONG_PASSWORD, NEW_PASSWORD];
  const agents: string[] = [];
  // Half of a token is also secret; its ID is not.
  const recordSecret = (token: string): string => {
    secrets.push(token.includes("-") && token.length < 36 ? (token.split("-")[1] as string) : token);
    return token;
  };
  {
    await using server = await startTestServer({ directory: `${directory.path}/data` });
    if (server.context) agents.push(recordSecret((await seedAgent(server)).agent_token));
  }
  const serve = await startServe(directory.path, { SLIPWAY_LOG_LEVEL: "trace", SLIPWAY_LOG_FORMAT: "json" });
  const anonymous = new Client(serve.url);
  const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);
  recordSecret(admin.token as string);
  await anonymous.signIn(ADMIN.email, WRONG_PASSWORD).catch(ignoreApiError);
  await anonymous.signIn(WRONG_PASSWORD, WRONG_PASSWORD).catch(ignoreApiError);
  const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "ci" });
  recordSecret(key);
  for (const token of agents) {
    const pair = await anonymous.withToken(token).get<{ private_key: string }>("/api/v2/workspaceagents/me/gitsshkey");
    secrets.push(...pair.private_key.split("\n").slice(3, 5));
  }
  recordSecret((await admin.post<{ key: string }>("/api/v2/users/me/keys")).key);
  await admin.post("/api/v2/users", { email: "carol@example.com", username: "carol", password: NEW_PASSWORD });
  const carol = await anonymous.signIn("carol@example.com", NEW_PASSWORD);
  recordSecret(carol.token as string);
  // Tokens in all possible places, valid and invalid.
  for (const token of [key, `${key.slice(0, -1)}!`, "x".repeat(60)]) {
    await anonymous.withToken(token).get("/api/v2/users/me").catch(ignoreApiError);
    await anonymous.get(`/api/v2/users/me?service_session_token=${token}`).catch(ignoreApiError);
    await anonymous.get<unknown>(`/api/v2/nothing?access_token=${token}`).catch(ignoreApiError);
    await anonymous
      .get("/api/v2/users/me", { headers: { Cookie: `service_session_token=${token}` } })
      .catch(ignoreApiError);
    await anonymous.get("/api/v2/users/me", { headers: { Authorization: `Bearer ${token}` } }).catch(ignoreApiError);
  }
  await admin.post<unknown>("/api/v2/users", { email: 1, username: "x", password: NEW_PASSWORD }).catch(ignoreApiError);
  await carol
    .put("/api/v2/users/me/password", { old_password: WRONG_PASSWORD, password: NEW_PASSWORD })
    .catch(ignoreApiError);
  await carol.post("/api/v2/users/logout");

  // Reads the files while the server runs, including the database's log, and after it has stopped.
  const data = `${directory.path}/data`;
  const running = await readStoredTexts(data);
  serve.child.kill("SIGTERM");
  await serve.child.exited;
  const written = [...running, ...(await readStoredTexts(data)), await serve.errors];
  expect(running.some((text) => text.includes("carol@example.com"))).toBe(true);
  const found = written.flatMap((text) =>
    secrets.flatMap((secret, i) => (text.includes(secret) ? [`secret ${i} in ${text.slice(0, 200)}`] : [])),
  );
  expect(found).toEqual([]);
});

test("[HT-20] responses about existing tokens do not contain their secrets", async () => {
  await using server = await startTestServer();
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "ci" });
  const secret = key.split("-")[1] as string;
  const id = key.split("-")[0] as string;
  for (const path of ["keys/tokens", "keys/tokens/ci", `keys/${id}`, ""]) {
    const text = await (await admin.fetch("GET", `/api/v2/users/me/${path}`.replace(/\/$/, ""))).text();
    expect(text).not.toContain(secret);
    expect(text).not.toContain(ADMIN.password);
    expect(text).not.toMatch(/argon2|secret_hash|password_hash/);
  }
});
