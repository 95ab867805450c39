// Prompt text about the kind of chat: a sub-chat's purpose, and how to plan in plan mode (facts/chats 5.4, slots 2 and 6). The table of
// tools, not this text, decides what the model may do (rule PM-2).
import { toPlanPath } from "#src/tools/available.ts";
import { toChatMode } from "../turn/offer.ts";
import type { BlockProvider, PromptBlock } from "./prompt.ts";

export const modeBlocks: BlockProvider = async (settings) => {
  const mode = toChatMode(settings);
  if (mode === "root") return [];
  if (mode === "plan")
    return [
      { slot: "mode", text: settings.workspace_id === null ? PLAN : buildPlanPrompt(toPlanPath(settings.chat_id)) },
    ];
  const blocks: PromptBlock[] = [{ slot: "subagent", text: SUBAGENT }];
  if (mode === "computer_use") return [...blocks, { slot: "mode", text: COMPUTER }];
  return mode === "explore" ? [...blocks, { slot: "mode", text: EXPLORE }] : blocks;
};

const SUBAGENT = `You are an agent that another chat has started for one task: your first message is all of it.
You cannot ask questions while you work, so decide for yourself and say what you assumed. Other agents may work in the same workspace: change only what your task needs.
Your last message is your report, and the only thing the other chat gets to see. Make it complete: what you found or did, the files and lines it is about, and what remains open.`;

const EXPLORE = "You are here to look around: read and run what answers the question, and change nothing.";

const COMPUTER =
  "You work on the desktop of the workspace with the tool computer: look first, do one thing, look again. What the other tools can do better, do with them.";

const PLAN =
  "This chat is in plan mode: look into the matter and propose a plan. Change nothing and build nothing until you are asked to.";

const buildPlanPrompt = (path: string): string => `${PLAN}
Write the plan as Markdown to ${path}, the only file you may write, and keep it up to date. Ask with ask_user_question what only the person can decide; start agents of the type explore to look into several things in parallel.
When the plan is complete show it with propose_plan. Each of the two ends your turn.`;
