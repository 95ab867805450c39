// Connects a peer to the coordinator of the same process, with the usual requests and responses but without a network connection. [TL-30]
import { create } from "@bufbuild/protobuf";
import { type CoordinateRequest, CoordinateRequestSchema, CoordinateResponseSchema } from "#src/wire/gen/tailnet_pb.ts";
import type { Coordinator } from "../coordinator.ts";
import type { PeerOptions } from "../peer.ts";
import { ResponseQueue as Queue } from "../response-queue.ts";
import type { Coordinator as Caller } from "./network-peer.ts";

/** Cost of a request in the queue. Requests of the server's own peers are small: they contain an ID or the peer's node. */
const REQUEST_COST_BYTES = 1_024;

/** Returns the interface for peers. Each call of `coordinate` joins as this peer, and the peer leaves when the call ends. */
export const createLocalCoordinator = (coordinator: Coordinator, peer: PeerOptions): Caller => ({
  async coordinate(signal) {
    const joined = coordinator.join(peer);
    const requests = new Queue<CoordinateRequest>();
    const cancel = (): void => joined.onStreamLost();
    signal?.addEventListener("abort", cancel, { once: true });
    void joined.serve(requests.take());
    return {
      async send(request) {
        if (!requests.put(create(CoordinateRequestSchema, request), REQUEST_COST_BYTES)) cancel();
      },
      async closeSend() {
        requests.close();
      },
      cancel,
      async *[Symbol.asyncIterator]() {
        for await (const response of joined.responses()) yield create(CoordinateResponseSchema, response);
      },
    };
  },
});
