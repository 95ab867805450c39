// The changes that `config-ssh` makes to a user's file.
import { expect, test } from "bun:test";
import { lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseHost } from "#src/cli/client/network/host-names.ts";
import { parsePortPairs } from "#src/cli/client/network/port-pairs.ts";
import { addSection, removeSection, writeConfig } from "#src/cli/client/network/ssh-config.ts";
import { tempDirectory } from "#test/support/server.ts";

const section = { prefix: "slipway.", command: "'/bin/slipway' 'ssh' '--stdio' %h", options: ["ForwardAgent yes"] };

test("[CN-4] adding, replacing and removing the section leaves the rest of the file unchanged", () => {
  for (const text of ["", "Host a\n  User b\n", "\n\n# only a comment", "Host *\n\tCompression yes\n\n\n"]) {
    const withSection = addSection(text, section);
    expect(withSection.startsWith("# ---")).toBe(true);
    expect(withSection).toContain("Host slipway.*\n    ForwardAgent yes\n");
    const withNewSection = addSection(removeSection(withSection), { ...section, prefix: "other." });
    expect(removeSection(withNewSection)).toBe(text);
    expect(withNewSection.match(/Host other\./g)).toHaveLength(1);
    expect(removeSection(text)).toBe(text);
  }
  const truncated = addSection("Host a\n", section).split("\n").slice(0, 3).join("\n");
  expect(() => removeSection(truncated)).toThrow("missing");
});

test("[CN-4] a new file is private; an existing file keeps its mode and stays a link", () => {
  using temp = tempDirectory();
  const file = join(temp.path, "ssh", "config");
  writeConfig(file, "one\n");
  expect([readFileSync(file, "utf8"), statSync(file).mode & 0o777]).toEqual(["one\n", 0o600]);
  const target = join(temp.path, "elsewhere");
  writeFileSync(target, "own\n", { mode: 0o644 });
  mkdirSync(join(temp.path, "home"));
  const link = join(temp.path, "home", "config");
  symlinkSync(target, link);
  writeConfig(link, "two\n");
  expect([readFileSync(target, "utf8"), lstatSync(link).isSymbolicLink(), statSync(target).mode & 0o777]).toEqual([
    "two\n",
    true,
    0o644,
  ]);
});

test("[CN-4] a host name is parsed to a workspace, with owner and agent if it contains them", () => {
  expect(parseHost("slipway.dev", "slipway.")).toBe("dev");
  expect(parseHost("slipway.dev.main", "slipway.")).toBe("dev.main");
  expect(parseHost("slipway.alice--dev.main", "slipway.")).toBe("alice/dev.main");
  expect(() => parseHost("dev", "slipway.")).toThrow("begin");
});

test("[CN-6] parses ports in common notations", () => {
  const makePair = (bind: string, local: number, remote: number) => ({ bind, local, remote });
  expect(parsePortPairs("--tcp", ["80", "8080:80,0.0.0.0:1:2"])).toEqual([
    makePair("127.0.0.1", 80, 80),
    makePair("127.0.0.1", 8080, 80),
    makePair("0.0.0.0", 1, 2),
  ]);
  expect(parsePortPairs("--tcp", ["[::1]:8000-8001:9000-9001"])).toEqual([
    makePair("::1", 8000, 9000),
    makePair("::1", 8001, 9001),
  ]);
  for (const invalid of ["", "a", "1:2:3:4", "65536", "5-1", "1-3:5-6", "80:0"])
    expect(() => parsePortPairs("--tcp", [invalid])).toThrow();
});
