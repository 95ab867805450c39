// The commands in a shell text, parsed with a real grammar.
import { expect, test } from "bun:test";
import { sortCalls } from "#actors/chat/machine/permissions.ts";
import { findHandoverReason } from "#src/tools/processes/handover-programs.ts";
import { parseCommands } from "#src/tools/processes/parsed-commands.ts";
import { findWriteReason } from "#src/tools/processes/read-only-commands.ts";

test("[TO-19] lists every simple command of a shell text with its first argument, however commands are nested", () => {
  const cases: [string, string[][] | undefined][] = [
    ["ls", [["ls"]]],
    ["/usr/bin/git -c a=b status -s", [["git", "a=b"]]],
    [
      "cd 'my dir' && npm run \"test\" | tee out.txt; echo done &",
      [
        ["cd", "my dir"],
        ["npm", "run"],
        ["tee", "out.txt"],
        ["echo", "done"],
      ],
    ],
    [
      "A=1 B=$(date +%s) make -j4 all",
      [
        ["make", "all"],
        ["date", "+%s"],
      ],
    ],
    ["sudo -n rm -rf /tmp/x", [["sudo", "rm"]]],
    ['for f in *.ts; do wc -l "$f"; done', [["wc", '"$f"']]],
    [
      "if ! test -e a; then (cd b; touch c); fi",
      [
        ["test", "a"],
        ["cd", "b"],
        ["touch", "c"],
      ],
    ],
    ["cat <<'EOF' > f.sh\nrm -rf / && reboot\nEOF\nsh f.sh", [["cat"], ["sh", "f.sh"]]],
    ["echo `whoami`", [["echo", "`whoami`"], ["whoami"]]],
    ["$CMD now; ./$name x; 'quo ted' y", [["quo ted", "y"]]],
    ["$ONLY dynamic", undefined],
    ["A=1", undefined],
    ["", undefined],
    ["echo 'never closed", undefined],
    ["if then fi )", undefined],
  ];
  for (const [text, expected] of cases) expect([text, parseCommands(text)]).toEqual([text, expected]);
  expect(parseCommands({})).toBeUndefined();
  expect(parseCommands("true; ".repeat(500))).toHaveLength(100);
  expect(parseCommands("x".repeat(6_001))).toBeUndefined();
  for (const opening of ["(", "$(", "`", "{ ", '"$(']) expect(() => parseCommands(opening.repeat(1_500))).not.toThrow();
});

test("[TO-19] a text with very many here-documents is not parsed, and refused where only reading is allowed", () => {
  const repeat = (count: number) => "cat <<a\na\n".repeat(count);
  expect(parseCommands(repeat(64))).toHaveLength(64);
  expect([findWriteReason(repeat(64)), findHandoverReason(repeat(64))]).toEqual([undefined, undefined]);
  expect(parseCommands(repeat(65))).toBeUndefined();
  expect(findWriteReason(repeat(65))).toBe("it is too long to be checked");
  expect(findHandoverReason(repeat(65))).toBe("the command is too long to be checked");
});

test("[PE-1] other work takes turns with the decisions about the calls of one answer", async () => {
  const pending_calls = Array.from({ length: 20 }, (_, at) => ({
    message_id: 1,
    tool_call_id: `call-${at}`,
    tool_name: "execute",
    args: { command: "ls" },
  }));
  const state = {
    id: "chat",
    pending_calls,
    permissions: { default: "ask", rules: [] },
    parent_chat_id: null,
    plan_mode: null,
  };
  let [now, turns] = [0, 0];
  const count = (): void => {
    turns += 1;
    if (turns < 1_000) setImmediate(count);
  };
  setImmediate(count);
  const clock = { monotonic: () => (now += 3) };
  const { asked } = await sortCalls(state as unknown as Parameters<typeof sortCalls>[0], [], undefined, clock);
  expect(asked).toHaveLength(20);
  expect(turns).toBeGreaterThanOrEqual(9);
});
