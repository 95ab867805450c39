// Texts that people read in one line, and pictures. One rule for every resource: nothing in a name can hide a part of it or turn the
// direction of what stands around it, and no icon makes a browser ask for anything but a picture (rules HT-26, HT-27).
import { type StringOptions, type TString, Type as t } from "@sinclair/typebox";
import { HIDDEN } from "#base/hidden-characters.ts";

/** The same without tabs and line ends. One class and no choice: a choice in a repetition takes two seconds for a megabyte. */
const HIDDEN_IN_LINES = HIDDEN.replace("\\u0000-\\u001f", "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f");

type Options = Pick<StringOptions, "minLength" | "maxLength" | "description">;

const NO_HIDDEN = "must not contain control characters, invisible characters or bidirectional marks";

/** A name or title as people write it. */
export const lineText = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `^[^${HIDDEN}]*$`, error: NO_HIDDEN });

/** Words of several lines, such as what a version changes: the same but for line ends and tabs. */
export const linesText = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `^[^${HIDDEN_IN_LINES}]*$`, error: NO_HIDDEN });

/** The same as `lineText` without blanks around it; may be empty. */
export const trimmedText = (options: Options = {}): TString =>
  t.String({
    ...options,
    pattern: `^$|^[^\\s${HIDDEN}]([^${HIDDEN}]*[^\\s${HIDDEN}])?$`,
    error: `must not begin or end with a blank, and ${NO_HIDDEN}`,
  });

const hidden = new RegExp(`[${HIDDEN}]+`, "g");

/** The same text as one line, for names that nobody can be asked to write otherwise: what a model or an agent has sent. */
export const asLine = (text: string): string => text.replace(hidden, " ").trim();

// A host without a name and password before it: anyone who sees the picture would send them.
const HOST = "(?:[^\\s\"'<>\\\\@/?#\\[\\]]+|\\[[0-9a-fA-F:.]+\\](?::\\d+)?)";
const PLACES = `https?://${HOST}(?:[/?#][^\\s"'<>\\\\${HIDDEN}]*)?|/(?:emojis|icon)/[\\w.-]+`;
const DATA = 'data:image/[\\w.+-]+[;,][^\\s"<>\\\\]*';
const ICON = `^(?:|${PLACES}|${DATA})$`;
const icon = new RegExp(ICON);

const WHAT = "A URL (http, https), `data:image/...`, `/emojis/NAME.png` or `/icon/NAME`, or empty.";

/** The address of a picture. */
export const iconText = ({ description = WHAT, ...options }: Options = {}): TString =>
  t.String({
    ...options,
    description,
    pattern: ICON,
    error: "must be empty, an http or https URL, a data:image URL, or a path such as /emojis/1f310.png",
  });

/** The same in a template, where values may be filled in: behind the beginning of an address, or in place of the whole. */
export const templatedIcon = (options: Options = {}): TString =>
  t.String({ ...options, pattern: `${ICON}|^(?:(?:${PLACES})?\\{\\{[^\\s"'<>\\\\]|\\{\\{).*$` });

/** The icon, or none where it is not one: for what agents send. */
export const asIcon = (text: string): string => (icon.test(text) ? text : "");

/** What a page would run as code of its own, however it is spelt: browsers skip control characters and blanks in front of and in a scheme. */
const SCRIPT = /^(?:javascript|data|vbscript|blob|filesystem)\s*:/i;

/** Whether an address is code, or shows another address than it has. */
export const isUnsafeLink = (text: string): boolean =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what browsers skip
  SCRIPT.test(text.replace(/[\u0000-\u0020]+/g, "")) || asLine(text) !== text.trim();

/** The address, or none where it is no safe one: for what templates fill in and agents send. Any other scheme is some program's. */
export const asLink = (text: string): string => (isUnsafeLink(text) ? "" : text);
