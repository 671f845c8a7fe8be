import { textOf } from '../../../src/core/graph/content.ts'
import { DEFAULT_LIMITS, type TurnLimits } from '../../../src/core/graph/limits.ts'
import { childIds, planSpawn } from '../../../src/core/rules/delegation/spawn.ts'
import { spawnRequest } from '../../support/graph.ts'
import { RandomWorld } from './random-world.ts'
import { type RefNode, type RefTurn, refNode } from './reference.ts'
import { lastNode } from './reference-rules.ts'

const MANY = { turns: 10_000, toolCalls: 10_000, children: 10_000, concurrency: 10_000 } as const

export const LIMITS: TurnLimits = { ...DEFAULT_LIMITS, ...MANY, wallMs: 1e9 }

/** What tasks delegate, and what comes of it. */
export abstract class RandomChildren extends RandomWorld {
  /** A task that runs hands its work to a child, and waits as a row. Some are tried once more by themselves. */
  protected spawn(turn: RefTurn, task: RefNode): string {
    const ids = childIds(task.id, 0)
    const text = `c${++this.count}`
    const retry = this.chance.is(0.4) ? { most: 1, delayMs: 0 } : null
    const claim = this.claimOf(task)
    this.commit((draft) => {
      const spawned = planSpawn(
        draft,
        spawnRequest(claim, { ids, contract: 'typed', input: text, content: text, limits: LIMITS, retry }),
      )
      if (!('link' in spawned)) throw new Error(`the child was not started: ${JSON.stringify(spawned)}`)
    })
    task.state = 'waiting'
    this.addChild(ids, { turn, task, tries: retry === null ? 0 : 1, text })
    return `task ${task.id} starts ${ids.turn} with ${text}`
  }

  private addChild(ids: { readonly turn: string; readonly conversation: string }, given: Delegation): void {
    const { turn, task, tries, text } = given
    const lane = { id: ids.conversation, head: null, base: null, isArchived: false, turns: [] }
    this.children.push(lane)
    const nodes = [refNode('user', { text }), refNode('agent', { state: 'pending' })]
    this.bind(this.addTurn(lane, { id: ids.turn, state: 'running', nodes, host: { turn, task, tries } }))
  }

  /** Its host's task has it as a result, unless the child is tried again. */
  private told({ id, host, isCancelled, nodes }: RefTurn, last: RefNode | undefined): void {
    if (host === null) return
    const { turn, task, tries } = host
    const isFailed = !isCancelled && (last?.state === 'errored' || last?.state === 'skipped')
    if (isFailed && tries > 0 && task.state === 'waiting') {
      const next = this.node(task.id).wait?.refs[0] ?? ''
      const link = this.store.link(next)
      if (link === undefined || next === id) throw new Error(`${id} failed and was not tried again`)
      const text = nodes[0]?.text ?? ''
      return this.addChild({ turn: next, conversation: link.childConversationId }, { turn, task, tries: 0, text })
    }
    const { output } = this.node(task.id)
    task.text = textOf(output.content ?? '')
    const isGood = !isCancelled && last?.state === 'finished'
    if (isGood && !task.text.includes(last.text)) throw new Error(`${task.id} does not say what ${id} said`)
    if (task.state !== 'waiting') return this.settle(turn)
    task.state = 'finished'
    task.isFailedChild = !isGood
    this.ended(turn, task)
  }

  protected override childrenOf(turn: RefTurn): RefTurn[] {
    return this.children
      .flatMap(({ turns }) => turns)
      .filter(({ host, state }) => host?.turn === turn && state !== 'ended')
  }

  protected override settle(turn: RefTurn): void {
    const wasOpen = turn.state !== 'ended'
    super.settle(turn)
    if (wasOpen && turn.state === 'ended') this.told(turn, lastNode(turn))
  }
}

interface Delegation {
  readonly turn: RefTurn
  readonly task: RefNode
  readonly tries: number
  readonly text: string
}
