// Incremental archives without an external program: the tar of a home as encrypted chunks named by their content. A backup stores only the chunks
// that the previous one does not have.
import { HomeBackupError } from "./error.ts";
import type { Keys } from "./keys.ts";
import type { BackupStorage } from "./storage.ts";

// Splits a stream into content-defined chunks. An insertion or removal changes only the chunks around it, so the next backup stores only
// these.

const MAX_CHUNK_BYTES = 4 * 1024 * 1024;
const MIN_CHUNK_BYTES = 512 * 1024;
/** The window of the rolling hash in bytes: as many as the hash has bits. */
const WINDOW_BYTES = 32;
/** Leaves 20 bits of the hash. A boundary requires that they are zero, which happens once per MiB on average. */
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
    for (let start = 0; start < bytes.length; ) {
      const end = Math.min(bytes.length, start + MAX_CHUNK_BYTES - length);
      const earliest = start + MIN_CHUNK_BYTES - length;
      // No boundary before the minimum size, so hashing starts one window before it.
      let cut = Math.max(start, Math.min(end, earliest - WINDOW_BYTES));
      let isBoundary = false;
      while (cut < end && !isBoundary) {
        hash = ((hash << 1) + (gear[bytes[cut] as number] as number)) | 0;
        cut += 1;
        isBoundary = cut >= earliest && hash >>> BOUNDARY_SHIFT === 0;
      }
      buffer.set(bytes.subarray(start, cut), length);
      length += cut - start;
      start = cut;
      if (!isBoundary && length < MAX_CHUNK_BYTES) continue;
      yield buffer.slice(0, length);
      length = 0;
      hash = 0;
    }
  }
  if (length > 0) yield buffer.slice(0, length);
}

/** Maximum number of chunks in transfer, each of at most 4 MiB. */
const MAX_TRANSFERS = 4;
/** Younger chunks are not deleted: a chunk without a reference may belong to a backup that another node has just started. */
const MIN_AGE_MS = 24 * 3_600_000;

const toName = (workspace_id: string, chunk: string): string => `${workspace_id}/chunks/${chunk.slice(0, 2)}/${chunk}`;

export class Archives {
  readonly #storage: BackupStorage;
  readonly #keys: Keys;

  constructor(storage: BackupStorage, keys: Keys) {
    this.#storage = storage;
    this.#keys = keys;
  }

  /**
   * Stores the chunks of the stream, except for those in `known`, which an earlier backup has stored. Throws HomeBackupError, and errors of
   * the stream.
   */
  async write(
    workspace_id: string,
    stream: AsyncIterable<Uint8Array>,
    known: readonly string[],
  ): Promise<{ readonly chunks: readonly string[]; readonly added_bytes: number }> {
    const chunks: string[] = [];
    const stored = new Set(known);
    const transfers = new Set<Promise<void>>();
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
        const transfer: Promise<void> = send(chunk, bytes)
          .catch((error: unknown) => {
            failure ??= { error };
          })
          .finally(() => transfers.delete(transfer));
        transfers.add(transfer);
        if (transfers.size >= MAX_TRANSFERS) await Promise.race(transfers);
        if (failure) break;
      }
    } finally {
      await Promise.all(transfers);
    }
    if (failure) throw failure.error;
    return { chunks, added_bytes };
  }

  /** Returns the content of these chunks, each verified against its name. Throws HomeBackupError. */
  async *read(workspace_id: string, chunks: readonly string[]): AsyncGenerator<Uint8Array> {
    const downloads: Promise<Uint8Array>[] = [];
    let next = 0;
    const fetchMore = (): void => {
      while (downloads.length < MAX_TRANSFERS && next < chunks.length) {
        const download = this.#get(workspace_id, chunks[next++] as string);
        // Awaited later, or never if another download fails first.
        download.catch(() => {});
        downloads.push(download);
      }
    };
    for (fetchMore(); downloads.length > 0; fetchMore()) yield await (downloads.shift() as Promise<Uint8Array>);
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
    if (!sealed) throw new HomeBackupError(`A part of the backup is missing (${name}).`, { isDamage: true });
    const bytes = await this.#keys.open(sealed, name, MAX_CHUNK_BYTES);
    if ((await this.#keys.name(bytes)) !== chunk) {
      throw new HomeBackupError(`A part of the backup doesn't match its checksum (${name}).`, { isDamage: true });
    }
    return bytes;
  }
}
