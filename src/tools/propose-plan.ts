// The tool `propose_plan`: shows the user the plan that the chat has written, and ends the turn (facts/chats 5.1). The plan is stored in
// its current state as a file of the chat; the user decides whether plan mode continues.
import { Type as t } from "@sinclair/typebox";
import type { FileLines } from "#schema/agents/agent-files.ts";
import description from "./propose-plan.txt" with { type: "text" };
import { defineTool, ToolError } from "./tool.ts";

const MAX_BYTES = 32_768;
/** There cannot be more lines than bytes. */
const LINE_LIMIT = String(MAX_BYTES + 1);
const media_type = "text/markdown";

export const proposePlan = defineTool({
  name: "propose_plan",
  description,
  changes_nothing: true,
  ends_turn: true,
  input_schema: t.Object(
    { path: t.String({ minLength: 1, description: "The path of the plan's file, which ends in .md." }) },
    { additionalProperties: false },
  ),
  async run({ agent, services }, { path }, signal) {
    if (!path.toLowerCase().endsWith(".md")) throw new ToolError("The plan must be a file that ends in .md.");
    const query = new URLSearchParams({ path, offset: "1", limit: LINE_LIMIT });
    const read = await agent.call<FileLines>({ method: "GET", path: `/read-file-lines?${query}`, signal });
    if (read.media_type !== undefined) throw new ToolError(`The plan must be text; this is ${read.media_type}.`);
    const bytes = new TextEncoder().encode(read.content);
    if (Math.max(bytes.byteLength, read.file_size) > MAX_BYTES) {
      throw new ToolError(`The plan has ${read.file_size} bytes; the maximum is ${MAX_BYTES}. Make it shorter.`);
    }
    if (read.content.trim() === "") throw new ToolError("The plan is empty: write it first.");
    const name = path.slice(path.lastIndexOf("/") + 1);
    const file_id = await services.storeFile({ name, media_type, bytes });
    return { ok: true, path, kind: "plan", file_id, media_type };
  },
});
