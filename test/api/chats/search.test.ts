// Search in chats: the grammar, the index, the visibility of results, and a comparison with a naive search in memory.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { uuid } from "#base/ids.ts";
import { toShard } from "#base/shards.ts";
import { listStems, splitWords } from "#base/text/words.ts";
import { insertChat, listBusyChats } from "#db/chats/chats.ts";
import { countHits, listMatching, listPage, searchAllHits, searchFewHits } from "#db/chats/list.ts";
import { indexMessages, indexTitle, mergeSearch, readSegments, toMatching } from "#db/chats/search.ts";
import { listChatViews, listChildViews } from "#db/chats/views.ts";
import type { Query, Statement } from "#db/engine/sql.ts";
import { ALL_ROWS, OwnRows } from "#db/own-rows.ts";
import type { Chat, MessagePage } from "#schema/chats/chat.ts";
import { Client } from "#src/client.ts";
import { type ChatWorld, createChat, Follower, openChatWorld, sendMessage } from "#test/support/chats.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { getContext, getOwnerContext, seedUser } from "#test/support/seed.ts";

const quoteQuery = (text: string) => `search:"${text.replaceAll(/[\\"]/g, "\\$&")}"`;
const findChats = async (client: Client, text: string, filter = ""): Promise<string[]> => {
  const q = encodeURIComponent(`${quoteQuery(text)} ${filter}`);
  const ids = (await client.get<Chat[]>(`/api/v2/chats?q=${q}`)).map(({ id }) => id);
  // Pages of results use another query and must be the same.
  const firstPage = await client.get<Chat[]>(`/api/v2/chats?limit=1&q=${q}`);
  expect(firstPage.map(({ id }) => id)).toEqual(ids.slice(0, 1));
  return ids;
};
const answerTurn = async (world: ChatWorld, id: string, text: string) => {
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say(text).finish();
  await follower.until(({ status }) => status === "waiting");
};

test("[FS-1] finds a message as soon as it is acknowledged; an edit removes replaced messages from the index", async () => {
  await using world = await openChatWorld();
  const flakyChat = await createChat(world, "Please look into the flaky deployments");
  expect(await findChats(world.owner, "flaky")).toEqual([flakyChat.id]);
  await answerTurn(world, flakyChat.id, "The scheduler restarts too early.");
  expect(await findChats(world.owner, "scheduler restarted")).toEqual([flakyChat.id]);
  await sendMessage(world, flakyChat.id, "Then quieten the kangaroo");
  expect(await findChats(world.owner, "kangaroos")).toEqual([flakyChat.id]);
  await answerTurn(world, flakyChat.id, "It hops quietly now.");
  const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${flakyChat.id}/messages`);
  const firstId = messages.at(-1)?.id;
  await world.owner.patch(`/api/v2/chats/${flakyChat.id}/messages/${firstId}`, {
    content: [{ type: "text", text: "A wombat instead" }],
  });
  for (const word of ["scheduler", "kangaroo", "hops"]) expect(await findChats(world.owner, word)).toEqual([]);
  expect(await findChats(world.owner, "wombat")).toEqual([flakyChat.id]);
  // The title still comes from the replaced message.
  expect(await findChats(world.owner, "flaky")).toEqual([flakyChat.id]);
  await world.owner.patch(`/api/v2/chats/${flakyChat.id}`, { title: "About marsupials" });
  expect(await findChats(world.owner, "flaky")).toEqual([]);
  expect(await findChats(world.owner, "MARSUPIALS")).toEqual([flakyChat.id]);
});

test("[FS-3] matches stems in messages and whole words in titles, with phrases, or and minus; punctuation finds nothing", async () => {
  await using world = await openChatWorld();
  const ids: Record<string, string> = {};
  for (const [name, text] of Object.entries({
    deploy: "deployments of the api failed last night",
    tests: "the api tests are running quickly",
    both: "quick deploys and slow tests of my_function",
  })) {
    const { id } = await createChat(world, text);
    await world.owner.patch(`/api/v2/chats/${id}`, { title: `Title ${name}s` });
    ids[name] = id;
  }
  const findNames = async (text: string) =>
    (await findChats(world.owner, text)).map((id) => Object.keys(ids).find((name) => ids[name] === id) ?? "").sort();
  expect(await findNames("deploy")).toEqual(["both", "deploy"]);
  expect(await findNames("Deployed API")).toEqual(["deploy"]);
  expect(await findNames("quickly")).toEqual(["both", "tests"]);
  expect(await findNames('"api test"')).toEqual(["tests"]);
  expect(await findNames('"test api"')).toEqual([]);
  expect(await findNames("failed or running")).toEqual(["deploy", "tests"]);
  expect(await findNames("deploy -slow")).toEqual(["deploy"]);
  expect(await findNames('deploy -"slow test"')).toEqual(["deploy"]);
  expect(await findNames("my_function")).toEqual(["both"]);
  // Titles match only whole words.
  expect(await findNames("title testss")).toEqual(["tests"]);
  expect(await findNames("boths")).toEqual(["both"]);
  expect(await findNames("titl")).toEqual([]);
  for (const query of ["!!! ---", "*", "-deploy", "or", '""'])
    expect([query, await findNames(query)]).toEqual([query, []]);
  expect(await findNames("the")).toEqual([]);
});

test("[FS-4] refuses a search without text, with too many words, or in addition to title, pr_title and pr", async () => {
  await using world = await openChatWorld();
  const tooManyWords = Array.from({ length: 101 }, (_, index) => `w${index}`).join(" ");
  const invalid = ['search:""', 'search:"  "', "search:", "search:a search:b", "search:a title:b", "search:a pr:1"];
  for (const q of [...invalid, quoteQuery(tooManyWords)]) {
    expect([q, (await world.owner.fetch("GET", `/api/v2/chats?q=${encodeURIComponent(q)}`)).status]).toEqual([q, 400]);
  }
});

test("[FS-5] users find only their own chats, in list order, also with other filters and by messages of sub-chats", async () => {
  await using world = await openChatWorld();
  const context = getContext(world.server);
  const outsider = new Client(world.server.url, (await seedUser(world.server)).token);
  const ids: string[] = [];
  for (const text of ["zebra one", "zebra two", "zebra three"]) {
    const { id } = await createChat(world, text);
    await answerTurn(world, id, "fine");
    ids.push(id);
  }
  const [one = "", two = "", three = ""] = ids;
  expect(await findChats(outsider, "zebra")).toEqual([]);
  expect(await findChats(world.owner, "zebra")).toEqual([three, two, one]);
  await world.owner.patch(`/api/v2/chats/${one}`, { pin_order: 1 });
  expect(await findChats(world.owner, "zebra")).toEqual([one, three, two]);
  await world.owner.patch(`/api/v2/chats/${two}`, { archived: true });
  expect(await findChats(world.owner, "zebra")).toEqual([one, three]);
  expect(await findChats(world.owner, "zebra", "archived:true")).toEqual([two]);
  await getOwnerContext(world.server, world.user_id).chats.ask("00000000-0000-4000-8000-00000000c41d", "create", {
    chat: {
      id: "00000000-0000-4000-8000-00000000c41d",
      organization_id: world.organization_id,
      owner_id: world.user_id,
      workspace_id: null,
      parent_chat_id: three,
      root_chat_id: three,
      last_reasoning_effort: "",
      title: "child",
      last_model_config_id: context.models.resolve(null)?.id ?? "",
      client_type: "api",
      plan_mode: null,
      labels: {},
      mcp_server_ids: [],
      dynamic_tools: [],
    },
    messages: [
      {
        role: "user",
        visibility: "both",
        content: [{ type: "text", text: "an okapi" }],
        created_by: world.user_id,
        model_config_id: null,
        usage: null,
      },
      {
        role: "system",
        visibility: "model",
        content: [{ type: "text", text: "a secret" }],
        created_by: null,
        model_config_id: null,
        usage: null,
      },
    ],
  });
  expect(await findChats(world.owner, "okapi")).toEqual([three]);
  expect(await findChats(world.owner, "secret")).toEqual([]);
});

testSingleServer("sqlite")(
  "[FS-6] merges the index in slices until nothing is left to merge, and finds the same chats before and after",
  async () => {
    await using world = await openChatWorld();
    const context = getContext(world.server);
    const ids: string[] = [];
    for (let index = 0; index < 20; index++) ids.unshift((await createChat(world, `lemur number${index}`)).id);
    const readIndexPieces = () => context.store.get(readSegments("message_search"));
    const piecesBefore = await readIndexPieces();
    expect(new Set(await findChats(world.owner, "lemur"))).toEqual(new Set(ids));
    context.services.sweep();
    // The merge is complete when a slice changes nothing.
    for (let previous = piecesBefore; ; ) {
      await context.store.commit([mergeSearch("message_search")]);
      const current = await readIndexPieces();
      if (current === previous) break;
      previous = current;
    }
    expect(await readIndexPieces()).not.toBe(piecesBefore);
    expect(new Set(await findChats(world.owner, "lemur"))).toEqual(new Set(ids));
    expect(await findChats(world.owner, "number7")).toEqual([ids[12] as string]);
  },
);

// A naive in-memory search over every document, word by word.

const VOCABULARY = [
  "alpha",
  "betas",
  "gamma",
  "running",
  "runs",
  "the",
  "near",
  "not",
  "and",
  "words",
  "o'neill",
  "x_y",
];
type Term = { texts: string[]; minus: boolean; phrase: boolean };
type Search = Term[][];
type Splitter = (text: string) => string[];

const hasPhrase = (document: readonly string[], words: readonly string[]): boolean =>
  document.some((_, start) => words.every((word, index) => document[start + index] === word));

const matchesNaively = (search: Search, body: string, split: Splitter): boolean => {
  const document = split(body);
  return search.some((terms) => {
    const knownTerms = terms
      .map((term) => ({ ...term, words: split(term.texts.join(" ")) }))
      .filter(({ words }) => words.length > 0);
    const wantedTerms = knownTerms.filter(({ minus }) => !minus);
    const unwantedTerms = knownTerms.filter(({ minus }) => minus);
    return (
      wantedTerms.length > 0 &&
      wantedTerms.every(({ words }) => hasPhrase(document, words)) &&
      !unwantedTerms.some(({ words }) => hasPhrase(document, words))
    );
  });
};

const word = fc.constantFrom(...VOCABULARY);
const term: fc.Arbitrary<Term> = fc
  .record({
    texts: fc.array(word, { minLength: 1, maxLength: 3 }),
    minus: fc.boolean(),
    phrase: fc.boolean(),
  })
  .map(({ texts, minus, phrase }) => ({ texts: phrase ? texts : texts.slice(0, 1), minus, phrase }));
const searches = fc.array(fc.array(term, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
const formatSearch = (search: Search): string =>
  search
    .map((terms) =>
      terms
        .map(({ texts, minus, phrase }) => `${minus ? "-" : ""}${phrase ? `"${texts.join(" ")}"` : texts[0]}`)
        .join(" "),
    )
    .join(" or ");

test("[FS-7] finds the same chats as a naive search in memory, and survives any input", async () => {
  await using world = await openChatWorld();
  const seed = Math.floor(Math.random() * 2 ** 31);
  process.stderr.write(`search: seed ${seed}\n`);
  const bodies = fc
    .sample(fc.array(word, { minLength: 1, maxLength: 6 }), { numRuns: 25, seed })
    .map((words) => words.join(" "));
  const documents: { id: string; body: string; title: string }[] = [];
  for (const [index, body] of bodies.entries()) {
    const { id } = await createChat(world, body);
    const title = bodies[(index * 7 + 3) % bodies.length] as string;
    await world.owner.patch(`/api/v2/chats/${id}`, { title });
    documents.push({ id, body, title });
  }
  await fc.assert(
    fc.asyncProperty(searches, async (search) => {
      const expected = documents.filter(
        ({ body, title }) => matchesNaively(search, body, listStems) || matchesNaively(search, title, splitWords),
      );
      expect(new Set(await findChats(world.owner, formatSearch(search)))).toEqual(
        new Set(expected.map(({ id }) => id)),
      );
    }),
    { numRuns: 60, seed },
  );
  const hostileText = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc
      .array(
        fc.constantFrom(
          ...[
            '"',
            "'",
            "*",
            "^",
            "(",
            ")",
            "NEAR(alpha beta, 2)",
            "words:",
            "-",
            "+",
            "{",
            "}",
            ":",
            "or",
            "AND",
            "NOT",
            "%",
            "_",
          ],
          ...["\\", "\u0000", "alpha", "message_search", "; drop table chats", "rowid", "\ud800", "//", "--"],
        ),
        { maxLength: 12 },
      )
      .map((parts) => parts.join(" ")),
  );
  await fc.assert(
    fc.asyncProperty(
      hostileText,
      fc.constantFrom("search:", "title:", "repo:", ""),
      fc.boolean(),
      async (text, key, isQuoted) => {
        const q = isQuoted ? `${key}"${text.replaceAll(/[\\"]/g, "\\$&")}"` : key + text;
        const response = await world.owner.fetch("GET", `/api/v2/chats?q=${encodeURIComponent(q.toWellFormed())}`);
        expect([q, response.status < 500]).toEqual([q, true]);
        await response.arrayBuffer();
      },
    ),
    { numRuns: 100, seed },
  );
  expect((await world.owner.get<Chat[]>("/api/v2/chats?limit=100")).length).toBe(documents.length);
});

test("[FS-8] treats wildcards in a title as ordinary characters", async () => {
  await using world = await openChatWorld();
  await createChat(world, "100% done_now");
  await createChat(world, "1000 donexnow");
  const findTitles = async (q: string) =>
    (await world.owner.get<Chat[]>(`/api/v2/chats?q=${encodeURIComponent(q)}`)).map(({ title }) => title);
  expect(await findTitles("title:100%")).toEqual(["100% done_now"]);
  expect(await findTitles("title:done_now")).toEqual(["100% done_now"]);
});

/** Creates more chats than a search checks one by one. Words occur in all, only in the oldest, only in other users' chats, or in few. */
const seedManyChats = async (world: ChatWorld) => {
  const { store } = getContext(world.server);
  const outsider = await seedUser(world.server);
  const COUNT = 300;
  const OLDEST = 30;
  const repeat = (word: string, count: number) => Array.from({ length: count }, () => word);
  const created: { id: string; pin_order: number; updated_at: number; archived: boolean; texts: string[] }[] = [];
  const statements: Statement[] = [];
  const insertTexts = async (texts: readonly string[], fields: Record<string, unknown> = {}): Promise<string> => {
    const key = await store.reserve("chats", 1);
    const chat = {
      id: uuid(),
      key,
      organization_id: world.organization_id,
      owner_id: world.user_id,
      title: "Untitled",
      client_type: "api" as const,
      status: "waiting",
      last_model_config_id: uuid(),
      created_at: key,
      // Two consecutive chats have the same time.
      updated_at: 1_000 + (created.length >> 1),
      snapshot_version: 1,
      history_version: 1,
      ...fields,
    };
    const messages = texts.map((text, index) => ({
      id: index + 1,
      role: "user",
      visibility: "both",
      content: [{ type: "text" as const, text }],
    }));
    statements.push(
      insertChat({ ...chat, part: toShard(chat.owner_id) }),
      ...indexMessages(key, messages),
      indexTitle(key, chat.title),
    );
    return chat.id;
  };
  for (let index = 0; index < COUNT; index++) {
    const texts = [
      ...repeat("everywhere", 7),
      ...(index < OLDEST ? repeat("longago", 70) : []),
      ...(index % 3 === 0 ? repeat("third", 30) : []),
      ...(index % 97 === 5 ? ["seldom"] : []),
    ];
    const pin_order = index === 4 ? 2 : index === 102 ? 1 : 0;
    const archived = index % 41 === 7;
    const updated_at = 1_000 + (index >> 1);
    const id = await insertTexts(texts, { pin_order, archived, updated_at });
    if (index % 50 === 10) {
      texts.push("seldom");
      await insertTexts(["seldom"], { parent_chat_id: id, root_chat_id: id });
    }
    created.push({ id, pin_order, updated_at, archived, texts });
  }
  for (let index = 0; index < 3; index++) {
    await insertTexts([...repeat("elsewhere", 700), "everywhere", "seldom"], { owner_id: outsider.user_id });
  }
  await store.commit(statements);
  const sorted = created
    .filter(({ archived }) => !archived)
    .sort((a, b) => {
      if (a.pin_order > 0 !== b.pin_order > 0) return a.pin_order > 0 ? -1 : 1;
      return a.pin_order - b.pin_order || b.updated_at - a.updated_at || (a.id < b.id ? 1 : -1);
    });
  return (word: string) => sorted.filter(({ texts }) => word === "" || texts.includes(word)).map(({ id }) => id);
};

const createFilter = (owner_id: string) => ({
  owner_id,
  mine: true,
  shared_with: [],
  archived: false,
  labels: [],
  pull: { statuses: [] },
});

test(
  "[FS-9] lists and searches return the same order in one page and in many, however many hits there are",
  async () => {
    await using world = await openChatWorld();
    const listExpected = await seedManyChats(world);
    const { store } = getContext(world.server);
    for (const word of ["", "everywhere", "longago", "third", "seldom", "elsewhere", "nowhere"]) {
      const expectedIds = listExpected(word);
      const q = word === "" ? "" : `q=search:${word}&`;
      const readPage = async (query: string) =>
        (await world.owner.get<Chat[]>(`/api/v2/chats?${q}${query}`)).map(({ id }) => id);
      expect([word, await readPage("limit=1000")]).toEqual([word, expectedIds]);
      const readIds: string[] = [];
      for (;;) {
        const lastId = readIds.at(-1);
        const nextIds = await readPage(lastId === undefined ? "" : `after_id=${lastId}`);
        if (nextIds.length === 0) break;
        expect([word, nextIds]).toEqual([word, expectedIds.slice(readIds.length, readIds.length + 50)]);
        readIds.push(...nextIds);
      }
      expect([word, readIds]).toEqual([word, expectedIds]);
      for (const offset of [1, 40, 299]) {
        expect([word, offset, await readPage(`limit=60&offset=${offset}`)]).toEqual([
          word,
          offset,
          expectedIds.slice(offset, offset + 60),
        ]);
      }
      // Both query plans of a search with many hits return the same chats.
      if (word === "") continue;
      const search = toMatching([{ wanted: [word], unwanted: [] }]);
      const filter = createFilter(world.user_id);
      expect(await store.scan(searchAllHits(filter, search, { limit: 1_000, offset: 0 }))).toEqual(expectedIds);
      const allIds = listExpected("");
      const matching = new Set(await store.scan(listMatching(allIds, search)));
      expect(allIds.filter((id) => matching.has(id))).toEqual(expectedIds);
      const fewHits = await store.scan(searchFewHits(filter, search, { limit: 1_000, offset: 0 }));
      const [hits = 0] = await store.scan(countHits(search, 5_000));
      expect([word, fewHits]).toEqual([word, hits > 2_000 ? [null] : expectedIds]);
    }
  },
  scaleTimeout(180_000),
);

testSingleServer("sqlite")(
  "[FS-10] the list, its searches and a server start scan no table and no index completely",
  async () => {
    await using world = await openChatWorld();
    using db = new Database(join(world.server.directory, "slipway.db"), { readonly: true });
    const filter = createFilter(world.user_id);
    const search = toMatching([{ wanted: ["word", "two words"], unwanted: [] }]);
    const cursor = { id: uuid(), pin_order: 0, updated_at: 5 };
    const explainQuery = ({ sql, params }: Query<unknown>): string[] =>
      (db.query(`explain query plan ${sql}`).all(...(params as never[])) as { detail: string }[]).map(
        ({ detail }) => detail,
      );
    const pages = [undefined, cursor, { ...cursor, pin_order: 2 }].map((after) => ({ limit: 50, offset: 0, after }));
    const plans = {
      list: pages.map((page) => explainQuery(listPage(filter, page))),
      few: pages.map((page) => explainQuery(searchFewHits(filter, search, page))),
      all: pages.map((page) => explainQuery(searchAllHits(filter, search, page))),
      // In the query plan, `chats` also names the list of requested chats.
      matching: [explainQuery(listMatching(["a", "b"], search)).filter((step) => step !== "SCAN chats")],
      views: [explainQuery(listChatViews(["a"])), explainQuery(listChildViews(["a"]))],
      start: [explainQuery(listBusyChats({}, ALL_ROWS)), explainQuery(listBusyChats({}, new OwnRows([1, 2])))],
    };
    for (const [name, steps] of Object.entries(plans)) {
      const scans = steps.flat().filter((step) => /^SCAN (chats|sub|root|users|m|u|w|a|s|chat_\w+)\b/.test(step));
      expect([name, scans]).toEqual([name, []]);
    }
    // The list is read in index order, and at most one page is sorted. If there are few hits, they are looked up by key.
    for (const steps of plans.list) expect(steps.filter((step) => step.includes("INDEX chats_owner")).length).toBe(1);
    for (const steps of [...plans.list, ...plans.all])
      expect(steps.filter((step) => step.includes("TEMP B-TREE")).length).toBeLessThan(2);
    expect(plans.matching[0]).toContain("MATERIALIZE asked");
    for (const steps of plans.few) expect(steps).toContain("SEARCH chats USING INTEGER PRIMARY KEY (rowid=?)");
  },
);
