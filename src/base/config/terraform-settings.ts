// Terraform settings shared by the server and external workers (command `provisioner`).
import { duration, flag, listKind, path, text } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

/** Environment variables that cloud and engine providers read. */
const FORWARDED_VARIABLES = [
  ...["AWS_*", "GOOGLE_*", "CLOUDSDK_*", "GOOGLE_APPLICATION_CREDENTIALS", "ARM_*", "AZURE_*", "DIGITALOCEAN_*"],
  ...["HCLOUD_TOKEN", "KUBE_*", "KUBECONFIG", "DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "TF_TOKEN_*"],
];

const names = listKind("names of variables, or prefixes followed by *", "LIST", (item) =>
  /^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(item) ? item : undefined,
);

export const TERRAFORM_SETTINGS = {
  terraform_binary: optional(text, {
    group: "Workspaces",
    help: "The program that runs Terraform templates: a path, or a name on the PATH.",
    absent: "tofu or else terraform on the PATH; without either, Terraform templates are not available",
  }),
  terraform_cli_config: optional(path, {
    group: "Workspaces",
    help: "The CLI configuration file of Terraform or OpenTofu, for example for a provider mirror.",
    absent: "the variable TF_CLI_CONFIG_FILE, else the program's own",
    otherVariable: "TF_CLI_CONFIG_FILE",
  }),
  terraform_environment: setting(names, FORWARDED_VARIABLES, {
    group: "Workspaces",
    help: "Environment variables that Terraform templates can see, in addition to PATH, HOME and proxy variables. Everyone who can create templates can read them.",
  }),
  terraform_apply_limit: setting(duration(60_000, 7 * 86_400_000), 3_600_000, {
    group: "Workspaces",
    help: "How long one apply can take, such as 2h. After that, it is stopped, and the resources that it created are kept.",
  }),
  terraform_form_limit: setting(duration(1_000, 600_000), 10_000, {
    group: "Workspaces",
    help: "The maximum CPU time for evaluating a form with dynamic parameters, such as 30s. The limit in elapsed time is ten times as long.",
  }),
} as const;

/** Settings for the server only. */
export const TERRAFORM_SERVER_SETTINGS = {
  allow_terraform_for_listed_admins: setting(flag, false, {
    group: "Workspaces",
    help: "Whether members with the role admin on a single template can import Terraform for it. Its code runs as the server's user and can read everything that the server can.",
  }),
  terraform_workers: setting(flag, false, {
    group: "Workspaces",
    help: "Whether workers (`slipway provisioner`) of the kind terraform run every import, dry run and build of Terraform templates, not only those of templates with tags. The server still evaluates forms with dynamic parameters.",
  }),
} as const;
