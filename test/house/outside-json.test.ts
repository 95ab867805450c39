// JSON from outside is parsed by src/base/json, which counts its values first. `JSON.parse` and `response.json()` have no limit, so they
// are used only for text of the server's own. Command-line programs (src/cli, src/release) and daemons, which run in a workspace, are not
// checked, because only they are slow if the JSON is expensive.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";

/** The files that parse without a limit, by the reason why that is safe. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  "written by this server into its database": [
    "actors/chat/storage/fork.ts",
    "actors/chat/turn/call-ids.ts",
    "actors/prebuilds/keeper.ts",
    "actors/template-version/actor.ts",
    "actors/template-version/dry-run-plan.ts",
    "actors/workspace/plan.ts",
    "src/api/workspaces/autoupdates.ts",
    "src/domain/ai/recordings.ts",
    "src/domain/builds/new-build.ts",
    "src/domain/deployment/appearance.ts",
    "src/domain/health/health.ts",
    "src/domain/repositories/look.ts",
    "src/domain/template-versions/find.ts",
    "src/domain/template-versions/promote.ts",
    "src/domain/templates/change.ts",
    "src/domain/workspaces/snapshot-module.ts",
    "src/domain/workspaces/summary.ts",
    "src/provisioners/external/workspace-record.ts",
    "src/provisioners/terraform/build.ts",
    "src/provisioners/terraform/snapshot-module.ts",
  ],
  "encrypted or signed with the server's key": [
    "actors/notifications/push.ts",
    "src/api/applications/hand-over.ts",
    "src/api/external-auth/web-flow.ts",
    "src/api/http/terminal-ticket.ts",
    "src/api/oidc/sign-in-state.ts",
    "src/domain/external-auth/links.ts",
    "src/domain/factors/challenges.ts",
    "src/domain/mcp/access.ts",
    "src/domain/oidc/session.ts",
    "src/home-backups/manifest.ts",
  ],
  "created by this server a moment before": [
    "actors/chat/subagents/text.ts",
    "actors/chat/turn/offer.ts",
    "actors/template-version/import-runner.ts",
    "actors/template-version/state.ts",
    "src/api/chats/follower.ts",
    "src/api/http/answers/answer-check.ts",
    "src/api/http/document/openapi.ts",
    "src/llm/adapters.ts",
    "src/llm/demo.ts",
    "src/mcp/http.ts",
  ],
  "from another node of the cluster": [
    "src/cluster/node-asking.ts",
    "src/cluster/node-calls.ts",
    "src/cluster/node-errors.ts",
  ],
  "a file or a program of the machine's administrator": [
    "src/base/config/list-of-mappings.ts",
    "src/home-backups/restic.ts",
    "src/identity/identity.ts",
    "src/provisioners/local/folder.ts",
    "src/provisioners/terraform/command.ts",
    "src/provisioners/terraform/program.ts",
  ],
  "counted in another way": [
    "src/api/http/body/body.ts",
    "src/base/json/read.ts",
    "src/hooks/strict-json.ts",
    "src/llm/gateway/call-body.ts",
    "src/llm/gateway/unambiguous-body.ts",
  ],
  "read by a browser": ["src/api/http/document/swagger-page.ts"],
};

/** Bun's parser rejects excessive aliases, and the first of these files limits the size and number of values. */
const YAML: readonly string[] = ["src/base/config/read.ts", "src/provisioners/yaml.ts"];

const UNCHECKED = /^src\/(?:web|cli|daemon|release)\/|^src\/(?:client|build|supply-chain)\.ts$/;

const sources = ["src", "actors"].flatMap((folder) =>
  [...new Bun.Glob("**/*.ts").scanSync({ cwd: `${import.meta.dir}/../../${folder}` })]
    .map((file) => `${folder}/${file}`)
    .filter((file) => !UNCHECKED.test(file)),
);

const listFilesWith = (pattern: RegExp): string[] =>
  sources.filter((file) => pattern.test(readPage(file).replace(/^\s*(?:\/\/|\/?\*).*$/gm, ""))).sort();

test("[RP-46] only safe JSON is parsed without a limit, and each such file has a reason", () => {
  expect(listFilesWith(/\bJSON\.parse\(|(?<!Response)\.json\(\)/)).toEqual(Object.values(ALLOWED).flat().sort());
});

test("[RP-46] YAML is parsed without a limit only in the settings file", () => {
  expect(listFilesWith(/\bYAML\.parse\(/)).toEqual([...YAML].sort());
});
