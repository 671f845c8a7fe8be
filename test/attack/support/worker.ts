import { type AnyAgent, agent, type Budget, type Grant, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'

/** What a worker tries to do: what it may not, delegate in its turn, go on for ever, or never end. */
export type Probe = 'danger' | 'spread' | 'loop' | 'hang'

/** What it got to do, seen from outside. */
export interface Seen {
  danger: number
  searches: number
  modelCalls: number
  leaves: number
}

export interface WorkerParts {
  readonly probe: Probe
  readonly grant?: Grant
  readonly budget?: Budget
}

export interface Worker {
  readonly seen: Seen
  /** What it wants for itself. */
  readonly parts: WorkerParts
  /** What it delegates to. */
  readonly leaf: AnyAgent
  /** With an input of its own, or for messages. The same worker is one definition, whoever asks for it. */
  make(contract: 'typed' | 'message'): AnyAgent
}

export const TOKENS_PER_CALL = 1_000
/** After so many rounds it stops by itself: what is not bound shows it. */
export const ROUNDS = 12
export const LEAVES = 5

const usage = { inputTokens: TOKENS_PER_CALL - 1, outputTokens: 1 }

/** An agent that tries all it can when it is told to, and counts what it could. */
export function workerOf(parts: WorkerParts): Worker {
  const { probe, grant, budget } = parts
  const seen: Seen = { danger: 0, searches: 0, modelCalls: 0, leaves: 0 }
  const leaf = agent({
    name: 'leaf',
    instructions: '',
    model: scriptedModel(() => {
      seen.leaves++
      return 'leaf'
    }),
  })
  const script: Script = (request) => {
    const asked = request.messages.findLast(({ role }) => role === 'user')
    const results = request.messages.slice(request.messages.lastIndexOf(asked as never)).length - 1
    if (!JSON.stringify(asked?.content ?? '').includes('probe') && results === 0) return 'hello'
    seen.modelCalls++
    return { usage, ...answerTo(probe, { results, offered: request.tools.length, call: seen.modelCalls }) }
  }
  const counted = (key: 'danger' | 'searches') =>
    tool({
      description: key,
      input: { type: 'object' },
      effect: 'pure',
      execute: () => {
        seen[key]++
        return `${key} ${seen[key]}`
      },
    })
  const make = (contract: 'typed' | 'message') =>
    agent({
      name: 'worker',
      instructions: '',
      model: probe === 'hang' ? hanging : scriptedModel(script, 'dear/model'),
      settings: { maxOutputTokens: 10 },
      tools: { danger: counted('danger'), search: counted('searches') },
      subagents: { leaf },
      ...(contract === 'typed' ? { input: MESSAGE } : {}),
      ...(grant === undefined ? {} : { grant }),
      ...(budget === undefined ? {} : { budget }),
    }) as AnyAgent
  const made = new Map<string, AnyAgent>()
  return {
    seen,
    parts,
    leaf: leaf as AnyAgent,
    make: (contract) => {
      const known = made.get(contract) ?? make(contract)
      made.set(contract, known)
      return known
    },
  }
}

const MESSAGE = { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] } as const

/** It never hears its signal, when it is told to probe. */
const hanging = scriptedModel(({ messages }) => {
  const last = messages.findLast(({ role }) => role === 'user')
  return JSON.stringify(last?.content).includes('probe') ? new Promise(() => undefined) : 'hello'
}, 'dear/model')

interface Step {
  readonly results: number
  readonly offered: number
  readonly call: number
}

function answerTo(probe: Probe, { results, offered, call }: Step) {
  if (probe === 'loop') {
    if (offered === 0 || call > ROUNDS) return { text: 'enough' }
    return { calls: [{ name: 'search', input: { n: call } }] }
  }
  if (results > 0) return { text: 'done' }
  if (probe === 'danger') return { calls: ['danger', 'search'].map((name) => ({ name, input: {} })) }
  return { calls: Array.from({ length: LEAVES }, (_, n) => ({ name: 'leaf', input: { message: `${n}` } })) }
}
