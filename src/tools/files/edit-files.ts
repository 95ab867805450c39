// The tool `edit_files`: replaces passages in files of the workspace; all edits are validated before any file is written (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import type { EditedFiles } from "#schema/agents/agent-files.ts";
import { defineTool, ToolError } from "../tool.ts";
import description from "./edit-files.txt" with { type: "text" };
import { countHidden, HIDDEN_HINT, requireNoLiteralMask } from "./literal-mask.ts";

const Edit = t.Object(
  {
    old_text: t.String({
      minLength: 1,
      description: "The passage exactly as in the file, long enough to be unique.",
    }),
    new_text: t.String({ description: "The new text." }),
    replace_all: t.Optional(
      t.Boolean({ description: "Replace every occurrence; otherwise the old text must occur exactly once." }),
    ),
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
  async run({ agent, mask, run_id }, { files }, signal) {
    for (const { path, edits } of files) {
      // An edit may keep what the file contains: its old text is compared with the file.
      const added = edits.filter((edit) => countHidden(edit.new_text) > countHidden(edit.old_text));
      const text = added.map((edit) => edit.new_text).join("\n");
      await requireNoLiteralMask({ agent, mask }, { path, text }, signal);
    }
    const json = { id: run_id, files };
    const edited = await agent
      .call<EditedFiles>({ method: "POST", path: "/edit-files", json, signal, patient: true })
      .catch((error) => {
        const hasMask = files.some(({ edits }) => edits.some(({ old_text }) => countHidden(old_text) > 0));
        if (!hasMask || !(error instanceof ToolError) || !error.message.includes("is not in the file")) throw error;
        throw new ToolError(`${error.message} ${HIDDEN_HINT} Leave it out of old_text, and edit the text around it.`);
      });
    return { ok: true, files: edited.files };
  },
});
