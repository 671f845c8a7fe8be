import { setTimeout as sleep } from 'node:timers/promises'
import { createRuntime, type RunEvent } from 'legate'
import { ClientError, emptyTree, type LegateClient, nodesOf, reduceTree, type TreeState, treeOf } from 'legate/client'
import type { ConversationTree, DurableEvent } from 'legate/rows'
import { sqliteStore } from 'legate/store/sqlite'
import { type Aftermath, FAILPOINTS, type KillPoint } from 'legate/testing'
import { afterAll, expect, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { firstSeed, seededRandom } from './support/random.ts'
import { freePort, ServingCase, untilAnswered } from './support/serving.ts'
import { Totals } from './support/totals.ts'

const KILLS = isFull ? 1_000 : 9
const KILLS_OF_CASE = 9
/** About how long a server lives before it is killed. */
const LIFE_MS = 500
const AGENTS = ['speaker', 'payer', 'asker'] as const
const STARTS = 6
const WORKERS = 8
/** How long the last server may take for the rest. */
const PATIENCE_MS = 60_000

/** What readers and people met. */
const seen = { cuts: 0, lives: 0, deltas: 0, conflicts: 0 }
const counter = await useCounter()
const tokens = tempFolder(afterAll)

test(`a server that is killed ${KILLS} times loses and doubles nothing that its clients were told`, async () => {
  const totals = new Totals()
  Object.assign(seen, { cuts: 0, lives: 0, deltas: 0, conflicts: 0 })
  const first = firstSeed()
  console.info(`The server under kills begins with LEGATE_SEED=${first}`)

  await inParallel(seeds(first, totals), async (seed) => {
    const found = await oneCase(seed).catch((error: unknown) => {
      console.error(`The server under kills with LEGATE_SEED=${seed}:`, error)
      throw new Error(`repeat it with LEGATE_SEED=${seed}`, { cause: error })
    })
    totals.add(found)
  })

  const { cuts, lives } = seen
  figure('server', `killed at random moments and failpoints: ${totals}; ${cuts} cuts, ${lives} texts told again`)
  expect(totals.kills).toBeGreaterThanOrEqual(KILLS)
  expect({ ...seen, isEnough: hasSeenEnough() }).toEqual({ ...seen, isEnough: true })
})

/** Without these the test would prove nothing. */
function hasSeenEnough(): boolean {
  const { cuts, lives, deltas, conflicts } = seen
  return Math.min(cuts, lives, deltas, conflicts) > KILLS / 5
}

/** One seed per case, until there were enough kills, and enough was seen of what they lead to. */
function* seeds(first: number, totals: Totals): Generator<number> {
  const goesOn = () => totals.kills < KILLS || (totals.kills < 5 * KILLS && !hasSeenEnough())
  for (let seed = first; goesOn(); seed++) yield seed
}

async function oneCase(seed: number): Promise<Aftermath> {
  const random = seededRandom(seed)
  const serving = new ServingCase(counter, tokens)
  const port = await freePort()
  let server = await serving.start({ port, workers: WORKERS })
  const client = serving.client(port)
  const people = Array.from(
    { length: STARTS },
    (_, n) => new Person(client, `order-${seed}-${n}`, AGENTS[n % 3] ?? 'speaker'),
  )
  const done = Promise.all(people.map((person) => person.live(random)))
  done.catch(() => undefined)
  for (let kill = 0; kill < KILLS_OF_CASE; kill++) {
    await Promise.race([serving.crash.ended(server), sleep(random() * LIFE_MS)])
    server.signal('SIGKILL')
    await serving.crash.ended(server)
    await serving.crash.checkStanding()
    server = await serving.start({ port, workers: WORKERS }, random() < 0.5 ? pointOf(random) : undefined)
  }
  // The last one may be on its way to a failpoint.
  server.signal('SIGKILL')
  await serving.crash.ended(server)
  server = await serving.start({ port, workers: WORKERS })
  await Promise.race([done, sleep(PATIENCE_MS).then(() => explain(client, people))])
  await Promise.all(people.map((person) => person.again()))
  await serving.stop(server)
  await checkHeard(serving, people)
  return serving.crash.conclude()
}

function pointOf(random: () => number): KillPoint {
  const point = FAILPOINTS[Math.floor(random() * FAILPOINTS.length)] ?? 'after:say'
  return { point, hit: 1 + Math.floor(random() * 3) }
}

/** Says who still waits for what. */
async function explain(client: LegateClient, people: readonly Person[]): Promise<never> {
  const waiting = people.filter(({ isDone }) => !isDone)
  const lines = waiting.map(async ({ key, runId, heard }) => {
    const why = runId === '' ? 'not started' : (await client.why(runId)).text
    return `${key} ${runId} ${why}; readers ${heard.map(({ place, isOver }) => `${place} ${isOver}`).join(', ')}`
  })
  throw new Error(`Not over in time:\n${(await Promise.all(lines)).join('\n')}`)
}

/** Somebody who starts a run under a key, reads it to its end, and answers what it asks. */
class Person {
  readonly key: string
  runId = ''
  conversationId = ''
  isDone = false
  readonly heard: Reading[] = []
  private readonly client: LegateClient
  private readonly agent: string
  private readonly answered: Promise<void>[] = []

  constructor(client: LegateClient, key: string, agent: string) {
    this.client = client
    this.key = key
    this.agent = agent
  }

  async live(random: () => number): Promise<void> {
    await sleep(random() * LIFE_MS)
    const { runId, conversationId } = await this.start()
    this.runId = runId
    this.conversationId = conversationId
    const late = 1 + Math.floor(random() * 3)
    await Promise.all([this.read(0), ...Array.from({ length: late }, () => this.readLater(random))])
    await Promise.all(this.answered)
    this.isDone = true
  }

  /** Once more under the same key, when all is over: it is the same run. */
  async again(): Promise<void> {
    expect(await this.start()).toMatchObject({ runId: this.runId, conversationId: this.conversationId })
    await this.read(0)
  }

  private start() {
    return untilAnswered(() => this.client.run(this.agent, `Go for ${this.key}.`, { key: this.key }))
  }

  /** A page that is opened in the middle, and knows what another one has heard so far. */
  private async readLater(random: () => number): Promise<void> {
    await sleep(random() * LIFE_MS * 3)
    const known = this.heard[0]?.stored.at(-1)?.seq ?? 0
    await this.read(Math.floor(random() * (known + 1)))
  }

  private async read(after: number): Promise<void> {
    const reading = new Reading(after)
    this.heard.push(reading)
    // A client whose first try finds nobody gives up: whoever has opened a page opens it again.
    await untilAnswered(async () => {
      const onReconnect = () => seen.cuts++
      for await (const event of this.client.events(this.runId, { after: reading.place, onReconnect })) {
        reading.take(event)
        this.answer(event)
      }
    })
    reading.isOver = true
  }

  /** Answers what waits for a person. Every reader does: only one of them can be the first. */
  private answer(event: RunEvent): void {
    const { nodeId } = event
    if (nodeId === null) return
    if (event.type === 'approval-request') this.answered.push(this.allow(nodeId))
    if (event.type === 'question') this.answered.push(this.reply(nodeId))
  }

  private async allow(nodeId: string): Promise<void> {
    const { approvals } = await untilAnswered(() => this.client.approvals({ limit: 1_000 }))
    const seen = approvals.find((approval) => approval.nodeId === nodeId)?.seen
    if (seen === undefined) return
    await untilAnswered(() => unlessAnswered(this.client.approve(nodeId, { allow: true, seen })))
  }

  private async reply(nodeId: string): Promise<void> {
    await untilAnswered(() => unlessAnswered(this.client.answer(nodeId, '8080')))
  }
}

/** Somebody else was first, or this very answer was, whose acknowledgement was lost. */
async function unlessAnswered(answer: Promise<void>): Promise<void> {
  try {
    await answer
  } catch (error) {
    if (!(error instanceof ClientError && error.status === 409)) throw error
    seen.conflicts++
  }
}

/** What one reader has heard. */
class Reading {
  readonly after: number
  readonly stored: DurableEvent[] = []
  isOver = false
  state: TreeState = emptyTree()

  constructor(after: number) {
    this.after = after
  }

  get place(): number {
    return this.stored.at(-1)?.seq ?? this.after
  }

  take(event: RunEvent): void {
    if (event.type === 'message' && event.role === 'agent') this.checkSpoken(event.runId, event.nodeId, event.content)
    if (event.type === 'live') seen.lives++
    if (event.type === 'text-delta') seen.deltas++
    if (Number.isInteger(event.seq)) this.stored.push(event as DurableEvent)
    if (this.after === 0) this.state = reduceTree(this.state, event)
  }

  /** Whatever was heard of a message before it was there is the beginning of it. */
  private checkSpoken(runId: string, nodeId: string | null, content: unknown): void {
    const text = nodesOf(this.state, runId).find((node) => node.nodeId === nodeId)?.text ?? ''
    if (!String(content).startsWith(text))
      throw new Error(`heard ${JSON.stringify(text)} of ${JSON.stringify(content)}`)
  }
}

/** Every reader has exactly the record, and every start one run. */
async function checkHeard({ crash }: ServingCase, people: readonly Person[]): Promise<void> {
  const store = sqliteStore(crash.database)
  const runtime = createRuntime({ store, engine: { workers: 0 } })
  const own = runtime.as({ id: 'local', scopes: ['read', 'admin'], sees: 'all' })
  try {
    const roots = await own.conversations({ limit: 1_000 })
    expect(roots.map(({ id }) => id).toSorted()).toEqual(people.map(({ conversationId }) => conversationId).toSorted())
    for (const person of people) {
      const { events } = await own.eventPage(person.runId, { limit: 1_000 })
      const record = JSON.parse(JSON.stringify(events)) as DurableEvent[]
      const tree = JSON.parse(JSON.stringify(await own.tree(person.conversationId))) as ConversationTree
      for (const { after, stored, state } of person.heard) {
        expect(stored).toEqual(record.filter(({ seq }) => seq > after))
        if (after === 0) expect(JSON.parse(JSON.stringify(treeOf(state, person.conversationId)))).toEqual(tree)
      }
      const asked = record.filter(({ type }) => type === 'approval-request' || type === 'question')
      const answers = record.filter(({ type }) => type === 'approval-answer' || type === 'answer')
      expect(answers).toHaveLength(asked.length)
    }
  } finally {
    await runtime.close()
    await store.close()
  }
}
