// The input of a Terraform run in addition to the request for a provisioner: the template's files, and data about the workspace's owner. It
// contains secrets, so it must never be logged.

/** The uploaded archive on this machine; `mimetype` is application/x-tar or application/zip. */
export type TemplateArchive = { readonly path: string; readonly mimetype: string };

export type TerraformOwner = {
  readonly id: string;
  readonly username: string;
  readonly full_name: string;
  readonly email: string;
  readonly login_type: string;
  readonly groups: readonly string[];
  /** `org_id` is empty for roles of the whole deployment. */
  readonly roles: readonly { readonly name: string; readonly org_id: string }[];
};

export type TerraformWork = {
  readonly archive: TemplateArchive;
  /** Modules and lock file from the import, as a tar archive. */
  readonly cache: TemplateArchive | undefined;
  /** Values given to the template's variables, by name. */
  readonly variables: Readonly<Record<string, string>>;
  /** Parameters of the previous build. */
  readonly previous_parameters: Readonly<Record<string, string>>;
  readonly template: { readonly id: string; readonly name: string; readonly version: string };
  readonly owner: TerraformOwner;
  readonly secrets: {
    readonly ssh_public_key: string;
    readonly ssh_private_key: string;
    /** Empty unless the workspace starts. */
    readonly session_token: string;
    /** Tokens of linked accounts by provider ID. */
    readonly accounts: Readonly<Record<string, string>>;
  };
  readonly task: { readonly id: string; readonly prompt: string };
  readonly is_prebuild: boolean;
};
