// Converts the result of an MCP tool for a model: texts are joined, other content is described by kind and size, and structured content is
// kept (rule MC-3). Images and PDF documents are included so that they can be shown. Limited in size; the turn shortens it further. Pure.

/** A file in a result; `data` in base64. */
export type McpFile = { readonly media_type: string; readonly data: string };
/** `is_error`: the tool reported a failure. `files`: undefined if the result has no files. */
export type McpAnswer = {
  readonly result: Readonly<Record<string, unknown>>;
  readonly is_error: boolean;
  readonly files?: readonly McpFile[];
};

/** File types that models accept. */
export const SUPPORTED_FILE_TYPES: readonly string[] = [
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "application/pdf",
];
const MAX_FILES = 8;
/** Maximum number of base64 characters for all files of a result. */
const MAX_BASE64_LENGTH = 10_485_760;

const MAX_TEXT_LENGTH = 1_048_576;

type Block = {
  readonly type: string;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: {
    readonly uri?: unknown;
    readonly text?: unknown;
    readonly blob?: unknown;
    readonly mimeType?: unknown;
  };
};

export const toAnswer = (answer: {
  readonly content?: readonly unknown[] | undefined;
  readonly structuredContent?: unknown;
  readonly isError?: boolean | undefined;
}): McpAnswer => {
  const output = (answer.content ?? [])
    .map((block) => toText(block as Block))
    .join("\n")
    .slice(0, MAX_TEXT_LENGTH);
  const is_error = answer.isError === true;
  const { structuredContent } = answer;
  const files = listFiles(answer.content ?? []);
  // Servers repeat structured content as text, for clients that support only text.
  const isRedundant = structuredContent === undefined || JSON.stringify(structuredContent) === output.trim();
  return {
    result: {
      ...(is_error ? { error: output || "The tool failed." } : { output }),
      ...(isRedundant ? {} : { structured_content: structuredContent }),
    },
    is_error,
    ...(files.length > 0 ? { files } : {}),
  };
};

const listFiles = (content: readonly unknown[]): McpFile[] => {
  const files: McpFile[] = [];
  let remainingLength = MAX_BASE64_LENGTH;
  for (const { type, data, mimeType, resource } of content as Block[]) {
    const [base64, media_type] = type === "resource" ? [resource?.blob, resource?.mimeType] : [data, mimeType];
    if (typeof base64 !== "string" || typeof media_type !== "string" || !SUPPORTED_FILE_TYPES.includes(media_type))
      continue;
    remainingLength -= base64.length;
    if (remainingLength < 0 || files.length === MAX_FILES) break;
    files.push({ media_type, data: base64 });
  }
  return files;
};

const toText = ({ type, text, data, mimeType, uri, name, resource }: Block): string => {
  if (type === "text" && typeof text === "string") return text;
  if (type === "resource" && typeof resource?.text === "string") return resource.text;
  if (type === "resource") return `[resource ${String(resource?.uri ?? "")} ${String(resource?.mimeType ?? "")}]`;
  if (type === "resource_link") return `[link ${String(name ?? "")} ${String(uri ?? "")}]`;
  const size = typeof data === "string" ? `, ${Math.floor((data.length * 3) / 4)} bytes` : "";
  return `[${type} ${String(mimeType ?? "")}${size}]`;
};
