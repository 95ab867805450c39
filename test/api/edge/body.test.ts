// Invalid bodies from clients, broken programs and attackers. Each gets a readable error immediately and changes nothing.
import { describe, expect, test } from "bun:test";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { ADMIN } from "#test/support/server.ts";
import { formatChunk, formatHead, readAnswer } from "./raw-http.ts";

const { server, admin } = await serverForFile();

const LOGIN = "/api/v2/users/login";
const MAX_PUBLIC_BYTES = 65_536;
const TOO_LARGE = {
  message: "Request body too large.",
  detail: `Maximum request body size is ${MAX_PUBLIC_BYTES} bytes.`,
};

const post = async (
  body: Bun.BodyInit | undefined,
  headers: Record<string, string> = { "content-type": "application/json" },
) => {
  const response = await fetch(new URL(LOGIN, server.url), { method: "POST", headers, body });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

/** Returns a valid sign-in of this many bytes. */
const buildSignIn = (bytes: number): string => {
  const short = JSON.stringify({ email: "a@example.com", password: "wrong", padding: "" });
  return JSON.stringify({ email: "a@example.com", password: "wrong", padding: "x".repeat(bytes - short.length) });
};

describe("a body that is not a JSON object", () => {
  test.each([
    ["text", "text/plain"],
    ["a form", "application/x-www-form-urlencoded"],
    ["many parts", "multipart/form-data; boundary=x"],
    ["no type", ""],
    ["almost JSON", "application/jsonp"],
  ])("[HT-5] %s is 415, whatever it contains", async (_name, type) => {
    const { status, body } = await post(Buffer.from(buildSignIn(100)), type ? { "content-type": type } : {});
    expect(status).toBe(415);
    expect(body.message).toBe("The request body must be JSON.");
  });

  test.each([
    ["cut off", '{"email":', "The request body must be valid JSON."],
    ["nothing but space", " ", "The request body must be valid JSON."],
    ["not UTF-8", Buffer.from('{"email":"\xff"}', "latin1"), "The request body must be valid JSON."],
    [
      "not UTF-8 and long",
      Buffer.from(`{"email":"${"x".repeat(40_000)}\xff"}`, "latin1"),
      "The request body must be valid JSON.",
    ],
    ["not UTF-8 at all", Buffer.from("\xff\xfe{}", "latin1"), "The request body must be valid JSON."],
    ["two values", "{} {}", "The request body must be valid JSON."],
    ["a comment", "{/**/}", "The request body must be valid JSON."],
    ["a list", "[1]", "The request body must be a JSON object."],
    ["null", "null", "The request body must be a JSON object."],
    ["a number", "1e999", "The request body must be a JSON object."],
    ["a text", '"text"', "The request body must be a JSON object."],
  ])("[HT-5] %s is 400", async (_name, text, message) => {
    const { status, body } = await post(text);
    expect(status).toBe(400);
    expect(body.message).toBe(message);
  });

  test("[HT-6] names a field whose value is an object without a string form", async () => {
    const { status, body } = await post('{"email":{"toString":[],"valueOf":1},"password":"wrong"}');
    expect({ status, validations: body.validations }).toEqual({
      status: 400,
      validations: [{ field: "email", detail: "must be a text" }],
    });
  });

  const missingBody = { status: 400, body: { message: "The request body is missing." } };

  test("[HT-24] returns 400 for a missing required body, with and without a content type", async () => {
    expect(await post(undefined, {})).toMatchObject(missingBody);
    expect(await post("", { "content-type": "application/json" })).toMatchObject(missingBody);
    expect(await post("", { "content-type": "text/plain" })).toMatchObject(missingBody);
  });

  test.each([
    ["of length 0", { "Content-Length": 0 }, ""],
    ["without any length", {}, ""],
    ["of an empty stream", { "Transfer-Encoding": "chunked" }, "0\r\n\r\n"],
  ])(
    "[HT-24] a body %s counts as absent: routes that require one return 400, others ignore it",
    async (_name, length, text) => {
      const { token } = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
      const sendRaw = async (path: string) => {
        using connection = new RawConnection(server.url);
        const headers = { "Content-Type": "application/json", "Service-Session-Token": token as string, ...length };
        connection.send(formatHead("POST", path, headers as Record<string, string | number>) + text);
        return await readAnswer(connection);
      };
      expect((await sendRaw(LOGIN))?.status).toBe(400);
      expect(await sendRaw("/api/v2/users")).toMatchObject({
        status: 400,
        text: expect.stringContaining("body is missing"),
      });
      expect((await sendRaw("/api/v2/users/logout"))?.status).toBe(200);
    },
  );

  test("[HT-5] compressed bodies return 415 and are never decompressed", async () => {
    for (const [encoding, bytes] of [
      ["gzip", Bun.gzipSync(new Uint8Array(1 << 24))],
      ["deflate", Bun.deflateSync("{}")],
      ["br", Buffer.from("{}")],
    ] as const) {
      const headers = { "content-type": "application/json", "content-encoding": encoding };
      expect(await post(bytes, headers)).toMatchObject({
        status: 415,
        body: { message: "Compressed request bodies are not supported." },
      });
    }
  });
});

describe("hostile JSON", () => {
  test.each([
    ["__proto__", '{"__proto__":{"email":"a","password":"b"}}', ["email", "password"]],
    ["constructor.prototype", '{"constructor":{"prototype":{"polluted":1}},"email":1}', ["email", "password"]],
    ["a number beyond all numbers", '{"email":1e999,"password":"x"}', ["email"]],
    ["wrong types", '{"email":{"$ne":""},"password":["x"]}', ["email", "password"]],
    ["a deep object", `${'{"a":'.repeat(900)}1${"}".repeat(900)}`, ["email", "password"]],
  ])("[HT-6] %s: names each invalid field once", async (_name, text, fields) => {
    const { status, body } = await post(text);
    expect(status).toBe(400);
    expect(body.message).toBe("Validation failed.");
    expect((body.validations as { field: string }[]).map(({ field }) => field)).toEqual(fields);
    expect({}).not.toHaveProperty("polluted");
  });

  test.each([
    ["lone surrogates", '{"email":"\\ud800@x","password":"\\udfff"}'],
    ["the same name twice", '{"email":1,"email":"a","password":"b"}'],
    ["a byte order mark", '\ufeff{"email":"a","password":"b"}'],
    ["unknown fields", '{"email":"a","password":"b","admin":true}'],
  ])("[HT-6] treats %s in a sign-in as wrong credentials", async (_name, text) => {
    expect((await post(text)).status).toBe(401);
  });

  test.each([
    ['{"email":"a\\u0000b","password":"x"}', "email"],
    ['{"email":"a","password":"x","more":[1,{"deep":["\\u0000"]}]}', "more.1.deep.0"],
    ['{"email":"a","password":"x","more":{"a\\u0000":1}}', "more"],
    [
      `{"email":"a","password":"x","more":${"[".repeat(900)}"\\u0000"${"]".repeat(900)}}`,
      `more${".0".repeat(900)}`.slice(0, 200),
    ],
  ])("[HT-33] rejects NUL in a text and names its position: %.60s", async (text, field) => {
    const { status, body } = await post(text);
    expect([status, body.validations]).toEqual([400, [{ field, detail: "must not contain NUL" }]]);
  });

  test("[HT-33] rejects NUL in a query and in a path, but accepts an escaped backslash before u0000", async () => {
    for (const path of ["/api/v2/users?q=a%00b", "/api/v2/users/a%00b"]) {
      expect((await admin.fetch("GET", path)).status).toBe(400);
    }
    expect((await post('{"email":"\\\\u0000","password":"x"}')).status).toBe(401);
  });

  test.each([
    ["PATCH", "templates/TEMPLATE/acl", '{"user_perms":{"none":{"toString":false}}}'],
    ["PATCH", "templates/TEMPLATE/acl", '{"user_perms":{"none":{"t\\u006fString":[]}}}'],
    ["PUT", "ai/agents/mine", '{"variables":{"A":{"toString":1}},"arguments":[{"toString":{}}]}'],
  ])("[HT-42] rejects an object with a member toString in place of a text: %s %s %s", async (method, path, text) => {
    const [template] = await admin.get<{ id: string }[]>("/api/v2/templates");
    const response = await admin.fetch(method, `/api/v2/${path.replace("TEMPLATE", template?.id ?? "")}`, text, {
      headers: { "content-type": "application/json" },
    });
    expect([response.status, await response.json()]).toMatchObject([400, { message: "Validation failed." }]);
  });

  test("[HT-6] does not change the server's own prototypes", async () => {
    await post('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
    const user = await admin.get<Record<string, unknown>>("/api/v2/users/me");
    expect(user).not.toHaveProperty("polluted");
  });
});

describe("a body that is too large", () => {
  const splitParts = (text: string): string[] => text.match(/.{1,8192}/gs) ?? [];

  const sendWithLength = async (text: string) => {
    using connection = new RawConnection(server.url);
    connection.send(
      formatHead("POST", LOGIN, { "Content-Type": "application/json", "Content-Length": text.length }) + text,
    );
    return await readAnswer(connection);
  };
  const sendChunked = async (text: string) => {
    using connection = new RawConnection(server.url);
    connection.send(formatHead("POST", LOGIN, { "Content-Type": "application/json", "Transfer-Encoding": "chunked" }));
    connection.send(`${splitParts(text).map(formatChunk).join("")}0\r\n\r\n`);
    return await readAnswer(connection);
  };

  test("[HT-7] reads a body at the limit, and returns 413 with the specified message for one byte more", async () => {
    for (const send of [sendWithLength, sendChunked]) {
      expect((await send(buildSignIn(MAX_PUBLIC_BYTES - 1)))?.status).toBe(401);
      expect((await send(buildSignIn(MAX_PUBLIC_BYTES)))?.status).toBe(401);
      const response = await send(buildSignIn(MAX_PUBLIC_BYTES + 1));
      expect(response?.status).toBe(413);
      expect(JSON.parse(response?.text as string)).toEqual(TOO_LARGE);
    }
  });

  test.each([5_000_000, 200_000_000, 50_000_000_000])(
    "[HT-7] rejects a declared length of %i before the first byte arrives",
    async (length) => {
      using connection = new RawConnection(server.url);
      connection.send(formatHead("POST", LOGIN, { "Content-Type": "application/json", "Content-Length": length }));
      const response = await readAnswer(connection);
      expect(response?.status).toBe(413);
      expect(JSON.parse(response?.text as string)).toEqual(TOO_LARGE);
    },
  );

  test("[HT-7] rejects a body of unknown length before its sender finishes", async () => {
    using connection = new RawConnection(server.url);
    connection.send(formatHead("POST", LOGIN, { "Content-Type": "application/json", "Transfer-Encoding": "chunked" }));
    for (const part of splitParts("x".repeat(MAX_PUBLIC_BYTES + 65_536))) connection.send(formatChunk(part));
    const response = await readAnswer(connection);
    expect(response?.status).toBe(413);
    expect(JSON.parse(response?.text as string)).toEqual(TOO_LARGE);
  });

  test("[HT-7] rejects the body of a GET request without reading it", async () => {
    using connection = new RawConnection(server.url);
    connection.send(`${formatHead("GET", "/api/v2/buildinfo", { "Transfer-Encoding": "chunked" })}${formatChunk("x")}`);
    expect((await readAnswer(connection))?.status).toBe(400);
  });
});
