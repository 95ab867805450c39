// The tool `read_file`: lines of a text file in the workspace, with their numbers (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { FileLines } from "#schema/agents/agent-files.ts";
import { tool } from "../tool.ts";
import description from "./read-file.txt" with { type: "text" };

const MOST_LINES = 2_000;

export const readFile = tool({
  name: "read_file",
  description,
  input_schema: t.Object(
    {
      path: t.String({ minLength: 1, description: "The file, absolute or below the agent's folder; ~ is the home." }),
      offset: t.Optional(t.Integer({ minimum: 1, description: "The first line, counted from 1." })),
      limit: t.Optional(t.Integer({ minimum: 1, description: `How many lines; ${MOST_LINES} by default.` })),
    },
    { additionalProperties: false },
  ),
  async run({ agent }, { path, offset = 1, limit = MOST_LINES }, signal) {
    const query = new URLSearchParams({ path, offset: String(offset), limit: String(limit) });
    const read = await agent.call<FileLines>({
      method: "GET",
      path: `/read-file-lines?${query}`,
      signal,
      patient: true,
    });
    const lines = read.lines_read === 0 ? [] : read.content.split("\n");
    return { ...read, content: lines.map((line, index) => `${offset + index}\t${line}`).join("\n") };
  },
});
