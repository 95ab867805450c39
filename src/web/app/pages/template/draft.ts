// Unsaved changes to the files of a version, kept by the browser, so that a reload loses nothing.
import { loadStoredText, storeText } from "../../data/unsent-text.ts";

/** The changed files by path: the new text, or null for a deleted file. */
export type Draft = Readonly<Record<string, string | null>>;

const toKey = (version_id: string): string => `template-draft:${version_id}`;

/** Larger drafts are not stored, because the browser's storage is limited. */
const MAX_DRAFT_LENGTH = 500_000;

export const loadDraft = (version_id: string): Draft => {
  try {
    return (JSON.parse(loadStoredText(toKey(version_id)) ?? "{}") as Draft) ?? {};
  } catch {
    return {};
  }
};

export const storeDraft = (version_id: string, draft: Draft): void => {
  const text = JSON.stringify(draft);
  storeText(toKey(version_id), text === "{}" || text.length > MAX_DRAFT_LENGTH ? undefined : text);
};
