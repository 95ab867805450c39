// Files of chats: upload, download, ownership, references from messages, and deletion.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { fileKeeper } from "#actors/chat/background/file-keeper.ts";
import { findChatFile, readAttachment } from "#db/chats/files.ts";
import { formatDisposition, parseFileName } from "#domain/chats/file-name.ts";
import { checkType } from "#domain/chats/file-type.ts";
import type { Chat, ChatMessage, CreatedMessage, MessagePage } from "#schema/chats/chat.ts";
import type { Generic } from "#schema/generic.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, toTextContent } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);
const SVG =
  '<?xml version="1.0"?>\n<!-- <b> --><!DOCTYPE svg [<!ENTITY a "b">]>\n<svg xmlns="http://www.w3.org/2000/svg"/>';

type Upload = { name?: string; type?: string; disposition?: string | null; organization?: string; token?: string };

const upload = (world: ChatWorld, body: string | Uint8Array, options: Upload = {}): Promise<Response> => {
  const { name = "notes.txt", type = "text/plain", organization = world.organization_id } = options;
  const { disposition = `attachment; filename="${name}"` } = options;
  return fetch(new URL(`/api/v2/chats/files?organization=${organization}`, world.server.url), {
    method: "POST",
    headers: {
      "Service-Session-Token": options.token ?? (world.owner.token as string),
      "content-type": type,
      ...(disposition === null ? {} : { "content-disposition": disposition }),
    },
    body: body as string,
  });
};
const uploadFile = async (world: ChatWorld, body: string | Uint8Array, options: Upload = {}): Promise<string> => {
  const response = await upload(world, body, options);
  const text = await response.text();
  expect([response.status, text.slice(0, 300)]).toEqual([201, expect.any(String)]);
  return (JSON.parse(text) as { id: string }).id;
};
const file = (file_id: string) => ({ type: "file", file_id });

describe("uploading", () => {
  test("[FL-1] a file is returned unchanged, under its name, and the browser must not sniff its type", async () => {
    await using world = await openChatWorld();
    const id = await uploadFile(world, PNG, { name: "a dot.png", type: "image/png" });
    const response = await world.owner.fetch("GET", `/api/v2/chats/files/${id}`);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(PNG);
    const header = (name: string) => response.headers.get(name);
    expect(header("content-type")).toBe("image/png");
    expect(header("content-disposition")).toBe(`inline; filename="a dot.png"; filename*=UTF-8''a%20dot.png`);
    expect(header("cache-control")).toBe("private, max-age=31536000, immutable");
    expect(header("x-content-type-options")).toBe("nosniff");
    const pdf = await uploadFile(world, "%PDF-1.7 and so on", { name: "a.pdf", type: "application/pdf" });
    const other = await world.owner.fetch("GET", `/api/experimental/chats/files/${pdf}`);
    expect(other.headers.get("content-disposition")).toStartWith("attachment;");
    // The same content uploaded again is a separate file.
    expect(await uploadFile(world, PNG, { name: "a dot.png", type: "image/png" })).not.toBe(id);
    expect((await world.owner.fetch("GET", `/api/v2/chats/files/${crypto.randomUUID()}`)).status).toBe(404);
    expect((await world.owner.fetch("GET", "/api/v2/chats/files/word")).status).toBe(404);
  });

  test("[FL-2] wrong organizations, types, names, sizes and contents are refused", async () => {
    await using world = await openChatWorld();
    const outsider = (await seedUser(world.server)).organization_id;
    const cases: [string | Uint8Array, Upload, number][] = [
      ["a", { organization: "word" }, 400],
      ["a", { organization: outsider }, 403],
      ["a", { type: "text/html" }, 400],
      ["a", { type: "image/svg+xml" }, 400],
      ["a", { disposition: null }, 400],
      ["a", { disposition: "attachment" }, 400],
      ["a", { name: "x".repeat(256) }, 400],
      ["", {}, 400],
      [SVG, { name: "x.txt" }, 400],
      [SVG, { name: "x.svg", type: "application/octet-stream" }, 400],
      [PNG, { name: "x.png", type: "image/jpeg" }, 400],
      [PNG, { name: "x.txt" }, 400],
      [new Uint8Array([1, 2, 3, 0]), { type: "application/octet-stream" }, 400],
      ["{", { name: "x.json", type: "application/json" }, 400],
      [Buffer.alloc(10_485_761, 97), {}, 413],
    ];
    for (const [body, options, status] of cases) {
      const response = await upload(world, body, options);
      expect([options, response.status]).toEqual([options, status]);
      expect(((await response.json()) as Generic).message).toBeString();
    }
    await uploadFile(world, Buffer.alloc(10_485_760, 97));
  });

  test("[FL-2] a file's type is detected from its bytes; its name decides between kinds of text", () => {
    const detectType = (body: string | Uint8Array, name: string) =>
      checkType(Buffer.from(body), name, "application/octet-stream");
    expect(detectType(PNG, "x.txt")).toBe("image/png");
    expect(detectType("GIF89a…", "x")).toBe("image/gif");
    expect(detectType(new Uint8Array([0xff, 0xd8, 0xff, 0xe0]), "x")).toBe("image/jpeg");
    expect(detectType("RIFF0000WEBPVP8 ", "x")).toBe("image/webp");
    expect(detectType('{"a":1}', "x.json")).toBe("application/json");
    expect(detectType("{", "x.json")).toBe("text/plain");
    expect(detectType("# Title", "x.MD")).toBe("text/markdown");
    expect(detectType("a,b", "x.csv")).toBe("text/csv");
    expect(detectType("<html><body><svg/></body></html>", "x.html")).toBe("text/plain");
    expect(detectType("\u001b[31mred\u001b[0m", "log")).toBe("text/plain");
    expect(checkType(Buffer.from("a,b"), "x.csv", "text/plain")).toBe("text/csv");
    for (const svg of [SVG, "<svg>", "\ufeff <SVG/>", "<!-- a --> <x:svg/>"])
      expect(() => detectType(svg, "x")).toThrow();
    expect(() => detectType(`<!doctype ${"[".repeat(60_000)}`, "x")).not.toThrow();
  });

  test("[FL-3] sanitizes file names, strips paths, and encodes names for all clients", () => {
    const parseNamed = (name: string) => parseFileName(`attachment; filename="${name}"`);
    expect(parseNamed("../../etc/passwd")).toBe("passwd");
    expect(parseNamed("C:\\\\Users\\\\me\\\\notes.txt")).toBe("notes.txt");
    expect(() => parseNamed("folder/")).toThrow();
    expect(parseNamed("a\u0000b\u0007.txt")).toBe("ab.txt");
    expect(parseNamed("\u202egnp.exe")).toBe("gnp.exe");
    expect(parseNamed(' a \\"b\\" ')).toBe('a "b"');
    expect(parseFileName("attachment; filename=plain.txt; x=y")).toBe("plain.txt");
    expect(parseFileName("attachment; filename=\"x\"; filename*=UTF-8''%e2%82%ac%20rates.txt")).toBe("€ rates.txt");
    expect(parseFileName(`attachment; filename="${Buffer.from("grün.txt").toString("latin1")}"`)).toBe("grün.txt");
    for (const none of [null, "", "attachment", 'attachment; filename=""', 'attachment; filename="\u0001"']) {
      expect(() => parseFileName(none)).toThrow();
    }
    expect(() => parseNamed("é".repeat(128))).toThrow();
    expect(formatDisposition("inline", 'a"b\\c\r\nd€.txt')).toBe(
      `inline; filename="a_b_c__d_.txt"; filename*=UTF-8''a%22b%5Cc%0D%0Ad%E2%82%AC.txt`,
    );
  });
});

describe("in messages", () => {
  test("[FL-4] a message's file part has the file's name and type, and the model gets the bytes", async () => {
    await using world = await openChatWorld();
    const notes = await uploadFile(world, "remember the milk", { name: "notes.md", type: "text/markdown" });
    const chat = await createChat(world, "look", { content: [...toTextContent("look"), file(notes.toUpperCase())] });
    expect(chat.files).toEqual([
      {
        id: notes,
        organization_id: world.organization_id,
        owner_id: world.user_id,
        name: "notes.md",
        mime_type: "text/markdown",
        size_bytes: 17,
        created_at: expect.any(String),
      },
    ]);
    const part = { type: "file", file_id: notes, name: "notes.md", media_type: "text/markdown" };
    const { request } = await world.models.next();
    expect(request.messages.at(-1)?.content as unknown[]).toEqual([{ type: "text", text: "look" }, part]);
    const { store, blobs } = getContext(world.server);
    const attachment = await readAttachment({ store, blobs }, notes);
    expect(new TextDecoder().decode(attachment?.bytes)).toBe("remember the milk");
    expect(await readAttachment({ store, blobs }, crypto.randomUUID())).toBeUndefined();
    // The model gets plain IDs; the API returns them in the specification's form.
    const picture = await uploadFile(world, PNG, { name: "p.png", type: "image/png" });
    const sent = await world.owner.post<CreatedMessage>(`/api/v2/chats/${chat.id}/messages`, {
      content: [file(picture)],
    });
    expect(sent.queued_message?.content as unknown[]).toEqual([
      { type: "file", file_id: { uuid: picture, valid: true }, name: "p.png", media_type: "image/png" },
    ]);
    const read = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(read.files.map(({ id }) => id).sort()).toEqual([notes, picture].sort());
    const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages`);
    expect((messages.at(-1) as ChatMessage).content[1]?.name).toBe("notes.md");
  });

  test("[FL-5] files that are missing, another user's, another organization's or another chat's are refused; nothing changes", async () => {
    await using world = await openChatWorld();
    const { organization_id, owner } = world;
    const other = await seedUser(world.server, { organization_id });
    const otherFile = await uploadFile(world, "x", { token: other.token });
    const ownFile = await uploadFile(world, "x");
    const chat = await createChat(world, "one", { content: [file(ownFile)] });
    const fresh = await uploadFile(world, "y");
    const getRejection = async (content: unknown[], id?: string) => {
      const [path, body] = id
        ? [`/api/v2/chats/${id}/messages`, { content }]
        : ["/api/v2/chats", { organization_id, content }];
      const response = await owner.fetch("POST", path, body);
      const answer = (await response.json()) as Generic;
      return [response.status, answer.validations?.[0]?.field ?? answer.message];
    };
    expect(await getRejection([file(crypto.randomUUID())])).toEqual([400, "content.0.file_id"]);
    expect(await getRejection([...toTextContent("a"), file(otherFile)])).toEqual([400, "content.1.file_id"]);
    expect(await getRejection([file(ownFile)])).toEqual([400, "content.0.file_id"]);
    expect(await getRejection([file("word")])).toEqual([400, "content.0.file_id"]);
    expect(await getRejection([{ type: "file" }])).toEqual([400, "content.0.file_id"]);
    // The error names the first invalid part.
    expect(await getRejection([{ type: "text", text: "" }, file(otherFile)], chat.id)).toEqual([400, "content.0.text"]);
    const many = Array.from({ length: 51 }, () => file(crypto.randomUUID()));
    expect(await getRejection(many, chat.id)).toEqual([400, "Attachment limit exceeded."]);
    const { context } = world.server;
    expect((await context?.store.get(findChatFile({ id: fresh })))?.chat).toBeNull();
    // Its own chat may reference it again.
    expect((await owner.fetch("POST", `/api/v2/chats/${chat.id}/messages`, { content: [file(ownFile)] })).status).toBe(
      200,
    );
    // Only users who can see the chat can read its files.
    const reader = new Client(world.server.url, other.token);
    expect((await reader.fetch("GET", `/api/v2/chats/files/${ownFile}`)).status).toBe(404);
    expect((await owner.fetch("GET", `/api/v2/chats/files/${otherFile}`)).status).toBe(404);
  });

  test("[FL-5] only one of two concurrent chats can reference the same file", async () => {
    await using world = await openChatWorld();
    const id = await uploadFile(world, "x");
    const make = () =>
      world.owner.fetch("POST", "/api/v2/chats", { organization_id: world.organization_id, content: [file(id)] });
    const answers = await Promise.all([make(), make()]);
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses[0]).toBe(201);
    expect([400, 409]).toContain(statuses[1] as number);
    expect((await world.owner.get<Chat[]>("/api/v2/chats")).length).toBe(1);
  });

  test("[FL-6] a chat keeps its newest fifty files, and a retried request may reference the same files", async () => {
    const clock = new ManualClock();
    await using world = await openChatWorld({ clock });
    const ids: string[] = [];
    for (let index = 0; index < 51; index++) {
      ids.push(await uploadFile(world, `file ${index}`));
      clock.advance(1_000);
    }
    const headers = { "Idempotency-Key": "once" };
    const make = () =>
      fetch(new URL("/api/v2/chats", world.server.url), {
        method: "POST",
        headers: {
          ...headers,
          "Service-Session-Token": world.owner.token as string,
          "content-type": "application/json",
        },
        body: JSON.stringify({ organization_id: world.organization_id, content: ids.slice(0, 50).map(file) }),
      });
    const chat = (await (await make()).json()) as Chat;
    expect(chat.files.length).toBe(50);
    expect([(await make()).status, (await world.owner.get<Chat[]>("/api/v2/chats")).length]).toEqual([201, 1]);
    clock.advance(1_000);
    await world.owner.post(`/api/v2/chats/${chat.id}/messages`, { content: [file(ids[50] as string)] });
    const { files } = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(files.length).toBe(50);
    expect(files.at(-1)?.id).toBe(ids[50] as string);
    // One of the first fifty was removed to make room, although history still references it.
    const removedIds = ids.filter((id) => !files.some((one) => one.id === id));
    expect(removedIds.length).toBe(1);
    expect((await world.owner.fetch("GET", `/api/v2/chats/files/${removedIds[0]}`)).status).toBe(404);
  });
});

describe("removed", () => {
  const statusOf = async (client: Client, id: string): Promise<number> =>
    (await client.fetch("GET", `/api/v2/chats/files/${id}`)).status;

  test("[FL-8] a file that an edit removes belongs to its owner alone, and a file that another message names stays", async () => {
    await using world = await openChatWorld();
    const { owner, models } = world;
    const [wrong, right, both] = [
      await uploadFile(world, "the wrong one"),
      await uploadFile(world, "the right one"),
      await uploadFile(world, "named twice"),
    ];
    const { id } = await createChat(world, "look", { content: [file(both)] });
    using follower = await Follower.open(owner, id);
    (await models.next()).finish();
    await follower.until(({ status }) => status === "waiting");
    const path = `/api/v2/chats/${id}`;
    await owner.post(`${path}/messages`, { content: [file(wrong), file(both)] });
    (await models.next()).finish();
    await follower.until(({ status, messages }) => status === "waiting" && messages.size >= 3);
    const edited = [...follower.messages.values()].filter(({ role }) => role === "user").at(-1)?.id;
    await owner.patch(`${path}/messages/${edited}`, { content: [file(right)] });
    (await models.next()).finish();
    const reader = await seedUser(world.server, { organization_id: world.organization_id });
    await owner.patch(`${path}/acl`, { user_roles: { [reader.user_id]: "read" } });
    const shared = new Client(world.server.url, reader.token);
    const listed = (await shared.get<Chat>(path)).files.map((one) => one.id);
    expect(listed.sort()).toEqual([right, both].sort());
    expect([await statusOf(shared, wrong), await statusOf(shared, right), await statusOf(shared, both)]).toEqual([
      ...[404, 200, 200],
    ]);
    expect(await statusOf(owner, wrong)).toBe(200);
    await follower.until(({ status }) => status === "waiting");
    expect((await owner.post<Chat>(`${path}/fork`, {})).files).toHaveLength(2);
    // A copy up to the first message has only its file.
    const first = [...follower.messages.values()].find(({ role }) => role === "user")?.id;
    expect((await owner.post<Chat>(`${path}/fork`, { message_id: first })).files).toHaveLength(1);
  });

  test("[FL-8] a file of a queued message that was deleted belongs to its owner alone", async () => {
    await using world = await openChatWorld();
    const { owner, models } = world;
    const { id } = await createChat(world);
    const call = await models.next();
    const path = `/api/v2/chats/${id}`;
    const [kept, removed] = [await uploadFile(world, "kept"), await uploadFile(world, "removed")];
    await owner.post(`${path}/messages`, { content: [file(kept)] });
    const { queued_message } = await owner.post<CreatedMessage>(`${path}/messages`, {
      content: [file(removed), file(kept)],
    });
    const reader = await seedUser(world.server, { organization_id: world.organization_id });
    await owner.patch(`${path}/acl`, { user_roles: { [reader.user_id]: "read" } });
    const shared = new Client(world.server.url, reader.token);
    expect(await statusOf(shared, removed)).toBe(200);
    await owner.delete(`${path}/queue/${queued_message?.id}`);
    expect([await statusOf(shared, removed), await statusOf(shared, kept)]).toEqual([404, 200]);
    expect((await shared.get<Chat>(path)).files.map((one) => one.id)).toEqual([kept]);
    call.finish();
  });
});

test("[FL-7] files without a message are deleted after thirty days, and their bytes one sweep later", async () => {
  await using world = await openChatWorld();
  const { store, blobs } = getContext(world.server);
  let now = Date.now();
  const keeper = fileKeeper({ store, blobs, clock: { now: () => now } });
  const orphan = await uploadFile(world, "unused");
  const usedFile = await uploadFile(world, "used in a chat");
  await createChat(world, "x", { content: [file(usedFile)] });
  const findBlobPath = async (id: string) => blobs.getPath((await store.get(findChatFile({ id })))?.hash as string);
  const [orphanPath, keptPath] = [await findBlobPath(orphan), await findBlobPath(usedFile)];
  const sweepIn = async (ms: number) => {
    now += ms;
    keeper.sweep();
    await keeper.whenIdle();
  };
  const DAY = 86_400_000;
  await sweepIn(29 * DAY);
  expect(await store.get(findChatFile({ id: orphan }))).toBeDefined();
  await sweepIn(2 * DAY);
  expect(await store.get(findChatFile({ id: orphan }))).toBeUndefined();
  // Recent bytes may belong to a row that is being written, so they are removed one sweep later.
  await sweepIn(DAY);
  expect([existsSync(orphanPath), existsSync(keptPath)]).toEqual([false, true]);
  expect(await store.get(findChatFile({ id: usedFile }))).toBeDefined();
});
