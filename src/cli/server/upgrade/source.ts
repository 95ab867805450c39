// The source of a newer program: the release address, or a file. Nothing is used before its signature is verified.

import { createReadStream, createWriteStream, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { basename } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { digestFile, type PublicKey, parsePublicKey, SignatureError, verifyDigest } from "#base/minisign.ts";
import { describeNetworkError } from "#base/network/failure-words.ts";
import { parseTrustedComment, RELEASE_FILE, type Release, readRelease, toReleaseFileName } from "#base/release.ts";
import { trimEnd } from "#base/text/trim.ts";
import { RELEASE_KEY } from "#base/version.ts";
import { UpgradeError } from "./error.ts";

const MAX_TEXT_BYTES = 1024 * 1024;
/** Maximum size of the unpacked program. */
const MAX_PROGRAM_BYTES = 1024 * 1024 * 1024;

/** A program that can be installed. */
export type Offer = {
  readonly version: string;
  /** A description of its source. */
  readonly from: string;
  /** Writes the verified, unpacked program to `to`. If it throws UpgradeError, it leaves no file. */
  unpack(to: string): Promise<void>;
};

/** Returns the trusted keys. Throws UpgradeError if none exist. */
export const parseTrustedKeys = (configured: string | undefined): PublicKey[] => {
  const words = `${RELEASE_KEY} ${configured ?? ""}`.split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    throw new UpgradeError("this program trusts no release key; set release_key to the public key of releases");
  }
  return words.map(parsePublicKey);
};

/** Returns the program in a file. Throws UpgradeError for a wrong signature or a program of another system. */
export const loadOfferFromFile = async (file: string, system: string, keys: readonly PublicKey[]): Promise<Offer> => {
  if (!existsSync(file)) throw new UpgradeError(`there is no file ${file}`);
  if (!existsSync(`${file}.minisig`)) throw new UpgradeError(`there is no signature ${file}.minisig`);
  const { version, name } = verifySignature(
    await digestFile(file),
    readFileSync(`${file}.minisig`, "utf8"),
    keys,
    basename(file),
  );
  if (name !== toReleaseFileName(system)) {
    throw new UpgradeError(
      `${basename(file)} is ${name} of Slipway ${version}; this machine needs ${toReleaseFileName(system)}`,
    );
  }
  return { version, from: file, unpack: (to) => decompressFile(file, to) };
};

/** Returns the newest release at the address. Throws UpgradeError if it cannot be fetched, or its signature is wrong. */
export const loadOfferFromAddress = async (
  address: URL,
  system: string,
  keys: readonly PublicKey[],
  signal: AbortSignal,
): Promise<Offer> => {
  const toUrl = (name: string): URL => new URL(name, `${trimEnd(address.href, "/")}/`);
  const fetchByName = async (name: string): Promise<string> => fetchText(toUrl(name), signal);
  const list = await fetchByName(RELEASE_FILE);
  const digest = new Bun.CryptoHasher("blake2b512").update(list).digest();
  const { version, name: listName } = verifySignature(
    digest,
    await fetchByName(`${RELEASE_FILE}.minisig`),
    keys,
    RELEASE_FILE,
  );
  if (listName !== RELEASE_FILE) throw new UpgradeError(`${toUrl(RELEASE_FILE)} is a different file of the release`);
  const release = readRelease(list);
  if (!release) throw new UpgradeError(`${toUrl(RELEASE_FILE)} is not a valid Slipway release list`);
  const name = toReleaseFileName(system);
  const file = release.files.find((one) => one.name === name);
  if (release.version !== version || !file) {
    throw new UpgradeError(`Slipway ${version} at ${address} has no program for ${system}`);
  }
  return {
    version,
    from: toUrl(name).href,
    async unpack(to) {
      const packed = `${to}.gz`;
      try {
        await download(toUrl(name), packed, file, signal);
        const signed = verifySignature(await digestFile(packed), await fetchByName(`${name}.minisig`), keys, name);
        if (signed.version !== version || signed.name !== name) {
          throw new UpgradeError(`${toUrl(name)} is ${signed.name} of Slipway ${signed.version}`);
        }
        await decompressFile(packed, to);
      } finally {
        rmSync(packed, { force: true });
      }
    },
  };
};

const verifySignature = (digest: Uint8Array, signature: string, keys: readonly PublicKey[], name: string) => {
  try {
    const comment = parseTrustedComment(verifyDigest(digest, signature, keys));
    if (!comment) throw new SignatureError("the trusted comment of its signature names no Slipway version and file");
    return comment;
  } catch (error) {
    if (!(error instanceof SignatureError)) throw error;
    throw new UpgradeError(`${name} was rejected: ${error.message}`);
  }
};

const fetchFile = async (url: URL, signal: AbortSignal): Promise<Response> => {
  let response: Response;
  try {
    response = await fetch(url, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new UpgradeError(`cannot fetch ${url}: ${describeNetworkError(error)}`);
  }
  if (response.ok) return response;
  await response.body?.cancel();
  throw new UpgradeError(`cannot fetch ${url}: the server answered ${response.status}`);
};

const fetchText = async (url: URL, signal: AbortSignal): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (await fetchFile(url, signal)).body ?? []) {
    size += chunk.length;
    if (size > MAX_TEXT_BYTES) throw new UpgradeError(`${url} is too large`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
};

/** Downloads to a file. Throws UpgradeError if the download is incomplete. */
const download = async (
  url: URL,
  to: string,
  expected: Release["files"][number],
  signal: AbortSignal,
): Promise<void> => {
  const sha256 = new Bun.CryptoHasher("sha256");
  let size = 0;
  const counted = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      size += chunk.length;
      sha256.update(chunk);
      done(size > expected.size ? new UpgradeError(`${url} is larger than the release states`) : undefined, chunk);
    },
  });
  try {
    const { body } = await fetchFile(url, signal);
    await pipeline(body ?? new ReadableStream(), counted, createWriteStream(to, { mode: 0o600 }), { signal });
  } catch (error) {
    if (signal.aborted || error instanceof UpgradeError) throw error;
    throw new UpgradeError(`${url} was not downloaded completely: ${describeNetworkError(error)}`);
  }
  if (size < expected.size)
    throw new UpgradeError(`${url} was not downloaded completely: ${size} of ${expected.size} bytes`);
  if (sha256.digest("hex") !== expected.sha256) throw new UpgradeError(`${url} does not match the release's checksum`);
};

const decompressFile = async (from: string, to: string): Promise<void> => {
  let size = 0;
  const limited = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      size += chunk.length;
      done(size > MAX_PROGRAM_BYTES ? new UpgradeError("the program is too large") : undefined, chunk);
    },
  });
  try {
    await pipeline(
      createReadStream(from),
      createGunzip(),
      limited,
      createWriteStream(to, { mode: 0o755, flush: true }),
    );
  } catch (error) {
    rmSync(to, { force: true });
    if (error instanceof UpgradeError || (error as { code?: string }).code?.startsWith("E")) throw error;
    throw new UpgradeError(`${basename(from)} cannot be unpacked (${statSync(from).size} bytes)`);
  }
};
