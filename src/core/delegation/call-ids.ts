// The ids of the calls that code makes: of the children it starts and of the questions it asks.
//
// Owns:      what a call is known by when the code runs again, because its process died in the middle.
// Called by: `called-children` and `run/reply`, once for each call.
// Must stay true:
//   - A call is known by what it asks, never by when it asks: the name of the agent and the input, or the text of the question, and
//     a number among equal calls. So code may make its calls in another order when it runs again.
//   - The agent's definition is no part of an id: within one turn a child counts for its call, also where the agent was edited since.
//     A turn that `retry` or `rerun` made has another node, so other ids: it makes each call anew, with the definition of now.
//   - Code that began under an older version of this program, which numbered all calls in their order, keeps these numbers.

import { CallerInput, SlotInput } from '../agent/definition/input.ts'
import type { NodeRun } from '../agent/hooks/node-run.ts'
import { shortSha256 } from '../base/hash.ts'
import { deriveIds } from '../base/id.ts'
import { canonicalJson, toJson } from '../base/json.ts'
import type { AgentRef, Id } from '../graph/rows.ts'
import { type ChildIds, childIds } from '../rules/delegation/spawn.ts'
import { untilLoaded } from '../store/look.ts'
import type { Offer } from './spawn.ts'

/** Gives the calls of one node their ids. */
export class CallIds {
  private readonly nodeId: Id
  /** How many equal calls the code has made so far, by what they ask. */
  private readonly counts: Map<string, number> = new Map()
  private earlier: ReadonlySet<Id> = NOTHING
  private places = 0
  /** Whether the code began under a version that knew calls by their place in the order of calls. */
  isByPlace = false

  constructor(nodeId: Id) {
    this.nodeId = nodeId
  }

  /** Looks for what earlier tries of the code made. */
  async lookBack({ tree, turn, node }: NodeRun): Promise<void> {
    this.earlier = await untilLoaded(() => {
      const links = tree.linksOf(turn.id).filter(({ taskId }) => taskId === node.id)
      const questions = tree.nodesOf(turn.id).filter(({ metadata }) => metadata['asked_by'] === node.id)
      return new Set([...links, ...questions].map(({ id }) => id))
    })
    this.isByPlace = this.earlier.size > 0 && this.hasPlaces()
  }

  /** Whether an earlier try of the code made this child or question. */
  isEarlier(id: Id): boolean {
    return this.earlier.has(id)
  }

  /** The ids of a child, by the hash of what the call asks; or by the key that the code gave to the call. */
  ofChild(asks: string, key?: string): ChildIds {
    if (key === undefined || this.isByPlace) return childIds(this.nodeId, this.nextLabel(asks))
    return { ...childIds(this.nodeId, `key/${shortSha256(key)}`), requestHash: asks }
  }

  /** The ids of a question, and of the child that an older version may have started in its place. */
  ofQuestion(text: string): { readonly id: Id; readonly childId: Id } {
    const { turn } = childIds(this.nodeId, this.nextLabel(shortSha256(text)))
    return { id: questionId(turn), childId: turn }
  }

  private nextLabel(asks: string): number | string {
    if (this.isByPlace) return this.places++
    const number = this.counts.get(asks) ?? 0
    this.counts.set(asks, number + 1)
    return `${asks}/${number}`
  }

  private hasPlaces(): boolean {
    const last = this.earlier.size + MOST_REFUSED
    for (let place = 0; place < last; place++) {
      const { turn } = childIds(this.nodeId, place)
      if (this.earlier.has(turn) || this.earlier.has(questionId(turn))) return true
    }
    return false
  }
}

/**
 * Watches for children that would be taken for one another. Agents of one name and several definitions, all asked the same, make
 * equal calls; where such calls change their order, a call would get the child of another agent.
 */
export class Definitions {
  private readonly asked: Set<string> = new Set()
  private readonly answered: Set<string> = new Set()
  private readonly told: Set<string> = new Set()

  /** False where a child of this definition already answered for another one. */
  ask(ref: AgentRef): boolean {
    this.asked.add(wordOf(ref))
    return !this.answered.has(wordOf(ref))
  }

  /** False where a child of one definition answers for another one that the code asks as well. An edited agent is asked no more. */
  answer(stored: AgentRef, asked: AgentRef): boolean {
    if (stored.hash === asked.hash) return true
    this.answered.add(wordOf(stored))
    return !this.asked.has(wordOf(stored))
  }

  /** True the first time that a child of one definition answers for another one. */
  isNews(stored: AgentRef, asked: AgentRef): boolean {
    const change = `${wordOf(stored)} ${wordOf(asked)}`
    if (stored.hash === asked.hash || this.told.has(change)) return false
    this.told.add(change)
    return true
  }
}

function wordOf({ name, hash }: AgentRef): string {
  return `${hash} ${name}`
}

const NOTHING: ReadonlySet<Id> = new Set()

/** As many calls that started nothing may come before the first one that did, in code of an older version. */
const MOST_REFUSED = 1_000

/** Derives the id of a question from the id that a child would have in its place. */
export function questionId(turnId: Id): Id {
  const [id = ''] = deriveIds(turnId, 'ask', 1)
  return id
}

/** The hash of what a call asks: of whom, by the name the code knows it by, and what. */
export function asksOf({ name, agent }: Pick<Offer, 'name' | 'agent'>, input: unknown, how = 'call'): string {
  return shortSha256(`${canonicalJson([how, name, agent.name])} ${textOf(givenIn(input))}`)
}

function givenIn(input: unknown): unknown {
  if (input instanceof SlotInput) return input.record
  return input instanceof CallerInput ? input.input : input
}

/** One text for equal inputs. An input that is not JSON may still be one that its schema makes JSON of. */
function textOf(input: unknown): string {
  const json = toJson(input)
  return json.ok ? canonicalJson(json.value) : serialized(input)
}

function serialized(input: unknown): string {
  try {
    return process.getBuiltinModule('node:v8').serialize(input).toString('base64')
  } catch {
    return ''
  }
}
