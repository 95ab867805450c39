// The tool `write_file`: creates or replaces a file of the workspace (facts/chats 5.1).
import { Type as t } from "@sinclair/typebox";
import { defineTool } from "../tool.ts";
import { requireNoLiteralMask } from "./literal-mask.ts";
import description from "./write-file.txt" with { type: "text" };

export const writeFile = defineTool({
  name: "write_file",
  description,
  input_schema: t.Object(
    {
      path: t.String({
        minLength: 1,
        description: "The path of the file, absolute or relative to the agent's folder; ~ is the home folder.",
      }),
      content: t.String({ description: "The complete content of the file." }),
    },
    { additionalProperties: false },
  ),
  async run({ agent, mask }, { path, content }, signal) {
    await requireNoLiteralMask({ agent, mask }, { path, text: content }, signal);
    const query = new URLSearchParams({ path });
    const body = new TextEncoder().encode(content);
    await agent.call({ method: "POST", path: `/write-file?${query}`, body, signal, patient: true });
    return { ok: true };
  },
});
