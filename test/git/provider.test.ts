// Which URLs get the token of a linked account, by the operator's pattern.
import { describe, expect, test } from "bun:test";
import { coversAddress } from "#src/git/provider.ts";

const covers = (pattern: string, address: string): boolean => coversAddress(new RegExp(pattern), address);

describe("[EA-12] a pattern", () => {
  test.each([
    ["git\\.example", ["git.example", "https://git.example/a/b.git", "http://git.example/"]],
    ["^(https?://)?git\\.example(/.*)?$", ["git.example/a", "https://git.example/a"]],
    ["^https?://git\\.example/", ["https://git.example/a", "https://git.example"]],
    ["git\\.example/team/", ["git.example/team/a", "https://git.example/team/a"]],
    [".*\\.example", ["git.example/a", "https://a.b.example/c"]],
    ["git\\.example|git\\.example:8443", ["git.example:8443/a", "git.example/a"]],
    ["http://127\\.0\\.0\\.1:(28312|28351)/", ["http://127.0.0.1:28312/a"]],
  ])("%s covers its hosts", (pattern, addresses) => {
    expect(addresses.filter((address) => !covers(pattern, address))).toEqual([]);
  });

  test.each([
    ["git\\.example", "https://git.example.evil.test/x"],
    ["git\\.example", "https://evil.test/git.example"],
    ["git\\.example", "https://xgit.example/a"],
    ["git\\.example", "https://evil.test?git.example"],
    ["git\\.example", "https://git.example:8443/a"],
    ["^https://git\\.example", "https://git.example.evil.test/"],
    ["git\\.example/team/", "https://git.example/other/"],
    ["git\\.example/team/", "https://evil.test/git.example/team/"],
    [".*\\.example", "https://evil.test/x.example"],
    [".*\\.example/team", "https://evil.test/x.example/team"],
    ["http://127\\.0\\.0\\.1:(28312|28351)/", "http://evil.test/http://127.0.0.1:28312/"],
    ["git\\.example", ""],
  ])("%s does not cover %s", (pattern, address) => {
    expect(covers(pattern, address)).toBe(false);
  });
});
