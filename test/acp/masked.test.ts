// Secrets are hidden in the live output of a coding agent, even when only a part of the secret has arrived or was kept.
import { expect, test } from "bun:test";
import { AgentStep } from "#actors/chat/acp/step.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { SessionUpdate } from "#src/acp/connection.ts";
import { SecretMask, skipCutLine } from "#src/tools/mask.ts";

const LINES = ["FirstLine-aaaa1111-cccc", "SecondLine-bbbb2222-dddd"] as const;
const mask = new SecretMask({ texts: [LINES.join("\n")], agent_tokens: new Set(), keys: new Map() });

const openStep = () => {
  const parts: MessagePart[] = [];
  let printed = "";
  const step = new AgentStep(
    mask,
    (part) => void parts.push(structuredClone(part)),
    () => printed,
    () => undefined,
  );
  const update = (fields: object): void => step.applyUpdate(fields as SessionUpdate, 0, (id) => id, new Set());
  const startTerminalCall = (): void =>
    update({
      sessionUpdate: "tool_call",
      toolCallId: "c",
      title: "cat key",
      kind: "execute",
      status: "in_progress",
      content: [{ type: "terminal", terminalId: "t" }],
    });
  return {
    parts,
    step,
    update,
    startTerminalCall,
    print: (text: string): void => {
      printed += text;
      step.onTerminalOutput("t");
    },
  };
};

test("[TO-21] neither the live stream nor the stored messages contain a secret that the agent's terminal prints in pieces", () => {
  const { parts, step, update, startTerminalCall, print } = openStep();
  startTerminalCall();
  for (const character of `1\t${LINES[0]}\r\n2\t${LINES[1]}\r\nend\n`) print(character);
  update({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" });
  const output = JSON.stringify([parts, step.toMessages(0, "carried")]);
  expect(output).toContain("1\\t[hidden]\\r\\n2\\t[hidden]\\r\\nend");
  for (const line of LINES) expect(output).not.toContain(line.slice(0, 12));
});

test("[TO-21] hides the start of a secret in the output of an interrupted call", () => {
  const { parts, step, startTerminalCall, print } = openStep();
  startTerminalCall();
  print(`before ${LINES[0].slice(0, 20)}`);
  const output = JSON.stringify([parts, step.toMessages(0, { error: "The call was interrupted." })]);
  expect(output).toContain("before ");
  expect(output).not.toContain(LINES[0].slice(0, 12));
});

test("[TO-21] masks the agent's diffs line by line", () => {
  const { step, update } = openStep();
  const content = [{ type: "diff", path: "/key", oldText: `# a\n${LINES[0]}\n`, newText: `# b\n${LINES[1]}\n` }];
  update({ sessionUpdate: "tool_call", toolCallId: "c", title: "edit", kind: "edit", status: "completed", content });
  const output = JSON.stringify(step.toMessages(0, "carried"));
  expect(output).toContain("# a\\n[hidden]");
  for (const line of LINES) expect(output).not.toContain(line);
});

test("[TO-21] truncated output begins with a complete line, because a partial secret is not recognized", () => {
  const [secretLine] = LINES;
  expect(mask.text(skipCutLine(`${secretLine.slice(5)}\n${secretLine}\nend`))).toBe("[hidden]\nend");
  expect(skipCutLine(`${"x".repeat(20_000)}\nend`)).toHaveLength(20_000 - 16_384 + 4);
});
