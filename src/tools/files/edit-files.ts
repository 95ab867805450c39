// The tool `edit_files`: replaces passages in files of the workspace; all edits are validated before any file is written (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { EditedFiles } from "#schema/agents/agent-files.ts";
import { defineTool } from "../tool.ts";
import description from "./edit-files.txt" with { type: "text" };

const Edit = t.Object(
  {
    old_text: t.String({
      minLength: 1,
      description: "The passage as it stands in the file, long enough to be unique.",
    }),
    new_text: t.String({ description: "What stands there afterwards." }),
    replace_all: t.Optional(t.Boolean({ description: "Replace every occurrence; else there must be exactly one." })),
  },
  { additionalProperties: false },
);

export const editFiles = defineTool({
  name: "edit_files",
  description,
  input_schema: t.Object(
    {
      files: t.Array(
        t.Object(
          { path: t.String({ minLength: 1 }), edits: t.Array(Edit, { minItems: 1, maxItems: 1_000 }) },
          { additionalProperties: false },
        ),
        { minItems: 1, maxItems: 100 },
      ),
    },
    { additionalProperties: false },
  ),
  async run({ agent, run_id }, { files }, signal) {
    const json = { id: run_id, files };
    const edited = await agent.call<EditedFiles>({ method: "POST", path: "/edit-files", json, signal, patient: true });
    return { ok: true, files: edited.files };
  },
});
