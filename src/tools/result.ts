// The result of a tool.

/** A JSON object; `error` in it describes a failure. */
export type ToolResult = Readonly<Record<string, unknown>>;
