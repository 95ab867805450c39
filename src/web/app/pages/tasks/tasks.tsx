// Tasks: prompts, each with its own workspace. The live lists of workspaces and chats trigger a reload.
import { useComputed, useSignal } from "@preact/signals";
import { NOTICE_KINDS } from "#schema/notifications/kinds.ts";
import type { Task } from "#schema/tasks/task.ts";
import { call } from "../../data/api.ts";
import { chats } from "../../data/chats.ts";
import { useChange, useResource } from "../../data/resource.ts";
import { workspaces } from "../../data/workspaces.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { NewTask } from "./new-task.tsx";
import { TaskItem } from "./task-item.tsx";
import { toId } from "./words.ts";

// A notice above the tasks that notifications are off, until the user dismisses it permanently.
const path = { user: "me" };
/** The kinds of notification that report on a task. */
const TASK_NOTICE_IDS: readonly string[] = [NOTICE_KINDS.chat_needs_you.id, NOTICE_KINDS.chat_done.id];

const loadShouldWarn = async (): Promise<boolean> => {
  const [preferences, { task_notification_alert_dismissed }] = await Promise.all([
    call("GET /users/me/notifications/preferences"),
    call("GET /users/:user/preferences", { path }),
  ]);
  const disabledIds = preferences.filter(({ disabled }) => disabled).map(({ id }) => id);
  return !task_notification_alert_dismissed && TASK_NOTICE_IDS.some((id) => disabledIds.includes(id));
};

const NotificationsOff = () => {
  const { state, reload } = useResource("unheard tasks", loadShouldWarn);
  if (!state.value.data) return null;
  return (
    <section class="panel" aria-labelledby="unheard">
      <div class="body stack">
        <h2 id="unheard">Some notifications are off</h2>
        <p>You won't be notified when a chat needs you or is done.</p>
        <div class="line">
          <ButtonLink href="/account/notifications">Notifications</ButtonLink>
          <Button
            look="ghost"
            onPress={async () => {
              await call("PUT /users/:user/preferences", { path, body: { task_notification_alert_dismissed: true } });
              await reload();
            }}
          >
            Don't show again
          </Button>
        </div>
      </div>
    </section>
  );
};

const MAX_SHOWN = 100;

export default function TasksPage() {
  const { state, reload } = useResource("tasks", () =>
    call("GET /tasks", { query: { q: "owner:me", limit: MAX_SHOWN } }),
  );
  const isOpen = useSignal(false);
  const { data, error } = state.value;
  const liveFacts = useComputed(() => (state.value.data?.tasks ?? []).map(formatFacts).join());
  useChange(liveFacts.value, reload);
  const newTaskButton = (
    <Button look="primary" icon="plus" onPress={setTo(isOpen, true)}>
      New task
    </Button>
  );
  return (
    <Frame
      title="Tasks"
      note={data && <span class="dim small num">{data.count}</span>}
      actions={data && data.count > 0 ? newTaskButton : undefined}
    >
      <div class="page narrow">
        <NotificationsOff />
        {error ? (
          <Failed title="Can't load your tasks" error={error} reload={reload} />
        ) : !data ? (
          <Skeleton lines={4} />
        ) : data.count === 0 ? (
          <Empty
            icon="check"
            title="No tasks yet"
            text="A task gets its own workspace, where an agent starts working as soon as it is running."
          >
            {newTaskButton}
          </Empty>
        ) : (
          <ul class="panel list" aria-label="Tasks">
            {data.tasks.map((task) => (
              <TaskItem key={task.id} task={task} reload={reload} />
            ))}
          </ul>
        )}
      </div>
      {isOpen.value && (
        <NewTask
          onClose={() => {
            isOpen.value = false;
            void reload();
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
  const chatState = chat ? chat.status : String(chats.value.size);
  return [workspace?.status, ...agents, chatState, chat?.last_turn_summary].join(" ");
};
