// Uploads over HTTP: what the server stores, what it rejects during streaming, and which users can download a file.
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { sha256, uuid } from "#base/ids.ts";
import { limitBody } from "#src/api/files.ts";
import { MAX_UPLOAD_BYTES } from "#src/api/http/body/body.ts";
import { Client } from "#src/client.ts";
import { newPerson } from "#test/api/users/people.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { createTar, importVersion, sendFile, uniqueText, uploadFiles } from "#test/support/templates.ts";

const { server, admin } = await serverForFile();

/** Each node has its own data directory in the test's. */
const NODE_FOLDERS = usesActiveNodes ? ["node-0", "node-1", "node-2"] : [""];

const listStoredFiles = (directory = server.directory): string[] =>
  NODE_FOLDERS.flatMap((node) => readdirSync(join(directory, node, "files"), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);

const TOO_LARGE = {
  message: "Request body too large.",
  detail: `Maximum request body size is ${MAX_UPLOAD_BYTES} bytes.`,
};

/** Returns a body of this many bytes without a declared length. */
const createStream = (size: number): ReadableStream<Uint8Array> => {
  const chunk = new Uint8Array(1024 * 1024);
  let remainingBytes = size;
  return new ReadableStream({
    pull(controller) {
      const part = chunk.subarray(0, Math.min(remainingBytes, chunk.length));
      remainingBytes -= part.length;
      if (part.length > 0) controller.enqueue(part);
      else controller.close();
    },
  });
};

describe("uploading", () => {
  test("[TP-1][TP-2] stores an upload on disk under its hash before the response; the same content is the same file", async () => {
    const bytes = await createTar({ "template.yaml": uniqueText() });
    const first = await sendFile(admin, bytes);
    expect(first.status).toBe(201);
    const { hash } = (await first.json()) as { hash: string };
    expect(listStoredFiles()).toContain(sha256(bytes));
    const secondResponse = await sendFile(admin, bytes);
    expect(secondResponse.status).toBe(200);
    expect(await secondResponse.json()).toEqual({ hash });
    const zipResponses = await Promise.all([1, 2, 3].map(() => sendFile(admin, bytes, "application/zip")));
    expect(zipResponses.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
  });

  test("[TP-1] the same content from another user is another file", async () => {
    const bytes = await createTar({ "template.yaml": uniqueText() });
    const otherClient = (await newPerson(admin, "uploader", ["template-admin"])).client;
    const [ownUpload, otherUpload] = await Promise.all([sendFile(admin, bytes), sendFile(otherClient, bytes)]);
    expect([ownUpload.status, otherUpload.status]).toEqual([201, 201]);
    expect(((await ownUpload.json()) as { hash: string }).hash).not.toBe(
      ((await otherUpload.json()) as { hash: string }).hash,
    );
  });

  test("[TP-1] accepts only non-empty archives, and only from template admins", async () => {
    const member = (await newPerson(admin, "member")).client;
    expect((await sendFile(member, "x")).status).toBe(403);
    expect((await sendFile(new Client(server.url), "x")).status).toBe(401);
    for (const type of ["text/plain", "application/json", "application/x-tar2", ""]) {
      const rejected = await sendFile(admin, "x", type);
      expect([type, rejected.status]).toEqual([type, 415]);
      expect(((await rejected.json()) as { message: string }).message).not.toBe("");
    }
    expect((await sendFile(admin, "")).status).toBe(400);
    expect((await sendFile(admin, uniqueText(), "application/X-Tar; x=y")).status).toBe(201);
  });
});

describe("the limit of 100 MiB", () => {
  test("[TP-3] rejects a declared length of one byte too many before the client sends the body", async () => {
    const before = listStoredFiles();
    using connection = new RawConnection(server.url);
    connection.send(
      `POST /api/v2/files HTTP/1.1\r\nHost: ${server.url.host}\r\nService-Session-Token: ${admin.token}\r\n` +
        `Content-Type: application/x-tar\r\nContent-Length: ${MAX_UPLOAD_BYTES + 1}\r\n\r\nstart`,
    );
    const received = await connection.until((text) => text.includes("validations") || text.includes("bytes."));
    expect(received).toContain(" 413 ");
    expect(received).toContain(TOO_LARGE.detail);
    expect(listStoredFiles()).toEqual(before);
  });

  test("[TP-3] without a length, accepts the limit, and rejects one byte more without storing anything", async () => {
    const accepted = await sendFile(admin, createStream(MAX_UPLOAD_BYTES));
    expect(accepted.status).toBe(201);
    const before = listStoredFiles();
    const rejected = await sendFile(admin, createStream(MAX_UPLOAD_BYTES + 1));
    expect(rejected.status).toBe(413);
    expect(await rejected.json()).toEqual(TOO_LARGE);
    expect(listStoredFiles()).toEqual(before);
  });

  test.each([
    [9, true, true],
    [10, true, true],
    [11, true, false],
    [9, false, true],
    [10, false, true],
    [11, false, false],
  ])("[TP-3] %i bytes with a limit of 10, declared: %p, accepted: %p", async (size, isDeclared, isAccepted) => {
    const request = new Request("http://localhost/", {
      method: "POST",
      body: createStream(size),
      ...(isDeclared ? { headers: { "content-length": String(size) } } : {}),
    });
    const read = Array.fromAsync(limitBody(request, 10));
    if (isAccepted) expect((await read).reduce((sum, chunk) => sum + chunk.length, 0)).toBe(size);
    else await expect(read).rejects.toThrow("Request body too large.");
  });

  testInProcess("[TP-4] stores nothing when the sender disconnects midway", async () => {
    const { blobs } = getContext(server);
    const brokenBody = (async function* () {
      yield new Uint8Array(1000);
      throw new Error("the connection broke");
    })();
    const before = listStoredFiles();
    await expect(blobs.put(brokenBody)).rejects.toThrow("the connection broke");
    expect(listStoredFiles()).toEqual(before);
  });
});

test("[TP-4] removes partial uploads from a crash at the next start, and keeps referenced files", async () => {
  using directory = tempDirectory();
  const files = join(directory.path, NODE_FOLDERS[0] as string, "files");
  const partialUpload = join(files, "incoming", uuid());
  const orphan = join(files, "ab", `ab${"0".repeat(62)}`);
  let referencedId = "";
  {
    await using first = await startTestServer({ directory: directory.path });
    const client = await new Client(first.url).signIn(ADMIN.email, ADMIN.password);
    const bytes = await createTar({ "template.yaml": uniqueText() });
    referencedId = sha256(bytes);
    await sendFile(client, bytes);
  }
  await Bun.write(partialUpload, "half");
  await Bun.write(orphan, "complete, but without a response");
  {
    await using second = await startTestServer({ directory: directory.path });
    expect(second.directory).toBe(directory.path);
    const names = listStoredFiles(directory.path);
    expect(names).toContain(referencedId);
    expect(names.filter((name) => partialUpload.endsWith(name) || orphan.endsWith(name))).toEqual([]);
  }
});

describe("downloading", () => {
  test("[TP-25] returns the bytes as an attachment that no browser displays", async () => {
    const bytes = await createTar({ "template.yaml": uniqueText(), "page.html": "<script>alert(1)</script>" });
    const { hash } = (await (await sendFile(admin, bytes)).json()) as { hash: string };
    const response = await admin.fetch("GET", `/api/v2/files/${hash}`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/x-tar");
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${hash}.tar"`);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  });

  test("[TP-25] format=zip converts a tar archive, even a large one", async () => {
    const large = "0123456789abcdef".repeat(100_000);
    const id = await uploadFiles(admin, { "template.yaml": "a: ü\n", "dir/large.txt": large, empty: "" });
    const response = await admin.fetch("GET", `/api/v2/files/${id}?format=zip`);
    expect(response.headers.get("content-type")).toBe("application/zip");
    const files = unzipSync(new Uint8Array(await response.arrayBuffer()));
    expect(Object.keys(files).sort()).toEqual(["dir/large.txt", "empty", "template.yaml"]);
    expect(new TextDecoder().decode(files["template.yaml"])).toBe("a: ü\n");
    expect(files["dir/large.txt"]?.length).toBe(large.length);
    expect((await admin.fetch("GET", `/api/v2/files/${id}?format=rar`)).status).toBe(400);
  });

  test("[TP-25] rejects the conversion of a file that is not an archive, with a clear error", async () => {
    const { hash } = (await (await sendFile(admin, uniqueText().repeat(40))).json()) as { hash: string };
    const response = await admin.fetch("GET", `/api/v2/files/${hash}?format=zip`);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { detail: string }).detail).toBe("the tar archive is damaged");
  });

  test("[TP-25] is limited to the uploader and to template admins where the file is used; others get 404", async () => {
    const { template_id: _, id: version } = await importVersion(admin, `${uniqueText()}provisioner: echo\n`);
    const { file_id } = (await admin.get<{ job: { file_id: string } }>(`/api/v2/templateversions/${version}`)).job;
    const getStatus = async (client: Client) => (await client.fetch("GET", `/api/v2/files/${file_id}`)).status;
    expect(await getStatus((await newPerson(admin, "reader")).client)).toBe(404);
    expect(await getStatus((await newPerson(admin, "keeper", ["template-admin"])).client)).toBe(200);
    expect((await admin.fetch("GET", `/api/v2/files/${uuid()}`)).status).toBe(404);
    expect((await admin.fetch("GET", "/api/v2/files/nonsense")).status).toBe(404);
  });
});
