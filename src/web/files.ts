// The files that the browser loads, with compressed variants and ETags, and the single archive of them in the binary.

import { promisify } from "node:util";
import { brotliCompress as brotli, constants, gzip } from "node:zlib";
import { sha256 } from "#base/ids.ts";

export type WebFile = {
  /** The file's name; for a page, the name of its source. */
  readonly name: string;
  readonly type: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly isPage?: boolean;
  /** Hashes of the page's inline scripts, which its policy must allow. */
  readonly inline?: readonly string[];
  /** Trusted Types policies that the page's scripts may create; none by default. */
  readonly types?: readonly string[];
  /** An origin of images that the page's policy must allow in addition to the server's. */
  readonly pictures?: string;
};

export const ENCODINGS = ["br", "gzip"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** A file ready to be sent. */
export type ServedFile = WebFile & {
  readonly etag: string;
  /** Compressed variants; one that is not smaller than the body is left out. */
  readonly twins: Readonly<Partial<Record<Encoding, Uint8Array<ArrayBuffer>>>>;
};

/** Compression level: `best` takes seconds and is for the build, `fast` is for running from source. */
export type Effort = "best" | "fast";

const copyBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);

const COMPRESSORS: Record<Encoding, (body: Uint8Array, effort: Effort) => Promise<Uint8Array>> = {
  br: (body, effort) =>
    promisify(brotli)(body, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: effort === "best" ? constants.BROTLI_MAX_QUALITY : 4,
        [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
      },
    } as never) as Promise<Uint8Array>,
  gzip: (body, effort) => promisify(gzip)(body, { level: effort === "best" ? 9 : 6 } as never) as Promise<Uint8Array>,
};

export const withTwins = async (file: WebFile, effort: Effort): Promise<ServedFile> => {
  const compressed = await Promise.all(
    ENCODINGS.map(async (encoding) => [encoding, copyBytes(await COMPRESSORS[encoding](file.body, effort))] as const),
  );
  const twins = Object.fromEntries(compressed.filter(([, bytes]) => bytes.length < file.body.length));
  return { ...file, twins, etag: `"${sha256(file.body).slice(0, 20)}"` };
};

type PackedHead = Omit<ServedFile, "body" | "twins"> & {
  readonly size: number;
  readonly twins: Partial<Record<Encoding, number>>;
};

/** Packs all files: the length of the header in four bytes, the header as JSON, then bodies and compressed variants in its order. */
export const pack = (files: readonly ServedFile[]): Uint8Array => {
  const heads = files.map(({ body, twins, ...rest }): PackedHead => {
    const sizes = Object.entries(twins).map(([encoding, bytes]) => [encoding, bytes.length]);
    return { ...rest, size: body.length, twins: Object.fromEntries(sizes) };
  });
  const head = new TextEncoder().encode(JSON.stringify(heads));
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, head.length);
  const bodies = files.flatMap(({ body, twins }) => [body, ...ENCODINGS.flatMap((encoding) => twins[encoding] ?? [])]);
  return new Uint8Array(Bun.concatArrayBuffers([length, head, ...bodies]));
};

export const unpack = (bytes: Uint8Array<ArrayBuffer>): ServedFile[] => {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
  const heads = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as PackedHead[];
  let offset = 4 + length;
  const readBytes = (size: number): Uint8Array<ArrayBuffer> => {
    offset += size;
    return bytes.subarray(offset - size, offset);
  };
  return heads.map(({ size, twins, ...rest }) => {
    const body = readBytes(size);
    const variants = ENCODINGS.flatMap((encoding) => {
      const size = twins[encoding];
      return size === undefined ? [] : [[encoding, readBytes(size)] as const];
    });
    return { ...rest, body, twins: Object.fromEntries(variants) };
  });
};

/** The name of the archive in the binary. */
export const PACK = "web.pack";
