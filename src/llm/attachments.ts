// Loads the attached files of messages for prompts.

/** An attachment as it is sent to a model. */
export type Attachment = { readonly name: string; readonly media_type: string; readonly bytes: Uint8Array };

/** Returns undefined if the file no longer exists. */
export type Attachments = (file_id: string) => Promise<Attachment | undefined>;

export const loadNoAttachment: Attachments = async () => undefined;
