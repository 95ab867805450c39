// Builds the environment variables of a Terraform run: allowed variables of this process, and variables about the workspace for the
// provider `coder` (facts/terraform section 2). Pure.

import { sha256 } from "#base/ids.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { ProvisionRequest } from "../provisioner.ts";
import type { TerraformOwner, TerraformWork } from "./work.ts";

/** Variables that programs need from their machine, regardless of the template. */
const ALWAYS_ALLOWED = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"],
  ...["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSH_AUTH_SOCK"],
];

/** Variables that would change Terraform's own behavior. */
const NEVER_ALLOWED = /^(?:TF_(?:WORKSPACE|DATA_DIR|CLI_|LOG|VAR_|INPUT|PLUGIN_CACHE)|CODER_|SLIPWAY_)/;

type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the allowed variables of this process. `allowed`: names, and prefixes that end in `*`. */
export const filterEnvironment = (processEnv: Variables, allowed: readonly string[]): Record<string, string> => {
  const list = [...ALWAYS_ALLOWED, ...allowed];
  const isAllowed = (name: string): boolean =>
    list.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : one === name));
  return Object.fromEntries(
    Object.entries(processEnv).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && isAllowed(entry[0]) && !NEVER_ALLOWED.test(entry[0]),
    ),
  );
};

/** Returns the variables that every command gets in addition to those of `filterEnvironment`. */
export const toCommonVariables = (
  cliConfig: string | undefined,
  pluginCache: string | undefined,
): Record<string, string> => ({
  CHECKPOINT_DISABLE: "1",
  TF_IN_AUTOMATION: "1",
  TF_INPUT: "0",
  ...(pluginCache === undefined ? {} : { TF_PLUGIN_CACHE_DIR: pluginCache }),
  ...(cliConfig === undefined ? {} : { TF_CLI_CONFIG_FILE: cliConfig }),
});

const PLATFORMS = [
  ["linux", "amd64"],
  ["linux", "arm64"],
  ["linux", "armv7"],
  ["darwin", "amd64"],
  ["darwin", "arm64"],
  ["windows", "amd64"],
  ["windows", "arm64"],
] as const;

export type InitScript = (os: string, arch: string) => string;

/**
 * Returns the variables for importing a template or evaluating its parameter form, without a workspace or secrets. `owner`: the user who
 * requests the form.
 */
export const toVariablesWithoutWorkspace = (
  transition: "start" | "stop" | "destroy",
  { access_url, initScript, owner }: { access_url: string; initScript: InitScript; owner?: TerraformOwner | undefined },
): Record<string, string> => ({
  // Templates append a path, as in "${data.coder_workspace.me.access_url}/icon/code.svg".
  CODER_AGENT_URL: trimEnd(access_url, "/"),
  CODER_WORKSPACE_TRANSITION: transition,
  CODER_WORKSPACE_OWNER_GROUPS: JSON.stringify(owner?.groups ?? ["Everyone"]),
  CODER_WORKSPACE_OWNER_RBAC_ROLES: JSON.stringify(owner?.roles ?? null),
  ...(owner
    ? {
        CODER_WORKSPACE_OWNER: owner.username,
        CODER_WORKSPACE_OWNER_ID: owner.id,
        // For an empty name, the provider uses "default", which templates would put into people's commits.
        CODER_WORKSPACE_OWNER_NAME: owner.full_name || owner.username,
        CODER_WORKSPACE_OWNER_EMAIL: owner.email,
        CODER_WORKSPACE_OWNER_LOGIN_TYPE: owner.login_type,
      }
    : {}),
  ...Object.fromEntries(
    PLATFORMS.map(([os, arch]) => [`CODER_AGENT_SCRIPT_${os}_${arch}`, initScript(os, arch)] as const),
  ),
});

/** Returns variables with the parameters' values. Their names contain the digest of the parameter's name. */
export const toParameterVariables = (
  values: Readonly<Record<string, string>>,
  previous: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(values).map(([name, value]) => [`CODER_PARAMETER_${sha256(name)}`, value])),
  ...Object.fromEntries(
    Object.entries(previous).map(([name, value]) => [`CODER_PARAMETER_PREVIOUS_${sha256(name)}`, value]),
  ),
});

/** Returns the variables of a build, with the owner's secrets. `runningToken`: the token of a claimed workspace's only agent. */
export const buildVariables = (
  request: ProvisionRequest,
  work: TerraformWork,
  initScript: InitScript,
  runningToken?: string,
): Record<string, string> => {
  const { workspace, build_id, transition, access_url, claimed } = request;
  const { owner, secrets, template, task } = work;
  const accounts = Object.entries(secrets.accounts);
  return {
    ...toVariablesWithoutWorkspace(transition === "delete" ? "destroy" : transition, { access_url, initScript, owner }),
    CODER_WORKSPACE_NAME: workspace.name,
    CODER_WORKSPACE_ID: workspace.id,
    CODER_WORKSPACE_BUILD_ID: build_id,
    CODER_WORKSPACE_OWNER_SSH_PUBLIC_KEY: secrets.ssh_public_key,
    CODER_WORKSPACE_OWNER_SSH_PRIVATE_KEY: secrets.ssh_private_key,
    CODER_WORKSPACE_OWNER_SESSION_TOKEN: secrets.session_token,
    CODER_WORKSPACE_OWNER_OIDC_ACCESS_TOKEN: "",
    CODER_WORKSPACE_TEMPLATE_ID: template.id,
    CODER_WORKSPACE_TEMPLATE_NAME: template.name,
    CODER_WORKSPACE_TEMPLATE_VERSION: template.version,
    CODER_TASK_ID: task.id,
    CODER_TASK_PROMPT: task.prompt,
    ...toParameterVariables(request.parameters, work.previous_parameters),
    ...Object.fromEntries(
      accounts.flatMap(([id, token]) => [
        [`CODER_EXTERNAL_AUTH_ACCESS_TOKEN_${id}`, token],
        [`CODER_GIT_AUTH_ACCESS_TOKEN_${id}`, token],
      ]),
    ),
    ...(work.is_prebuild ? { CODER_WORKSPACE_IS_PREBUILD: "true" } : {}),
    ...(claimed ? { CODER_WORKSPACE_IS_PREBUILD_CLAIM: "true" } : {}),
    ...(runningToken === undefined ? {} : { [`CODER_RUNNING_WORKSPACE_AGENT_TOKEN_${sha256("")}`]: runningToken }),
  };
};
