// Files that messages carry, as prompts read them.

/** An attachment as a model is given it. */
export type Attachment = { readonly name: string; readonly media_type: string; readonly bytes: Uint8Array };

/** Undefined when the file is no longer there. */
export type Attachments = (file_id: string) => Promise<Attachment | undefined>;

export const noAttachments: Attachments = async () => undefined;
