// Loads the attached files of messages for prompts.

/** An attachment as it is sent to a model. */
export type Attachment = {
  readonly name: string;
  readonly media_type: string;
  readonly bytes: Uint8Array;
  /** The person whose file it is. */
  readonly owner_id?: string;
};

/** Returns undefined if the file no longer exists. */
export type LoadAttachment = (file_id: string) => Promise<Attachment | undefined>;

/** Base64 makes this 32 MB, the limit of providers for a request. The server holds three copies of it during a call. */
const MAX_ATTACHMENT_BYTES = 24 * 1024 * 1024;

/** Returns the bytes that attachments of this size take in a request. */
export const estimateEncoded = (bytes: number): number => Math.ceil((Math.min(bytes, MAX_ATTACHMENT_BYTES) * 4) / 3);

/** The space that the attachments of one request share. The newest are counted first; older ones that do not fit are left out. */
export class AttachmentBudget {
  #remainingBytes = MAX_ATTACHMENT_BYTES;

  get isSpent(): boolean {
    return this.#remainingBytes <= 0;
  }

  /** Returns false if the file no longer fits. Then no older file is accepted either. */
  take({ bytes }: Pick<Attachment, "bytes">): boolean {
    const fits = bytes.byteLength <= this.#remainingBytes;
    this.#remainingBytes = fits ? this.#remainingBytes - bytes.byteLength : 0;
    return fits;
  }
}

/** Tells the model that a file is left out. */
export const formatOmitted = (name: string): string =>
  `[The attachment "${name}" is left out, because the attachments of this conversation are too large together.]`;

export const loadNoAttachment: LoadAttachment = async () => undefined;
