// Fetches the files of a job from the server to the worker in chunks, and stores them in a folder until the job has ended.
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ProvisionError, type ProvisionRequest } from "../provisioner.ts";
import { MAX_STATE_BYTES } from "../terraform/session.ts";
import type { TemplateArchive } from "../terraform/work.ts";
import { type Chunk, type JobFile, MAX_CHUNK_SIZE } from "./chunked-data.ts";

/** Maximum size of a template's archive that a worker accepts. */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** Fetches a chunk from the server; rejects when the connection or the job ends. */
export type FetchChunk = (file: JobFile, offset: number) => Promise<Chunk>;

export class FetchedFiles implements Disposable {
  readonly #folder: string;
  readonly #fetchChunk: FetchChunk;

  /** `root`: the parent of the job's folder. */
  constructor(root: string, job_id: string, fetchChunk: FetchChunk) {
    this.#folder = join(root, job_id.replace(/[^a-z0-9-]/gi, ""));
    this.#fetchChunk = fetchChunk;
  }

  /** Fetches the files of a job. Returns the request with their paths on this machine. */
  async complete(request: ProvisionRequest): Promise<ProvisionRequest> {
    const { terraform, state } = request;
    if (!terraform) return request;
    const { archive, cache } = terraform;
    return {
      ...request,
      state: state === null ? null : await this.#fetchText("state"),
      terraform: {
        ...terraform,
        archive: await this.fetchArchive(archive),
        cache: cache && (await this.#fetchFile("cache", cache)),
      },
    };
  }

  fetchArchive(requested: TemplateArchive): Promise<TemplateArchive> {
    return this.#fetchFile("archive", requested);
  }

  async #fetchFile(name: JobFile, { mimetype }: TemplateArchive): Promise<TemplateArchive> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, name);
    const handle = openSync(path, "w", 0o600);
    try {
      await this.#fetchChunks(name, MAX_FILE_BYTES, (bytes) => {
        writeSync(handle, bytes);
      });
    } finally {
      closeSync(handle);
    }
    return { path, mimetype };
  }

  async #fetchText(name: JobFile): Promise<string> {
    const parts: Buffer[] = [];
    await this.#fetchChunks(name, MAX_STATE_BYTES * 2, (bytes) => parts.push(bytes));
    return Buffer.concat(parts).toString("utf8");
  }

  async #fetchChunks(name: JobFile, maxBytes: number, onBytes: (bytes: Buffer) => void): Promise<void> {
    for (let offset = 0; ; ) {
      const { data, size } = await this.#fetchChunk(name, offset);
      const bytes = Buffer.from(data, "base64");
      if (size > maxBytes || bytes.length > MAX_CHUNK_SIZE || offset + bytes.length > size) {
        throw new ProvisionError(`The server's ${name} of the job is larger than a worker accepts.`);
      }
      onBytes(bytes);
      offset += bytes.length;
      if (offset === size) return;
      if (bytes.length === 0) throw new ProvisionError(`The server's ${name} of the job was cut off.`);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
