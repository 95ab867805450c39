// The complete life of a workspace: it is created, connected, used, stopped, started with other values, fails, is canceled, updated and
// deleted. Checks for leftovers after every step.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { TestTerminal } from "#test/api/agents/reach.ts";
import { importVersion } from "#test/support/templates.ts";
import { findProcesses, makeTerraformTemplate, readTemplateFiles } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { createBuild, createWorkspace } from "#test/support/workspaces.ts";
import { askChat } from "./chat.ts";
import { Machine, parseAgent } from "./machine.ts";
import { listResourceNames, Secrets } from "./secrets.ts";
import { awaitSettled, type Stage } from "./stage.ts";

/** Parameter values that differ from the template's defaults, for the first start and for a later one. */
const VALUES: Readonly<Record<string, readonly [Record<string, string>, Record<string, string>]>> = {
  parameters: [{ required_one: "x" }, { cpus: "5" }],
  "presets-prebuilds": [{}, { cpus: "4" }],
};

const toParameterValues = (values: Record<string, string>) => ({
  rich_parameter_values: Object.entries(values).map(([name, value]) => ({ name, value })),
});

/**
 * Returns the additional file of each template's second version, which has two more resources. The first version does not have `dropped`.
 * `hurdle` interferes with an apply: it fails while the file `fail` exists, and waits while the file `wait` exists. The file also outputs
 * the owner's token in every way that a template can.
 */
const makeExtraResources = (parts: string): string => `
data "coder_workspace_owner" "leaked" {}
output "leaked" {
  value     = data.coder_workspace_owner.leaked.session_token
  sensitive = true
}
resource "terraform_data" "dropped" {
  input = "${parts}/dropped"
  provisioner "local-exec" { command = "echo made >> \${self.input}" }
  provisioner "local-exec" {
    when    = destroy
    command = "rm \${self.input}"
  }
}
resource "terraform_data" "hurdle" {
  depends_on       = [terraform_data.dropped]
  triggers_replace = [timestamp()]
  provisioner "local-exec" {
    environment = { LEAKED = nonsensitive(data.coder_workspace_owner.leaked.session_token) }
    command     = "echo out=$LEAKED; echo error=$LEAKED >&2; touch ${parts}/reached; while [ -e ${parts}/wait ]; do sleep 0.05; done; [ ! -e ${parts}/fail ]"
  }
}
`;

export type LifeOptions = {
  readonly template: string;
  /** Runs in the middle of builds that should succeed. May kill the server or the worker. */
  readonly disturb?: () => Promise<void>;
};

/** Takes a workspace through its life. Throws at the first problem. */
export const runLife = async (stage: Stage, { template: name, disturb }: LifeOptions): Promise<void> => {
  const { admin, parts, place } = stage;
  const [first = {}, later = {}] = VALUES[name] ?? [];
  const assert = (condition: unknown, problem: string): void => {
    if (!condition) throw new Error(`${name}: ${problem}`);
  };
  const hasPart = (file: string): boolean => existsSync(join(parts, file));
  const secrets = new Secrets(stage);

  const imported = await makeTerraformTemplate(admin, readTemplateFiles(name), `${name}-${Date.now().toString(36)}`);
  const { id: template_id } = imported.template;
  const second = await importVersion(
    admin,
    { ...readTemplateFiles(name), "more.tf": makeExtraResources(parts) },
    { template_id },
  );
  assert(second.job.status === "succeeded", `the second version: ${second.job.error}`);

  const { id } = await createWorkspace(admin, template_id, `life-${name}`, toParameterValues(first));
  await using machine = new Machine(join(place.scratch, `machine-${name}-${id}`));
  const isOwnMachine = name === "minimal";

  /** Returns the build once it has ended with this status. Checks that it has left no process, file or secret behind. */
  const awaitEnd = async (status: string, step: string): Promise<{ workspace: Workspace; state: string }> => {
    if (disturb && !["failed", "canceled"].includes(status)) await disturb();
    const workspace = await awaitSettled(admin, id);
    const { latest_build } = workspace;
    assert(latest_build.status === status, `${step}: it is ${latest_build.status}, ${latest_build.job.error}`);
    const state = await (await admin.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
    const folders = stage.folders(id);
    await until(() => !folders.some(existsSync), {
      what: `${name}, ${step}: its folder to be removed`,
      timeoutMs: 15_000,
    });
    assert(stage.running().length === 0, `${step}: a program of Terraform is still running`);
    assert(findProcesses(parts).length === 0, `${step}: a command of the template is still running`);
    secrets.recordSecrets(state);
    await secrets.assertHidden(workspace, `${name}, ${step}`);
    return { workspace, state };
  };
  const start = async (step: string, request: object = {}): Promise<{ workspace: Workspace; state: string }> => {
    await createBuild(admin, id, "start", request);
    return awaitEnd("running", step);
  };
  /** Checks that the workspace's agent connects, its scripts run, and a terminal and a chat work in it. */
  const checkWorking = async (state: string, step: string): Promise<void> => {
    if (!isOwnMachine) await machine.boot(parseAgent(state));
    const agent = await until(
      async () => {
        const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${id}`);
        const found = latest_build.resources.flatMap(({ agents = [] }) => agents)[0];
        assert(
          !found || !/error|timeout/.test(found.lifecycle_state),
          `${step}: the agent is ${found?.lifecycle_state}`,
        );
        return found?.status === "connected" && found.lifecycle_state === "ready" ? found : undefined;
      },
      { timeoutMs: 90_000, what: `${name}, ${step}: the agent to connect` },
    );
    const path = (endpoint: string): string => `/api/v2/workspaceagents/${agent.id}/${endpoint}`;
    using terminal = await TestTerminal.open({ owner: admin, path }, { command: 'echo "is $((40 + 2)) in $HOME"' });
    assert(/is 42 in \S+/.test(await terminal.until(/is 42 in \S+/)), `${step}: the terminal`);
    const answer = await askChat(stage, id, 'Run echo "chat $((40 + 3))"');
    assert(answer.includes("chat 43"), `${step}: the chat says ${answer}`);
  };

  // The workspace uses the first version, even if another one is active by now.
  const started = await awaitEnd("running", "create");
  await checkWorking(started.state, "create");
  const resourceNames = listResourceNames(started.state);

  await createBuild(admin, id, "stop");
  const stopped = await awaitEnd("stopped", "stop");
  if (!isOwnMachine) await machine.off();
  assert(findProcesses(`/tmp/slipway-tf-${id}`).length === 0, "stop: its daemon is still running");
  assert(
    listResourceNames(stopped.state).every((resource) => resourceNames.includes(resource)),
    "stop: there are unexpected resources",
  );

  const changed = await start("start with other values", toParameterValues(later));
  for (const value of Object.values(later))
    assert(changed.state.includes(`"${value}"`), `the value ${value} does not exist`);
  await checkWorking(changed.state, "start with other values");
  assert(
    listResourceNames(changed.state).join() === resourceNames.join(),
    "start: the resources are not the same as before",
  );

  const version = { template_version_id: second.id };
  writeFileSync(join(parts, "fail"), "");
  await createBuild(admin, id, "start", version);
  const failed = await awaitEnd("failed", "failed apply");
  assert(
    hasPart("dropped") && listResourceNames(failed.state).includes("dropped"),
    "failed apply: a created resource is missing in the state",
  );
  assert(
    resourceNames.every((resource) => listResourceNames(failed.state).includes(resource)),
    "failed apply: a resource is missing in the state",
  );
  rmSync(join(parts, "fail"));

  for (const file of ["reached", "wait"]) rmSync(join(parts, file), { force: true });
  writeFileSync(join(parts, "wait"), "");
  const canceledBuild = await createBuild(admin, id, "start", version);
  await until(() => hasPart("reached"), { what: `${name}: the middle of the apply` });
  await admin.patch(`/api/v2/workspacebuilds/${canceledBuild.id}/cancel`);
  const canceled = await awaitEnd("canceled", "cancel");
  assert(
    resourceNames.every((resource) => listResourceNames(canceled.state).includes(resource)),
    "cancel: a resource is missing in the state",
  );
  assert(
    listResourceNames(canceled.state).includes("dropped") && hasPart("dropped"),
    "cancel: the created resource is missing",
  );
  rmSync(join(parts, "wait"));

  const restarted = await start("start after it", version);
  assert(secrets.hasSession, "the owner's token was never output");
  assert(readFileSync(join(parts, "dropped"), "utf8") === "made\n", "an existing resource was created again");
  await checkWorking(restarted.state, "start after it");

  const updated = await start("update", { template_version_id: imported.version.id });
  assert(listResourceNames(updated.state).join() === resourceNames.join(), "update: the dropped resource still exists");
  // Terraform runs no destroy command for a resource that the new version does not have.
  rmSync(join(parts, "dropped"));
  await checkWorking(updated.state, "update");

  await createBuild(admin, id, "delete");
  const deleted = await awaitEnd("deleted", "delete");
  if (!isOwnMachine) await machine.off();
  assert(listResourceNames(deleted.state).length === 0, "delete: the state still contains resources");
  assert(findProcesses(`/tmp/slipway-tf-${id}`).length === 0, "delete: its daemon is still running");
  rmSync(join(parts, "reached"), { force: true });
  assert(readdirSync(parts).length === 0, `delete: there are ${readdirSync(parts)}`);
  // The template `minimal` creates a folder in the machine's temporary folder.
  rmSync(`/tmp/slipway-tf-${id}`, { recursive: true, force: true });
};
