// The public interface of src/wire; README.md describes each part. Messages of the protocols are in ./gen.
export {
  AGENT_API_VERSION,
  Agent,
  type AgentHandlers,
  agentClient,
  type ManifestInit,
  manifestWithoutSecrets,
} from "./agent-api.ts";
export { AGENT_PORT, type AgentDialer, type DialOptions } from "./agent-dialer.ts";
export { AgentHttp } from "./agent-http.ts";
export { asCommand, type Job, readIdleStreams, readJobs, toMetrics } from "./busy-metric.ts";
export { ByteStream, endedBy } from "./byte-stream.ts";
export { ChunkQueue } from "./chunk-queue.ts";
export { ConnectionUse } from "./connection-use.ts";
export { RpcError } from "./drpc/frame.ts";
export { serve, serveSession } from "./drpc/server.ts";
export { type Duplex, pipe, readChunks } from "./duplex.ts";
export { HttpConnection, type HttpResponse } from "./http-connection.ts";
export { JsonObjects } from "./json-objects.ts";
export { wireProblem } from "./json-problem.ts";
export { Lookahead } from "./lookahead.ts";
export { nodeStream, tlsOver } from "./node-stream.ts";
export { plainWebSocket, UpgradeRefused } from "./plain-websocket.ts";
export { mergeRouters, routerFor, type TypedBidiCall } from "./service.ts";
export {
  type DerpMapInit,
  Tailnet,
  type TailnetAgentInit,
  type TailnetHandlers,
  type TailnetWorkspaceInit,
  tailnetClient,
  Workspace_Status,
} from "./tailnet-api.ts";
export {
  encodeTerminalRequest,
  MAX_INPUT,
  MAX_SIDE,
  readTerminalRequest,
  type TerminalRequest,
  terminalInput,
} from "./terminal-protocol.ts";
export { count, metadataMs, metadataSeconds, seconds, toMs, toTimestamp } from "./times.ts";
export { encodeOutcome, encodeTarget, readOutcome, readTarget, type Target } from "./tunnel-target.ts";
export { Wakeup } from "./wakeup.ts";
export { streamOverWebSocket } from "./websocket.ts";
export { WebSocketFrames, type WebSocketMessage } from "./websocket-frames.ts";
export { asWireError, WireError, type WireFailure } from "./wire-error.ts";
export { type YamuxOptions, YamuxSession } from "./yamux.ts";
