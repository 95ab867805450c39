// Checks SPEC.md next to this file against the tests that it names and against the API's schemas.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { WorkspaceAgent } from "#schema/agents/agent.ts";
import { AuditLog } from "#schema/audit.ts";
import { App, AppStatus } from "#schema/workspaces/app.ts";
import { Build, BuildTimings } from "#schema/workspaces/build.ts";
import { ProvisionerJob } from "#schema/workspaces/job.ts";
import { Resource } from "#schema/workspaces/resource.ts";
import { Workspace } from "#schema/workspaces/workspace.ts";

const TESTS = join(import.meta.dir, "..");
const page = readFileSync(join(import.meta.dir, "SPEC.md"), "utf8");

test("[RP-10] every test that the platform's SPEC.md names exists, and a title in it cites the rule", () => {
  const rows = page.split("\n").filter((line) => /^\| (?!row|---)/.test(line));
  const texts = new Map<string, string>();
  const missing = rows.flatMap((row) => {
    const named = [...row.matchAll(/([\w/-]+\.test\.ts)((?:,? [A-Z]{2}-\d+)+)/g)];
    if (named.length === 0) return [row];
    return named.flatMap(([, file = "", rules = ""]) => {
      const path = join(TESTS, file);
      if (!texts.has(path)) texts.set(path, existsSync(path) ? readFileSync(path, "utf8") : "");
      const titles = texts.get(path)?.match(/["'`](?:\[[A-Z]{2,4}-\d+\]\s*)+/g) ?? [];
      const isCited = (rule: string): boolean => titles.some((title) => title.includes(`[${rule}]`));
      return (rules.match(/[A-Z]{2}-\d+/g) ?? []).filter((rule) => !isCited(rule)).map((rule) => `${file} ${rule}`);
    });
  });
  expect(missing).toEqual([]);
});

test("[RP-10] SPEC.md names every member of the platform's API", () => {
  const shapes = [Workspace, Build, BuildTimings, ProvisionerJob, Resource, WorkspaceAgent, App, AppStatus, AuditLog];
  const members = new Set<string>(shapes.flatMap(({ properties }) => Object.keys(properties)));
  expect([...members].filter((member) => !page.includes(`\`${member}\``))).toEqual([]);
});
