// Schemas of texts and icons, with the same rules for all resources: a name cannot hide parts of itself or reverse the text around it, and
// an icon can make browsers request only an image (rules HT-26, HT-27).
import { type StringOptions, type TString, Type as t } from "@sinclair/typebox";
import { HIDDEN } from "#base/hidden-characters.ts";

/**
 * `HIDDEN` without tabs and line ends. A single character class, because an alternation inside a repetition takes two seconds for a
 * megabyte.
 */
const HIDDEN_IN_LINES = HIDDEN.replace("\\u0000-\\u001f", "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f");

type Options = Pick<StringOptions, "minLength" | "maxLength" | "description">;

const HIDDEN_PROBLEM = "must not contain control characters, invisible characters or bidirectional marks";

/** Returns the schema of a name or title: one line without hidden characters. */
export const lineText = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `^[^${HIDDEN}]*$`, error: HIDDEN_PROBLEM });

/** Returns the schema of a text of several lines, such as a version's message. Allows line ends and tabs. */
export const linesText = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `^[^${HIDDEN_IN_LINES}]*$`, error: HIDDEN_PROBLEM });

/** Like `lineText`, but without whitespace at the beginning and the end; can be empty. */
export const trimmedText = (options: Options = {}): TString =>
  t.String({
    ...options,
    pattern: `^$|^[^\\s${HIDDEN}]([^${HIDDEN}]*[^\\s${HIDDEN}])?$`,
    error: `must not begin or end with a blank, and ${HIDDEN_PROBLEM}`,
  });

const hiddenPattern = new RegExp(`[${HIDDEN}]+`, "g");

/** Replaces hidden characters and line ends by spaces. For names from models and agents, where an error would not help. */
export const toLine = (text: string): string => text.replace(hiddenPattern, " ").trim();

// A host without credentials, because the browsers of all viewers would send them.
const HOST = "(?:[^\\s\"'<>\\\\@/?#\\[\\]]+|\\[[0-9a-fA-F:.]+\\](?::\\d+)?)";
const ADDRESS = `https?://${HOST}(?:[/?#][^\\s"'<>\\\\${HIDDEN}]*)?|/(?:emojis|icon)/[\\w.-]+`;
const DATA = 'data:image/[\\w.+-]+[;,][^\\s"<>\\\\]*';
const ICON = `^(?:|${ADDRESS}|${DATA})$`;
const icon = new RegExp(ICON);

const ICON_DESCRIPTION =
  "The URL of an image: http, https, `data:image/...`, `/emojis/NAME.png` or `/icon/NAME`; may be empty.";

/** Returns the schema of an image's URL. */
export const iconText = ({ description = ICON_DESCRIPTION, ...options }: Options = {}): TString =>
  t.String({
    ...options,
    description,
    pattern: ICON,
    error: "must be empty, an http or https URL, a data:image URL, or a path such as /emojis/1f310.png",
  });

/** Like `iconText`, for templates: a URL may contain placeholders or be one. */
export const templatedIcon = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `${ICON}|^(?:(?:${ADDRESS})?\\{\\{[^\\s"'<>\\\\]|\\{\\{).*$` });

/** Returns the icon; an empty text if it is not valid. For values from agents. */
export const toIcon = (text: string): string => (icon.test(text) ? text : "");

/** URLs that a page would run as code. They are matched without whitespace, because browsers ignore whitespace in a scheme. */
const SCRIPT = /^(?:javascript|data|vbscript|blob|filesystem)\s*:/i;

/** Returns whether a URL is code, or looks like a different URL. */
export const isUnsafeLink = (text: string): boolean =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what browsers skip
  SCRIPT.test(text.replace(/[\u0000-\u0020]+/g, "")) || toLine(text) !== text.trim();

/** Returns the URL; an empty text if it is unsafe. For values from templates and agents. Allows the schemes of other programs. */
export const toLink = (text: string): string => (isUnsafeLink(text) ? "" : text);
