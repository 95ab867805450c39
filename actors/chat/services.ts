// Constructs the chats' actors, turns and background services. Called by src/context/context.ts.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Outbound } from "#base/outbound.ts";
import type { MemoryShare } from "#base/system/memory-share.ts";
import type { Topics } from "#base/topics.ts";
import type { Blobs } from "#db/blobs.ts";
import { readAttachment } from "#db/chats/files.ts";
import { readChatSetting } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import type { LoadAttachment } from "#src/llm/attachments.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { Fetch } from "#src/mcp/fetch.ts";
import { McpPool } from "#src/mcp/pool.ts";
import type { ToolServices, ToolServicesFor } from "#src/tools/services.ts";
import type { AgentHttp } from "#src/wire/index.ts";
import type { HookService } from "../hooks/open.ts";
import type { Directory, OpenDirectory } from "../runtime/directory.ts";
import type { Events } from "../runtime/events.ts";
import type { Service } from "../runtime/service.ts";
import type { AgentEngineDeps } from "./acp/deps.ts";
import { openEngines } from "./acp/engine.ts";
import { ChatActor } from "./actor.ts";
import { fileKeeper } from "./background/file-keeper.ts";
import { endWorkOnLostAccess } from "./background/lost-access.ts";
import { type GitAccounts, PullRequestTracker } from "./background/pull-requests.ts";
import { Recorder } from "./background/recorder.ts";
import { chatRetention } from "./background/retention.ts";
import { SearchUpkeep } from "./background/search-upkeep.ts";
import { Titles } from "./background/titles.ts";
import type { FindTurnRefusal } from "./deps.ts";
import type { ChatEffects } from "./effects.ts";
import { chatSkills, contextBlocks } from "./prompt/context-blocks.ts";
import { modeBlocks } from "./prompt/mode-prompt.ts";
import { settingsBlocks } from "./prompt/system-prompt.ts";
import { recoverChats } from "./recovery.ts";
import { AgentBudgets } from "./spending/agent-budgets.ts";
import type { ModelLedger } from "./spending/ledger.ts";
import { ChatSubagents, type SubagentsOf } from "./subagents/subagents.ts";
import type { TurnDeps } from "./turn/deps.ts";
import { ChatMcp, type McpAccess } from "./turn/mcp.ts";
import { toPromptScope } from "./turn/offer.ts";
import { Generations } from "./turn/runner.ts";
import { ChatWarnings } from "./turn/warnings.ts";

export type ChatServices = {
  readonly chats: Directory<ChatActor>;
  readonly generations: Generations;
  readonly titles: Titles;
  readonly diffs: PullRequestTracker;
  readonly warnings: ChatWarnings;
  readonly services: readonly Service[];
};

type Deps = {
  readonly config: Pick<
    Config,
    | "approval_timeout"
    | "chat_debug_logging"
    | "chat_slots"
    | "chat_titles"
    | "mcp_call_timeout"
    | "mcp_silence_timeout"
    | "subchat_slots"
  >;
  readonly openDirectory: OpenDirectory;
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  /** Returns whether turns of chats with this `part` run on this node. */
  readonly isHere: (part: number) => boolean;
  readonly models: LanguageModels;
  /** The memory for requests to models and for large results. */
  readonly memory: MemoryShare;
  readonly agentHttp: AgentHttp;
  readonly toolServices: (scope: ToolServicesFor) => ToolServices;
  readonly findTurnRefusal: FindTurnRefusal;
  readonly blobs: Blobs;
  /** Linked accounts at git hosts, and access to the hosts. */
  readonly accounts: GitAccounts;
  readonly outbound: Outbound;
  /** Access to the organization's MCP servers. */
  readonly mcpAccess: McpAccess;
  readonly mcpFetch: Fetch;
  readonly ledger: ModelLedger;
  readonly modelTokens: AgentEngineDeps["modelTokens"];
  /** Runs the operator's hooks for prompts, calls and turns, and records their decisions. */
  readonly hookService: HookService;
};

export const openChats = ({
  config,
  openDirectory,
  store,
  clock,
  topics,
  isHere,
  models,
  memory,
  agentHttp,
  toolServices,
  findTurnRefusal,
  blobs,
  accounts,
  outbound,
  mcpAccess,
  mcpFetch,
  ledger,
  modelTokens,
  hookService,
}: Deps): ChatServices => {
  const { hooks } = hookService;
  const getChats = () => chats;
  const pool = new McpPool({ clock, fetch: mcpFetch });
  const warnings = new ChatWarnings((chat_id, texts) => topics.publish("chat_warnings", chat_id, { warnings: texts }));
  const limits = { silence_ms: config.mcp_silence_timeout, total_ms: config.mcp_call_timeout };
  const mcp = new ChatMcp({ store, clock, pool, access: mcpAccess, warnings, limits });
  const publish = (chat_id: string, batch: Events["chat_parts"]) => topics.publish("chat_parts", chat_id, batch);
  const recorder = new Recorder({ store, clock, isForced: config.chat_debug_logging });
  const subagents = (scope: SubagentsOf) =>
    new ChatSubagents({ store, clock, topics, models, hooks, chats: getChats }, scope);
  const blocks = [modeBlocks, settingsBlocks, contextBlocks(store)];
  const compactions = { done: 0, failed: 0 };
  const turns: TurnDeps = {
    store,
    clock,
    models,
    memory,
    agentHttp,
    toolServices,
    skills: chatSkills(store),
    mcp,
    warnings,
    hooks,
    subagents,
    publish,
    blocks,
    compactions,
    opened_at: clock.now(),
    recorder,
    chats: getChats,
  };
  const publishWaiting = (chat_id: string, isWaiting: boolean) => topics.publish("chat_waits", chat_id, { isWaiting });
  const loadAttachment: LoadAttachment = (id) => readAttachment({ store, blobs }, id);
  const budgets = new AgentBudgets({ store, ledger, topics });
  const engines = openEngines(Object.assign({}, turns, { budgets, modelTokens, loadAttachment }));
  const generations = new Generations(Object.assign({}, turns, { isHere, publishWaiting, engines }), {
    root: config.chat_slots,
    child: config.subchat_slots,
  });
  const index = new SearchUpkeep(store);
  const titles = new Titles({ store, clock, models, recorder, asks: config.chat_titles, chats: getChats });
  const diffs = new PullRequestTracker({ memory, store, clock, topics, agentHttp, toolServices, accounts, outbound });
  const effects: ChatEffects = {
    startTurn: ({ id, owner_id, part, coding_agent, parent_chat_id, history_version }, started) =>
      generations.start(
        { id, owner_id, part, coding_agent },
        parent_chat_id === null ? "root" : "child",
        history_version,
        started,
      ),
    stopTurn: (chat, history_version) => generations.interrupt(chat, history_version),
    hasActiveTurn: (chat_id) => generations.hasActiveTurn(chat_id),
    getPartialOutput: (chat_id) => generations.getPartialOutput(chat_id),
    chatCopied: (state, copied) => generations.copyCheckpoints({ ...toPromptScope(state), chat_id: state.id }, copied),
    searchTextAdded: () => index.note(),
    promptAdded: (state) => titles.promptAdded(state),
    turnEnded: (state, isInterrupted) => {
      titles.turnEnded(state, isInterrupted);
      diffs.turnEnded(state);
    },
  };
  const deps = {
    store,
    clock,
    topics,
    models,
    effects,
    findTurnRefusal,
    approval_ms: config.approval_timeout,
    chats: getChats,
  };
  const chats: Directory<ChatActor> = openDirectory("chat", (id) => new ChatActor(id, deps));
  endWorkOnLostAccess({ store, topics, toolServices, findTurnRefusal, generations, chats });
  const services: Service[] = [
    pool,
    index,
    fileKeeper({ store, blobs, clock, days: () => readChatSetting(store, "retention_days") }),
    titles,
    diffs,
    chatRetention({ store, clock, chats: getChats }),
    ...hookService.services,
    chats,
    {
      timers: { chat: ({ actor_id }) => chats.ask(actor_id, "deadlinePassed", {}) },
      recover: (own) => recoverChats({ store, chats, clock }, own),
      stop: () => generations.stop(),
      release: (isLeaving) => generations.release(isLeaving),
    },
  ];
  return { chats, generations, titles, warnings, diffs, services };
};
