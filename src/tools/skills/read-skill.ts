// The tool `read_skill`: returns the text of a skill as pinned by the chat, and the names of its files (facts/chats 5.1, 5.5, rule CX-11).
import { Type as t } from "@sinclair/typebox";
import type { SkillFiles } from "#schema/agents/agent-context.ts";
import { defineTool, ToolError } from "../tool.ts";
import description from "./read-skill.txt" with { type: "text" };
import { findSkill } from "./skills.ts";

export const readSkill = defineTool({
  name: "read_skill",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    { name: t.String({ minLength: 1, maxLength: 200, description: "The skill's name as it is listed." }) },
    { additionalProperties: false },
  ),
  async run({ agent, skills }, { name }, signal) {
    const skill = findSkill(await skills.list(), name);
    if (!skill) throw new ToolError(`There is no skill "${name}".`);
    const known = { name: skill.name, body: skill.body };
    if (skill.folder === null) return { ...known, files: [] };
    // The text is available while the workspace is unreachable; its files are not.
    const query = new URLSearchParams({ path: skill.folder });
    try {
      const { files, truncated } = await agent.call<SkillFiles>({
        method: "GET",
        path: `/context/skill-files?${query}`,
        signal,
      });
      return { ...known, files, ...(truncated ? { note: "There are more files than these." } : {}) };
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      return { ...known, files: [], note: `Its files cannot be listed. ${error.message}` };
    }
  },
});
