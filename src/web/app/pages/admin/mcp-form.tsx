// The form for adding or changing an MCP server. A secret field that is left empty keeps its value.
import { useSignal } from "@preact/signals";
import type { McpServerConfig } from "#schema/chats/mcp-server.ts";
import { call } from "../../data/api.ts";
import { Field, NameField, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { writeTo } from "../../parts/handlers.ts";
import { type Header, Headers } from "./mcp-headers.tsx";

const AUTHS = [
  { value: "none", label: "None" },
  { value: "api_key", label: "API key in a header" },
  { value: "custom_headers", label: "Custom headers" },
  { value: "oauth2", label: "Each user signs in (OAuth 2)" },
];
const AVAILABILITIES = [
  { value: "default_off", label: "Off by default" },
  { value: "default_on", label: "On by default" },
  { value: "force_on", label: "Always on" },
];
const TRANSPORTS = [
  { value: "streamable_http", label: "Streamable HTTP" },
  { value: "sse", label: "Server-sent events (deprecated)" },
];

type McpFormProps = {
  readonly organization: string;
  /** Undefined for a new server. */
  readonly server: McpServerConfig | undefined;
  readonly onSaved: (server: McpServerConfig) => void;
  readonly onClose: () => void;
};

const splitWords = (text = ""): string[] => text.split(/[\s,]+/).filter(Boolean);

export const McpForm = ({ organization, server, onSaved, onClose }: McpFormProps) => {
  const auth = useSignal<string>(server?.auth_type ?? "none");
  const availability = useSignal<string>(server?.availability ?? "default_off");
  const transport = useSignal<string>(server?.transport ?? "streamable_http");
  const headers = useSignal<readonly Header[]>([]);
  const save = async (values: Readonly<Record<string, string>>): Promise<void> => {
    const { slug = "", url = "", display_name = "", api_key = "", api_key_header = "", deny = "" } = values;
    const { client_id = "", auth_url = "", token_url = "", scopes = "", oauth2_client_secret = "" } = values;
    const body = {
      url,
      transport: transport.value,
      auth_type: auth.value,
      availability: availability.value,
      ...(display_name ? { display_name } : {}),
      tool_deny_list: splitWords(deny),
      ...(auth.value === "api_key" ? { api_key_header, ...(api_key ? { api_key } : {}) } : {}),
      ...(auth.value === "custom_headers" && headers.value.length > 0
        ? { custom_headers: Object.fromEntries(headers.value.map(({ name, value }) => [name.trim(), value])) }
        : {}),
      ...(auth.value === "oauth2"
        ? {
            oauth2: { client_id, auth_url, token_url, scopes: splitWords(scopes) },
            ...(oauth2_client_secret ? { oauth2_client_secret } : {}),
          }
        : {}),
    };
    const saved = server
      ? await call("PATCH /organizations/:organization/mcp-servers/:mcp_server", {
          path: { organization, mcp_server: server.id },
          body,
        })
      : await call("POST /organizations/:organization/mcp-servers", {
          path: { organization },
          body: { ...body, slug },
        });
    setTimeout(() => onSaved(saved));
  };
  const secretHint = server?.has_secret
    ? "The stored value is never shown. Leave empty to keep it."
    : "Stored encrypted.";
  return (
    <FormDialog
      title={server ? `Edit ${server.display_name}` : "Add MCP server"}
      thing={server?.display_name}
      submitLabel={server ? "Save and try" : "Add and try"}
      onClose={onClose}
      act={save}
    >
      {(problems) => (
        <>
          {!server && (
            <NameField
              label="Short name"
              name="slug"
              maxLength={32}
              placeholder="tickets"
              hint="Prefix for the names of its tools."
              error={problems.slug}
            />
          )}
          <Field label="Display name" name="display_name" maxLength={256} defaultValue={server?.display_name} />
          <Field
            label="Address"
            name="url"
            type="url"
            required
            defaultValue={server?.url}
            placeholder="https://mcp.example.com/mcp"
            error={problems.url}
          />
          <Select label="Protocol" value={transport.value} choices={TRANSPORTS} onPick={writeTo(transport)} />
          <Select label="Authentication" value={auth.value} choices={AUTHS} onPick={writeTo(auth)} />
          {auth.value === "api_key" && (
            <>
              <Field
                label="Header"
                name="api_key_header"
                defaultValue={server?.api_key_header ?? "Authorization"}
                error={problems.api_key_header}
              />
              <Field
                label="Key"
                name="api_key"
                type="password"
                autocomplete="off"
                required={!server?.has_secret}
                hint={`The full header value, such as “Bearer …”. ${secretHint}`}
                error={problems.api_key}
              />
            </>
          )}
          {auth.value === "custom_headers" && (
            <Headers headers={headers} hasStored={server?.auth_type === "custom_headers" && server.has_secret} />
          )}
          {auth.value === "oauth2" && (
            <>
              <Field
                label="Client ID"
                name="client_id"
                required
                defaultValue={server?.oauth2?.client_id}
                error={problems["oauth2.client_id"]}
              />
              <Field
                label="Client secret"
                name="oauth2_client_secret"
                type="password"
                autocomplete="off"
                hint={secretHint}
              />
              <Field
                label="Authorization URL"
                name="auth_url"
                type="url"
                required
                defaultValue={server?.oauth2?.auth_url}
                error={problems["oauth2.auth_url"]}
              />
              <Field
                label="Token URL"
                name="token_url"
                type="url"
                required
                defaultValue={server?.oauth2?.token_url}
                error={problems["oauth2.token_url"]}
              />
              <Field label="Scopes" name="scopes" defaultValue={server?.oauth2?.scopes.join(" ")} />
            </>
          )}
          <Select label="In chats" value={availability.value} choices={AVAILABILITIES} onPick={writeTo(availability)} />
          <Field
            label="Disabled tools"
            name="deny"
            defaultValue={server?.tool_deny_list.join(", ")}
            hint="Comma-separated names. Leave empty to allow all tools."
          />
        </>
      )}
    </FormDialog>
  );
};
