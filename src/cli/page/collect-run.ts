// Everything that the inspector asks a server about one tree, asked beforehand: the answers of a file that needs no server.

import { memoryStore } from '../../core/store/memory/index.ts'
import { look } from '../../doors/rows.ts'
import { createRuntime, type Id, type Runtime } from '../../index.ts'
import { handler, LOCAL_PRINCIPAL } from '../../server/index.ts'

/** A tree as the page reads it. */
export interface CollectedRun {
  /** The conversation that the tree begins with. */
  readonly rootId: Id
  readonly title: string
  readonly events: readonly unknown[]
  /** Answers of the API, by path. */
  readonly answers: Readonly<Record<string, unknown>>
}

const PAGE = 1_000
const PLENTY = Number.MAX_SAFE_INTEGER
const LIMITS = { readsPerMinute: PLENTY, startsPerMinute: PLENTY, perAddressPerMinute: PLENTY }
/** The most bytes of requests to models: they grow with the square of a conversation. */
const MOST_REQUESTS = 8_000_000

/** Reads the lines of an export. They get a store of their own, so it is the same for a store here and a server elsewhere. */
export async function collectRun(lines: AsyncIterable<string>): Promise<CollectedRun> {
  const runtime = createRuntime({ store: memoryStore(), engine: { workers: 0 } })
  try {
    // Open runs stay open in the file. Nothing goes on: there are no workers.
    const rootId = await runtime.import(lines, { goOn: true })
    const answers = new Answers(runtime)
    const events = await eventsOf(answers, rootId)
    await askAll(answers, runtime, rootId)
    // Whoever reads the file may look.
    const info = Object(await answers.get('/v1')) as object
    answers.kept['/v1'] = { ...info, principal: { id: 'file', scopes: ['read'] } }
    const { title, agent } = Object(answers.kept[`/v1/conversations/${rootId}`]) as Partial<Record<string, string>>
    return { rootId, title: title ?? `Run of ${agent}`, events, answers: answers.kept }
  } finally {
    await runtime.close()
  }
}

/** Requests to models can be made again for agents without code; those of others are left out. */
function leaveOut(): void {}

/** Asks the API, and keeps what it answers. What it refuses, the file does not have. */
class Answers {
  readonly kept: Record<string, unknown> = {}
  private readonly ask: (request: Request) => Promise<Response>

  constructor(runtime: Runtime) {
    this.ask = handler(runtime, { authenticate: () => LOCAL_PRINCIPAL, limits: LIMITS, ui: false, report: leaveOut })
  }

  async get(path: string): Promise<unknown> {
    const answer = await this.ask(new Request(`http://localhost${path}`, { headers: { accept: 'application/json' } }))
    return answer.ok ? answer.json() : undefined
  }

  async keep(...paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      const value = await this.get(path)
      if (value !== undefined) this.kept[path] = value
    }
  }
}

interface Row {
  readonly body: object
}

async function eventsOf(answers: Answers, rootId: Id): Promise<unknown[]> {
  const events: unknown[] = []
  for (let after: number | null = 0; after !== null; ) {
    const path = `/v1/trees/${rootId}/events?limit=${PAGE}&after=${after}`
    const page = (await answers.get(path)) as { readonly events: readonly Row[]; readonly next: number | null }
    // As streams give them, which the page reads.
    events.push(...page.events.map(({ body, ...place }) => ({ ...place, ...body })))
    after = page.next
  }
  return events
}

async function askAll(answers: Answers, runtime: Runtime, rootId: Id): Promise<void> {
  await answers.keep('/v1/runs', '/v1/inbox', '/v1/agents', '/v1/processes')
  const { store } = runtime
  let left = MOST_REQUESTS
  for (const { id, turnCount } of await store.conversations({ rootId, limit: PLENTY })) {
    const path = `/v1/conversations/${id}`
    await answers.keep(path, `${path}/usage?of=tree`, `${path}/usage`, `${path}/graph`, `${path}/lanes`)
    for (let ordinal = 0; ordinal < turnCount; ordinal++) {
      const [turn] = await look(store, rootId, (tree) => tree.turnsOf(id, { last: ordinal, limit: 1 }))
      if (turn?.ordinal !== ordinal) continue
      await keepRun(answers, turn.id)
      const nodes = await look(store, rootId, (tree) => tree.nodesOf(turn.id))
      for (const node of nodes) left -= await keepNode(answers, node, left)
    }
  }
}

function keepRun(answers: Answers, runId: Id): Promise<void> {
  const path = `/v1/runs/${runId}`
  return answers.keep(path, ...['why', 'timeline', 'usage', 'nodes'].map((part) => `${path}/${part}`))
}

/** Gives the bytes of the request that it kept. */
async function keepNode(answers: Answers, { id, kind }: { readonly id: Id; readonly kind: string }, left: number) {
  const path = `/v1/nodes/${id}`
  await answers.keep(path, `${path}/versions`)
  if (kind !== 'agent_message' || left <= 0) return 0
  await answers.keep(`${path}/request`)
  return JSON.stringify(answers.kept[`${path}/request`] ?? '').length
}
