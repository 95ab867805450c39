// Incremental archives without an external program: the tar of a home as encrypted chunks named by their content. A backup stores only the chunks
// that the previous one does not have.
import { HomeBackupError } from "./error.ts";
import type { Keys } from "./keys.ts";
import type { BackupStorage } from "./storage.ts";

// Splits a stream into content-defined chunks: an insertion or removal changes only the chunks around it, so that the next backup stores only these.

const MAX_CHUNK_BYTES = 4 * 1024 * 1024;
const MIN_CHUNK_BYTES = 512 * 1024;
/** The window of the rolling hash in bytes, one for each of its bits. */
const WINDOW_BYTES = 32;
/** A boundary requires this many zero bits: on average one per MiB. */
const BOUNDARY_SHIFT = 32 - 20;

/** `gear` has 256 random numbers, the same for all backups that share chunks. */
async function* splitChunks(
  stream: AsyncIterable<Uint8Array>,
  gear: Int32Array,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const buffer = new Uint8Array(MAX_CHUNK_BYTES);
  let length = 0;
  let hash = 0;
  for await (const bytes of stream) {
    for (let from = 0; from < bytes.length; ) {
      const end = Math.min(bytes.length, from + MAX_CHUNK_BYTES - length);
      const earliest = from + MIN_CHUNK_BYTES - length;
      // No boundary before the minimum size, so hashing starts one window before it.
      let at = Math.max(from, Math.min(end, earliest - WINDOW_BYTES));
      let isCut = false;
      while (at < end && !isCut) {
        hash = ((hash << 1) + (gear[bytes[at] as number] as number)) | 0;
        at += 1;
        isCut = at >= earliest && hash >>> BOUNDARY_SHIFT === 0;
      }
      buffer.set(bytes.subarray(from, at), length);
      length += at - from;
      from = at;
      if (!isCut && length < MAX_CHUNK_BYTES) continue;
      yield buffer.slice(0, length);
      length = 0;
      hash = 0;
    }
  }
  if (length > 0) yield buffer.slice(0, length);
}

/** Maximum number of chunks in transfer, each of at most 4 MiB. */
const MAX_TRANSFERS = 4;
/** A chunk without a reference may belong to a backup that another node has just started. */
const MIN_AGE_MS = 24 * 3_600_000;

const toName = (workspace_id: string, chunk: string): string => `${workspace_id}/chunks/${chunk.slice(0, 2)}/${chunk}`;

export class Archives {
  readonly #storage: BackupStorage;
  readonly #keys: Keys;

  constructor(storage: BackupStorage, keys: Keys) {
    this.#storage = storage;
    this.#keys = keys;
  }

  /** Stores the chunks that are not in `known`, the chunks of an earlier backup. Throws HomeBackupError, and errors of the stream. */
  async write(
    workspace_id: string,
    stream: AsyncIterable<Uint8Array>,
    known: readonly string[],
  ): Promise<{ readonly chunks: readonly string[]; readonly added_bytes: number }> {
    const chunks: string[] = [];
    const stored = new Set(known);
    const sending = new Set<Promise<void>>();
    let added_bytes = 0;
    let failure: { readonly error: unknown } | undefined;
    const send = async (chunk: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> => {
      const name = toName(workspace_id, chunk);
      const sealed = await this.#keys.seal(bytes, name);
      await this.#storage.put(name, sealed);
      added_bytes += sealed.length;
    };
    try {
      for await (const bytes of splitChunks(stream, this.#keys.gear)) {
        const chunk = await this.#keys.name(bytes);
        chunks.push(chunk);
        if (stored.has(chunk)) continue;
        stored.add(chunk);
        const one: Promise<void> = send(chunk, bytes)
          .catch((error: unknown) => {
            failure ??= { error };
          })
          .finally(() => sending.delete(one));
        sending.add(one);
        if (sending.size >= MAX_TRANSFERS) await Promise.race(sending);
        if (failure) break;
      }
    } finally {
      await Promise.all(sending);
    }
    if (failure) throw failure.error;
    return { chunks, added_bytes };
  }

  /** Returns the content of these chunks, each verified against its name. Throws HomeBackupError. */
  async *read(workspace_id: string, chunks: readonly string[]): AsyncGenerator<Uint8Array> {
    const coming: Promise<Uint8Array>[] = [];
    let next = 0;
    const fetchMore = (): void => {
      while (coming.length < MAX_TRANSFERS && next < chunks.length) {
        const one = this.#get(workspace_id, chunks[next++] as string);
        // Awaited later, or never if another one fails first.
        one.catch(() => {});
        coming.push(one);
      }
    };
    for (fetchMore(); coming.length > 0; fetchMore()) yield await (coming.shift() as Promise<Uint8Array>);
  }

  /** Deletes the chunks of a workspace that none of its backups uses. */
  async prune(workspace_id: string, kept: ReadonlySet<string>, now: number): Promise<void> {
    for await (const { name, modified_at } of this.#storage.list(`${workspace_id}/chunks/`)) {
      const chunk = name.slice(name.lastIndexOf("/") + 1);
      const isYoung = kept.size > 0 && now - modified_at < MIN_AGE_MS;
      if (!kept.has(chunk) && !isYoung) await this.#storage.remove(name);
    }
  }

  async #get(workspace_id: string, chunk: string): Promise<Uint8Array> {
    const name = toName(workspace_id, chunk);
    const sealed = await this.#storage.get(name, 2 * MAX_CHUNK_BYTES);
    if (!sealed) throw new HomeBackupError(`A part of it is missing (${name}).`, { isDamage: true });
    const bytes = await this.#keys.open(sealed, name, MAX_CHUNK_BYTES);
    if ((await this.#keys.name(bytes)) !== chunk) {
      throw new HomeBackupError(`A part of it doesn't match its checksum (${name}).`, { isDamage: true });
    }
    return bytes;
  }
}
