// Wire shapes of deploy keys: a user's key pair for one repository. The private key is never returned to people.
import { type Static, Type as t } from "@sinclair/typebox";
import { MAX_ADDRESS } from "#base/links/repository-address.ts";
import { time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";

export const DeployKey = namedObject("DeployKey", {
  id: uuid(),
  url: t.String({ description: "The URL of the repository that the key is for." }),
  ssh_url: t.String({ description: "The URL at which Git reaches the repository with the key." }),
  public_key: t.String({ description: "The public key. Add it to the deploy keys of the repository at its host." }),
  settings_url: t.Optional(
    t.String({
      description: "The URL of the page where the host accepts deploy keys; absent if the kind of host is unknown.",
    }),
  ),
  created_at: time(),
});
export type DeployKey = Static<typeof DeployKey>;

export const CreateDeployKey = named(
  "CreateDeployKeyRequest",
  strictObject({
    url: lineText({
      minLength: 1,
      maxLength: MAX_ADDRESS,
      description:
        "A link to the repository. An SSH URL, such as `ssh://git@git.example.com:2222/acme/app`, specifies where SSH reaches it. Otherwise, port 22 of the same host is used.",
    }),
  }),
);
export type CreateDeployKey = Static<typeof CreateDeployKey>;
