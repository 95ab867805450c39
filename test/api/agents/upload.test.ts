// Uploads to and downloads from a workspace, as the terminal page does them.
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import { configureLogging, resetLogging } from "#base/log.ts";
import { updateWorkspace } from "#db/workspaces/workspaces.ts";
import { MAX_AGENT_FILE_BYTES } from "#domain/agents/upload.ts";
import type { DirectoryListing } from "#schema/agents/agent-files.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { getContext, type SeededAgent, seedAgent, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { formatHead, readAnswer } from "../edge/raw-http.ts";
import { startReachableAgent, TestTerminal } from "./reach.ts";

const world = await forFile(startReachableAgent());

const uploadFile = async (
  query: Record<string, string>,
  body: string | Uint8Array<ArrayBuffer>,
  agent: Pick<SeededAgent, "agent_id" | "owner_token"> = world.seeded,
) => {
  const url = new URL(
    `/api/v2/workspaceagents/${agent.agent_id}/files?${new URLSearchParams(query)}`,
    world.server.url,
  );
  const headers = { "service-session-token": agent.owner_token, "content-type": "application/octet-stream" };
  const response = await fetch(url, { method: "POST", body: new Blob([body]), headers });
  const responseBody = (await response.json()) as { path?: string; message?: string };
  return { status: response.status, ...responseBody };
};

test("[PT-8] an upload goes to the terminal's current folder unchanged, and replaces a file only on request", async () => {
  mkdirSync(join(world.home, "deep/er"), { recursive: true });
  using terminal = await TestTerminal.open(world);
  terminal.sendInput({ data: "cd deep/er && echo he''re\n" });
  await terminal.until(/here/);
  const bytes = new Uint8Array(3_000_000).map((_, i) => i * 7);
  const path = join(world.home, "deep/er/büro 1.bin");
  const query = { name: "büro 1.bin", terminal: terminal.id };
  expect(await uploadFile(query, bytes)).toEqual({ status: 201, path });
  expect(new Uint8Array(readFileSync(path)).every((byte, i) => byte === bytes[i])).toBe(true);
  expect(await uploadFile(query, "other")).toMatchObject({ status: 409 });
  expect(readFileSync(path).byteLength).toBe(bytes.byteLength);
  expect(await uploadFile({ ...query, replace: "true" }, "other")).toMatchObject({ status: 201 });
  expect(readFileSync(path, "utf8")).toBe("other");
  expect(readdirSync(join(world.home, "deep/er"))).toEqual(["büro 1.bin"]);
  // The folder is that of the foreground program, or the agent's if the terminal does not exist.
  terminal.sendInput({ data: "sh -c 'cd ..; echo of-''the-child; cat'\n" });
  await terminal.until(/of-the-child/);
  expect(await uploadFile({ name: "b.txt", terminal: terminal.id }, "x")).toMatchObject({
    path: join(world.home, "deep/b.txt"),
  });
  expect(await uploadFile({ name: "a.txt", terminal: uuid() }, "")).toEqual({
    status: 201,
    path: join(world.home, "a.txt"),
  });
});

test("[PT-8] the server rejects uploads to a workspace while too many others are unfinished", async () => {
  const head = formatHead("POST", world.path("files?name=stalled"), {
    Host: world.server.url.host,
    "Service-Session-Token": world.seeded.owner_token,
    "Content-Type": "application/octet-stream",
    "Content-Length": 20_000_000,
  });
  // More bytes than the limit for one workspace on any machine.
  const stalled = Array.from({ length: 140 }, () => new RawConnection(world.server.url));
  for (const connection of stalled) connection.send(head);
  const response = await Promise.race(stalled.map(readAnswer));
  expect(response?.status).toBe(503);
  expect(response?.text).toContain("Too many large request bodies are being received.");
  expect(await uploadFile({ name: "refused" }, "x".repeat(5_000_000))).toMatchObject({ status: 503 });
  for (const connection of stalled) connection[Symbol.dispose]();
  await until(async () => (await uploadFile({ name: "accepted", replace: "true" }, "x")).status === 201);
});

test("[PT-8] [AX-27] an upload that stops returns 408 while half of the memory for bodies is used", async () => {
  const clock = new ManualClock();
  await using ownWorld = await startReachableAgent({}, clock);
  const head = formatHead("POST", ownWorld.path("files?name=stalled"), {
    Host: ownWorld.server.url.host,
    "Service-Session-Token": ownWorld.seeded.owner_token,
    "Content-Type": "application/octet-stream",
    "Content-Length": 20_000_000,
  });
  // Its tunnel is open before the clock is advanced.
  await until(async () => (await ownWorld.owner.fetch("POST", ownWorld.path("files?name=first"), {})).ok);
  const stalled = Array.from({ length: 140 }, () => new RawConnection(ownWorld.server.url));
  for (const connection of stalled) connection.send(`${head}x`);
  const rejected = await Promise.race(stalled.map(readAnswer));
  expect([rejected?.status, rejected?.text]).toEqual([503, expect.stringContaining("Too many large request bodies")]);
  const isSlow = ({ received }: RawConnection): boolean => received.includes("The request body arrives too slowly");
  await until(() => {
    clock.advance(1_000);
    return stalled.some(isSlow);
  });
  expect(stalled.find(isSlow)?.received).toStartWith("HTTP/1.1 408");
  for (const connection of stalled) connection[Symbol.dispose]();
});

test("[PT-8] the server does not store a file if its sender loses access during the upload", async () => {
  const { seeded, server, home } = world;
  const bob = await seedUser(server, { organization_id: seeded.organization_id });
  const { requests, store } = getContext(server);
  const setAcl = (user_acl: Record<string, "use">) =>
    store.commit([updateWorkspace(seeded.workspace_id, { user_acl })]);
  await setAcl({ [bob.user_id]: "use" });
  using upload = new RawConnection(server.url);
  const head = { Host: server.url.host, "Service-Session-Token": bob.token, "Content-Length": 8 };
  upload.send(`${formatHead("POST", world.path("files?name=late.txt"), head)}half`);
  await until(() => requests.size > 0);
  await setAcl({});
  upload.send("rest");
  expect((await readAnswer(upload))?.status).toBe(404);
  expect(readdirSync(home)).not.toContain("late.txt");
});

test("[PT-8] the server rejects names with folders, names of folders, files above 32 MiB and users without access", async () => {
  for (const name of ["", ".", "..", "../a", "a/b", "a\\b", "a\nb", "ä".repeat(200)])
    expect([name, (await uploadFile({ name }, "x")).status]).toEqual([name, 400]);
  mkdirSync(join(world.home, "folder"));
  expect((await uploadFile({ name: "folder", replace: "true" }, "x")).status).toBe(400);
  const before = readdirSync(world.home);
  expect((await uploadFile({ name: "big" }, new Uint8Array(MAX_AGENT_FILE_BYTES + 1))).status).toBe(413);
  // Without a declared length, the server detects the excess while it receives the body.
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1_000_000)) });
  const streamed = await fetch(new URL(world.path("files?name=big"), world.server.url), {
    method: "POST",
    body: endless,
    headers: { "service-session-token": world.seeded.owner_token },
  });
  expect(streamed.status).toBe(413);
  const neverConnected = await seedAgent(world.server);
  expect((await uploadFile({ name: "a" }, "x", neverConnected)).status).toBe(400);
  const outsider = await seedUser(world.server, { organization_id: world.seeded.organization_id });
  const { status } = await world.owner.withToken(outsider.token).fetch("POST", world.path("files?name=a"));
  expect(status).toBe(404);
  expect(readdirSync(world.home)).toEqual(before);
});

test("[PT-10] people can list folders, download files and upload a file into a folder", async () => {
  mkdirSync(join(world.home, "looked/at"), { recursive: true });
  expect(await uploadFile({ name: "page.html", folder: "looked" }, "<h1>no page</h1>")).toEqual({
    status: 201,
    path: join(world.home, "looked/page.html"),
  });
  const listing = await world.owner.get<DirectoryListing>(world.path("files?path=looked"));
  expect(listing).toMatchObject({ absolute_path: join(world.home, "looked"), truncated: false });
  expect(listing.contents.map(({ name, is_dir, size }) => [name, is_dir, is_dir ? 0 : size])).toEqual([
    ["at", true, 0],
    ["page.html", false, 16],
  ]);
  const homeListing = await world.owner.get<DirectoryListing>(world.path("files"));
  expect(homeListing.contents.map(({ name }) => name)).toContain("looked");
  const download = await world.owner.fetch("GET", world.path("files/content?path=looked/page.html&limit=4"));
  expect(download.headers.get("content-type")).toBe("application/octet-stream");
  expect(download.headers.get("content-disposition")).toStartWith("attachment");
  expect(download.headers.get("x-file-size")).toBe("16");
  expect(await download.text()).toBe("<h1>");
  const statuses = await Promise.all(
    [
      "files?path=nothing",
      "files/content?path=nothing",
      "files/content?path=looked",
      "files?path=looked/page.html",
    ].map(async (path) => (await world.owner.fetch("GET", world.path(path))).status),
  );
  expect(statuses.slice(0, 2)).toEqual([404, 404]);
  expect(statuses.every((status) => status >= 400 && status < 500)).toBe(true);
  const outsider = await seedUser(world.server, { organization_id: world.seeded.organization_id });
  const { status } = await world.owner.withToken(outsider.token).fetch("GET", world.path("files"));
  expect(status).toBe(404);
});

type Downloader = {
  readonly admin: Client;
  readonly seeded: SeededAgent;
  readonly owner: Client;
  readonly key: string;
};

test.each<[string, (downloader: Downloader) => Promise<unknown>]>([
  ["its token is deleted", ({ owner, key }) => owner.delete(`/api/v2/users/me/keys/${key.split("-")[0]}`)],
  ["the person is suspended", ({ admin, seeded }) => admin.put(`/api/v2/users/${seeded.owner_id}/status/suspend`)],
  [
    "the person leaves the organization",
    ({ admin, seeded }) => admin.delete(`/api/v2/organizations/${seeded.organization_id}/members/${seeded.owner_id}`),
  ],
])("[PT-10] [ID-10] [SH-6] a download is cut off when %s", async (_, revokeAccess) => {
  await using ownWorld = await startReachableAgent();
  const { seeded, owner, home, server } = ownWorld;
  const size = 256 * 1024 * 1024;
  writeFileSync(join(home, "big.bin"), "");
  truncateSync(join(home, "big.bin"), size);
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { key } = await owner.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
  using download = new RawConnection(server.url);
  const head = [`host: ${server.url.host}`, `service-session-token: ${key}`].join("\r\n");
  download.send(`GET ${ownWorld.path("files/content?path=big.bin")} HTTP/1.1\r\n${head}\r\n\r\n`);
  expect(await download.until((text) => text.length > 4_096)).toStartWith("HTTP/1.1 200");
  download.socket.pause();
  await revokeAccess({ admin, seeded, owner, key });
  download.socket.resume();
  await download.closed;
  expect(download.received.length).toBeLessThan(size / 2);
});

test("[HT-43] a file that the daemon's user cannot read returns 403, without an error in the log", async () => {
  const lines: string[] = [];
  configureLogging({ level: "info", format: "json", write: (line) => void lines.push(line) });
  using _quiet = { [Symbol.dispose]: resetLogging };
  const fetchError = async (path: string) => {
    const response = await world.owner.fetch("GET", world.path(path));
    return [response.status, ((await response.json()) as { message: string }).message];
  };
  const unreadable = join(world.home, "closed");
  writeFileSync(unreadable, "secret", { mode: 0o000 });
  // Root can read any regular file, but not this one.
  const path = userInfo().uid === 0 ? "/proc/sys/vm/compact_memory" : unreadable;
  for (const suffix of [`files/content?path=${path}`, `files/content?path=${path}&limit=4`])
    expect(await fetchError(suffix)).toEqual([403, "The user may not do this."]);
  expect(lines.filter((line) => JSON.parse(line).level !== "info")).toEqual([]);
});
