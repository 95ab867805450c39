// Wire shapes of the server's requests to a daemon about skills and MCP servers of its workspace.
import { type Static, Type as t } from "@sinclair/typebox";

export const CallMcpTool = t.Object({
  server: t.String({ maxLength: 256 }),
  tool: t.String({ maxLength: 1_024 }),
  arguments: t.Record(t.String(), t.Unknown()),
  /** Timeouts in milliseconds: without a response or progress, and in total. */
  silence_ms: t.Optional(t.Integer({ minimum: 1 })),
  total_ms: t.Optional(t.Integer({ minimum: 1 })),
});
export type CallMcpTool = Static<typeof CallMcpTool>;
/** `files`: images and documents in addition to the text, in base64. */
export type McpToolResult = {
  result: Record<string, unknown>;
  is_error: boolean;
  files?: readonly { media_type: string; data: string }[];
};

/** Paths below the skill's folder, without SKILL.md. */
export type SkillFiles = { files: string[]; truncated: boolean };
export type SkillFile = { content: string; file_size: number; truncated: boolean };
