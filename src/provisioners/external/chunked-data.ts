// Splits data that is too large for one message between server and worker: template files and Terraform states. The worker requests files
// chunk by chunk, which provides backpressure. It sends a build's result in chunks before the message that ends the build.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { ProvisionRequest } from "../provisioner.ts";
import type { TemplateArchive } from "../terraform/work.ts";

/** Files of a job that a worker may request. */
export const JOB_FILES = ["archive", "cache", "state"] as const;
export type JobFile = (typeof JOB_FILES)[number];
/** Maximum size of a chunk: bytes of a file, or characters of other data. */
export const MAX_CHUNK_SIZE = 256 * 1024;

export type Chunk = { readonly data: string; readonly size: number };

/** Returns the request to send: without large data, which the worker fetches, and without paths on the server's machine. */
export const omitFiles = (request: ProvisionRequest): ProvisionRequest => {
  const { terraform, state } = request;
  if (!terraform) return request;
  const { archive, cache } = terraform;
  const omitPath = ({ mimetype }: TemplateArchive): TemplateArchive => ({ path: "", mimetype });
  return {
    ...request,
    state: state === null ? null : "",
    terraform: { ...terraform, archive: omitPath(archive), cache: cache && omitPath(cache) },
  };
};

/** The files of a job on the server's machine, and the state from which the job continues. */
export type JobSource = {
  readonly archive?: string;
  readonly cache?: string | undefined;
  readonly state?: string | null;
};

export const toSource = ({ terraform, state }: ProvisionRequest): JobSource =>
  terraform ? { archive: terraform.archive.path, cache: terraform.cache?.path, state } : {};

/** Returns a chunk of a job's file in base64; undefined if the job does not have the file. */
export const readChunk = (source: JobSource, file: JobFile, offset: number): Chunk | undefined => {
  if (file === "state") {
    if (typeof source.state !== "string") return undefined;
    const bytes = Buffer.from(source.state);
    return { data: bytes.subarray(offset, offset + MAX_CHUNK_SIZE).toString("base64"), size: bytes.length };
  }
  const path = source[file];
  if (path === undefined) return undefined;
  const handle = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(MAX_CHUNK_SIZE);
    const read = readSync(handle, bytes, 0, MAX_CHUNK_SIZE, offset);
    return { data: bytes.subarray(0, read).toString("base64"), size: fstatSync(handle).size };
  } finally {
    closeSync(handle);
  }
};

/** Assembles a job's result from chunks. */
export class ChunkAssembler {
  readonly #maxChars: number;
  #chunks: string[] = [];
  #size = 0;

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** Adds a chunk. Returns false if the result is too long. */
  add(text: string): boolean {
    this.#size += text.length;
    if (this.#size > this.#maxChars) return false;
    this.#chunks.push(text);
    return true;
  }

  get text(): string | null {
    return this.#chunks.length === 0 ? null : this.#chunks.join("");
  }
}

/** Splits the text into chunks that fit into a message each. */
export const splitIntoChunks = (text: string): string[] =>
  Array.from({ length: Math.ceil(text.length / MAX_CHUNK_SIZE) }, (_, index) =>
    text.slice(index * MAX_CHUNK_SIZE, (index + 1) * MAX_CHUNK_SIZE),
  );
