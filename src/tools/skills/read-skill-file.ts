// The tool `read_skill_file`: reads a file next to a skill's text, never outside the skill's folder (facts/chats 5.1, 5.5, rule CX-12).
import { Type as t } from "@sinclair/typebox";
import type { SkillFile } from "#schema/agents/agent-context.ts";
import { defineTool, ToolError } from "../tool.ts";
import description from "./read-skill-file.txt" with { type: "text" };
import { findSkill } from "./skills.ts";

export const readSkillFile = defineTool({
  name: "read_skill_file",
  description,
  changes_nothing: true,
  only_reads: true,
  input_schema: t.Object(
    {
      name: t.String({ minLength: 1, maxLength: 200, description: "The skill's name as it is listed." }),
      path: t.String({
        minLength: 1,
        maxLength: 4_096,
        description: "The path of the file, relative to the skill's folder.",
      }),
    },
    { additionalProperties: false },
  ),
  async run({ agent, skills }, { name, path }, signal) {
    const skill = findSkill(await skills.list(), name);
    if (!skill) throw new ToolError(`There is no skill "${name}".`);
    if (skill.folder === null) throw new ToolError("This skill is a personal one: it has no files.");
    const query = new URLSearchParams({ path: skill.folder, file: path });
    return agent.call<SkillFile>({ method: "GET", path: `/context/skill-file?${query}`, signal });
  },
});
