// The MCP servers that an organization offers to its chats: added, tested, changed, removed. Secrets are write-only.
import { useSignal } from "@preact/signals";
import type { McpServerConfig, TriedMcpServer } from "#schema/chats/mcp-server.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { confirmAction, Dialog } from "../../parts/dialog.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { formatDuration } from "../../parts/format-time.ts";
import { setTo } from "../../parts/handlers.ts";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { State } from "../../parts/state.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { McpForm } from "./mcp-form.tsx";
import { OrganizationChoice, useOrganization } from "./organization-choice.tsx";

const AVAILABILITY_TEXTS: Readonly<Record<McpServerConfig["availability"], string>> = {
  force_on: "always on",
  default_on: "on by default",
  default_off: "off by default",
};

type TestResult = { readonly server: McpServerConfig; readonly result: TriedMcpServer };

export const McpServers = () => {
  const organization = useOrganization();
  const key = organization && `mcp ${organization}`;
  const { state, reload } = useResource(key, () =>
    call("GET /organizations/:organization/mcp-servers", { path: { organization: organization ?? "" } }),
  );
  const editedServer = useSignal<McpServerConfig | "new" | undefined>(undefined);
  const testResult = useSignal<TestResult | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the MCP servers" error={error} reload={reload} />;
  if (!data || organization === undefined) return <Skeleton lines={6} />;
  const testServer = async (server: McpServerConfig): Promise<void> => {
    const path = { organization, mcp_server: server.id };
    testResult.value = {
      server,
      result: await call("POST /organizations/:organization/mcp-servers/:mcp_server/try", { path }),
    };
  };
  const addButton = (
    <Button look="primary" icon="plus" onPress={setTo(editedServer, "new")}>
      Add MCP server
    </Button>
  );
  return (
    <>
      <OrganizationChoice id={organization} />
      {data.length === 0 ? (
        <Empty
          icon="layers"
          title="No MCP servers"
          text="An MCP server gives chats more tools, such as search or an issue tracker."
        >
          {addButton}
        </Empty>
      ) : (
        <section class="stack" aria-labelledby="mcp">
          <div class="head">
            <h2 id="mcp">MCP servers</h2>
            <span class="push">{addButton}</span>
          </div>
          <ul class="panel list">
            {data.map((one) => (
              <Server
                key={one.id}
                server={one}
                organization={organization}
                reload={reload}
                testServer={testServer}
                onEdit={setTo(editedServer, one)}
              />
            ))}
          </ul>
        </section>
      )}
      {editedServer.value && (
        <McpForm
          organization={organization}
          server={editedServer.value === "new" ? undefined : editedServer.value}
          onSaved={(saved) => void testServer(saved)}
          onClose={() => {
            editedServer.value = undefined;
            void reload();
          }}
        />
      )}
      {testResult.value && <TestResultDialog {...testResult.value} onClose={setTo(testResult, undefined)} />}
    </>
  );
};

type ServerProps = {
  readonly server: McpServerConfig;
  readonly organization: string;
  readonly reload: () => Promise<void>;
  readonly testServer: (server: McpServerConfig) => Promise<void>;
  readonly onEdit: () => void;
};

const Server = ({ server, organization, reload, testServer, onEdit }: ServerProps) => {
  const path = { organization, mcp_server: server.id };
  const toggle = async (): Promise<void> => {
    const body = { enabled: !server.enabled };
    await call("PATCH /organizations/:organization/mcp-servers/:mcp_server", { path, body });
    await reload();
  };
  const confirmRemove = (): void =>
    confirmAction({
      title: `Remove ${server.display_name}`,
      text: "Chats lose its tools, and all users are signed out of it.",
      confirmLabel: "Remove MCP server",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /organizations/:organization/mcp-servers/:mcp_server", { path });
        showToast(`${server.display_name} removed`);
        await reload();
      },
    });
  return (
    <li class="item prov">
      <State kind={server.enabled ? "running" : "stopped"}>
        <span class="med clip">{server.display_name}</span>
      </State>
      <span class="line">
        <Button small label={`Try it: ${server.display_name}`} onPress={() => testServer(server)}>
          Try it
        </Button>
        <Menu
          label={`More for ${server.display_name}`}
          small
          items={() => [
            { icon: "pen", label: "Edit…", act: onEdit },
            { icon: server.enabled ? "stop" : "play", label: server.enabled ? "Disable" : "Enable", act: toggle },
            { icon: "trash", label: "Remove…", isDanger: true, act: confirmRemove },
          ]}
        />
      </span>
      <span class="sub clip">
        {server.enabled ? AVAILABILITY_TEXTS[server.availability] : "disabled"}, {server.url}
      </span>
    </li>
  );
};

const TestResultDialog = ({ server, result, onClose }: TestResult & { onClose: () => void }) => (
  <Dialog
    title={result.works ? `${server.display_name} responded` : `${server.display_name} is not responding`}
    onClose={onClose}
    footer={<Button onPress={onClose}>Close</Button>}
  >
    {result.works ? (
      <>
        <p class="mut">
          {result.tools.length === 1 ? "1 tool" : `${result.tools.length} tools`} in {formatDuration(result.took_ms)}.
        </p>
        <ul class="stack" aria-label="Tools">
          {result.tools.map(({ name, description, offered }) => (
            <li key={name}>
              <span class="mono">{name}</span> {!offered && <span class="badge">disabled</span>}
              <br />
              <span class="small mut">{description}</span>
            </li>
          ))}
        </ul>
      </>
    ) : (
      <p class="t-bad" role="alert">
        {result.problem}
      </p>
    )}
  </Dialog>
);
