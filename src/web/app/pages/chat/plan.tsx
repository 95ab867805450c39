// A plan proposed by the model, to approve or change. Approving sends a message that ends plan mode.
import type { ShownPart } from "#schema/chats/chat-part.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Icon } from "../../parts/icon.tsx";
import { focusComposer, sendText } from "./actions.ts";
import { isAnswered } from "./answered.ts";
import type { LiveChat } from "./live-chat.ts";
import { Markdown } from "./markdown.tsx";

const read = async (id: string): Promise<string> => {
  const response = await fetch(`/api/v2/chats/files/${id}`);
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return response.text();
};

export const Plan = ({ chat, part }: { chat: LiveChat; part: ShownPart }) => {
  const { file_id = "", path = "" } = (part.result ?? {}) as { file_id?: string; path?: string };
  const { state, again } = useResource(`plan ${file_id}`, () => read(file_id));
  const { data, error } = state.value;
  const isDone = isAnswered(chat, part);
  return (
    <div class={isDone ? "ask done" : "ask"} role="group" aria-label="Plan">
      <div class="line">
        <Icon name="list" />
        <h3>Plan</h3>
        <span class="trail dim small mono clip" title={path}>
          {path.split("/").at(-1)}
        </span>
      </div>
      {error !== undefined && data === undefined && <Failed what="Can't load the plan" error={error} again={again} />}
      <div class="prose">{data !== undefined && <Markdown text={data} />}</div>
      {!isDone && (
        <div class="line wrap">
          <Button look="primary" onPress={() => sendText(chat, "Go ahead with the plan.", { plan_mode: "" })}>
            Approve and start
          </Button>
          <Button onPress={focusComposer}>Request changes</Button>
        </div>
      )}
    </div>
  );
};
