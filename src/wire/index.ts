// The public interface of src/wire; README.md describes each part. Messages of the protocols are in ./gen.
export {
  AGENT_API_VERSION,
  Agent,
  type AgentHandlers,
  createAgentClient,
  type ManifestInit,
  omitManifestSecrets,
} from "./agent-api.ts";
export { AGENT_PORT, type AgentDialer, type DialOptions } from "./agent-dialer.ts";
export { AgentHttp } from "./agent-http.ts";
export { type Job, readIdleStreams, readJobs, sanitizeCommand, toMetrics } from "./busy-metric.ts";
export { ByteStream, toCloseError } from "./byte-stream.ts";
export { ChunkQueue } from "./chunk-queue.ts";
export { ConnectionUse } from "./connection-use.ts";
export { RpcError } from "./drpc/frame.ts";
export { serve, serveSession } from "./drpc/server.ts";
export { type Duplex, pipe, readChunks } from "./duplex.ts";
export { type AnswerReserve, HttpConnection, type HttpResponse } from "./http-connection.ts";
export { JsonObjects } from "./json-objects.ts";
export { toWireProblem } from "./json-problem.ts";
export { Lookahead } from "./lookahead.ts";
export { toNodeStream, wrapTls } from "./node-stream.ts";
export { connectPlainWebSocket, UpgradeRefusedError } from "./plain-websocket.ts";
export { createRouter, mergeRouters, type TypedBidiCall } from "./service.ts";
export {
  createTailnetClient,
  type DerpMapInit,
  Tailnet,
  type TailnetAgentInit,
  type TailnetHandlers,
  type TailnetWorkspaceInit,
  Workspace_Status,
} from "./tailnet-api.ts";
export {
  encodeTerminalRequest,
  MAX_INPUT,
  MAX_SIDE,
  parseTerminalInput,
  readTerminalRequest,
  type TerminalRequest,
} from "./terminal-protocol.ts";
export { fromMetadataDuration, toCount, toDuration, toMetadataDuration, toMs, toTimestamp } from "./times.ts";
export { encodeOutcome, encodeTarget, readOutcome, readTarget, type Target } from "./tunnel-target.ts";
export { Wakeup } from "./wakeup.ts";
export { createWebSocketStream } from "./websocket.ts";
export { type MessageBudget, WebSocketFrames, type WebSocketMessage } from "./websocket-frames.ts";
export { toWireError, WireError, type WireFailure } from "./wire-error.ts";
export { type YamuxOptions, YamuxSession } from "./yamux.ts";
