import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as root from 'legate'
import * as a2a from 'legate/a2a'
import * as acp from 'legate/acp'
import * as aiSdk from 'legate/ai-sdk'
import * as background from 'legate/background'
import * as compat from 'legate/compat'
import * as dbosEngine from 'legate/engine/dbos'
import * as fields from 'legate/fields'
import * as grant from 'legate/grant'
import * as hooks from 'legate/hooks'
import * as mcp from 'legate/mcp'
import * as mcpServing from 'legate/mcp-server'
import * as models from 'legate/models'
import * as promptEntry from 'legate/prompt'
import * as recipe from 'legate/recipe'
import * as rows from 'legate/rows'
import * as server from 'legate/server'
import * as json from 'legate/store/json'
import * as memory from 'legate/store/memory'
import * as postgres from 'legate/store/postgres'
import * as sqlite from 'legate/store/sqlite'
import * as testing from 'legate/testing'
import * as tools from 'legate/tools'
import { afterAll, describe, expect, test } from 'vitest'
import { localEngine } from '../src/core/engine/local.ts'
import { localStore } from './support/rows.ts'

const { agent, createRuntime, isLegateError, tool } = root
const { extension, planner } = hooks
const folder = mkdtempSync(join(tmpdir(), 'legate-doors-'))
const file = join(folder, 'bake.md')
writeFileSync(file, '---\nname: bake\ndescription: Bakes.\n---\nBake.\n')

const schema = { type: 'object', properties: { dish: { type: 'string' } }, required: ['dish'] } as const
const cook = agent({ name: 'cook', instructions: 'Cook.', model: testing.scriptedModel(() => ({ text: 'Done.' })) })
const menu = agent({
  name: 'menu',
  instructions: 'Plan.',
  output: schema,
  model: testing.scriptedModel(() => ({ text: '{"dish":"soup"}' })),
})
const chats = cook.use(hooks.chatSession())
const chat = chats.activateChatSession('lunch')
const runtime = createRuntime({ agents: [cook, menu] })
const run = runtime.run(cook, 'Soup, please.')
const menuRun = runtime.run(menu, 'What is there?')
const { runId } = await run.result
const conversation = await runtime.conversation(run.conversationId)
const spawned = await runtime.spawn(cook, 'Bread, please.')
const prompt = promptEntry.prompt({ input: 'Hello' })
const words = recipe.EMPTY_AGENT_FILE

afterAll(async () => {
  await runtime.close()
  rmSync(folder, { recursive: true })
})

/** Calls with these options, and one option with a value it does not take. */
type Door = readonly [call: (options: never) => unknown, wrong: Readonly<Record<string, unknown>>]
type Doors = Readonly<Record<string, Door>>
/** A door for every public method, or null where it takes no options: one that is new and not here does not compile. */
type Every<T> = { readonly [Name in Methods<T>]: Door | null }
type Methods<T> = {
  [Name in keyof T & string]: T[Name] extends (...given: never[]) => unknown ? Name : never
}[keyof T & string]

const FUNCTIONS: Doors = {
  agent: [(o: object) => agent({ name: 'x', instructions: 'X.', ...o }), { toolTrace: 'yes' }],
  asAiSdkTool: [(o) => aiSdk.asAiSdkTool(cook, o), { runtime: 5 }],
  auto: [(o: object) => root.auto({ description: 'X.', input: schema, output: schema, ...o }), { description: 5 }],
  backgroundSubagents: [(o) => background.backgroundSubagents(o), { nested: 'yes' }],
  builtinToolkit: [(o) => recipe.builtinToolkit('todo', o), { availableTools: 'all' }],
  chatSession: [(o) => hooks.chatSession(o), { maxLength: 'long' }],
  checkSubagentContract: [(o) => testing.checkSubagentContract(cook, o), {}],
  convert: [(o) => recipe.convert(words, 'claude', o), { lossy: 'yes' }],
  CrashCase: [(o: object) => new testing.CrashCase({ program: file, ...o }), { store: 'tape' }],
  crash: [(o: object) => testing.crash({ program: file, ...o }, []), { maxWorkers: 'many' }],
  crashWorker: [(o: object) => testing.crashWorker({ options: {}, drive: async () => {}, ...o }), { drive: 5 }],
  createRuntime: [(o) => createRuntime(o), { agents: 5 }],
  describeRecipe: [(o) => recipe.describeRecipe(file, o), { mode: 'loose' }],
  discover: [(o) => recipe.discover(o), { cwd: 5 }],
  projectFiles: [(o) => recipe.projectFiles(recipe.EMPTY_AGENT_FILE, o), { cwd: 5 }],
  discoverSkills: [(o) => recipe.discoverSkills(o), { home: 5 }],
  diskFiles: [(o: object) => tools.diskFiles({ workspace: folder, ...o }), { allowDeleteInternal: 'yes' }],
  extension: [(o: object) => extension({ name: 'x', ...o }), { onError: 'ignore' }],
  extensionSources: [(o) => recipe.extensionSources([], o), { scope: 'world' }],
  failpoints: [(o) => testing.failpoints(o), { passed: 5 }],
  fieldParser: [(o) => fields.fieldParser(o), { strict: 'yes' }],
  handler: [(o) => server.handler(runtime, o), { allowHosts: 5 }],
  a2aAgent: [(o: object) => a2a.a2aAgent({ name: 'x', url: 'https://agents.example/x', ...o }), { headers: 5 }],
  serveAcp: [(o) => acp.serveAcp(o as never), { agent: 5 }],
  toolAgent: [
    (o) => mcpServing.toolAgent('t', tool({ description: 'X.', input: schema, execute: () => 1 }) as never, o),
    { ask: 'yes' },
  ],
  serveMcp: [(o) => mcpServing.serveMcp(runtime.as({ id: 'ann', scopes: [] }), o), { waitMs: 'soon' }],
  serve: [(o) => server.serve(runtime, o), { allowOrigins: 5 }],
  generalWorker: [(o) => background.generalWorker(o), { tools: 5 }],
  getKeyResult: [(o) => compat.getKeyResult(menuRun, 'dish', o), { mustInPrompt: 'yes' }],
  joinSpawned: [(o) => background.joinSpawned([spawned], 'all', o), { timeoutMs: 'long' }],
  jsonStore: [(o: object) => json.jsonStore({ folder: join(folder, 'rows'), ...o }), { durability: 'some' }],
  loadAgentFile: [(o) => recipe.loadAgentFile(file, o), { mode: 'loose' }],
  loadDefinition: [(o) => recipe.loadDefinition(file, o), { mode: 'loose' }],
  loadJsonPrompt: [(o) => compat.loadJsonPrompt('{"input": "x"}', o), { mappings: 5 }],
  loadPromptFile: [(o) => promptEntry.loadPromptFile(file, o), { mappings: 5 }],
  loadPromptText: [(o) => promptEntry.loadPromptText('input: x', o), { format: 'toml' }],
  loadRecipe: [(o) => recipe.loadRecipe(file, o), { mode: 'loose' }],
  loadYamlPrompt: [(o) => compat.loadYamlPrompt('{"input": "x"}', o), { mappings: 5 }],
  makeSubagentTool: [
    (o: object) => compat.makeSubagentTool(cook, { name: 'x' }, { host: cook, ...o }),
    { toolName: 5 },
  ],
  mcpServer: [(o: object) => mcp.mcpServer({ command: 'cat', ...o }), { timeoutMs: 'long' }],
  memoryFiles: [(o) => tools.memoryFiles(o), { workspace: 'here' }],
  memoryStore: [(o) => memory.memoryStore(o), { keep: 'all' }],
  memoryTools: [(o) => tools.memoryTools(o), { directory: 5 }],
  missingAgents: [(o) => recipe.missingAgents(words, o), { cwd: 5 }],
  openSubagents: [(o) => recipe.openSubagents(o), { background: 'many' }],
  planner: [(o) => planner(o), { maxRounds: 'many' }],
  programRequest: [(o) => grant.programRequest(['ls'], o), { secrets: 5 }],
  readDefinition: [(o) => recipe.readDefinition(file, o), { mode: 'loose' }],
  readRecipeFile: [(o) => recipe.readRecipeFile(file, o), { mode: 'loose' }],
  recipeAgent: [(o) => recipe.recipeAgent(file, o), { mode: 'loose' }],
  record: [(o) => testing.record(createRuntime(), join(folder, 'tape'), o), { redact: 5 }],
  registerTool: [
    (o: object) => compat.registerTool(cook, 'x', { description: 'X.', input: schema, execute: () => 1, ...o }),
    { polls: 'yes' },
  ],
  replay: [(o) => testing.replay(join(folder, 'tape'), o), { agents: 5 }],
  runProcess: [(o: object) => tools.runProcess('true', [], { signal: AbortSignal.timeout(9), ...o }), { cwd: 5 }],
  scheduleTasks: [(o) => background.scheduleTasks(runtime, [], o), { maxConcurrency: 'many' }],
  skillsTools: [(o) => recipe.skillsTools(o), { cwd: 5 }],
  dbos: [(o) => dbosEngine.dbos(o), { keepMs: 'long' }],
  postgresStore: [(o: object) => postgres.postgresStore({ url: 'postgres://x', ...o }), { readOnly: 'yes' }],
  sqliteStore: [(o: object) => sqlite.sqliteStore({ path: join(folder, 'rows.db'), ...o }), { readOnly: 'yes' }],
  engineConformance: [
    (o: object) => testing.engineConformance({ name: 'x', create: localEngine, test: () => 1, ...o }),
    { create: 'local' },
  ],
  storeConformance: [
    (o: object) =>
      testing.storeConformance({ name: 'x', open: () => memory.memoryStore(), durable: false, test: () => 1, ...o }),
    { durable: 'yes' },
  ],
  tool: [(o: object) => tool({ description: 'X.', input: schema, execute: () => 1, ...o }), { polls: 'yes' }],
  toUIMessages: [(o) => aiSdk.toUIMessages(conversation, o), { limitTurns: 'all' }],
  toUIMessageStream: [(o) => aiSdk.toUIMessageStream(run, o), { ui: 5 }],
  useMcp: [(o: object) => compat.useMcp(cook, { cat: { command: 'cat', ...o } }), { timeoutMs: 'long' }],
  waitKeys: [(o) => compat.waitKeys(menuRun, ['dish'], o), { mustInPrompt: 'yes' }],
  withFailpoints: [(o) => testing.withFailpoints(memory.memoryStore(), o), { killAt: 5 }],
  whenKey: [(o) => compat.whenKey(menuRun, 'dish', () => 1, o), { mustInPrompt: 'yes' }],
  toolkit: [(o: object) => tools.toolkit({ groups: {}, ...o }), { meta: 'some' }],
  validateDefinition: [(o) => recipe.validateDefinition(file, o), { mode: 'loose' }],
}

const METHODS = {
  runtime: {
    run: [(o) => runtime.run(cook, 'x', o), { owner: 5 }],
    spawn: [(o) => runtime.spawn(cook, 'x', o), { wake: 'never' }],
    tree: [(o) => runtime.tree(run.conversationId, o), { limitTurns: 'all' }],
    events: [(o) => runtime.events(run.conversationId, o), { live: 'yes' }],
    graph: [(o) => runtime.graph(run.conversationId, o), { turns: 'all' }],
    approvals: [(o) => runtime.approvals(o), { limit: 'all' }],
    questions: [(o) => runtime.questions(o), { toHosts: 'yes' }],
    checkAnswer: [(o: object) => runtime.checkAnswer(lastNode(), { allow: true, ...o }), { by: 5 }],
    answer: [
      async (o: object) =>
        runtime.answer((await conversation.row()) === undefined ? '' : lastNode(), { allow: true, ...o }),
      { always: 'yes' },
    ],
    audit: [(o) => runtime.audit(o), { repair: 'yes' }],
    picture: [(o) => runtime.picture(run.conversationId, o), { format: 'png' }],
    usageByDay: [(o: object) => runtime.usageByDay({ from: '2026-11-17', to: '2026-11-17', ...o }), { owner: 5 }],
    prune: [(o: object) => runtime.prune({ keep: 1_000, ...o }), { dryRun: 'yes' }],
    agents: null,
    runs: [(o) => runtime.runs(o), { limit: 'all' }],
    conversations: [(o) => runtime.conversations(o), { limit: 'all' }],
    forgetOwner: null,
    restored: [(o) => runtime.restored(o), { cancel: 'yes' }],
    copyFrom: [(o) => runtime.copyFrom(runtime.store, o), { progress: 'yes' }],
    conversationIdFor: [(o) => runtime.conversationIdFor(cook, 'x', o), { owner: 5 }],
    as: null,
    attach: null,
    cancel: null,
    close: null,
    conversation: null,
    diff: null,
    dropCaches: null,
    explain: null,
    export: null,
    findAgent: null,
    forget: null,
    inbox: [(o) => runtime.inbox(o), { limit: 'all' }],
    settle: [(o) => runtime.settle(lastNode(), { leave: true }, o), { by: 5 }],
    idle: null,
    import: null,
    nodeInfo: null,
    processes: [(o) => runtime.processes(o), { running: 'yes' }],
    requestOf: null,
    result: null,
    resume: null,
    changes: null,
    otlp: [(o) => runtime.otlp(runId, o), { vocabulary: 'newest' }],
    timeline: null,
    usage: null,
    useTape: null,
    why: [(o) => runtime.why(runId, o), { processes: 'all' }],
  } satisfies Every<root.Runtime>,
  conversation: {
    configure: [(o) => conversation.configure(o), { contextTurns: 'all' }],
    recentTurns: [(o) => conversation.recentTurns(o), { limitTurns: 'all' }],
    transcript: [(o) => conversation.transcript(o), { limitTurns: 'all' }],
    transcriptPage: [(o) => conversation.transcriptPage(o), { includeDeleted: 'yes' }],
    transcriptFor: [(o) => conversation.transcriptFor(lastNode(), o), { limitTurns: 'all' }],
    contextFor: [(o) => conversation.contextFor(lastNode(), o), { limitTurns: 'all' }],
    messagePage: [(o) => conversation.messagePage(o), { limit: 'all' }],
    messagesPage: [(o) => conversation.messagesPage(o), { limit: 'all' }],
    eventPage: [(o) => conversation.eventPage(o), { types: 'all' }],
    audit: [(o) => conversation.audit(o), { verify: 'yes' }],
    mutate: [(o) => conversation.mutate(() => 1, o), { runId: 5 }],
    usageStats: [(o) => conversation.usageStats(o), { of: 'world' }],
    activate: null,
    closeSession: null,
    deactivate: null,
    groups: null,
    observe: null,
    row: null,
    sessions: null,
  } satisfies Every<root.ConversationHandle>,
  history: {
    fork: [(o) => conversation.history.fork(lastNode(), o), { children: 'some' }],
    merge: [(o) => conversation.history.merge([], o), { prompt: 5 }],
    archive: [(o) => conversation.history.archive(o), { mode: 'now' }],
    compress: [(o: object) => conversation.history.compress({ toRunId: runId, summary: 'x', ...o }), { fromRunId: 5 }],
    compact: [(o) => conversation.history.compact(runId, o), { keep: 'all' }],
    adopt: null,
    edit: null,
    exclude: null,
    include: null,
    lanes: null,
    rerun: null,
    restore: null,
    retry: null,
    skip: null,
    softDelete: null,
    stop: null,
    uncompress: null,
    versions: null,
  } satisfies Every<rows.ConversationHistory>,
  run: {
    events: [(o) => menuRun.events(o), { fields: 'all' }],
    fields: [(o) => menuRun.fields('dish', o), { partial: 'yes' }],
    field: [(o) => menuRun.field('dish', o), { timeoutMs: 'long' }],
    cancel: null,
    onField: null,
    settled: null,
  } satisfies Every<root.Run>,
  spawned: {
    wait: [(o) => spawned.wait(o), { timeoutMs: 'long' }],
    poll: [(o) => spawned.poll(o), { limitTurns: 'all' }],
    cancel: null,
    result: null,
    send: null,
  } satisfies Every<background.SpawnedAgent>,
  agent: {
    generate: [(o) => cook.generate('x', o), { grant: 5 }],
    stream: [(o) => cook.stream('x', o), { grant: 5 }],
    auto: [(o: object) => cook.auto({ description: 'X.', input: schema, output: schema, ...o }), { description: 5 }],
    loadPromptFile: [(o) => cook.loadPromptFile(file, o), { mappings: 5 }],
    loadPromptText: [(o) => cook.loadPromptText('input: x', o), { format: 'toml' }],
    activateChatSession: [(o) => chats.activateChatSession('x', o), { owner: 5 }],
    request: null,
    use: null,
  } satisfies Every<typeof chats>,
  chat: {
    stream: [(o) => chat.stream('x', o), { title: 5 }],
    generate: [(o) => chat.generate('x', o), { title: 5 }],
    history: null,
    recordInputPaths: null,
    recordOutputPaths: null,
    request: null,
  } satisfies Every<hooks.ChatSession>,
  request: {
    start: [(o) => cook.request().input('x').start(o), { title: 5 }],
    generate: [(o) => cook.request().input('x').generate(o), { title: 5 }],
    loadPromptFile: [(o) => cook.request().loadPromptFile(file, o), { mappings: 5 }],
    loadPromptText: [(o) => cook.request().loadPromptText('input: x', o), { format: 'toml' }],
    set: [(o) => prompt.set('input', 'x', o), { always: 'yes' }],
    replace: [(o) => prompt.replace('input', 'x', o), { always: 'yes' }],
    add: [(o) => prompt.add('input', 'x', o), { always: 'yes' }],
    remove: [(o) => prompt.remove('input', o), { always: 'yes' }],
    toText: [(o) => prompt.toText(o), { roleLines: 'yes' }],
    toMessages: [(o) => prompt.toMessages(o), { rich: 'yes' }],
    toRequest: [(o) => prompt.toRequest(o), { tools: 'some' }],
    system: sayIn('system'),
    developer: sayIn('developer'),
    rule: sayIn('rule'),
    role: sayIn('role'),
    userInfo: sayIn('userInfo'),
    chatHistory: sayIn('chatHistory'),
    addChatHistory: sayIn('addChatHistory'),
    info: sayIn('info'),
    tools: sayIn('tools'),
    actionResults: sayIn('actionResults'),
    addActionResults: sayIn('addActionResults'),
    instruct: sayIn('instruct'),
    examples: sayIn('examples'),
    input: sayIn('input'),
    attachment: sayIn('attachment'),
    output: sayIn('output'),
    outputFormat: sayIn('outputFormat'),
    options: sayIn('options'),
    get: null,
    reader: null,
    through: null,
    toJsonPrompt: null,
    toYamlPrompt: null,
    use: null,
  } satisfies Every<promptEntry.AgentRequest>,
}

type Calls = Readonly<Record<string, (given: never) => unknown>>

/** They take nothing at all. */
const TAKE_NOTHING: Calls = {
  askTools: (o) => background.askTools(o),
  developerTools: (o) => tools.developerTools(o),
  'agent.request': (o) => cook.request(o),
  'chat.history': (o) => chat.history(o),
  'chat.request': (o) => chat.request(o),
  'conversation.groups': (o) => conversation.groups(o),
  'conversation.sessions': (o) => conversation.sessions(o),
  'history.lanes': (o) => conversation.history.lanes(o),
  'run.settled': (o) => menuRun.settled(o),
  'runtime.close': (o) => runtime.close(o),
  'runtime.resume': (o) => runtime.resume(o),
  'spawned.result': (o) => spawned.result(o),
}

/** They take a text or a number, no object. */
const TAKE_ONE_VALUE: Calls = {
  fakeClock: (o) => testing.fakeClock(o),
  'fakeClock.advance': (o) => testing.fakeClock().advance(o),
  'run.cancel': (o) => run.cancel(o),
  'runtime.cancel': (o) => runtime.cancel(runId, o),
  'runtime.forget': (o) => runtime.forget(run.conversationId, o),
  scriptedModel: (o) => testing.scriptedModel([], o),
  'spawned.cancel': (o) => spawned.cancel(o),
}

/** Functions that take no options: what they are given is data, or positional. */
const WITHOUT_OPTIONS: readonly string[] = [
  ...['askTools', 'attribute', 'costOf', 'developerTools', 'fileTools', 'findModel', 'fromAiSdk', 'isAgent'],
  ...['isLegateError', 'missingSecrets', 'modelInfo', 'startWaiter', 'todoTools'],
  // Evidence of a crash test is data, which its own types describe.
  ...[
    'aftermath',
    'checkStanding',
    'countEffect',
    'countOutside',
    'fakeClock',
    'openTopRuns',
    'passPoint',
    'readTrees',
    'look',
    'lookWith',
    'seenOf',
  ],
  // They make texts of what their types describe.
  ...['askedText', 'callText', 'wantedText'],
  ...['toolFunc', 'useTool', 'useTools'],
  ...['forgetBetweenNodes', 'scriptedModel', 'startCounter', 'tellTest', 'workerRole'],
  // Grants and layers are values that are checked where they are given to an agent or a runtime.
  ...[
    'decide',
    'delegateLayer',
    'explain',
    'hostRequest',
    'leaveFree',
    'lint',
    'narrow',
    'profileLayer',
    'readRequest',
    'useLayer',
  ],
  // A principal is data that is checked whole.
  ...['atThisMachine', 'checkPrincipal', 'hasScope', 'isOfThisMachine', 'narrowPrincipal', 'Tokens', 'localTokenFile'],
  ...['countedIds', 'isOperator', 'isAsWide', 'looksAfter', 'seesEverything'],
  'maySee',
  'mayStart',
  ...['dotPath', 'matchesPath', 'missingFields', 'readPath', 'slashPath', 'wildcardPath'],
  ...['Prompt', 'field', 'prompt'],
  ...['TaskBoard', 'findDefinition', 'mentionedIn', 'modelOf', 'modelUse', 'noticeText', 'noticesOf', 'readSkillFile'],
  ...[
    'readTaskEvent',
    'recipeFileName',
    'secretsOf',
    'shownExtension',
    'skillInstructions',
    'sourceName',
    'subRecipeValues',
  ],
  ...['subagentLine', 'subagentNotice', 'writeRecipe', 'jsonSession', 'isPostgresUrl'],
  ...['recipePrompt', 'signingKey'],
]

const ENTRIES: readonly object[] = [
  ...[root, aiSdk, background, compat, fields, grant, hooks, mcp, mcpServing, models, promptEntry, recipe, rows, tools],
  ...[a2a, acp, dbosEngine, json, memory, postgres, server, sqlite, testing],
]

test('every public function is at a door of this table, or takes no options', () => {
  const functions = ENTRIES.flatMap((entry) => Object.entries(entry))
    .filter(([, value]) => typeof value === 'function' && !(value.prototype instanceof Error))
    .map(([name]) => name)

  expect(sorted(functions)).toEqual(sorted([...Object.keys(FUNCTIONS), ...WITHOUT_OPTIONS]))
})

const all = [
  ...Object.entries(FUNCTIONS),
  ...Object.entries(METHODS).flatMap(([of, doors]) =>
    Object.entries<Door | null>(doors).flatMap(([name, door]) =>
      door === null ? [] : [[`${of}.${name}`, door] as const],
    ),
  ),
]

describe.each(all)('%s', (_name, [call, wrong]) => {
  const [option = 'input'] = Object.keys(wrong)

  test('refuses a misspelt option and says which was meant', async () => {
    const error = await refusal(() => call({ [`${option}z`]: 1 } as never))

    expect(error.message).toMatch(new RegExp(`has no option "${option}z"\\. Did you mean "\\w+"\\?`))
    expect(isLegateError(error, 'definition')).toBe(true)
  })

  test('refuses a value that the option does not take', async ({ skip }) => {
    skip(Object.keys(wrong).length === 0, 'its option takes every value')
    const error = await refusal(() => call(wrong as never))

    expect(isLegateError(error)).toBe(true)
    expect(error.message).toContain(option)
  })
})

test('a node kind of one’s own: a misspelt flag, a wrong one and one without code are refused', () => {
  const withKind = (more: object) => () => createRuntime({ kinds: { work: { execute: () => 1, ...more } } })
  const where = 'createRuntime({ kinds }): the node kind "work"'

  expect(withKind({ editible: false })).toThrow(`${where} has no option "editible". Did you mean "editable"?`)
  expect(withKind({ leaf: 'no' })).toThrow(`${where}: leaf must be true or false, not "no".`)
  expect(withKind({ execute: undefined })).toThrow('the node kind "work" needs execute(node, context).')
})

test.each(Object.entries(TAKE_NOTHING))(
  '%s takes no options, and says so when it is given one',
  async (_name, call) => {
    const error = await refusal(() => call({ x: 1 } as never))

    expect(error.message).toMatch(/has no option "x"\. It has none\./)
    expect(isLegateError(error, 'definition')).toBe(true)
  },
)

test.each(Object.entries(TAKE_ONE_VALUE))('%s takes one plain value, and refuses an object', async (_name, call) => {
  const error = await refusal(() => call({ x: 1 } as never))

  expect(isLegateError(error)).toBe(true)
  expect(error.message).toMatch(/must be a (?:text|number)|needs a reason in words/)
})

function sayIn(slot: string): Door {
  const say = Reflect.get(prompt, slot) as () => unknown
  return [(options) => Reflect.apply(say, prompt, [{ x: 'str' }, options]), { always: 'yes' }]
}

function lastNode(): string {
  return localStore(runtime).nodesOf(runId).at(-1)?.id ?? ''
}

async function refusal(call: () => unknown): Promise<Error> {
  try {
    const given = await call()
    // A run that could not be started says so when it is awaited.
    await (given as { readonly result?: unknown } | undefined)?.result
  } catch (error) {
    return error as Error
  }
  throw new Error('it was not refused')
}

function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted()
}
