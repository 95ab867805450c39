// The commands in a shell text, parsed with a real grammar.
import { expect, test } from "bun:test";
import { parseCommands } from "#src/tools/processes/parsed-commands.ts";

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
