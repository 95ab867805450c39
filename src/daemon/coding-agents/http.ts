// The part of the daemon's HTTP API that runs coding agents for chats.
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { StartAgentProgram } from "#schema/agents/agent-program.ts";
import type { CodingAgentPrograms } from "./programs.ts";

type ReadBody = <S extends TSchema>(request: Request, schema: S) => Promise<Static<S>>;
type ParseNumber = (request: Request, name: string, otherwise: number) => number;
type RoutedRequest = Request & { readonly params: Readonly<Record<string, string>> };

const ForgetBody = t.Object({ chat_ids: t.Array(t.String({ pattern: "^[0-9a-f-]{36}$" }), { maxItems: 1_000 }) });

export const createCodingAgentRoutes = (
  programs: CodingAgentPrograms,
  readBody: ReadBody,
  parseNumber: ParseNumber,
) => ({
  "/api/v0/coding-agents/start": {
    POST: async (request: Request) => {
      programs.start(await readBody(request, StartAgentProgram));
      return Response.json({ message: "The program starts." });
    },
  },
  "/api/v0/coding-agents/forget": {
    POST: async (request: Request) => {
      await programs.removeChats((await readBody(request, ForgetBody)).chat_ids);
      return Response.json({ message: "Their homes are removed." });
    },
  },
  "/api/v0/coding-agents/:id/output": {
    GET: async (request: RoutedRequest) =>
      Response.json(
        await programs.output(request.params.id ?? "", {
          after: parseNumber(request, "after", 0),
          state: new URL(request.url).searchParams.get("state") ?? "",
          heard: parseNumber(request, "heard", 0),
          wait_ms: parseNumber(request, "wait_ms", 0),
        }),
      ),
  },
  "/api/v0/coding-agents/:id/input": {
    POST: async (request: RoutedRequest) => {
      const taken = await programs.input(request.params.id ?? "", parseNumber(request, "at", 0), await request.bytes());
      return Response.json({ taken });
    },
  },
  "/api/v0/coding-agents/:id/answer": {
    POST: async (request: RoutedRequest) => {
      programs.answer(request.params.id ?? "", parseNumber(request, "number", 0), await request.text());
      return Response.json({ message: "Answered." });
    },
  },
  "/api/v0/coding-agents/:id/end": {
    POST: (request: RoutedRequest) => {
      programs.end(request.params.id ?? "");
      return Response.json({ message: "The program ends." });
    },
  },
});
