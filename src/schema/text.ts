// Single-line texts and images. One rule for all resources: a name cannot hide parts of itself or reverse the text around it, and an icon makes
// browsers request nothing but an image (rules HT-26, HT-27).
import { type StringOptions, type TString, Type as t } from "@sinclair/typebox";
import { HIDDEN } from "#base/hidden-characters.ts";

/** Also excludes tabs and line ends. A single character class: an alternation inside a repetition takes two seconds for a megabyte. */
const HIDDEN_IN_LINES = HIDDEN.replace("\\u0000-\\u001f", "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f");

type Options = Pick<StringOptions, "minLength" | "maxLength" | "description">;

const HIDDEN_PROBLEM = "must not contain control characters, invisible characters or bidirectional marks";

/** A name or title. */
export const lineText = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `^[^${HIDDEN}]*$`, error: HIDDEN_PROBLEM });

/** Text of several lines, such as a version's message: also allows line ends and tabs. */
export const linesText = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `^[^${HIDDEN_IN_LINES}]*$`, error: HIDDEN_PROBLEM });

/** Like `lineText`, without surrounding whitespace; can be empty. */
export const trimmedText = (options: Options = {}): TString =>
  t.String({
    ...options,
    pattern: `^$|^[^\\s${HIDDEN}]([^${HIDDEN}]*[^\\s${HIDDEN}])?$`,
    error: `must not begin or end with a blank, and ${HIDDEN_PROBLEM}`,
  });

const hiddenPattern = new RegExp(`[${HIDDEN}]+`, "g");

/** Returns the text as one line, for names from models and agents, which cannot be asked to correct them. */
export const toLine = (text: string): string => text.replace(hiddenPattern, " ").trim();

// A host without credentials, which viewers of the image would send.
const HOST = "(?:[^\\s\"'<>\\\\@/?#\\[\\]]+|\\[[0-9a-fA-F:.]+\\](?::\\d+)?)";
const PLACES = `https?://${HOST}(?:[/?#][^\\s"'<>\\\\${HIDDEN}]*)?|/(?:emojis|icon)/[\\w.-]+`;
const DATA = 'data:image/[\\w.+-]+[;,][^\\s"<>\\\\]*';
const ICON = `^(?:|${PLACES}|${DATA})$`;
const icon = new RegExp(ICON);

const WHAT = "The URL of an image: http, https, `data:image/...`, `/emojis/NAME.png` or `/icon/NAME`; may be empty.";

/** The URL of an image. */
export const iconText = ({ description = WHAT, ...options }: Options = {}): TString =>
  t.String({
    ...options,
    description,
    pattern: ICON,
    error: "must be empty, an http or https URL, a data:image URL, or a path such as /emojis/1f310.png",
  });

/** Like `iconText`, for templates, where placeholders may follow a URL's beginning or replace it. */
export const templatedIcon = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `${ICON}|^(?:(?:${PLACES})?\\{\\{[^\\s"'<>\\\\]|\\{\\{).*$` });

/** Returns the icon, or an empty text if it is not valid: for values from agents. */
export const toIcon = (text: string): string => (icon.test(text) ? text : "");

/** URLs that a page would run as code, in any spelling: browsers ignore control characters and whitespace before and inside a scheme. */
const SCRIPT = /^(?:javascript|data|vbscript|blob|filesystem)\s*:/i;

/** Returns whether a URL is code, or looks like a different URL. */
export const isUnsafeLink = (text: string): boolean =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what browsers skip
  SCRIPT.test(text.replace(/[\u0000-\u0020]+/g, "")) || toLine(text) !== text.trim();

/** Returns the URL, or an empty text if it is unsafe: for values from templates and agents. Other schemes belong to some program. */
export const toLink = (text: string): string => (isUnsafeLink(text) ? "" : text);
