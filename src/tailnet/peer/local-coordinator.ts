// The coordinator of this process as a peer of this process calls it: the same stream of requests and responses, without a connection.
// [TL-30]
import { create } from "@bufbuild/protobuf";
import { type CoordinateRequest, CoordinateRequestSchema, CoordinateResponseSchema } from "#src/wire/gen/tailnet_pb.ts";
import type { Coordinator } from "../coordinator.ts";
import type { PeerOptions } from "../peer.ts";
import { ResponseQueue as Queue } from "../response-queue.ts";
import type { Coordinator as Caller } from "./network-peer.ts";

/** What a request costs in the queue; those of a peer of ours hold an id or its own node. */
const REQUEST_BYTES = 1_024;

/** Each call joins again as this peer; what it says ends when the call does. */
export const localCoordinator = (coordinator: Coordinator, peer: PeerOptions): Caller => ({
  async coordinate(signal) {
    const joined = coordinator.join(peer);
    const requests = new Queue<CoordinateRequest>();
    const cancel = (): void => joined.lost();
    signal?.addEventListener("abort", cancel, { once: true });
    void joined.serve(requests.take());
    return {
      async send(request) {
        if (!requests.put(create(CoordinateRequestSchema, request), REQUEST_BYTES)) cancel();
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
