import type { CommitKind } from '../../src/core/graph/commit.ts'
import type { Draft } from '../../src/core/graph/draft.ts'
import { type KindFlags, withKinds } from '../../src/core/graph/kinds.ts'
import { DEFAULT_LIMITS, type TurnLimits } from '../../src/core/graph/limits.ts'
import type { Id, Node, Turn } from '../../src/core/graph/rows.ts'
import { childIds, type SpawnRequest } from '../../src/core/rules/delegation/spawn.ts'
import { type Mutation, planMutate } from '../../src/core/rules/history/mutate.ts'
import { endTurns } from '../../src/core/rules/settle/end-turns.ts'
import { tellChanges } from '../../src/core/rules/settle/told.ts'
import { type Claim, planClaim } from '../../src/core/rules/turn/claim.ts'
import type { NodeEnd } from '../../src/core/rules/turn/end-node.ts'
import { planResult } from '../../src/core/rules/turn/result.ts'
import { planSay } from '../../src/core/rules/turn/say.ts'
import { Ledger } from '../../src/core/store/ledger.ts'
import type { LocalStore } from '../../src/core/store/store.ts'

import { type FakeClock, fakeClock } from '../../src/testing/stand-ins/fake-clock.ts'

export const LIMITS: TurnLimits = {
  ...DEFAULT_LIMITS,
  modelCalls: 25,
  toolCalls: 100,
  children: 10,
  concurrency: 10,
  depth: 3,
  wallMs: 60_000,
}

export interface GraphOptions {
  readonly kinds?: Readonly<Record<string, Partial<KindFlags>>>
  readonly clock?: FakeClock
  readonly engineId?: Id
}

/** The graph without an engine: a test takes its steps one by one, in the name of one engine. */
export class Graph {
  readonly store: LocalStore
  readonly clock: FakeClock
  readonly engineId: Id
  private readonly ledger: Ledger
  freeWorkers = 0
  private started: Node[] = []
  private ids = 0

  constructor(store: LocalStore, { kinds = {}, clock = fakeClock(), engineId = 'engine-1' }: GraphOptions = {}) {
    this.store = store
    this.clock = clock
    this.engineId = engineId
    const claims = {
      engineId,
      take: () => (this.freeWorkers-- > 0 ? null : ('worker' as const)),
      running: 0,
      giveBack: (taken: number) => {
        this.freeWorkers += taken
      },
    }
    this.ledger = new Ledger({
      store,
      clock,
      kinds: withKinds(kinds),
      listener: {
        mayWait: () => false,
        claims: () => (this.freeWorkers > 0 ? claims : null),
        committed: (_, draft) => {
          this.started.push(...draft.started)
        },
      },
    })
    this.ledger.endTurns = endTurns
    this.ledger.tellChanges = tellChanges
  }

  async commit<T>(kind: CommitKind, rootId: Id, plan: (draft: Draft) => T): Promise<T> {
    return this.ledger.commit({ kind, rootId, plan })
  }

  /** A turn of one user_message and one pending agent_message. */
  say(text: string, { conversationId = this.id(), limits = LIMITS } = {}): Promise<Turn> {
    const conversation = { id: conversationId, agent: { name: 'agent', hash: 'h' }, ceiling: [] }
    const request = {
      turnId: this.id(),
      nodeIds: [this.id(), this.id()],
      input: text,
      content: text,
      briefing: null,
      limits,
      deadline: null,
      money: null,
      mayStart: true,
      ceiling: [],
    }
    return this.commit('say', conversationId, (draft) => planSay(draft, conversation, request))
  }

  /** An empty conversation to put nodes into by hand: its first turn has ended. */
  async conversation(): Promise<Id> {
    const turn = await this.say('begin')
    await this.end(await this.claim(turn.entryNodeId), { state: 'finished', output: { content: 'ready' } })
    return turn.conversationId
  }

  mutate<T>(conversationId: Id, change: (mutation: Mutation) => T, turnId?: Id): Promise<T> {
    const scope = { conversationId, limits: LIMITS, ceiling: [], ...(turnId === undefined ? {} : { runId: turnId }) }
    return this.commit('mutate', conversationId, (draft) => planMutate(draft, scope, change))
  }

  /** Claims one runnable node for this graph's engine; undefined when it could not be had. */
  async tryClaim(nodeId: Id): Promise<Claim | undefined> {
    const rootId = this.node(nodeId).rootId
    const [node] = await this.sweep(() =>
      this.commit('claim', rootId, (draft) => {
        planClaim(draft, [nodeId])
      }),
    )
    return node && { rootId, nodeId: node.id, engineId: this.engineId, epoch: node.epoch }
  }

  /** What `step` claims, if there is one worker. */
  async sweep(step: (ledger: Ledger) => Promise<void>): Promise<readonly Node[]> {
    this.started = []
    this.freeWorkers = 1
    await step(this.ledger)
    this.freeWorkers = 0
    return this.started
  }

  async claim(nodeId: Id): Promise<Claim> {
    const claim = await this.tryClaim(nodeId)
    if (claim === undefined) throw new Error(`${nodeId} is not runnable: ${JSON.stringify(this.node(nodeId))}`)
    return claim
  }

  end(claim: Claim, end: NodeEnd): Promise<boolean> {
    return this.commit('result', this.node(claim.nodeId).rootId, (draft) => planResult(draft, claim, end))
  }

  node(id: Id): Node {
    const node = this.store.node(id)
    if (node === undefined) throw new Error(`there is no node ${id}`)
    return node
  }

  turn(id: Id): Turn {
    const turn = this.store.turn(id)
    if (turn === undefined) throw new Error(`there is no turn ${id}`)
    return turn
  }

  /** Distinct and in order; not random, so that a failure can be read. */
  id(): Id {
    this.ids++
    return `01900000-0000-7000-8000-${String(this.ids).padStart(12, '0')}`
  }
}

/** A delegation of the claimed task to an agent called "child". */
export function spawnRequest(claim: Claim, given: Partial<SpawnRequest> = {}): SpawnRequest {
  return {
    claim,
    ids: childIds(claim.nodeId, 0),
    mode: 'parked',
    contract: 'message',
    agent: { name: 'child', hash: 'h' },
    hostName: 'agent',
    toolName: 'ask',
    input: { message: 'x' },
    content: 'x',
    briefing: null,
    delegationContext: null,
    ceiling: [],
    limits: LIMITS,
    money: null,
    onParentClose: 'cancel',
    sessionId: null,
    isShared: false,
    wake: null,
    promoteAfterMs: null,
    background: null,
    ...given,
  }
}
