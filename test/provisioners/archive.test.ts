// Untrusted archives: their files are read, and no entry can point outside or expand without limit.
import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { strToU8, zipSync } from "fflate";
import { withArchive } from "#src/provisioners/archive.ts";
import { ArchiveError } from "#src/provisioners/archive-entry.ts";
import { readTemplateSource } from "#src/provisioners/template-source.ts";
import { tempDirectory } from "#test/support/server.ts";
import { createTar } from "#test/support/templates.ts";

const directory = tempDirectory();
afterAll(() => directory[Symbol.dispose]());

const TAR = "application/x-tar";
const ZIP = "application/zip";
const writeTempFile = (bytes: Uint8Array): string => {
  const path = join(directory.path, crypto.randomUUID());
  writeFileSync(path, bytes);
  return path;
};

/** Returns the text of every regular file by name. */
const readArchive = (bytes: Uint8Array, type: string): Promise<Record<string, string>> =>
  withArchive(writeTempFile(bytes), type, async ({ entries }) => {
    const found: Record<string, string> = {};
    for (const entry of entries) found[entry.name] = new TextDecoder().decode(await entry.read(1_000_000));
    return found;
  });

const readContents = async (bytes: Uint8Array, type: string): Promise<string> => {
  try {
    return JSON.stringify(await readArchive(bytes, type));
  } catch (error) {
    if (error instanceof ArchiveError) return error.message;
    throw error;
  }
};

/** Returns a tar header and its content. `fields` overwrites header bytes at an offset. */
const makeTarEntry = (name: string, text = "", kind = "0", fields: Record<number, string> = {}): Uint8Array => {
  const header = new Uint8Array(512);
  const setHeader = (offset: number, value: string): void => void header.set(strToU8(value), offset);
  setHeader(0, name);
  setHeader(100, "0000644\0");
  setHeader(124, `${text.length.toString(8).padStart(11, "0")}\0`);
  setHeader(156, kind);
  setHeader(257, "ustar\x0000");
  for (const [offset, value] of Object.entries(fields)) setHeader(Number(offset), value);
  setHeader(148, "        ");
  const sum = header.reduce((total, byte) => total + byte, 0);
  setHeader(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  const body = new Uint8Array(Math.ceil(text.length / 512) * 512);
  body.set(strToU8(text));
  return new Uint8Array(Buffer.concat([header, body]));
};
const makeTar = (...entries: Uint8Array[]): Uint8Array =>
  new Uint8Array(Buffer.concat([...entries, new Uint8Array(1024)]));

type ZipEntry = {
  name: string;
  data: Uint8Array;
  claimedSize?: number;
  flags?: number;
  method?: number;
  attributes?: number;
};

/** Returns a zip, which may contain false data about its entries. */
const makeZip = (...entries: ZipEntry[]): Uint8Array => {
  const locals: Buffer[] = [];
  const directoryParts: Buffer[] = [];
  let offset = 0;
  for (const { name, data, claimedSize = data.length, flags = 0, method = 8, attributes = 0 } of entries) {
    const compressed = method === 8 ? deflateRawSync(data) : Buffer.from(data);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(Buffer.byteLength(name), 26);
    locals.push(local, Buffer.from(name), compressed);
    const central = Buffer.alloc(46);
    central.writeUInt32LE(0x02014b50, 0);
    central.writeUInt8(3, 5);
    central.writeUInt16LE(flags, 8);
    central.writeUInt16LE(method, 10);
    central.writeUInt32LE(crc32(data), 16);
    central.writeUInt32LE(compressed.length, 20);
    central.writeUInt32LE(claimedSize, 24);
    central.writeUInt16LE(Buffer.byteLength(name), 28);
    central.writeUInt32LE(attributes, 38);
    central.writeUInt32LE(offset, 42);
    directoryParts.push(central, Buffer.from(name));
    offset += 30 + Buffer.byteLength(name) + compressed.length;
  }
  const body = Buffer.concat(locals);
  const central = Buffer.concat(directoryParts);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(body.length, 16);
  return new Uint8Array(Buffer.concat([body, central, end]));
};

describe("valid archives", () => {
  test("[TP-5] tar: reads files, long names and pax names, and skips links and devices", async () => {
    const longName = `${"d/".repeat(60)}file.txt`;
    const paxName = `${"p".repeat(120)}.txt`;
    const record = (key: string, value: string): string => {
      const content = ` ${key}=${value}\n`;
      return `${content.length + 3}${content}`;
    };
    const archive = makeTar(
      makeTarEntry("./a.txt", "hello"),
      makeTarEntry("dir/", "", "5"),
      makeTarEntry("././@LongLink", `${longName}\0`, "L"),
      makeTarEntry("cut", "long"),
      makeTarEntry("PaxHeader", record("path", paxName), "x"),
      makeTarEntry("cut", "pax"),
      makeTarEntry("link", "", "2", { 157: "/etc/passwd" }),
      makeTarEntry("hard", "", "1", { 157: "a.txt" }),
      makeTarEntry("device", "", "3"),
    );
    expect(await readArchive(archive, TAR)).toEqual({ "a.txt": "hello", [longName]: "long", [paxName]: "pax" });
  });

  test("[TP-5] zip: reads stored and deflated files, and skips links", async () => {
    const archive = makeZip(
      { name: "a.txt", data: strToU8("hello ".repeat(100)) },
      { name: "b/c.txt", data: strToU8("stored"), method: 0 },
      { name: "b/", data: new Uint8Array(), method: 0 },
      { name: "link", data: strToU8("/etc/passwd"), method: 0, attributes: (0o120777 << 16) >>> 0 },
    );
    expect(await readArchive(archive, ZIP)).toEqual({ "a.txt": "hello ".repeat(100), "b/c.txt": "stored" });
    const created = zipSync({ "x.txt": strToU8("x") });
    expect(await readArchive(created, ZIP)).toEqual({ "x.txt": "x" });
  });

  test("[TP-5] finds manifest and README at the top or in a single folder, in upper or lower case", async () => {
    const readSource = async (files: Record<string, string>) =>
      readTemplateSource(writeTempFile(await createTar(files)), TAR);
    expect(await readSource({ "template.yml": "a", "x/template.yaml": "b" })).toMatchObject({ manifest: "a" });
    expect(await readSource({ "t/template.yaml": "a", "t/ReadMe.md": "# R", "t/x/y": "" })).toEqual({
      file: "template.yaml",
      manifest: "a",
      readme: "# R",
    });
    await expect(readSource({ "a/template.yaml": "", "b/x": "" })).rejects.toThrow(
      "there is no template.yaml at the top",
    );
    await expect(readSource({ "template.yaml": "", "template.yml": "" })).rejects.toThrow("both");
    await expect(readSource({ "template.yaml": "x".repeat(600_000) })).rejects.toThrow(
      "template.yaml is larger than 524288 bytes",
    );
  });
});

describe("invalid archives", () => {
  const names: [string, string][] = [
    ["../evil", "leads out of it"],
    ["a/../../evil", "leads out of it"],
    ["/etc/passwd", "is absolute"],
    ["C:/x", "is absolute"],
    ["a\\..\\b", "holds a backslash"],
    ["a\nb", "holds control characters"],
    ["a\x00b", "holds control characters"],
  ];
  test.each(names)("[TP-5] rejects the name %j", async (name, reason) => {
    expect(await readContents(makeZip({ name, data: strToU8("x") }), ZIP)).toContain(reason);
    // In a tar header, NUL ends the name.
    if (!name.includes("\0")) expect(await readContents(makeTar(makeTarEntry(name, "x")), TAR)).toContain(reason);
  });

  test("[TP-5] rejects a name that is too long", async () => {
    expect(await readContents(makeZip({ name: "n".repeat(5000), data: strToU8("x") }), ZIP)).toContain("too long");
  });

  test("[TP-6] rejects too many entries", async () => {
    const entries = Array.from({ length: 10_001 }, (_, i) => makeTarEntry(`f${i}`));
    expect(await readContents(makeTar(...entries), TAR)).toBe("the archive has more than 10000 entries");
    const zipped = Array.from({ length: 10_001 }, (_, i) => ({ name: `f${i}`, data: new Uint8Array(), method: 0 }));
    expect(await readContents(makeZip(...zipped), ZIP)).toBe("the archive has more than 10000 entries");
  });

  test("[TP-6] rejects archive bombs with honest, false and impossible sizes", async () => {
    const zeros = new Uint8Array(30_000_000);
    const honest = makeZip(...Array.from({ length: 20 }, (_, i) => ({ name: `${i}`, data: zeros })));
    expect(await readContents(honest, ZIP)).toBe("the archive unpacks to more than 536870912 bytes");
    expect(await readContents(makeZip({ name: "a", data: zeros, claimedSize: 1000 }), ZIP)).toBe(
      "a unpacks to more than it claims",
    );
    expect(await readContents(makeZip({ name: "a", data: zeros }), ZIP)).toBe("a is larger than 1000000 bytes");
    const falseClaim = makeZip({ name: "a", data: strToU8("abc"), claimedSize: 400_000_000 });
    expect(await readContents(falseClaim, ZIP)).toBe("a claims to unpack to more than it can");
  });

  test("[TP-7] rejects damaged, encrypted and differently compressed archives", async () => {
    const data = strToU8("hello");
    expect(await readContents(strToU8("not an archive at all"), ZIP)).toBe("the file is not a zip archive");
    expect(await readContents(strToU8("not an archive at all".repeat(100)), TAR)).toBe("the tar archive is damaged");
    expect(await readContents(makeTar(makeTarEntry("a", "x")).subarray(0, 512), TAR)).toBe(
      "the tar archive ends in the middle of a file",
    );
    expect(await readContents(makeZip({ name: "a", data, flags: 1 }), ZIP)).toBe("a is encrypted");
    expect(await readContents(makeZip({ name: "a", data, method: 12 }), ZIP)).toContain("not supported");
    const damaged = makeZip({ name: "a", data, method: 0 });
    damaged[31] = 0x40;
    expect(await readContents(damaged, ZIP)).toBe("the zip archive is damaged");
  });

  test("[TP-7] any bytes result in an archive or a reason", async () => {
    const seeds = [
      await createTar({ "template.yaml": "a", "b/c": "d" }),
      makeZip({ name: "a", data: strToU8("x".repeat(99)) }),
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(0, 1),
        fc.array(fc.tuple(fc.nat(20_000), fc.nat(255)), { minLength: 1, maxLength: 20 }),
        async (seedIndex, changes) => {
          const bytes = new Uint8Array(seeds[seedIndex] as Uint8Array);
          for (const [position, value] of changes) bytes[position % bytes.length] = value;
          await readContents(bytes, seedIndex === 0 ? TAR : ZIP);
        },
      ),
      { numRuns: 300 },
    );
  });
});
