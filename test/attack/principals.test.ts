import { agent, createRuntime, type Principal, type Runtime, type ScopedRuntime, tool } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LocalStore, Store } from '../../src/core/store/store.ts'
import { isFull } from '../crash/support/full.ts'
import { remoteStore } from '../support/remote.ts'
import { tempFolder } from '../support/temp-folder.ts'

const EVERY_SCOPE = [
  ...(['start', 'read', 'cancel', 'approve', 'approve:always', 'history', 'delete', 'export'] as const),
  ...(['audit', 'admin'] as const),
]
const ANN: Principal = { id: 'ann', scopes: EVERY_SCOPE }
const EVE: Principal = { id: 'eve', scopes: EVERY_SCOPE }
const NOBODY: Principal = { id: 'eve', scopes: [] }
const UNKNOWN = '01900000-0000-7000-8000-00000000dead'

interface Ids {
  readonly run: string
  readonly conversation: string
  readonly node: string
  readonly seen: string
}

type Call = (scoped: ScopedRuntime, ids: Ids) => unknown

/** Every method of a scoped runtime that takes an id, with the id in each place it can stand. */
const BY_ID: { readonly [call: string]: Call } = {
  attach: (scoped, { run }) => scoped.attach(run),
  conversation: (scoped, { conversation }) => scoped.conversation(conversation),
  cancel: (scoped, { run }) => scoped.cancel(run, 'because'),
  usage: (scoped, { run }) => scoped.usage(run),
  tree: (scoped, { conversation }) => scoped.tree(conversation),
  why: (scoped, { run }) => scoped.why(run),
  explain: (scoped, { run }) => scoped.explain(run, 'tool:deploy'),
  events: (scoped, { conversation }) => scoped.events(conversation),
  graph: (scoped, { conversation }) => scoped.graph(conversation),
  timeline: (scoped, { run }) => scoped.timeline(run),
  otlp: (scoped, { run }) => scoped.otlp(run),
  nodeInfo: (scoped, { node }) => scoped.nodeInfo(node),
  result: (scoped, { node }) => scoped.result(node),
  requestOf: (scoped, { node }) => scoped.requestOf(node),
  look: (scoped, { run }) => scoped.look(run),
  eventPage: (scoped, { run }) => scoped.eventPage(run),
  nodes: (scoped, { run }) => scoped.nodes(run, { from: 0, limit: 10 }),
  node: (scoped, { node }) => scoped.node(node),
  lastSeq: (scoped, { conversation }) => scoped.lastSeq(conversation),
  settle: (scoped, { node, seen }) => scoped.settle(node, { leave: true, seen }),
  treeData: (scoped, { conversation }) => scoped.treeData(conversation),
  treeEvents: (scoped, { conversation }) => scoped.treeEvents(conversation, { after: 0, limit: 10 }),
  picture: (scoped, { conversation }) => scoped.picture(conversation),
  diff: (scoped, { run }) => scoped.diff(run, run),
  approvals: (scoped, { run }) => scoped.approvals({ runId: run }),
  answer: (scoped, { node, seen }) => scoped.answer(node, { allow: true, seen }),
  checkAnswer: (scoped, { node, seen }) => scoped.checkAnswer(node, { allow: true, seen }),
  checkResult: (scoped, { node, seen }) => scoped.checkAnswer(node, { result: 'done', seen }),
  export: (scoped, { conversation }) => scoped.export(conversation),
  forget: (scoped, { conversation }) => scoped.forget(conversation),
  audit: (scoped, { conversation }) => scoped.audit({ rootId: conversation }),
  run: (scoped, { conversation }) => scoped.run('clerk', 'more', { conversationId: conversation }).result,
}

/** Those that take none: what they give and do is tested below. */
const OTHERS = [
  ...['may', 'require', 'questions', 'import', 'processes', 'agents', 'conversationIdFor', 'runs', 'conversations'],
  ...['inbox', 'prune', 'forgetOwner', 'changes', 'usageByDay'],
  ...['find', 'trees', 'untrustedAgents'],
  // How a server performs an operation, by its name and with the same checks.
  ...['serve'],
]

const deploy = tool({
  description: 'Deploy',
  input: { type: 'object' },
  effect: 'effectful',
  execute: () => 'deployed',
})

function clerk() {
  return agent({
    name: 'clerk',
    instructions: 'Help.',
    model: scriptedModel(({ messages }) => {
      return messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'deploy', input: {} }] }
    }),
    tools: { deploy },
    grant: { use: ['tool:*', 'model:*'], ask: ['tool:deploy'] },
  })
}

const kinds = {
  memory: () => memoryStore(),
  'sqlite file': () => sqliteStore(`${tempFolder(afterAll)}/legate.db`),
}

describe.each(Object.entries(kinds))('I9, I12: ids of others on %s', (_, open) => {
  const reads: string[] = []
  let runtime: Runtime
  let ids: Ids

  beforeAll(async () => {
    runtime = createRuntime({ store: counted(open(), reads), agents: [clerk()] })
    const ann = runtime.as(ANN)
    const run = ann.run('clerk', 'deploy it')
    const { node, seen } = await firstApproval(ann)
    ids = { run: run.id, conversation: run.conversationId, node, seen }
  })
  afterAll(() => runtime.close())

  test('every method of a scoped runtime is in this table', () => {
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(runtime.as(ANN)))
    const privates = [
      'constructor',
      'askingOf',
      'admitted',
      'handleOf',
      'talk',
      'agentToStart',
      'requireAll',
      'rootAt',
      'enter',
      'reach',
      'perform',
      'requireStart',
      'sees',
      'placed',
    ]
    expect(methods.filter((name) => !privates.includes(name)).sort()).toEqual(
      [...Object.keys(BY_ID).filter((name) => name !== 'checkResult'), ...OTHERS].sort(),
    )
  })

  test.each(Object.entries(BY_ID))(
    '%s: a foreign id and an unknown one give the same words after the same reads',
    async (_, call) => {
      const eve = runtime.as(EVE)
      const unknown = { run: UNKNOWN, conversation: UNKNOWN, node: UNKNOWN, seen: ids.seen }

      const foreign = await told(() => call(eve, ids), reads)
      const missing = await told(() => call(eve, unknown), reads)

      expect(missing.message).toContain(UNKNOWN)
      expect(withoutIds(foreign.message)).toBe(withoutIds(missing.message))
      expect(foreign.code).toBe('not_found')
      expect(foreign.reads).toEqual(missing.reads)
    },
  )

  test('the time of an answer does not tell a foreign id from an unknown one', async ({ skip }) => {
    skip(!isFull, 'it takes 20,000 answers: npm run test:full')
    const eve = runtime.as(EVE)
    await runtime.as(ANN).usage(ids.run)
    const times = { foreign: [] as number[], unknown: [] as number[] }
    for (let round = 0; round < 20_000; round++) {
      const kind = round % 2 === 0 ? 'foreign' : 'unknown'
      const id = kind === 'foreign' ? ids.run : UNKNOWN
      const begun = performance.now()
      await eve.usage(id).catch(() => undefined)
      if (round > 2_000) times[kind].push(performance.now() - begun)
    }
    const middle = (list: number[]) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0
    const ratio = middle(times.foreign) / middle(times.unknown)
    expect(ratio).toBeGreaterThan(0.85)
    expect(ratio).toBeLessThan(1.15)
  })

  test.each(Object.entries(BY_ID))('%s: without the scope it is refused before any row is read', async (_, call) => {
    const refused = await told(() => call(runtime.as(NOBODY), ids), reads)

    expect(refused).toMatchObject({ code: 'denied', reads: [] })
  })

  test('lists hold nothing of others', async () => {
    const eve = runtime.as(EVE)
    const lists = (scoped: ScopedRuntime, query: { owner?: string } = {}) =>
      Promise.all([
        scoped.approvals(query),
        scoped.questions(query),
        scoped.runs(query),
        scoped.conversations(query),
        scoped.inbox(query),
      ])
    const nothing = [[], [], [], [], []]
    expect(await lists(eve)).toEqual(nothing)
    expect(await lists(eve, { owner: 'ann' })).toEqual(nothing)
    expect(await eve.prune({ olderThanMs: 0, owner: 'ann' })).toEqual([])
    const admin = runtime.as({ ...ANN, id: 'root', sees: 'all' })
    for (const scoped of [runtime.as(ANN), admin, runtime.as({ ...EVE, sees: ['eve', 'ann'] })]) {
      expect((await lists(scoped)).map(({ length }) => length)).toEqual([1, 0, 1, 1, 1])
    }
    const sums = async (scoped: ScopedRuntime, query: { owner?: string } = {}) => {
      const days = await scoped.usageByDay({ ...query, from: '2000-01-01', to: '2999-12-31' })
      return [(await scoped.changes(null, 1_000)).changes.length > 0, days.length > 0]
    }
    expect(await sums(eve)).toEqual([false, false])
    expect(await sums(eve, { owner: 'ann' })).toEqual([false, false])
    for (const scoped of [runtime.as(ANN), admin]) expect(await sums(scoped)).toEqual([true, true])
    await expect(eve.forgetOwner('ann')).rejects.toThrow('eve does not see ann.')
  })

  test('usage and changes are those of owners that the principal sees', async () => {
    const days = { from: '2020-01-01', to: '2999-12-31' }
    const seenBy = async (scoped: ScopedRuntime, owner?: string) => {
      const usage = await scoped.usageByDay(owner === undefined ? days : { ...days, owner })
      const { changes } = await scoped.changes(null, 99)
      return {
        owners: [...new Set(usage.map((one) => one.owner))],
        trees: [...new Set(changes.map(({ rootId }) => rootId))],
      }
    }
    const nothing = { owners: [], trees: [] }
    const all = { owners: ['ann'], trees: [ids.conversation] }

    expect(await seenBy(runtime.as(EVE))).toEqual(nothing)
    expect(await seenBy(runtime.as(EVE), 'ann')).toEqual(nothing)
    expect(await seenBy(runtime.as(ANN))).toEqual(all)
    expect(await seenBy(runtime.as({ ...ANN, id: 'root', sees: 'all' }))).toEqual(all)
    expect(await seenBy(runtime.as({ ...EVE, sees: ['eve', 'ann'] }))).toEqual(all)
    await expect(runtime.as(NOBODY).usageByDay(days)).rejects.toThrow('lacks the scope read')
    await expect(runtime.as(NOBODY).changes(null, 9)).rejects.toThrow('lacks the scope read')
  })

  test('a principal starts no agent beyond its list, and hears of it as of one that is not there', () => {
    const narrow = runtime.as({ ...EVE, agents: ['helper*'] })
    expect(() => narrow.run('clerk', 'hello')).toThrow('There is no agent "clerk" here.')
    expect(() => narrow.run('helper', 'hello')).toThrow('There is no agent "helper" here.')
  })

  test('nothing that was refused changed anything: the approval still waits', async () => {
    expect((await runtime.as(ANN).approvals()).map(({ nodeId }) => nodeId)).toEqual([ids.node])
  })
})

test('a tombstone is read as deleted by its owner, and as unknown by others', async () => {
  const store = memoryStore()
  await using runtime = createRuntime({
    store,
    agents: [agent({ name: 'clerk', instructions: 'Help.', model: scriptedModel(['done']) })],
  })
  const ann = runtime.as(ANN)
  const run = ann.run('clerk', 'hello')
  await run.result
  await ann.forget(run.conversationId, 'enough')

  const own = await told(() => ann.tree(run.conversationId), [])
  const foreign = await told(() => runtime.as(EVE).tree(run.conversationId), [])

  expect(own.message).toContain('was deleted')
  expect(foreign.message).toBe(`There is no conversation ${run.conversationId} in this store.`)
})

test('the handle of a run cancels it only with the scope', async () => {
  const store = remoteStore(memoryStore() as LocalStore)
  await using runtime = createRuntime({ store, agents: [clerk()] })
  const run = runtime.as(ANN).run('clerk', 'deploy it')
  await firstApproval(runtime.as(ANN))

  const watched = await runtime.as({ ...ANN, scopes: ['read'] }).attach(run.id)

  await expect(watched.cancel()).rejects.toThrow('ann lacks the scope cancel.')
  await runtime.as(ANN).cancel(run.id)
  expect((await watched.result).status).toBe('cancelled')
})

test('who answers is the principal, whatever a caller says, and four eyes are needed where it says so', async () => {
  await using runtime = createRuntime({ agents: [clerk()] })
  const ann = runtime.as({ ...ANN, mayApprove: { notOwn: true } })
  const run = ann.run('clerk', 'deploy it')
  const { node, seen } = await firstApproval(ann)

  await expect(ann.answer(node, { allow: true, seen })).rejects.toThrow('ann may not answer tool:deploy')
  const bob = runtime.as({ id: 'bob', scopes: ['approve'], sees: ['ann'], mayApprove: { requests: ['tool:deploy'] } })
  await bob.answer(node, { allow: true, seen, by: 'ann' } as never)

  expect((await run.result).status).toBe('completed')
  const events = []
  for await (const event of run.events()) if (event.type === 'approval-answer') events.push(event.by)
  expect(events).toEqual(['bob'])
})

async function firstApproval(scoped: ScopedRuntime): Promise<Pick<Ids, 'node' | 'seen'>> {
  for (;;) {
    const [first] = await scoped.approvals()
    if (first !== undefined) return { node: first.nodeId, seen: first.seen }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

interface Told {
  readonly code: string
  readonly message: string
  readonly reads: readonly string[]
}

async function told(call: () => unknown, reads: string[]): Promise<Told> {
  reads.length = 0
  try {
    await call()
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return { code, message, reads: [...reads] }
  }
  throw new Error('It was not refused.')
}

function withoutIds(message: string): string {
  return message.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
}

/** The store with each read by id noted, as a principal's own checks make them. */
function counted(store: LocalStore, reads: string[]): Store {
  const note =
    <Asked extends unknown[], Given>(name: string, ask: (...asked: Asked) => Given) =>
    (...asked: Asked): Given => {
      reads.push(name)
      return ask(...asked)
    }
  const archive = store.archive && { ...store.archive, tombstone: note('tombstone', store.archive.tombstone) }
  return {
    ...store,
    rootOf: note('rootOf', store.rootOf),
    ownerOf: note('ownerOf', store.ownerOf),
    tree: note('tree', store.tree),
    commit: note('commit', store.commit),
    archive,
  } as Store
}

test('a principal sees and changes only trees of its agents', async () => {
  await using runtime = createRuntime({ agents: [clerk()] })
  const ann = runtime.as(ANN)
  const run = ann.run('clerk', 'deploy it')
  const { node, seen } = await firstApproval(ann)
  const narrow = runtime.as({ ...ANN, agents: ['helper*'] })

  for (const call of Object.values(BY_ID)) {
    const ids = { run: run.id, conversation: run.conversationId, node, seen }
    expect((await told(() => call(narrow, ids), [])).code).toBe('not_found')
  }
  const lists = [narrow.approvals(), narrow.runs(), narrow.conversations(), narrow.inbox(), treesOf(narrow)]
  expect(await Promise.all(lists)).toEqual([[], [], [], [], []])
  expect((await narrow.find(run.id.slice(-8))).found).toEqual([])
  expect((await ann.find(run.id.slice(-8))).found).toHaveLength(1)
  expect((await narrow.changes(null, 100)).changes).toEqual([])
  expect(await ann.approvals()).toHaveLength(1)
})

test('four eyes: whoever asks for a run or changes it does not allow what it wants', async () => {
  await using runtime = createRuntime({ agents: [clerk()] })
  const ann = runtime.as(ANN)
  const bob = runtime.as({ ...EVE, id: 'bob', sees: ['ann'], mayApprove: { notOwn: true } })
  const first = ann.run('clerk', 'hello')
  const { node } = await firstApproval(ann)
  await bob.answer(node, { allow: false })
  await first.result

  const asked = bob.run('clerk', 'deploy it', { conversationId: first.conversationId })
  const own = await approvalOfRun(ann, asked.id)
  await expect(bob.answer(own.node, { allow: true, seen: own.seen })).rejects.toThrow('bob may not answer tool:deploy')
  await ann.cancel(asked.id)
  await asked.result

  const conversation = await bob.conversation(first.conversationId)
  const said = (await conversation.messagePage()).find(({ role }) => role === 'user')
  const edited = await conversation.history.edit(said?.nodeId ?? '', 'deploy it now')
  const changed = await approvalOfRun(ann, edited.id)
  const yes = { allow: true, seen: changed.seen }
  await expect(bob.answer(changed.node, yes)).rejects.toThrow('bob may not answer tool:deploy')
  await runtime.as({ ...ANN, mayApprove: {} }).answer(changed.node, yes)
  expect((await edited.result).status).toBe('completed')
})

test('history begins runs only with the scope to start them', async () => {
  await using runtime = createRuntime({ agents: [clerk()] })
  const run = runtime.as(ANN).run('clerk', 'deploy it')
  const { node, seen } = await firstApproval(runtime.as(ANN))
  await runtime.as(ANN).answer(node, { allow: true, seen })
  await run.result
  const historian = runtime.as({ ...ANN, scopes: ['read', 'history'] })
  const { history } = await historian.conversation(run.conversationId)
  const lines = await (await historian.conversation(run.conversationId)).messagePage()
  const said = lines.find(({ role }) => role === 'user')

  await expect(history.edit(said?.nodeId ?? '', 'again')).rejects.toThrow('ann lacks the scope start.')
  await expect(history.rerun(said?.nodeId ?? '')).rejects.toThrow('ann lacks the scope start.')
  await expect(history.fork(said?.nodeId ?? '')).rejects.toThrow('ann lacks the scope start.')
})

async function approvalOfRun(scoped: ScopedRuntime, runId: string): Promise<Pick<Ids, 'node' | 'seen'>> {
  for (;;) {
    const [first] = await scoped.approvals({ runId }).catch(() => [])
    if (first !== undefined) return { node: first.nodeId, seen: first.seen }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('who may allow some requests only does not change their arguments', async () => {
  await using runtime = createRuntime({ agents: [clerk()] })
  const ann = runtime.as(ANN)
  ann.run('clerk', 'deploy it').result.catch(() => undefined)
  const { node, seen } = await firstApproval(ann)
  const bob = runtime.as({ id: 'bob', scopes: ['approve'], sees: ['ann'], mayApprove: { requests: ['tool:deploy'] } })

  await expect(bob.answer(node, { allow: true, seen, edit: { to: 'elsewhere' } })).rejects.toThrow(
    'may not change their arguments',
  )
})

test('lists of a principal of one agent reach behind those of others', async () => {
  const speaker = (name: string) => agent({ name, instructions: 'Speak.', model: scriptedModel(() => 'done') })
  await using runtime = createRuntime({ agents: [speaker('wanted'), speaker('other')] })
  const ann = runtime.as(ANN)
  for (const name of ['wanted', 'other', 'other', 'other', 'other']) await ann.run(name, 'hello').result

  const narrow = runtime.as({ ...ANN, agents: ['wanted'] })

  expect((await narrow.runs({ limit: 2 })).map(({ agent: name }) => name)).toEqual(['wanted'])
  expect((await narrow.conversations({ limit: 2 })).map(({ agent: name }) => name)).toEqual(['wanted'])
})

async function treesOf(scoped: ReturnType<Runtime['as']>) {
  return (await scoped.trees({ limit: 9 })).trees
}
