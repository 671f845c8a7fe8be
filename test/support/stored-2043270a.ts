import { readFileSync } from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type AnyAgent, agent, createRuntime, type Principal, type Runtime, type RuntimeOptions, tool } from 'legate'
import { askTools } from 'legate/background'
import { openSubagents } from 'legate/recipe'
import { type Script, type ScriptedModel, scriptedModel } from 'legate/testing'
import { todoTools } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/core/base/clock.ts'
import type { Store } from '../../src/core/store/store.ts'
import { type Arrived, Receiver, verified } from '../server/support/receiver.ts'
import { type Setting, startServer } from '../server/support/server.ts'

// The stores that commit 2043270a wrote, and what must hold of them with the code of today: test/store/fixtures/make-2043270a.mjs
// says what is in them. Nothing here depends on the day: runtimes go by a clock that shows the minute after the store was written.

/** What the maker told of a store. */
export interface Told {
  readonly tokens: Readonly<
    Record<TokenName, { readonly token: string; readonly id: string; readonly principal: Principal }>
  >
  /** Webhooks by name. `who` made it: a token, or `eve` by a login. */
  readonly hooks: Readonly<Record<string, { readonly id: string; readonly secret: string; readonly who: string }>>
  readonly runs: Readonly<
    Record<RunName, { readonly runId: string; readonly rootId?: string; readonly conversationId?: string }>
  >
  readonly waits: Readonly<
    Record<
      'approvals' | 'questions',
      readonly { readonly nodeId: string; readonly seen: string; readonly runId: string }[]
    >
  >
  readonly deliveries: readonly ToldDelivery[]
  /** What each run was allowed: `allow`, `ask` or `deny` for each request. */
  readonly permissions: Readonly<Record<RunName, Readonly<Record<string, string>>>>
  /** When it was written. */
  readonly at: number
  /** The number of the last transaction of the database. */
  readonly xid?: number
}

interface ToldDelivery {
  readonly id: string
  readonly hookId: string
  readonly rootId: string
  readonly seq: number
  readonly body: string
}

type TokenName = 'ops' | 'ann' | 'annCi' | 'annBot' | 'annOther' | 'bob' | 'lea' | 'leaNarrow'
type Doing = 'plain' | 'queued' | 'runtime' | 'runtimeOfAnn' | 'principal' | 'denies' | 'within' | 'ofCi' | 'caller'
type Hosting = 'chief' | 'chiefOfLea' | 'host'
type Asking = 'careful' | 'carefulOfNobody' | 'asking' | 'pushed' | 'quiz'
type Ended = 'lead' | 'greeter' | 'ofBob' | 'ofEve' | 'planned'
type RunName =
  | Doing
  | Hosting
  | `${Hosting}Child`
  | Asking
  | Ended
  | 'pipeline'
  | 'reader'
  | 'readerOfNobody'
  | 'planner'

/** A copy of a store, for one test. */
export interface OldStore {
  readonly open: () => Store
  readonly told: Told
}

export function fixture(name: string): Buffer {
  return gunzipSync(readFileSync(path.join(import.meta.dirname, '..', 'store', 'fixtures', name)))
}

export function toldOf(store: 'sqlite' | 'postgres'): Told {
  return (JSON.parse(fixture('2043270a.json.gz').toString()) as Record<typeof store, Told>)[store]
}

/** What of it must hold with the code of today, whatever the store. */
export function testStored(name: string, place: () => Promise<OldStore>): void {
  describe(name, () => {
    test('opens and verifies, before and after somebody looked', async () => {
      const { open, told } = await place()
      for (const turn of ['first', 'second']) {
        const { runtime } = startOn({ open, told }, { engine: { workers: 0 } })
        expect(await findingsIn(runtime), turn).toEqual([])
        for (const { runId, rootId } of Object.values(told.runs)) {
          if (rootId === undefined) expect((await runtime.attach(runId)).id).toBe(runId)
        }
        await runtime.close()
      }
    })

    test('lets its runs do what they were allowed, and no more', async () => {
      const { open, told } = await place()
      const { runtime } = startOn({ open, told }, { engine: { workers: 0 } })
      expect(await verdictsOf(runtime, told)).toEqual(told.permissions)
      await runtime.close()

      // A host that forbids nothing any more: its children are bound by what was stored.
      const { agents } = agentsThatGoOn()
      const grant = { use: MAY }
      const loose = agents.map((one) =>
        one.name === 'chief' ? agent({ name: 'chief', instructions: 'chief.', grant }) : one,
      )
      const { runtime: later } = startOn({ open, told }, { agents: loose, engine: { workers: 0 } })
      const { chiefChild, chiefOfLeaChild } = told.permissions
      expect(await verdictsOf(later, told)).toMatchObject({ chiefChild, chiefOfLeaChild })
      await later.close()
    })

    test('takes its tokens for what they were, until they are revoked with those that were made with them', async () => {
      const old = await place()
      await using setting = await serveOn(old, { engine: { workers: 0 } })
      const { tokens } = old.told
      const statusOf = async (name: TokenName, method = 'GET', where = '/v1/tokens', body?: object) => {
        const given = { token: tokens[name].token, method }
        const answer = await (body === undefined ? setting.get(where, given) : setting.post(where, body, given))
        await answer.body?.cancel()
        return answer.status
      }
      const listedBy = async (name: TokenName) => {
        const answer = await setting.get('/v1/tokens', { token: tokens[name].token })
        const listed = ((await answer.json()) as { tokens: { id: string; principal: Principal }[] }).tokens
        return new Map(listed.map(({ id, principal }) => [id, principal]))
      }
      for (const [name, { id, principal }] of Object.entries(tokens)) {
        // A list does not show who made a token.
        const { within: _, ...shown } = principal
        expect((await listedBy(name as TokenName)).get(id), name).toEqual(shown)
      }
      const idsOf = (...names: TokenName[]) => names.map((name) => tokens[name].id).sort()
      const seenBy = async (name: TokenName) => [...(await listedBy(name)).keys()].sort()
      expect(await seenBy('annBot')).toEqual(idsOf('annBot'))
      expect(await seenBy('ann')).toEqual(idsOf('ann', 'annCi', 'annBot', 'annOther'))
      expect(await seenBy('ops')).toEqual(expect.arrayContaining(Object.values(tokens).map(({ id }) => id)))

      const run = (of: string) => ['POST', '/v1/runs', { agent: of, input: 'Go.' }] as const
      expect(await statusOf('annCi', ...run('greeter'))).toBe(202)
      expect(await statusOf('annCi', ...run('careful'))).toBe(404)
      expect(await statusOf('annBot', ...run('greeter'))).toBe(403)
      const lead = `/v1/runs/${old.told.runs.lead.runId}`
      const readers: TokenName[] = ['ops', 'ann', 'annCi', 'annOther', 'annBot', 'bob', 'lea']
      const read = await Promise.all(readers.map(async (name) => [name, await statusOf(name, 'GET', lead)]))
      expect(Object.fromEntries(read)).toEqual({
        ...{ ops: 200, ann: 200, annCi: 200, annOther: 200 },
        ...{ annBot: 404, bob: 404, lea: 404 },
      })

      expect(await statusOf('ops', 'DELETE', `/v1/tokens/${tokens.ann.id}`)).toBe(200)
      const left = await Promise.all(Object.keys(tokens).map(async (name) => [name, await statusOf(name as TokenName)]))
      expect(Object.fromEntries(left)).toEqual({
        ...{ ops: 200, bob: 200, lea: 200, leaNarrow: 200 },
        ...{ ann: 401, annCi: 401, annBot: 401, annOther: 401 },
      })
    })

    test('delivers what waited: each message once, signed as promised, in the order of its tree', async () => {
      const old = await place()
      await using receiver = await new Receiver().listen()
      await redirect(old, receiver)
      await using setting = await serveOn(old, { engine: { workers: 0 } })
      const { deliveries, hooks, tokens } = old.told
      const arrived = await receiver.until((some) => some.length >= deliveries.length)
      const placeOf = ({ path, headers }: Arrived) => `${path.slice(1)} ${String(headers['webhook-id'])}`
      expect(arrived.map(placeOf).toSorted()).toEqual(deliveries.map((one) => placeIn(hooks, one)).toSorted())
      for (const one of deliveries) {
        const message = arrived.find((other) => placeOf(other) === placeIn(hooks, one)) as Arrived
        expect(verified(hookOf(hooks, one).secret, message)).toMatchObject(JSON.parse(one.body) as object)
      }
      for (const [lane, seqs] of lanesOf(arrived)) expect(seqs, lane).toEqual(seqs.toSorted((a, b) => a - b))

      for (const [hook, { id, who }] of Object.entries(hooks)) {
        const { token } = tokens[WIDEST[who] ?? (who as TokenName)]
        const mine = deliveries.filter(({ hookId }) => hookId === id).map(messageOf)
        const states = async () => {
          const answer = await setting.get(`/v1/webhooks/${id}/deliveries`, { token })
          const { deliveries: listed = [] } = (await answer.json()) as { deliveries?: { id: string; state: string }[] }
          return listed.map((one) => `${one.id} ${one.state}`).sort()
        }
        await expect.poll(states, { message: hook }).toEqual(mine.map((one) => `${one} delivered`).sort())
      }
    })

    test('goes on with what people answer, and tells the webhooks', async () => {
      const old = await place()
      await using receiver = await new Receiver().listen()
      await redirect(old, receiver)
      await using setting = await serveOn(old)
      const { tokens, runs, waits } = old.told
      const say = async (who: TokenName, kind: 'approvals' | 'questions', run: Asking, body: object) => {
        const answer = await setting.get(`/v1/${kind}?limit=100`, { token: tokens[who].token })
        const listed = Object.values((await answer.json()) as object).find(Array.isArray) as {
          runId: string
          nodeId: string
          seen: string
        }[]
        const found = listed.find(({ runId }) => runId === runs[run].runId)
        expect(found, run).toMatchObject({ nodeId: waits[kind].find(({ runId }) => runId === runs[run].runId)?.nodeId })
        const { nodeId = '', seen = '' } = found ?? {}
        const said = await setting.post(`/v1/${kind}/${nodeId}`, { ...body, seen }, { token: tokens[who].token })
        expect(said.status, run).toBeLessThan(300)
        return (await (await setting.runtime.attach(runs[run].runId)).result).text
      }
      expect(await say('ann', 'approvals', 'careful', { allow: true })).toBe('Deployed: deployed to production')
      expect(await say('ops', 'approvals', 'carefulOfNobody', { allow: true })).toBe('Deployed: deployed to production')
      expect(await say('bob', 'questions', 'asking', { text: 'Red.' })).toMatch(/^Painted: .*Red\./)
      expect(await say('bob', 'questions', 'pushed', { text: 'Blue.' })).toMatch(/^Painted: .*Blue\./)
      expect(await say('ops', 'questions', 'quiz', { text: 'Paris' })).toBe('The capital is Paris.')

      const expected = [
        ['/of-ann', runs.careful.runId, 'run.ended'],
        ['/of-ops', runs.careful.runId, 'run.ended'],
        ['/of-bob', runs.asking.runId, 'run.ended'],
        ['/of-ops', runs.quiz.runId, 'run.ended'],
        ['/push', runs.pushed.runId, 'TASK_STATE_COMPLETED'],
      ] as const
      const has = (arrived: readonly Arrived[], [hook, ...words]: (typeof expected)[number]) =>
        arrived.some(({ path, text }) => path === hook && words.every((word) => text.includes(`"${word}"`)))
      const arrived = await receiver.until((some) => expected.every((one) => has(some, one)))
      const peer = arrived.filter(({ path }) => path === '/push')
      expect(peer.map(({ headers }) => headers['x-a2a-notification-token'])).toEqual(['of-the-peer', 'of-the-peer'])
      const ids = arrived.map(({ path, headers }) => `${path} ${String(headers['webhook-id'])}`)
      expect(new Set(ids).size).toBe(ids.length)
      expect(arrived.some(({ path, body }) => path === '/of-ann-ci' && body.data['agent'] === 'careful')).toBe(false)
    })

    test('goes on with its open runs to their ends, under the layers that were stored', async () => {
      const old = await place()
      const { told, open } = old
      const { runtime, models } = startOn(old)
      await runtime.resume()
      const outcomes = new Map<RunName, { readonly status: string; readonly text: string }>()
      const waiting = OPEN.map(async (run) => {
        const { status, text } = await (await runtime.attach(told.runs[run].runId)).result
        outcomes.set(run, { status, text })
      })
      const asked = await allowAll(runtime, told, Promise.all(waiting))

      const doing = (run: Doing | 'chiefChild' | 'chiefOfLeaChild') => {
        const { 'tool:drop': drop, 'tool:send': send } = told.permissions[run]
        return `Looked. ${drop === 'deny' ? 'not allowed' : 'Dropped.'} ${send === 'deny' ? 'not allowed' : 'Sent.'}`
      }
      const done = Object.fromEntries(DOING.map((run) => [run, { status: 'completed', text: doing(run) }]))
      expect(Object.fromEntries(outcomes)).toEqual({
        ...done,
        chief: { status: 'completed', text: `Done: ${doing('chiefChild')}` },
        chiefOfLea: { status: 'completed', text: `Done: ${doing('chiefOfLeaChild')}` },
        host: { status: 'completed', text: 'Counted: One, two, three.' },
        pipeline: { status: 'completed', text: 'Worked. Worked. Worked at last.' },
        planner: { status: 'completed', text: 'Left: [ ] buy milk' },
        reader: { status: 'completed', text: 'Read.' },
        readerOfNobody: { status: 'completed', text: 'Read.' },
      })
      const isAsked = ([run, verdicts]: [string, Readonly<Record<string, string>>]) =>
        verdicts['tool:send'] === 'ask' && !['chief', 'chiefOfLea'].includes(run)
      const expected = Object.entries(told.permissions)
        .filter(isAsked)
        .map(([run]) => told.runs[run as RunName].runId)
      expect(asked.toSorted()).toEqual(expected.toSorted())
      // The two children that had ended are answered from their rows.
      expect(models.worker.requests).toHaveLength(1)
      expect(models.child.requests.length).toBe(1)
      expect((await runtime.audit({ verify: true })).findings).toEqual([])
      await runtime.close()

      const { runtime: again } = startOn({ open, told }, { engine: { workers: 0 } })
      expect((await again.audit({ verify: true })).findings).toEqual([])
      const pipeline = await again.attach(told.runs.pipeline.runId)
      expect((await pipeline.result).text).toBe('Worked. Worked. Worked at last.')
      await again.close()
    })

    test.each(CHANGED)('knows the calls of its code by their place, and not by keys: %s', async (_, change) => {
      const { calls, hasKeys = false, ended } = change
      const old = await place()
      const worker = scriptedModel(() => 'Worked at last.')
      const subagents = { worker: agent({ name: 'worker', instructions: 'worker.', model: worker }) }
      const pipeline = agent({
        name: 'pipeline',
        effect: 'idempotent',
        subagents,
        reply: async (_, { delegate }) => {
          const said = []
          for (const call of calls) {
            said.push((await delegate('worker', call, hasKeys ? { key: `the ${call}` } : {})).text)
          }
          return said.join(' ')
        },
      })
      const { runtime } = startOn(old, { agents: [pipeline] })
      await runtime.resume()
      const outcome = await (await runtime.attach(old.told.runs.pipeline.runId)).result

      expect(outcome).toMatchObject(ended)
      const asked = worker.requests.map(({ messages }) => messages.at(-1)?.content)
      expect(asked).not.toContain('first')
      expect(asked).not.toContain('second')
      await runtime.close()
    })

    test('knows the questions of its code by their place', async () => {
      const old = await place()
      const reply = (question: string) =>
        agent({ name: 'quiz', effect: 'idempotent', reply: async (_, { ask }) => `It is ${await ask(question)}.` })
      const { runtime } = startOn(old, { agents: [reply('What is the largest city?')] })
      await runtime.resume()

      expect(await (await runtime.attach(old.told.runs.quiz.runId)).result).toMatchObject(CONFLICT)
      await runtime.close()
    })
  })
}

/** Code that was killed while the third of its calls `first`, `second` and `third` went on, and that now makes these. */
interface ChangedCode {
  readonly calls: readonly string[]
  readonly hasKeys?: boolean
  readonly ended: object
}

const CONFLICT = {
  status: 'failed',
  error: { code: 'conflict', message: expect.stringContaining('it began under an older version') },
}
const completed = (text: string) => ({ status: 'completed', text })
const CHANGED: readonly (readonly [string, ChangedCode])[] = [
  [
    'keys are taken for no other calls',
    {
      calls: ['first', 'second', 'third'],
      hasKeys: true,
      ended: completed('Worked. Worked. Worked at last.'),
    },
  ],
  [
    'one more at the end is made',
    {
      calls: ['first', 'second', 'third', 'fourth'],
      ended: completed('Worked. Worked. Worked at last. Worked at last.'),
    },
  ],
  ['two in another order are a conflict', { calls: ['second', 'first', 'third'], ended: CONFLICT }],
  ['one less in the middle is a conflict', { calls: ['first', 'third'], ended: CONFLICT }],
]

async function verdictsOf(runtime: Runtime, { permissions, runs }: Told): Promise<Record<string, object>> {
  const found: Record<string, object> = {}
  for (const [run, verdicts] of Object.entries(permissions)) {
    const now: Record<string, string> = {}
    for (const request of Object.keys(verdicts)) {
      now[request] = (await runtime.explain(runs[run as RunName].runId, request)).verdict
    }
    found[run] = now
  }
  return found
}

/** The processes that wrote it were killed: their claims are lost, and nothing else is wrong. */
async function findingsIn(runtime: Runtime): Promise<string[]> {
  const { findings } = await runtime.audit({ verify: true })
  return findings.filter(({ type }) => type !== 'lost_claim').map(({ message }) => message)
}

function hookOf(hooks: Told['hooks'], { hookId }: ToldDelivery) {
  const [name, hook] = Object.entries(hooks).find(([, { id }]) => id === hookId) ?? []
  return { name, secret: hook?.secret ?? '' }
}

/** The webhook of a delivery, and the id of its message. */
function placeIn(hooks: Told['hooks'], delivery: ToldDelivery): string {
  return `${hookOf(hooks, delivery).name} ${messageOf(delivery)}`
}

function messageOf({ id, hookId }: ToldDelivery): string {
  return id.slice(hookId.length + 1)
}

/** What came to each webhook of each tree, in order. */
function lanesOf(arrived: readonly Arrived[]): ReadonlyMap<string, readonly number[]> {
  const lanes = new Map<string, number[]>()
  for (const { path, body } of arrived) {
    // A message of A2A has another form.
    const { rootId = '', seq = 0 } = (body.data ?? {}) as { readonly rootId?: string; readonly seq?: number }
    lanes.set(`${path} ${rootId}`, [...(lanes.get(`${path} ${rootId}`) ?? []), seq])
  }
  return lanes
}

/** Who looks at a webhook that a narrow token or a login made: the widest token of its id, else an admin. */
const WIDEST: Readonly<Record<string, TokenName>> = { annCi: 'ann', eve: 'ops' }

const DOING: readonly Doing[] = [
  'plain',
  'queued',
  'runtime',
  'runtimeOfAnn',
  'principal',
  'denies',
  'within',
  'ofCi',
  'caller',
]
const OPEN: readonly RunName[] = [
  ...DOING,
  'chief',
  'chiefOfLea',
  'host',
  'pipeline',
  'planner',
  'reader',
  'readerOfNobody',
]

/** Allows what the runs ask for that went on, until all have ended. Gives the runs that asked. */
async function allowAll(runtime: Runtime, { waits }: Told, ended: Promise<unknown>): Promise<string[]> {
  const before = new Set(waits.approvals.map(({ nodeId }) => nodeId))
  const asked = new Map<string, string>()
  let isOver = false
  const end = () => {
    isOver = true
  }
  ended.then(end, end)
  while (!isOver) {
    for (const { nodeId, runId, request, seen } of await runtime.approvals({ limit: 100 })) {
      if (before.has(nodeId) || asked.has(nodeId)) continue
      expect(request).toBe('tool:send')
      asked.set(nodeId, runId)
      await runtime.answer(nodeId, { allow: true, seen })
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await ended
  return [...asked.values()]
}

/** Webhooks go to the receiver: the port that they were made for belongs to nobody. */
async function redirect({ open, told }: OldStore, receiver: Receiver): Promise<void> {
  const { registry, close } = open()
  for (const row of await registry.list('webhook', { limit: 100 })) {
    const [name = ''] = Object.entries(told.hooks).find(([, { id }]) => id === row.id) ?? []
    const url = new URL(`/${name}`, receiver.url).href
    await registry.put({ ...row, version: row.version + 1, data: { ...(row.data as object), url } })
  }
  await close()
}

function serveOn(old: OldStore, options: RuntimeOptions = {}): Promise<Setting> {
  const webhooks = { allowPrivate: true, retryMs: Array<number>(20).fill(200), leaseMs: 6_000 }
  return startServer({ webhooks, limits: { failuresPerMinute: 1_000 } }, optionsOn(old, options).options)
}

function startOn(old: OldStore, given: RuntimeOptions = {}) {
  const { options, models } = optionsOn(old, given)
  return { runtime: createRuntime(options), models }
}

function optionsOn({ open, told }: OldStore, options: RuntimeOptions) {
  const { agents, models, named } = agentsThatGoOn()
  return { options: { store: open(), clock: clockAfter(told.at), agents, models: named, ...options }, models }
}

/** A minute after the store was written: leases of its processes are over, and deadlines are not. */
function clockAfter(at: number): Clock {
  const behind = systemClock.now() - (at + 60_000)
  return {
    now: () => systemClock.now() - behind,
    at: (time, run, options) => systemClock.at(time + behind, run, options),
  }
}

interface GoingOn {
  readonly agents: readonly AnyAgent[]
  readonly models: { readonly worker: ScriptedModel; readonly child: ScriptedModel }
  /** By the names that files and calls give them. */
  readonly named: Readonly<Record<string, ScriptedModel>>
}

/** The agents of the maker, with models that go on. */
function agentsThatGoOn(): GoingOn {
  const named = (name: string, model: ScriptedModel, more: object = {}) =>
    agent({ name, description: `${name}s.`, instructions: `${name}.`, model, ...more })
  const afterTool = (call: string, input: object, last: (text: string) => string): ScriptedModel =>
    scriptedModel((request) => {
      const text = lastResult(request)
      return text === undefined ? { calls: [{ name: call, input: input as never }] } : last(text)
    })
  const says = (words: string, effect: 'pure' | 'effectful') =>
    tool({ description: words, input: NOTHING, effect, execute: () => words })
  const deploy = tool({
    description: 'Deploys.',
    input: NOTHING,
    approval: 'required',
    effect: 'effectful',
    execute: (input) => `deployed to ${(input as { to: string }).to}`,
  })
  const worker = scriptedModel(({ messages }) =>
    JSON.stringify(messages).includes('third') ? 'Worked at last.' : 'Again?',
  )
  const child = scriptedModel(() => 'One, two, three.')
  const workers = { worker: named('worker', worker) }
  const doer = named('doer', scriptedModel(doesAll), {
    tools: { look: says('Looked.', 'pure'), drop: says('Dropped.', 'effectful'), send: says('Sent.', 'effectful') },
    grant: { use: MAY },
  })
  const delegate = ['tool:*', 'model:*', 'exec:git *', 'net:*']
  const agents = [
    named(
      'search',
      scriptedModel(() => 'Found.'),
    ),
    named(
      'lead',
      scriptedModel(() => 'Here.'),
      {
        subagents: {
          search: named(
            'search',
            scriptedModel(() => 'Found.'),
          ),
        },
      },
    ),
    named(
      'greeter',
      scriptedModel(() => 'Hello.'),
    ),
    named(
      'careful',
      afterTool('deploy', {}, (text) => `Deployed: ${text}`),
      { tools: { deploy } },
    ),
    named(
      'asking',
      afterTool('ask_person', {}, (text) => `Painted: ${text}`),
      { tools: { ask_person: askTools().ask_person } },
    ),
    agent({
      name: 'quiz',
      effect: 'idempotent',
      reply: async (_, { ask }) => `The capital is ${await ask('What is the capital?')}.`,
    }),
    agent({
      name: 'pipeline',
      effect: 'idempotent',
      subagents: workers,
      reply: async (_, context) => {
        const both = await Promise.all([context.delegate('worker', 'first'), context.delegate('worker', 'second')])
        expect(context.kept).toBe('two are done')
        const last = await context.delegate('worker', 'third')
        return [...both, last].map(({ text }) => text).join(' ')
      },
    }),
    doer,
    named(
      'chief',
      afterTool('doer', { message: 'Do it.' }, (text) => `Done: ${text.split('\n').at(-1)}`),
      {
        subagents: { doer },
        grant: { use: MAY, delegate, deny: ['tool:drop'], ask: ['tool:send', 'net:other.example'] },
      },
    ),
    named(
      'planner',
      afterTool('todo_read', {}, (text) => `Left: ${text}`),
      { tools: todoTools() },
    ),
    named(
      'host',
      afterTool('subagent', {}, (text) => `Counted: ${text}`),
      {
        tools: openSubagents({ settings: { provider: 'test', model: 'child' }, cwd: '/', discover: false }),
      },
    ),
  ]
  return {
    agents,
    models: { worker, child },
    named: { 'test/child': child, 'test/file': scriptedModel(() => 'Read.') },
  }
}

const NOTHING = { type: 'object' } as const
const MAY = ['tool:*', 'agent:*', 'model:*', 'exec:git *', 'net:*', 'file.*:/workspace/**']

/** Calls each of its tools, and says what came of it. */
const doesAll: Extract<Script, (...given: never[]) => unknown> = ({ messages }) => {
  const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
  if (results.length === 0) return { calls: ['look', 'drop', 'send'].map((name) => ({ name, input: {} })) }
  return results.map((text) => (text.includes('is not allowed here') ? 'not allowed' : text)).join(' ')
}

/** What a tool gave since somebody last spoke; undefined before. */
function lastResult({
  messages,
}: {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
}): string | undefined {
  const last = messages.at(-1)
  return last?.role === 'tool' ? String(last.content) : undefined
}
