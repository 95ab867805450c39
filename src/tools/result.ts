// What a tool answers.

/** Results are JSON objects; `error` in one says in words what went wrong. */
export type ToolResult = Readonly<Record<string, unknown>>;
