// The options of a chat's coding agent: its modes appear with the permission modes, its models and other options next to its name.
import type { AgentOption } from "#schema/chats/agent-option.ts";
import { call } from "../../data/api.ts";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import type { LiveChat } from "./live-chat.ts";

const isMode = ({ id, category }: AgentOption): boolean => id === "mode" || category === "mode";

/** Stores the choice. The agent applies it with the next message. */
const choose = async (chat: LiveChat, id: string, choice: string): Promise<void> => {
  await call("PATCH /chats/:chat", { path: { chat: chat.id }, body: { agent_options: { [id]: choice } } });
  await chat.refresh();
};

type Props = { readonly chat: LiveChat; readonly of: "modes" | "others" };

export const AgentOptions = ({ chat, of }: Props) => {
  const options = (chat.chat.value?.agent_options ?? []).filter((option) => isMode(option) === (of === "modes"));
  // The chat has its own plan mode, which the agent follows.
  const offered = ({ choices }: AgentOption) => choices.filter(({ id }) => of === "others" || id !== "plan");
  return (
    <>
      {options
        .filter((option) => offered(option).length > 1)
        .map((option) => {
          const current = option.choices.find(({ id }) => id === option.current);
          const label = of === "modes" ? "Agent mode" : option.name;
          const items = (): MenuItem[] =>
            offered(option).map((one) => ({
              label: one.name,
              note: one.description.slice(0, 80),
              act: () => choose(chat, option.id, one.id),
              ...(one.id === option.current ? { icon: "check" as const } : {}),
            }));
          return (
            <Menu key={option.id} label={`${label}: ${current?.name ?? option.current}`} small items={items}>
              <span class="clip">
                {label}: {current?.name ?? option.current}
              </span>
            </Menu>
          );
        })}
    </>
  );
};
