// Unsaved changes to the files of a version, kept by the browser, so that a reload loses nothing.
import { keepText, keptText } from "../../data/kept-text.ts";

/** By path: the new text, or null for a deleted file. */
export type Draft = Readonly<Record<string, string | null>>;

const toKey = (version_id: string): string => `template-draft:${version_id}`;

/** Larger drafts are not stored, because the browser's storage is limited. */
const LONGEST = 500_000;

export const readDraft = (version_id: string): Draft => {
  try {
    return (JSON.parse(keptText(toKey(version_id)) ?? "{}") as Draft) ?? {};
  } catch {
    return {};
  }
};

export const keepDraft = (version_id: string, draft: Draft): void => {
  const text = JSON.stringify(draft);
  keepText(toKey(version_id), text === "{}" || text.length > LONGEST ? undefined : text);
};
