// Settings of an external worker (command `provisioner`). Flags `--key`, `--url` and so on; variables SLIPWAY_WORKER_KEY,
// SLIPWAY_WORKER_URL. There is no settings file.
import { DOCKER_SETTINGS } from "./docker-settings.ts";
import { baseUrl, flag, integer, type Kind, listKind, matching, path, text } from "./kinds.ts";
import { logSettings } from "./log-settings.ts";
import { optional, setting, type Values } from "./setting.ts";
import { TERRAFORM_SETTINGS } from "./terraform-settings.ts";

export const WORKER_ENV_PREFIX = "SLIPWAY_WORKER_";

const KINDS = ["local", "docker", "echo", "terraform"];
const kinds: Kind<readonly string[]> = listKind("local, docker, terraform and echo", "LIST", (item) =>
  KINDS.find((kind) => kind === item),
);
const tags: Kind<readonly string[]> = listKind(
  "name=value pairs",
  "TAGS",
  (item) => (/^[^=\s]{1,64}=[^,]{0,256}$/.test(item) ? item : undefined),
  true,
);

export const WORKER_SETTINGS = {
  url: optional(baseUrl, { group: "Connection", help: "The server's access URL.", absent: "required" }),
  insecure: setting(flag, false, {
    group: "Connection",
    help: "Whether a Terraform worker can use plain http to another machine. It receives states and secrets, which http doesn't protect.",
  }),
  key: optional(text, {
    group: "Connection",
    help: "A provisioner key of the organization. Prefer the environment variable or a file: other users of the machine can read flags.",
    absent: "read from the key file",
    secret: true,
  }),
  key_file: optional(path, {
    group: "Connection",
    help: "A file that contains the provisioner key, read at start.",
    absent: "none",
  }),
  organization: setting(text, "default", { group: "Connection", help: "The name or ID of the worker's organization." }),
  name: optional(
    matching(
      /^(?=.{1,64}$)[a-zA-Z0-9]+(?:[-_.][a-zA-Z0-9]+)*$/,
      "letters and digits in groups joined by - _ or .",
      "NAME",
    ),
    {
      group: "Work",
      help: "The name of the worker. A second worker with the same name and key replaces the first; with another key, it is refused while the first is connected.",
      absent: "the machine's name",
    },
  ),
  tags: setting(tags, [], {
    group: "Work",
    help: "The tags of the worker, which jobs can require, such as region=eu,gpu=yes. If the key has tags, the worker can have no others.",
  }),
  provisioners: setting(kinds, ["local"], { group: "Work", help: "The provisioners that the worker supports." }),
  slots: setting(integer(1, 64), 2, { group: "Work", help: "The maximum number of concurrent jobs." }),
  data_dir: setting(path, "./provisioner-data", {
    group: "Work",
    help: "The folder for workspaces of the provisioner `local`, and for plugins and runs of `terraform`.",
  }),
  ...DOCKER_SETTINGS,
  ...TERRAFORM_SETTINGS,
  ...logSettings("How much is logged."),
} as const;

export type WorkerConfig = Values<typeof WORKER_SETTINGS>;
