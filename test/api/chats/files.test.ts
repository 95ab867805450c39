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

type UploadOptions = {
  name?: string;
  type?: string;
  disposition?: string | null;
  organization?: string;
  token?: string;
};

const upload = (world: ChatWorld, body: string | Uint8Array, options: UploadOptions = {}): Promise<Response> => {
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
const uploadFile = async (
  world: ChatWorld,
  body: string | Uint8Array,
  options: UploadOptions = {},
): Promise<string> => {
  const response = await upload(world, body, options);
  const text = await response.text();
  expect([response.status, text.slice(0, 300)]).toEqual([201, expect.any(String)]);
  return (JSON.parse(text) as { id: string }).id;
};
const toFilePart = (file_id: string) => ({ type: "file", file_id });

describe("uploading", () => {
  test("[FL-1] returns a file unchanged and under its name, and forbids browsers to guess its type", async () => {
    await using world = await openChatWorld();
    const id = await uploadFile(world, PNG, { name: "a dot.png", type: "image/png" });
    const response = await world.owner.fetch("GET", `/api/v2/chats/files/${id}`);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(PNG);
    const getHeader = (name: string) => response.headers.get(name);
    expect(getHeader("content-type")).toBe("image/png");
    expect(getHeader("content-disposition")).toBe(`inline; filename="a dot.png"; filename*=UTF-8''a%20dot.png`);
    expect(getHeader("cache-control")).toBe("private, max-age=31536000, immutable");
    expect(getHeader("x-content-type-options")).toBe("nosniff");
    const pdf = await uploadFile(world, "%PDF-1.7 and so on", { name: "a.pdf", type: "application/pdf" });
    const pdfResponse = await world.owner.fetch("GET", `/api/experimental/chats/files/${pdf}`);
    expect(pdfResponse.headers.get("content-disposition")).toStartWith("attachment;");
    // The same content uploaded again is a separate file.
    expect(await uploadFile(world, PNG, { name: "a dot.png", type: "image/png" })).not.toBe(id);
    expect((await world.owner.fetch("GET", `/api/v2/chats/files/${crypto.randomUUID()}`)).status).toBe(404);
    expect((await world.owner.fetch("GET", "/api/v2/chats/files/word")).status).toBe(404);
  });

  test("[FL-2] refuses invalid organizations, types, names, sizes and contents", async () => {
    await using world = await openChatWorld();
    const otherOrganization = (await seedUser(world.server)).organization_id;
    const cases: [string | Uint8Array, UploadOptions, number][] = [
      ["a", { organization: "word" }, 400],
      ["a", { organization: otherOrganization }, 403],
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

  test("[FL-2] detects a file's type from its bytes, and kinds of text from its name", () => {
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
  test("[FL-4] a file part of a message has the file's name and type, and the model gets the bytes", async () => {
    await using world = await openChatWorld();
    const notes = await uploadFile(world, "remember the milk", { name: "notes.md", type: "text/markdown" });
    const chat = await createChat(world, "look", {
      content: [...toTextContent("look"), toFilePart(notes.toUpperCase())],
    });
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
      content: [toFilePart(picture)],
    });
    expect(sent.queued_message?.content as unknown[]).toEqual([
      { type: "file", file_id: { uuid: picture, valid: true }, name: "p.png", media_type: "image/png" },
    ]);
    const updated = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(updated.files.map(({ id }) => id).sort()).toEqual([notes, picture].sort());
    const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${chat.id}/messages`);
    expect((messages.at(-1) as ChatMessage).content[1]?.name).toBe("notes.md");
  });

  test("[FL-5] refuses missing files and those of another user, organization or chat, and changes nothing", async () => {
    await using world = await openChatWorld();
    const { organization_id, owner } = world;
    const otherUser = await seedUser(world.server, { organization_id });
    const otherFile = await uploadFile(world, "x", { token: otherUser.token });
    const ownFile = await uploadFile(world, "x");
    const chat = await createChat(world, "one", { content: [toFilePart(ownFile)] });
    const unusedFile = await uploadFile(world, "y");
    const getRejection = async (content: unknown[], id?: string) => {
      const [path, body] = id
        ? [`/api/v2/chats/${id}/messages`, { content }]
        : ["/api/v2/chats", { organization_id, content }];
      const response = await owner.fetch("POST", path, body);
      const answer = (await response.json()) as Generic;
      return [response.status, answer.validations?.[0]?.field ?? answer.message];
    };
    expect(await getRejection([toFilePart(crypto.randomUUID())])).toEqual([400, "content.0.file_id"]);
    expect(await getRejection([...toTextContent("a"), toFilePart(otherFile)])).toEqual([400, "content.1.file_id"]);
    expect(await getRejection([toFilePart(ownFile)])).toEqual([400, "content.0.file_id"]);
    expect(await getRejection([toFilePart("word")])).toEqual([400, "content.0.file_id"]);
    expect(await getRejection([{ type: "file" }])).toEqual([400, "content.0.file_id"]);
    // The error names the first invalid part.
    expect(await getRejection([{ type: "text", text: "" }, toFilePart(otherFile)], chat.id)).toEqual([
      400,
      "content.0.text",
    ]);
    const tooMany = Array.from({ length: 51 }, () => toFilePart(crypto.randomUUID()));
    expect(await getRejection(tooMany, chat.id)).toEqual([400, "Attachment limit exceeded."]);
    const { context } = world.server;
    expect((await context?.store.get(findChatFile({ id: unusedFile })))?.chat).toBeNull();
    // The chat of a file may reference it again.
    const secondUse = { content: [toFilePart(ownFile)] };
    expect((await owner.fetch("POST", `/api/v2/chats/${chat.id}/messages`, secondUse)).status).toBe(200);
    // Only users who can see the chat can read its files.
    const reader = new Client(world.server.url, otherUser.token);
    expect((await reader.fetch("GET", `/api/v2/chats/files/${ownFile}`)).status).toBe(404);
    expect((await owner.fetch("GET", `/api/v2/chats/files/${otherFile}`)).status).toBe(404);
  });

  test("[FL-5] only one of two concurrent chats can reference the same file", async () => {
    await using world = await openChatWorld();
    const id = await uploadFile(world, "x");
    const create = () =>
      world.owner.fetch("POST", "/api/v2/chats", { organization_id: world.organization_id, content: [toFilePart(id)] });
    const answers = await Promise.all([create(), create()]);
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
    const create = () =>
      fetch(new URL("/api/v2/chats", world.server.url), {
        method: "POST",
        headers: {
          "Idempotency-Key": "once",
          "Service-Session-Token": world.owner.token as string,
          "content-type": "application/json",
        },
        body: JSON.stringify({ organization_id: world.organization_id, content: ids.slice(0, 50).map(toFilePart) }),
      });
    const chat = (await (await create()).json()) as Chat;
    expect(chat.files.length).toBe(50);
    expect([(await create()).status, (await world.owner.get<Chat[]>("/api/v2/chats")).length]).toEqual([201, 1]);
    clock.advance(1_000);
    await world.owner.post(`/api/v2/chats/${chat.id}/messages`, { content: [toFilePart(ids[50] as string)] });
    const { files } = await world.owner.get<Chat>(`/api/v2/chats/${chat.id}`);
    expect(files.length).toBe(50);
    expect(files.at(-1)?.id).toBe(ids[50] as string);
    // One of the first fifty files was removed to make room, although the history still references it.
    const removedIds = ids.filter((id) => !files.some((file) => file.id === id));
    expect(removedIds.length).toBe(1);
    expect((await world.owner.fetch("GET", `/api/v2/chats/files/${removedIds[0]}`)).status).toBe(404);
  });
});

describe("removal from a chat", () => {
  const fetchFileStatus = async (client: Client, id: string): Promise<number> =>
    (await client.fetch("GET", `/api/v2/chats/files/${id}`)).status;

  test("[FL-8] only the owner can read a file that an edit removes; a file that another message references stays shared", async () => {
    await using world = await openChatWorld();
    const { owner, models } = world;
    const [replacedFile, newFile, sharedFile] = [
      await uploadFile(world, "the wrong one"),
      await uploadFile(world, "the right one"),
      await uploadFile(world, "referenced twice"),
    ];
    const { id } = await createChat(world, "look", { content: [toFilePart(sharedFile)] });
    using follower = await Follower.open(owner, id);
    (await models.next()).finish();
    await follower.until(({ status }) => status === "waiting");
    const path = `/api/v2/chats/${id}`;
    await owner.post(`${path}/messages`, { content: [toFilePart(replacedFile), toFilePart(sharedFile)] });
    (await models.next()).finish();
    await follower.until(({ status, messages }) => status === "waiting" && messages.size >= 3);
    const editedId = [...follower.messages.values()].findLast(({ role }) => role === "user")?.id;
    await owner.patch(`${path}/messages/${editedId}`, { content: [toFilePart(newFile)] });
    (await models.next()).finish();
    const reader = await seedUser(world.server, { organization_id: world.organization_id });
    await owner.patch(`${path}/acl`, { user_roles: { [reader.user_id]: "read" } });
    const readerClient = new Client(world.server.url, reader.token);
    const fileIds = (await readerClient.get<Chat>(path)).files.map((file) => file.id);
    expect(fileIds.sort()).toEqual([newFile, sharedFile].sort());
    expect(await fetchFileStatus(readerClient, replacedFile)).toBe(404);
    expect(await fetchFileStatus(readerClient, newFile)).toBe(200);
    expect(await fetchFileStatus(readerClient, sharedFile)).toBe(200);
    expect(await fetchFileStatus(owner, replacedFile)).toBe(200);
    await follower.until(({ status }) => status === "waiting");
    expect((await owner.post<Chat>(`${path}/fork`, {})).files).toHaveLength(2);
    // A fork up to the first message has only that message's file.
    const firstId = [...follower.messages.values()].find(({ role }) => role === "user")?.id;
    expect((await owner.post<Chat>(`${path}/fork`, { message_id: firstId })).files).toHaveLength(1);
  });

  test("[FL-8] only the owner can read a file of a deleted queued message", async () => {
    await using world = await openChatWorld();
    const { owner, models } = world;
    const { id } = await createChat(world);
    const call = await models.next();
    const path = `/api/v2/chats/${id}`;
    const [keptFile, removedFile] = [await uploadFile(world, "kept"), await uploadFile(world, "removed")];
    await owner.post(`${path}/messages`, { content: [toFilePart(keptFile)] });
    const { queued_message } = await owner.post<CreatedMessage>(`${path}/messages`, {
      content: [toFilePart(removedFile), toFilePart(keptFile)],
    });
    const reader = await seedUser(world.server, { organization_id: world.organization_id });
    await owner.patch(`${path}/acl`, { user_roles: { [reader.user_id]: "read" } });
    const readerClient = new Client(world.server.url, reader.token);
    expect(await fetchFileStatus(readerClient, removedFile)).toBe(200);
    await owner.delete(`${path}/queue/${queued_message?.id}`);
    expect([await fetchFileStatus(readerClient, removedFile), await fetchFileStatus(readerClient, keptFile)]).toEqual([
      404, 200,
    ]);
    expect((await readerClient.get<Chat>(path)).files.map((file) => file.id)).toEqual([keptFile]);
    call.finish();
  });
});

test("[FL-7] deletes files without a message after thirty days, and their bytes one sweep later", async () => {
  await using world = await openChatWorld();
  const { store, blobs } = getContext(world.server);
  let nowMs = Date.now();
  const keeper = fileKeeper({ store, blobs, clock: { now: () => nowMs } });
  const unusedFile = await uploadFile(world, "unused");
  const usedFile = await uploadFile(world, "used in a chat");
  await createChat(world, "x", { content: [toFilePart(usedFile)] });
  const findBlobPath = async (id: string) => blobs.getPath((await store.get(findChatFile({ id })))?.hash as string);
  const [unusedPath, usedPath] = [await findBlobPath(unusedFile), await findBlobPath(usedFile)];
  const sweepAfter = async (ms: number) => {
    nowMs += ms;
    keeper.sweep();
    await keeper.whenIdle();
  };
  const DAY = 86_400_000;
  await sweepAfter(29 * DAY);
  expect(await store.get(findChatFile({ id: unusedFile }))).toBeDefined();
  await sweepAfter(2 * DAY);
  expect(await store.get(findChatFile({ id: unusedFile }))).toBeUndefined();
  // Recent bytes may belong to a row that is being written, so they are removed one sweep later.
  await sweepAfter(DAY);
  expect([existsSync(unusedPath), existsSync(usedPath)]).toEqual([false, true]);
  expect(await store.get(findChatFile({ id: usedFile }))).toBeDefined();
});
