// The coding agents that chats can use: which are enabled, and how each is installed and started.
import { type Signal, useSignal } from "@preact/signals";
import { AGENT_DIALECTS, type CodingAgent, type CodingAgentInput } from "#schema/ai/coding-agents.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, ButtonLink, IconButton } from "../../parts/button.tsx";
import { confirmAction, isNotFound } from "../../parts/dialog.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Area, Field, NameField, Select, Switch } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo, writeTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showError, showToast } from "../../shell/toasts.tsx";

const NEW_AGENT: CodingAgentInput = {
  display_name: "",
  icon: "",
  enabled: true,
  command: "",
  arguments: [],
  variables: {},
  install_script: "",
  dialect: "openai",
  auth_method: "",
  mode: "",
};

const DIALECTS: Readonly<Record<CodingAgentInput["dialect"], string>> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  google: "Google",
};

const toInput = ({ name: _, is_preset: __, ...input }: CodingAgent): CodingAgentInput => input;

const loadAgents = async () => {
  const [{ agents }, { enabled }] = await Promise.all([call("GET /ai/agents"), call("GET /ai/settings")]);
  return { agents, hasGateway: enabled };
};

export const CodingAgentsPage = () => {
  const { state, reload } = useResource("coding agent settings", loadAgents);
  const editedAgent = useSignal<CodingAgent | "new" | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the coding agents" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={6} />;
  const save = async (name: string, body: CodingAgentInput, message: string): Promise<void> => {
    await call("PUT /ai/agents/:coding_agent", { path: { coding_agent: name }, body });
    await reload();
    showToast(message);
  };
  const confirmRemoval = ({ name, display_name, is_preset }: CodingAgent): void =>
    confirmAction({
      title: is_preset ? `Restore ${display_name}?` : `Delete ${display_name}?`,
      text: is_preset
        ? "Resets its command, install script and other settings to Slipway's defaults, and disables it."
        : "Chats that use it can't continue.",
      confirmLabel: is_preset ? "Restore agent" : "Delete agent",
      cancelLabel: "Keep it",
      isDanger: !is_preset,
      act: async () => {
        await call("DELETE /ai/agents/:coding_agent", { path: { coding_agent: name } }).catch((error) => {
          // A preset that was never changed has nothing to restore.
          if (!is_preset || !isNotFound(error)) throw error;
        });
        await reload();
        showToast(is_preset ? "Original settings restored" : "Agent deleted");
      },
    });
  return (
    <section class="stack" aria-labelledby="agents">
      <div class="head">
        <h2 id="agents">Coding agents</h2>
        <span class="push">
          <Button icon="plus" onPress={setTo(editedAgent, "new")}>
            Add agent
          </Button>
        </span>
      </div>
      <p class="mut small">
        People can choose enabled agents instead of a model when they start a chat. Agents run in the chat's workspace
        and call models through the <a href="/admin/ai-gateway">AI gateway</a>.
      </p>
      {!data.hasGateway && data.agents.some(({ enabled }) => enabled) && (
        <p class="banner box attn" role="status">
          <Icon name="warn" />
          <span>The AI gateway is turned off: agents can't call models.</span>
          <span class="push">
            <ButtonLink small href="/admin/ai-gateway">
              Set up AI gateway
            </ButtonLink>
          </span>
        </p>
      )}
      <ul class="panel list">
        {data.agents.map((agent) => (
          <li key={agent.name} class="item">
            <Switch
              label={agent.display_name}
              note={shorten([agent.command, ...agent.arguments].join(" "))}
              checked={agent.enabled}
              onSwitch={(enabled) =>
                void save(
                  agent.name,
                  { ...toInput(agent), enabled },
                  enabled ? "Agent enabled" : "Agent disabled",
                ).catch(showError)
              }
            />
            <span class="line">
              <IconButton icon="pen" small label={`Edit ${agent.display_name}`} onPress={setTo(editedAgent, agent)} />
              <IconButton
                icon={agent.is_preset ? "restart" : "trash"}
                small
                label={`${agent.is_preset ? "Restore" : "Delete"} ${agent.display_name}`}
                onPress={() => confirmRemoval(agent)}
              />
            </span>
          </li>
        ))}
      </ul>
      {editedAgent.value !== undefined && <AgentForm agent={editedAgent.value} edited={editedAgent} save={save} />}
    </section>
  );
};

type FormProps = {
  readonly agent: CodingAgent | "new";
  readonly edited: Signal<CodingAgent | "new" | undefined>;
  readonly save: (name: string, body: CodingAgentInput, message: string) => Promise<void>;
};

const AgentForm = ({ agent, edited, save }: FormProps) => {
  const isNew = agent === "new";
  const current = isNew ? NEW_AGENT : toInput(agent);
  const dialect = useSignal<string>(current.dialect);
  const startsWorkspace = useSignal(current.starts_workspace ?? true);
  const close = setTo(edited, undefined);
  return (
    <FormDialog
      title={isNew ? "Add agent" : `Edit ${agent.display_name}`}
      submitLabel={isNew ? "Add agent" : "Save changes"}
      onClose={close}
      act={(values) =>
        save(
          isNew ? (values.name ?? "").trim() : agent.name,
          {
            ...current,
            display_name: (values.display_name ?? "").trim(),
            command: (values.command ?? "").trim(),
            arguments: parseLines(values.arguments),
            variables: Object.fromEntries(parseLines(values.variables).map(parsePair)),
            install_script: values.install_script ?? "",
            dialect: AGENT_DIALECTS.find((one) => one === dialect.value) ?? current.dialect,
            auth_method: (values.auth_method ?? "").trim(),
            mode: (values.mode ?? "").trim(),
            instructions_file: (values.instructions_file ?? "").trim(),
            skills_folder: (values.skills_folder ?? "").trim(),
            own_instructions: parseLines(values.own_instructions),
            starts_workspace: startsWorkspace.value,
          },
          isNew ? "Agent added" : "Agent saved",
        )
      }
    >
      {(problems) => (
        <>
          {isNew && (
            <NameField
              label="Name"
              name="name"
              required
              hint="Lowercase letters, digits and hyphens."
              {...(problems.coding_agent ? { error: problems.coding_agent } : {})}
            />
          )}
          <Field label="Display name" name="display_name" value={current.display_name} required />
          <Field
            label="Command"
            name="command"
            value={current.command}
            required
            hint="A program that speaks the Agent Client Protocol (ACP) on standard input and output."
          />
          <Area label="Arguments" name="arguments" value={current.arguments.join("\n")} rows={3} hint="One per line." />
          <Area
            label="Environment variables"
            name="variables"
            value={Object.entries(current.variables)
              .map(([name, value]) => `${name}=${value}`)
              .join("\n")}
            rows={3}
            hint="NAME=value, one per line. The workspace can read them."
          />
          <Area
            label="Install script"
            name="install_script"
            value={current.install_script}
            rows={5}
            hint="Runs once in each workspace. Put programs into $SLIPWAY_INSTALL_DIR/bin."
          />
          <Select
            label="Model API"
            value={dialect.value}
            choices={AGENT_DIALECTS.map((value) => ({ value, label: DIALECTS[value] }))}
            onPick={writeTo(dialect)}
          />
          <Field label="Sign-in method" name="auth_method" value={current.auth_method} hint="Optional." />
          <Field label="Mode" name="mode" value={current.mode} hint="Optional. Sessions start in this mode." />
          <Field
            label="Instructions file"
            name="instructions_file"
            value={current.instructions_file ?? ""}
            hint="A path in the home directory, such as .codex/AGENTS.md. Leave empty to put the instructions into the first prompt."
            {...(problems.instructions_file ? { error: problems.instructions_file } : {})}
          />
          <Field
            label="Skills folder"
            name="skills_folder"
            value={current.skills_folder ?? ""}
            hint="A path in the home directory, such as .claude/skills. Leave empty to list skills in the instructions."
            {...(problems.skills_folder ? { error: problems.skills_folder } : {})}
          />
          <Area
            label="Instruction files that the agent reads itself"
            name="own_instructions"
            value={(current.own_instructions ?? []).join("\n")}
            rows={2}
            hint="File names in the workspace folder, one per line, such as AGENTS.md. Slipway doesn't send them again."
          />
          <Switch
            label="Start stopped workspaces"
            note="A message to a chat starts the chat's workspace."
            checked={startsWorkspace.value}
            onSwitch={writeTo(startsWorkspace)}
          />
        </>
      )}
    </FormDialog>
  );
};

const MAX_COMMAND_LENGTH = 80;

const shorten = (text: string): string =>
  text.length > MAX_COMMAND_LENGTH ? `${text.slice(0, MAX_COMMAND_LENGTH)}…` : text;

const parseLines = (text = ""): string[] =>
  text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));

const parsePair = (line: string): [name: string, value: string] => {
  const equals = line.indexOf("=");
  return equals < 0 ? [line, ""] : [line.slice(0, equals), line.slice(equals + 1)];
};
