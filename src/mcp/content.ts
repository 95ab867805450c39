// What a tool of an MCP server has answered, as a model is told: its texts joined, what is no text named by kind and size, and structured
// content as it is (rule MC-3). Bounded; the turn cuts it further. Pure.

/** `is_error`: the tool says that it has failed. */
export type McpAnswer = { readonly result: Readonly<Record<string, unknown>>; readonly is_error: boolean };

const MOST_TEXT = 1_048_576;

type Block = {
  readonly type: string;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: { readonly uri?: unknown; readonly text?: unknown; readonly mimeType?: unknown };
};

export const contentOf = (answer: {
  readonly content?: readonly unknown[] | undefined;
  readonly structuredContent?: unknown;
  readonly isError?: boolean | undefined;
}): McpAnswer => {
  const output = (answer.content ?? [])
    .map((block) => textOf(block as Block))
    .join("\n")
    .slice(0, MOST_TEXT);
  const is_error = answer.isError === true;
  const { structuredContent } = answer;
  // Servers repeat structured content as text, for clients that know only that.
  const structured = structuredContent === undefined || JSON.stringify(structuredContent) === output.trim();
  return {
    result: {
      ...(is_error ? { error: output || "The tool has failed." } : { output }),
      ...(structured ? {} : { structured_content: structuredContent }),
    },
    is_error,
  };
};

const textOf = ({ type, text, data, mimeType, uri, name, resource }: Block): string => {
  if (type === "text" && typeof text === "string") return text;
  if (type === "resource" && typeof resource?.text === "string") return resource.text;
  if (type === "resource") return `[resource ${String(resource?.uri ?? "")} ${String(resource?.mimeType ?? "")}]`;
  if (type === "resource_link") return `[link ${String(name ?? "")} ${String(uri ?? "")}]`;
  const size = typeof data === "string" ? `, ${Math.floor((data.length * 3) / 4)} bytes` : "";
  return `[${type} ${String(mimeType ?? "")}${size}]`;
};
