// How templates of Terraform are run: the settings that the server and a worker of its own (verb `provisioner`) share.
import { duration, flag, listKind, path, text } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

/** What providers of clouds and engines read of their environment. */
const PASSED = [
  ...["AWS_*", "GOOGLE_*", "CLOUDSDK_*", "GOOGLE_APPLICATION_CREDENTIALS", "ARM_*", "AZURE_*", "DIGITALOCEAN_*"],
  ...["HCLOUD_TOKEN", "KUBE_*", "KUBECONFIG", "DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "TF_TOKEN_*"],
];

const names = listKind("names of variables, or beginnings of names with * behind them", "LIST", (item) =>
  /^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(item) ? item : undefined,
);

export const TERRAFORM_SETTINGS = {
  terraform_binary: optional(text, {
    group: "Workspaces",
    help: "The program that runs templates of Terraform: a path, or a name on the path.",
    absent: "tofu, else terraform, as found on the path; without either such templates are refused",
  }),
  terraform_cli_config: optional(path, {
    group: "Workspaces",
    help: "The CLI configuration file of Terraform or OpenTofu, such as for a mirror of providers.",
    absent: "the variable TF_CLI_CONFIG_FILE, else the program's own",
    otherVariable: "TF_CLI_CONFIG_FILE",
  }),
  terraform_environment: setting(names, PASSED, {
    group: "Workspaces",
    help: "Environment variables that Terraform templates can see, in addition to PATH, HOME and proxy variables. Everyone who can create templates can read them.",
  }),
  terraform_apply_limit: setting(duration(60_000, 7 * 86_400_000), 3_600_000, {
    group: "Workspaces",
    help: "How long one apply may take, such as 2h; then it is ended, and what it has made is kept.",
  }),
  terraform_form_limit: setting(duration(1_000, 600_000), 10_000, {
    group: "Workspaces",
    help: "How much of the processor's time planning a form may use whose questions depend on each other, such as 30s. A busy machine does not count; by the clock it is ten times as long.",
  }),
} as const;

/** Of the server alone. */
export const TERRAFORM_SERVER_SETTINGS = {
  allow_terraform_for_listed_admins: setting(flag, false, {
    group: "Workspaces",
    help: "Whether members who look after a single template by its list of access may import Terraform for it. Its code runs as the server's user, and can read all that the server can.",
  }),
  terraform_workers: setting(flag, false, {
    group: "Workspaces",
    help: "Whether every import, dry run and build of a template of Terraform is done by a worker (`slipway provisioner`) with the kind terraform, and not only those of templates that ask for tags. Forms whose questions depend on each other are planned by the server all the same.",
  }),
} as const;
