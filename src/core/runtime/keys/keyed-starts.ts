// Starts under texts that callers have chosen: `key` stands for a run, `conversationKey` for a conversation.
//
// Owns:      the hash of a request, the search for a run that was started before, and the id that a conversation has now.
//            `start-names` has the ids that stand for the texts.
// Called by: `RunStarter`, and `Runtime.conversationIdFor`. Loaded with the code that runs nodes.
// Must stay true:
//   - The same text gives the same id in every process, so two processes that start one key at the same moment make one run:
//     the store refuses the second row, and the look after that finds the first.
//   - The key of a deleted run never starts a second one. The key of a deleted conversation begins a new one.
//   - Keys of one owner never meet those of another (I9): an id that a tree of somebody else has, by import or by code that chose it,
//     leads on to the next one. Of a run that its starter does not see a repeated key tells nothing.

import type { ValidInput } from '../../agent/definition/input.ts'
import { ConflictError, InputError, isLegateError, NotFoundError } from '../../base/error.ts'
import { shortSha256 } from '../../base/hash.ts'
import { type ForeignKey, foreignId } from '../../base/id.ts'
import { canonicalJson, toJson } from '../../base/json.ts'
import { after, attempt, type Later } from '../../base/maybe.ts'
import type { TreeReader } from '../../graph/reader.ts'
import { requireSame } from '../../graph/refused.ts'
import type { Id, Turn } from '../../graph/rows.ts'
import type { Ledger } from '../../store/ledger.ts'
import { look } from '../../store/look.ts'
import { wasDeleted } from '../../store/not-found.ts'
import type { Store } from '../../store/store.ts'
import { foreignKey, type KeyedStart, type KeyName, runConversationKey } from './start-names.ts'

/** The id of the conversation that a key stands for now. Each one that is deleted, or of another owner, leads to the next. */
export function findConversationId(store: Store, name: KeyName): Later<Id> {
  return findFree(store, foreignKey(name))
}

function findFree(store: Store, key: ForeignKey, id: Id = foreignId(key)): Later<Id> {
  const next = (after: string) => findFree(store, key, foreignId({ ...key, after: `${id} ${after}` }))
  return after(store.ownerOf(id), (place) => {
    if (place !== undefined) return place.owner === key.owner ? id : next(OF_ANOTHER)
    return after(store.archive?.tombstone(id), (stone) => {
      if (stone === undefined) return id
      // Its deletion changes nothing for those who were led on.
      return next(stone.owner === key.owner ? stone.hash : OF_ANOTHER)
    })
  })
}

const OF_ANOTHER = 'of another owner'

/** The parts of a request, beside its names, that must be the same when its key is used again. */
interface KeyedRequest {
  readonly input: ValidInput
  readonly attributes: Turn['attributes']
  readonly title: string | null
  readonly whileRunning: string
}

/**
 * The hash of a request: equal for equal requests, whatever the order of their fields. Code (tools, a signal) is not compared,
 * and neither is the agent's definition: it may be newer.
 */
export function requestHashOf(start: KeyedStart, request: KeyedRequest): string {
  const { agent, named, conversationKey, grant = null, budget = null } = start
  const { input, attributes, title, whileRunning } = request
  const asked = { value: input.value, said: input.said ?? null }
  const parts = { agent, named, conversationKey, asked, grant, budget, attributes, title, whileRunning }
  const json = toJson(parts)
  if (!json.ok) throw new InputError('invalid_input', `run(agent, input, { key }): it is not JSON. ${json.error}`)
  return shortSha256(canonicalJson(json.value))
}

/** A run that is to be recorded under a key. */
export interface KeyedRun {
  readonly runId: Id
  readonly start: KeyedStart
  readonly requestHash: string | null
  /** May whoever starts it see a tree of this owner and agent? */
  readonly maySee: (owner: string | null, agent: string) => boolean
  /** Records it as a new run of this conversation, which is made with it where it `isNew`. */
  readonly record: (conversationId: Id, isNew: boolean) => Later<void>
}

/** Records starts under keys. Looks again where another writer was faster. */
export class KeyedStarts {
  private readonly ledger: Ledger
  /** One start of a run at a time: the next one finds what this one has recorded. */
  private readonly open: Map<Id, Promise<void>> = new Map()

  constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  begin(run: KeyedRun): Later<void> {
    const { runId } = run
    let looks = 0
    const look = () => this.look(run, looks++ === 0)
    const before = this.open.get(runId)
    const done = before === undefined ? attempt(look) : before.then(look, look)
    if (!(done instanceof Promise)) return undefined
    const settled = done.catch((error: unknown) => this.again(look, error))
    const leave = () => {
      if (this.open.get(runId) === settled) this.open.delete(runId)
    }
    this.open.set(runId, settled)
    settled.then(leave, leave)
    return settled
  }

  /**
   * Finds the run of the key, or records it. A store far away is not asked the first time: it refuses the commit where there is, or
   * was, a run of the key.
   */
  private look(run: KeyedRun, isFirst: boolean): Later<void> {
    const { store } = this.ledger
    const { named, conversationKey, place } = run.start
    const isUnknown = store.writtenRoot?.(run.runId) === undefined
    const mayBeNew = isFirst && isUnknown && named === null && conversationKey === null
    const isPresumed = mayBeNew && store.known?.(place.conversationId, true) !== undefined
    if (isPresumed) return run.record(place.conversationId, true)
    return after(run.requestHash === null ? undefined : findRoot(store, run), (rootId) => {
      if (rootId !== undefined) return look(store, rootId, (tree) => join(tree, run))
      return after(findPlace(store, run.start), (conversationId) => {
        run.start.place.conversationId = conversationId
        return run.record(conversationId, false)
      })
    })
  }

  private async again(look: () => Later<void>, first: unknown): Promise<void> {
    const { scheduler } = this.ledger
    let error = first
    for (let tries = 1; isOvertaken(error) && tries < MOST_TRIES; tries++) {
      await scheduler.pause((scheduler.random() / 2 ** 32) * Math.min(50, tries))
      try {
        await look()
        return
      } catch (failure) {
        error = failure
      }
    }
    throw error
  }
}

const MOST_TRIES = 200

/** The tree of the run that was started under this id; undefined where there is none. Refuses a run that was deleted. */
function findRoot(store: Store, { runId, maySee }: KeyedRun): Later<Id | undefined> {
  return after(store.rootOf(runId), (rootId) => {
    if (rootId !== undefined) return rootId
    return after(store.archive?.tombstone(runId), (stone) => {
      if (stone === undefined) return undefined
      if (!maySee(stone.owner, stone.agent)) throw takenKey()
      const message = `The run ${runId} of this key ${wasDeleted(stone)} Use a new key to start another.`
      throw new NotFoundError('deleted', message, { details: { runId, deleted: stone } })
    })
  })
}

function findPlace(store: Store, { owner, agent, key, conversationKey, named, place }: KeyedStart): Later<Id> {
  if (conversationKey !== null) return findConversationId(store, { owner, agent, key: conversationKey })
  return named !== null || key === null ? place.conversationId : findFree(store, runConversationKey(owner, key))
}

/** The handle of a repeated start is one of the first run. */
function join(tree: TreeReader, { runId, start, requestHash, maySee }: KeyedRun): void {
  const turn = tree.turn(runId)
  const root = turn === undefined ? undefined : tree.conversation(turn.rootId)
  if (turn === undefined || root === undefined) throw overtaken()
  // Whoever starts it may see trees of others too: one that has an id of this key is not what it began.
  const isOwn = root.owner === start.owner || turn.conversationId === start.named
  if (!isOwn || !maySee(root.owner, root.agent.name)) throw takenKey()
  requireSame(turn, requestHash)
  start.place.conversationId = turn.conversationId
}

/** Whoever may not see the run of a key hears nothing of that run, not even whether the request is the same (I9). */
function takenKey(): ConflictError {
  return new ConflictError('conflict', 'This key is used already: use a new key.')
}

/** Ends a plan that another writer was faster than: what it was planned on has to be looked for again. */
export function overtaken(): ConflictError {
  const message = 'Other processes were faster again and again: try it once more.'
  return new ConflictError('conflict', message, { details: { overtaken: true }, isRetryable: true })
}

function isOvertaken(error: unknown): boolean {
  return isLegateError(error) && error.details['overtaken'] === true
}
