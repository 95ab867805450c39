// Tasks: prompts, each with its own workspace. The live lists of workspaces and chats trigger a reload.
import { useComputed, useSignal } from "@preact/signals";
import type { Task } from "#schema/tasks/task.ts";
import { call } from "../../data/api.ts";
import { chats } from "../../data/chats.ts";
import { useChange, useResource } from "../../data/resource.ts";
import { workspaces } from "../../data/workspaces.ts";
import { Button } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { sets } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { NewTask } from "./new-task.tsx";
import { TaskItem } from "./task-item.tsx";
import { Unheard } from "./unheard.tsx";
import { toId } from "./words.ts";

const SHOWN = 100;

export default function TasksPage() {
  const { state, again } = useResource("tasks", () => call("GET /tasks", { query: { q: "owner:me", limit: SHOWN } }));
  const isOpen = useSignal(false);
  const { data, error } = state.value;
  const news = useComputed(() => (state.value.data?.tasks ?? []).map(formatFacts).join());
  useChange(news.value, again);
  const make = (
    <Button look="primary" icon="plus" onPress={sets(isOpen, true)}>
      New task
    </Button>
  );
  return (
    <Frame
      title="Tasks"
      note={data && <span class="dim small num">{data.count}</span>}
      actions={data && data.count > 0 ? make : undefined}
    >
      <div class="page narrow">
        <Unheard />
        {error ? (
          <Failed what="Can't load your tasks" error={error} again={again} />
        ) : !data ? (
          <Skeleton lines={4} />
        ) : data.count === 0 ? (
          <Empty
            icon="check"
            title="No tasks yet"
            text="A task gets its own workspace, where an agent starts working as soon as it is running."
          >
            {make}
          </Empty>
        ) : (
          <ul class="panel list" aria-label="Tasks">
            {data.tasks.map((task) => (
              <TaskItem key={task.id} task={task} again={again} />
            ))}
          </ul>
        )}
      </div>
      {isOpen.value && (
        <NewTask
          onClose={() => {
            isOpen.value = false;
            void again();
          }}
        />
      )}
    </Frame>
  );
}

/** Returns what the live lists know about a task. When this changes, the task's status may have changed. */
const formatFacts = ({ workspace_id, chat_id }: Task): string => {
  const workspace = workspaces.value.get(toId(workspace_id) ?? "");
  const chat = chats.value.get(toId(chat_id) ?? "");
  const agents = workspace?.agents.map(({ status, lifecycle_state }) => `${status} ${lifecycle_state}`) ?? [];
  // A task's new chat first appears as an additional chat in the list.
  const begun = chat ? chat.status : String(chats.value.size);
  return [workspace?.status, ...agents, begun, chat?.last_turn_summary].join(" ");
};
