import type { Model, Part } from '../../../src/core/model/model.ts'
import { type AnyAgent, agent, type Run, type RunEvent, type Runtime } from '../../../src/index.ts'
import { Chance } from '../../support/chance.ts'

const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** Everything that any model of this test says: a piece that is lost or doubled does not fit. */
const WORDS = Array.from({ length: 2_000 }, (_, at) => `${at} `).join('')

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Says a part of WORDS in pieces of any size, thinks in between, and may break off once. */
function speaker(chance: Chance): Model {
  let breaks = chance.is(0.3) ? 1 : 0
  return {
    id: 'own/speaker',
    async *stream(): AsyncGenerator<Part> {
      const pieces = 5 + chance.below(40)
      let place = 0
      for (let piece = 0; piece < pieces; piece++) {
        const end = place + 1 + chance.below(30)
        yield { type: 'text-delta', text: WORDS.slice(place, end) }
        if (chance.is(0.2)) yield { type: 'reasoning-delta', text: 'hm ' }
        place = end
        if (chance.is(0.5)) await pause(chance.below(40))
        if (breaks > 0 && chance.is(0.1)) {
          breaks--
          throw Object.assign(new Error('gone'), { statusCode: 429, retryAfterMs: 20 })
        }
      }
      yield { type: 'finish', reason: 'stop', usage: NO_USAGE }
    },
  }
}

/** A host whose children speak at the same time, and which speaks at the end. */
export function speakers(seed: number): AnyAgent {
  const chance = new Chance(seed)
  const child = () => agent({ name: 'child', instructions: '', model: speaker(chance) })
  const last = speaker(chance)
  let isAsked = false
  const model: Model = {
    id: 'own/host',
    async *stream(request, options) {
      if (isAsked) return yield* last.stream(request, options)
      isAsked = true
      for (const at of [0, 1, 2]) {
        yield { type: 'tool-call', id: `c${at}`, name: `ask${at}`, input: { message: 'Speak.' } }
      }
      yield { type: 'finish', reason: 'tool-calls', usage: NO_USAGE }
    },
  }
  return agent({
    name: 'host',
    instructions: '',
    model,
    subagents: { ask0: child(), ask1: child(), ask2: child() },
  })
}

/** What one reader knows, and everything that was wrong with what it was given. */
export class Listener {
  readonly durable: RunEvent[] = []
  readonly faults: string[] = []
  liveSeen = 0
  mode = ''
  private readonly texts: Map<string, string> = new Map()
  /** Nodes that it heard since it came in: from then on it hears everything. */
  private heard: Set<string> = new Set()
  private readonly isNear: boolean

  constructor(isNear: boolean) {
    this.isNear = isNear
  }

  get last(): number {
    return this.durable.at(-1)?.seq ?? 0
  }

  hasHeardEndOf({ id }: Run): boolean {
    return this.durable.some((event) => event.type === 'run-end' && event.runId === id)
  }

  comeIn(): void {
    this.heard = new Set()
  }

  take(event: RunEvent): void {
    if (Number.isInteger(event.seq)) this.takeDurable(event)
    const id = event.nodeId ?? ''
    if (event.type === 'text-delta') this.say(id, (this.texts.get(id) ?? '') + event.text)
    if (event.type === 'reset') this.say(id, '')
    // The next try may be over before its first words are heard.
    if (event.type === 'retry') this.texts.delete(id)
    if (event.type !== 'live') return
    this.liveSeen++
    if (this.heard.has(id)) this.faults.push(`${id} was shown live twice`)
    this.say(id, event.text)
  }

  private say(id: string, text: string): void {
    this.texts.set(id, text)
    this.heard.add(id)
    if (!WORDS.startsWith(text)) this.faults.push(`${id} says ${text.slice(-80)}`)
  }

  private takeDurable(event: RunEvent): void {
    if (event.seq !== this.last + 1) this.faults.push(`${this.mode} ${event.seq} came after ${this.last}`)
    this.durable.push(event)
    if (event.type !== 'message' || event.role !== 'agent' || event.calls.length > 0) return
    const said = this.texts.get(event.nodeId ?? '') ?? ''
    const whole = event.content as string
    const isWhole = !this.isNear || !this.heard.has(event.nodeId ?? '') || said === whole
    if (!whole.startsWith(said) || !isWhole) this.faults.push(`heard ${said.length} of ${whole.length} characters`)
  }
}

export interface ListenOptions {
  readonly seed: number
  /** The reader is in the process that runs the nodes. */
  readonly isNear: boolean
}

/** Reads a run, or its tree, and stops and goes on at any moment, until the run is over. */
export async function listen(runtime: Runtime, run: Run, { seed, isNear }: ListenOptions): Promise<Listener> {
  const chance = new Chance(seed)
  const listener = new Listener(isNear)
  while (!listener.hasHeardEndOf(run)) {
    const options = { after: listener.last, live: true }
    listener.comeIn()
    const isRun = chance.is(0.5)
    listener.mode = isRun ? 'run' : 'tree'
    await hear(isRun ? run.events(options) : runtime.events(run.conversationId, options), {
      chance,
      isEnough: (event) => {
        listener.take(event)
        return listener.hasHeardEndOf(run)
      },
    })
    if (chance.is(0.5)) await pause(chance.below(60))
  }
  return listener
}

interface Hearing {
  readonly chance: Chance
  readonly isEnough: (event: RunEvent) => boolean
}

/** Reads a few events, or many, sometimes slowly. */
async function hear(events: AsyncIterable<RunEvent>, { chance, isEnough }: Hearing): Promise<void> {
  let patience = chance.is(0.2) ? 1_000 : chance.below(25)
  for await (const event of events) {
    if (isEnough(event) || patience-- < 0) return
    if (chance.is(0.02)) await pause(chance.below(30))
  }
}
