// The tool `read_file`: lines of a text file in the workspace, with their numbers (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { FileLines } from "#schema/agents/agent-files.ts";
import { CHAT_FILE_TYPES } from "#schema/chats/chat-file.ts";
import { defineTool, ToolError } from "../tool.ts";
import description from "./read-file.txt" with { type: "text" };

const MAX_LINES = 2_000;

export const readFile = defineTool({
  name: "read_file",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    {
      path: t.String({
        minLength: 1,
        description: "The path of the file, absolute or relative to the agent's folder; ~ is the home folder.",
      }),
      offset: t.Optional(t.Integer({ minimum: 1, description: "The first line, counted from 1." })),
      limit: t.Optional(t.Integer({ minimum: 1, description: `How many lines; ${MAX_LINES} by default.` })),
    },
    { additionalProperties: false },
  ),
  async run({ agent, mask }, { path, offset = 1, limit = MAX_LINES }, signal) {
    const query = new URLSearchParams({ path, offset: String(offset), limit: String(limit) });
    const read = await agent.call<FileLines>({
      method: "GET",
      path: `/read-file-lines?${query}`,
      signal,
      patient: true,
    });
    if (read.media_type !== undefined) throw new ToolError(describeNonText(path, read.media_type, read.file_size));
    // Before the lines are numbered: a secret of several lines would not be recognized as a whole.
    const lines = read.lines_read === 0 ? [] : mask.lines(read.content);
    return { ...read, content: lines.map((line, index) => `${offset + index}\t${line}`).join("\n") };
  },
});

const describeNonText = (path: string, media_type: string, size: number): string =>
  `${path} is ${media_type} (${size} bytes), not text, so it was not read. ${
    isViewable(media_type)
      ? "attach_file shows it to the person; to look into it yourself run a program with execute."
      : "To look into it run a program with execute."
  }`;

/** The types that attach_file accepts. */
const isViewable = (media_type: string): boolean => CHAT_FILE_TYPES.some((type) => type === media_type);
