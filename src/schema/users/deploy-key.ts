// Wire shapes of deploy keys: a user's key pair for one repository. The private key is never returned to people.
import { type Static, Type as t } from "@sinclair/typebox";
import { MAX_ADDRESS } from "#base/links/repository-address.ts";
import { time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";
import { lineText } from "../text.ts";

export const DeployKey = namedObject("DeployKey", {
  id: uuid(),
  url: t.String({ description: "The repository that it is for." }),
  ssh_url: t.String({ description: "Where Git reaches the repository with it." }),
  public_key: t.String({ description: "Add it to the repository's deploy keys at its host." }),
  settings_url: t.Optional(
    t.String({ description: "The page of the host where keys are added; absent if the kind of host is unknown." }),
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
        "A link to the repository. An address of SSH, such as `ssh://git@git.example.com:2222/acme/app`, says where SSH reaches it; for any other it is port 22 of the same host.",
    }),
  }),
);
export type CreateDeployKey = Static<typeof CreateDeployKey>;
