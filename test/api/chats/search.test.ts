// Searching what was said: the grammar, what is indexed and when, whose it is, and a comparison with a naive search in memory.
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
const find = async (client: Client, text: string, more = ""): Promise<string[]> => {
  const q = encodeURIComponent(`${quoteQuery(text)} ${more}`);
  const ids = (await client.get<Chat[]>(`/api/v2/chats?q=${q}`)).map(({ id }) => id);
  // Paged results, which use another query, are the same.
  const first = await client.get<Chat[]>(`/api/v2/chats?limit=1&q=${q}`);
  expect(first.map(({ id }) => id)).toEqual(ids.slice(0, 1));
  return ids;
};
const answer = async (world: ChatWorld, id: string, text: string) => {
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say(text).finish();
  await follower.until(({ status }) => status === "waiting");
};

test("[FS-1] a message is found as soon as it is acknowledged; an edit removes replaced messages from the index", async () => {
  await using world = await openChatWorld();
  const flakyChat = await createChat(world, "Please look into the flaky deployments");
  expect(await find(world.owner, "flaky")).toEqual([flakyChat.id]);
  await answer(world, flakyChat.id, "The scheduler restarts too early.");
  expect(await find(world.owner, "scheduler restarted")).toEqual([flakyChat.id]);
  await sendMessage(world, flakyChat.id, "Then quieten the kangaroo");
  expect(await find(world.owner, "kangaroos")).toEqual([flakyChat.id]);
  await answer(world, flakyChat.id, "It hops quietly now.");
  const { messages } = await world.owner.get<MessagePage>(`/api/v2/chats/${flakyChat.id}/messages`);
  const first = messages.at(-1)?.id;
  await world.owner.patch(`/api/v2/chats/${flakyChat.id}/messages/${first}`, {
    content: [{ type: "text", text: "A wombat instead" }],
  });
  for (const gone of ["scheduler", "kangaroo", "hops"]) expect(await find(world.owner, gone)).toEqual([]);
  expect(await find(world.owner, "wombat")).toEqual([flakyChat.id]);
  // The title still comes from the replaced message.
  expect(await find(world.owner, "flaky")).toEqual([flakyChat.id]);
  await world.owner.patch(`/api/v2/chats/${flakyChat.id}`, { title: "About marsupials" });
  expect(await find(world.owner, "flaky")).toEqual([]);
  expect(await find(world.owner, "MARSUPIALS")).toEqual([flakyChat.id]);
});

test("[FS-3] words match by their stems in messages and whole in titles; phrases, or, minus; nothing but punctuation finds nothing", async () => {
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
  const names = async (text: string) =>
    (await find(world.owner, text)).map((id) => Object.keys(ids).find((name) => ids[name] === id) ?? "").sort();
  expect(await names("deploy")).toEqual(["both", "deploy"]);
  expect(await names("Deployed API")).toEqual(["deploy"]);
  expect(await names("quickly")).toEqual(["both", "tests"]);
  expect(await names('"api test"')).toEqual(["tests"]);
  expect(await names('"test api"')).toEqual([]);
  expect(await names("failed or running")).toEqual(["deploy", "tests"]);
  expect(await names("deploy -slow")).toEqual(["deploy"]);
  expect(await names('deploy -"slow test"')).toEqual(["deploy"]);
  expect(await names("my_function")).toEqual(["both"]);
  // Titles match only whole words.
  expect(await names("title testss")).toEqual(["tests"]);
  expect(await names("boths")).toEqual(["both"]);
  expect(await names("titl")).toEqual([]);
  for (const nothing of ["!!! ---", "*", "-deploy", "or", '""'])
    expect([nothing, await names(nothing)]).toEqual([nothing, []]);
  expect(await names("the")).toEqual([]);
});

test("[FS-4] a search is refused without text, with too many words, and alongside title, pr_title and pr", async () => {
  await using world = await openChatWorld();
  const many = Array.from({ length: 101 }, (_, index) => `w${index}`).join(" ");
  for (const q of ['search:""', 'search:"  "', "search:", "search:a search:b", "search:a title:b", "search:a pr:1"]) {
    expect([q, (await world.owner.fetch("GET", `/api/v2/chats?q=${encodeURIComponent(q)}`)).status]).toEqual([q, 400]);
  }
  expect((await world.owner.fetch("GET", `/api/v2/chats?q=${encodeURIComponent(quoteQuery(many))}`)).status).toBe(400);
});

test("[FS-5] users find their own chats, in list order, with the list's other filters, and by messages of sub-chats", async () => {
  await using world = await openChatWorld();
  const context = getContext(world.server);
  const outsider = new Client(world.server.url, (await seedUser(world.server)).token);
  const ids: string[] = [];
  for (const text of ["zebra one", "zebra two", "zebra three"]) {
    const { id } = await createChat(world, text);
    await answer(world, id, "fine");
    ids.push(id);
  }
  const [one = "", two = "", three = ""] = ids;
  expect(await find(outsider, "zebra")).toEqual([]);
  expect(await find(world.owner, "zebra")).toEqual([three, two, one]);
  await world.owner.patch(`/api/v2/chats/${one}`, { pin_order: 1 });
  expect(await find(world.owner, "zebra")).toEqual([one, three, two]);
  await world.owner.patch(`/api/v2/chats/${two}`, { archived: true });
  expect(await find(world.owner, "zebra")).toEqual([one, three]);
  expect(await find(world.owner, "zebra", "archived:true")).toEqual([two]);
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
  expect(await find(world.owner, "okapi")).toEqual([three]);
  expect(await find(world.owner, "secret")).toEqual([]);
});

testSingleServer("sqlite")(
  "[FS-6] the index is merged in slices until there is nothing to merge, and finds the same before and after",
  async () => {
    await using world = await openChatWorld();
    const context = getContext(world.server);
    const ids: string[] = [];
    for (let index = 0; index < 20; index++) ids.unshift((await createChat(world, `lemur number${index}`)).id);
    const readIndexPieces = () => context.store.get(readSegments("message_search"));
    const before = await readIndexPieces();
    expect(new Set(await find(world.owner, "lemur"))).toEqual(new Set(ids));
    context.services.sweep();
    // Ends when one of our slices changes nothing.
    for (let last = before; ; ) {
      await context.store.commit([mergeSearch("message_search")]);
      const now = await readIndexPieces();
      if (now === last) break;
      last = now;
    }
    expect(await readIndexPieces()).not.toBe(before);
    expect(new Set(await find(world.owner, "lemur"))).toEqual(new Set(ids));
    expect(await find(world.owner, "number7")).toEqual([ids[12] as string]);
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

const has = (document: readonly string[], words: readonly string[]): boolean =>
  document.some((_, at) => words.every((word, index) => document[at + index] === word));

const naive = (search: Search, body: string, split: Splitter): boolean => {
  const document = split(body);
  return search.some((terms) => {
    const knownTerms = terms
      .map((term) => ({ ...term, words: split(term.texts.join(" ")) }))
      .filter((one) => one.words.length > 0);
    const wantedTerms = knownTerms.filter(({ minus }) => !minus);
    const unwanted = knownTerms.filter(({ minus }) => minus);
    return (
      wantedTerms.length > 0 &&
      wantedTerms.every(({ words }) => has(document, words)) &&
      !unwanted.some(({ words }) => has(document, words))
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
  .map((one) => (one.phrase ? one : { ...one, texts: one.texts.slice(0, 1) }));
const searches = fc.array(fc.array(term, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
const formatSearch = (search: Search): string =>
  search
    .map((terms) =>
      terms
        .map(({ texts, minus, phrase }) => `${minus ? "-" : ""}${phrase ? `"${texts.join(" ")}"` : texts[0]}`)
        .join(" "),
    )
    .join(" or ");

test("[FS-7] a search finds what a naive search in memory finds, and no input breaks it", async () => {
  await using world = await openChatWorld();
  const seed = Math.floor(Math.random() * 2 ** 31);
  process.stderr.write(`search: seed ${seed}\n`);
  const bodies = fc
    .sample(fc.array(word, { minLength: 1, maxLength: 6 }), { numRuns: 25, seed })
    .map((one) => one.join(" "));
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
        ({ body, title }) => naive(search, body, listStems) || naive(search, title, splitWords),
      );
      expect(new Set(await find(world.owner, formatSearch(search)))).toEqual(new Set(expected.map(({ id }) => id)));
    }),
    { numRuns: 60, seed },
  );
  const nasty = fc.oneof(
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
      nasty,
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

test("[FS-8] wildcards in a title are ordinary characters", async () => {
  await using world = await openChatWorld();
  await createChat(world, "100% done_now");
  await createChat(world, "1000 donexnow");
  const titles = async (q: string) =>
    (await world.owner.get<Chat[]>(`/api/v2/chats?q=${encodeURIComponent(q)}`)).map(({ title }) => title);
  expect(await titles("title:100%")).toEqual(["100% done_now"]);
  expect(await titles("title:done_now")).toEqual(["100% done_now"]);
});

/** More chats than a search checks one by one. Words occur in all of them, only in the oldest, only in other users' chats, or in few. */
const seedMany = async (world: ChatWorld) => {
  const { store } = getContext(world.server);
  const outsider = await seedUser(world.server);
  const COUNT = 300;
  const OLDEST = 30;
  const many = (word: string, count: number) => Array.from({ length: count }, () => word);
  const created: { id: string; pin_order: number; updated_at: number; archived: boolean; texts: string[] }[] = [];
  const statements: Statement[] = [];
  const insertTexts = async (texts: readonly string[], more: Record<string, unknown> = {}): Promise<string> => {
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
      // Two at a time moved in the same moment.
      updated_at: 1_000 + (created.length >> 1),
      snapshot_version: 1,
      history_version: 1,
      ...more,
    };
    const message = texts.map((text, index) => ({
      id: index + 1,
      role: "user",
      visibility: "both",
      content: [{ type: "text" as const, text }],
    }));
    statements.push(
      insertChat({ ...chat, part: toShard(chat.owner_id) }),
      ...indexMessages(key, message),
      indexTitle(key, chat.title),
    );
    return chat.id;
  };
  for (let index = 0; index < COUNT; index++) {
    const texts = [
      ...many("everywhere", 7),
      ...(index < OLDEST ? many("longago", 70) : []),
      ...(index % 3 === 0 ? many("third", 30) : []),
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
    await insertTexts([...many("elsewhere", 700), "everywhere", "seldom"], { owner_id: outsider.user_id });
  }
  await store.commit(statements);
  const order = created
    .filter(({ archived }) => !archived)
    .sort((a, b) => {
      if (a.pin_order > 0 !== b.pin_order > 0) return a.pin_order > 0 ? -1 : 1;
      return a.pin_order - b.pin_order || b.updated_at - a.updated_at || (a.id < b.id ? 1 : -1);
    });
  return (word: string) => order.filter(({ texts }) => word === "" || texts.includes(word)).map(({ id }) => id);
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
  "[FS-9] pages of the list and of searches follow each other in the same order, however many hits the words have",
  async () => {
    await using world = await openChatWorld();
    const expected = await seedMany(world);
    const { store } = getContext(world.server);
    for (const word of ["", "everywhere", "longago", "third", "seldom", "elsewhere", "nowhere"]) {
      const expectedIds = expected(word);
      const q = word === "" ? "" : `q=search:${word}&`;
      const page = async (more: string) =>
        (await world.owner.get<Chat[]>(`/api/v2/chats?${q}${more}`)).map(({ id }) => id);
      expect([word, await page("limit=1000")]).toEqual([word, expectedIds]);
      const followed: string[] = [];
      for (;;) {
        const last = followed.at(-1);
        const next = await page(last === undefined ? "" : `after_id=${last}`);
        if (next.length === 0) break;
        expect([word, next]).toEqual([word, expectedIds.slice(followed.length, followed.length + 50)]);
        followed.push(...next);
      }
      expect([word, followed]).toEqual([word, expectedIds]);
      for (const offset of [1, 40, 299]) {
        expect([word, offset, await page(`limit=60&offset=${offset}`)]).toEqual([
          word,
          offset,
          expectedIds.slice(offset, offset + 60),
        ]);
      }
      // Both query plans of a search with many hits.
      if (word === "") continue;
      const search = toMatching([{ wanted: [word], unwanted: [] }]);
      const filter = createFilter(world.user_id);
      expect(await store.scan(searchAllHits(filter, search, { limit: 1_000, offset: 0 }))).toEqual(expectedIds);
      const allIds = expected("");
      const matching = new Set(await store.scan(listMatching(allIds, search)));
      expect(allIds.filter((id) => matching.has(id))).toEqual(expectedIds);
      const few = await store.scan(searchFewHits(filter, search, { limit: 1_000, offset: 0 }));
      const [hits = 0] = await store.scan(countHits(search, 5_000));
      expect([word, few]).toEqual([word, hits > 2_000 ? [null] : expectedIds]);
    }
  },
  scaleTimeout(180_000),
);

testSingleServer("sqlite")(
  "[FS-10] the list, its searches and a start read no table and no index from end to end",
  async () => {
    await using world = await openChatWorld();
    using db = new Database(join(world.server.directory, "slipway.db"), { readonly: true });
    const filter = createFilter(world.user_id);
    const search = toMatching([{ wanted: ["word", "two words"], unwanted: [] }]);
    const after = { id: uuid(), pin_order: 0, updated_at: 5 };
    const explainQuery = ({ sql, params }: Query<unknown>): string[] =>
      (db.query(`explain query plan ${sql}`).all(...(params as never[])) as { detail: string }[]).map(
        ({ detail }) => detail,
      );
    const pages = [undefined, after, { ...after, pin_order: 2 }].map((after) => ({ limit: 50, offset: 0, after }));
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
