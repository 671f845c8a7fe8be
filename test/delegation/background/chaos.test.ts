import { type AnyAgent, agent, type Json } from 'legate'
import { askTools, backgroundSubagents } from 'legate/background'
import type { ModelRequest } from 'legate/models'
import type { Conversation, Link, Turn } from 'legate/rows'
import { readTrees, type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { brokenGraph } from '../../../src/testing/crash/aftermath.ts'
import { simpleTool } from '../../support/agents.ts'
import { Chance } from '../../support/chance.ts'
import { makeGate } from '../../support/gate.ts'
import { type Process, startProcess } from '../../support/process.ts'
import { expectAnswered } from '../../support/requests.ts'
import { type Rows, stores } from '../../support/stores.ts'
import type { Call } from './support.ts'

const RUNS = process.env['LEGATE_FULL'] === '1' ? 2_000 : 10
const SEED = Number(process.env['LEGATE_SEED'] ?? 1_000_000)

describe.each(stores)('hosts and children that do anything, whose processes die, on %s', (name, create) => {
  test('all of it ends, each end is told once, nothing waits for itself', { timeout: 3_600_000 }, async () => {
    const runs = name === 'sqlite' ? RUNS / 5 : RUNS
    for (let at = 0; at < runs; at++) await new Chaos(SEED + at, create()).run()
  })
})

/** Longer than anything here takes. */
const MOST_MS = 6_000

class Chaos {
  private readonly seed: number
  private readonly chance: Chance
  private readonly rows: Rows
  private readonly store: LocalStore
  private readonly root: AnyAgent & ReturnType<typeof agent>
  private readonly requests: ModelRequest[] = []

  constructor(seed: number, rows: Rows) {
    this.seed = seed
    this.chance = new Chance(seed)
    this.rows = rows
    this.store = rows.open()
    this.root = this.host('root', 0)
  }

  async run(): Promise<void> {
    const { chance } = this
    let runId: string | undefined
    for (let lives = chance.below(4); lives > 0; lives--) {
      const { process, over } = this.startDoomed(1 + chance.below(40))
      if (runId === undefined) {
        const run = process.runtime.run(this.root, 'go')
        await Promise.race([over, run.result.catch(() => undefined), pause(60)])
        runId = this.store.turn(run.id)?.id
      } else {
        const resumed = process.runtime.resume().then(() => process.runtime.idle())
        await Promise.race([over, resumed.catch(() => undefined), pause(60)])
      }
      await process.kill()
      this.checkStanding()
    }
    const last = this.start()
    if (runId === undefined) {
      const run = last.runtime.run(this.root, 'go')
      await Promise.race([run.result, pause(chance.below(200))])
      runId = run.id
    }
    const second = chance.is(0.3) ? this.start() : undefined
    await last.runtime.resume()
    await second?.runtime.resume()
    if (chance.is(0.3)) {
      await pause(chance.below(60))
      await last.runtime.cancel(runId)
    }
    await this.finish(last)
    await second?.runtime.close()
    await last.runtime.close()
    expect([...last.errors, ...(second?.errors ?? [])], `seed ${this.seed}`).toEqual([])
    this.checkStanding()
    this.checkEnded()
    for (const request of this.requests) expectAnswered(request)
    await this.rows.drop()
  }

  /** Until nothing is open. People answer what they are asked, and what a host leaves open that is idle. */
  private async finish({ runtime }: Process): Promise<void> {
    const end = Date.now() + MOST_MS
    const idle = runtime.idle().then(() => true)
    while ((await Promise.race([idle, pause(5)])) !== true) {
      if (Date.now() > end) throw new Error(`${this.name} does not end: ${this.standing()}`)
      await this.answer(runtime)
    }
  }

  private async answer(runtime: Process['runtime']): Promise<void> {
    for (const { id, turnId, metadata } of this.store.timed({ limit: 100 })) {
      const { to, told } = (metadata['question'] ?? {}) as { to?: string; told?: string | null }
      const link = this.store.link(turnId)
      const isHost = to === 'host' && (told !== null || link?.wake === 'passive')
      const host = this.store.conversation(link?.hostConversationId ?? '')
      const isLeft = isHost && host?.type === 'user' && host.activeTurnId === null
      // Its host may have answered it meanwhile.
      if (to === 'person' || isLeft) await runtime.answer(id, { text: 'a person says' }).catch(() => undefined)
    }
  }

  private standing(): string {
    const open = this.store.openTurns(1_000).map((turn) => ({
      turn: turn.id.slice(-6),
      conversation: turn.conversationId.slice(-6),
      state: turn.state,
      tree: turn.tree,
      live: turn.account.live,
      link: (({ mode, released, keyed } = {} as never) => ({ mode, released, keyed }))(this.store.link(turn.id)),
      nodes: this.store.openNodes(turn.id).map(({ id, kind, state, wait, blockers, input, metadata }) => ({
        id: id.slice(-6),
        kind,
        state,
        blockers,
        call: input.call?.name,
        wait: wait && { on: wait.on, refs: wait.refs.map((ref) => ref.slice(-6)) },
        question: metadata['question'],
      })),
    }))
    return JSON.stringify(open, null, 1)
  }

  private start(store: (store: LocalStore) => LocalStore = (same) => same): Process {
    return startProcess(this.rows, { agents: [this.root], store, engine: { workers: 1 + this.chance.below(4) } })
  }

  private startDoomed(commits: number): { process: Process; over: Promise<void> } {
    const dead = makeGate()
    let left = commits
    const isWritten = this.chance.is(0.5)
    const die = async (written: void | Promise<void>) => {
      await written
      dead.open()
      await makeGate().opened
    }
    const process = this.start((store) => ({
      ...store,
      commit: (step) => {
        if (--left > 0) return store.commit(step)
        return die(left === 0 && isWritten ? store.commit(step) : undefined)
      },
    }))
    return { process, over: dead.opened }
  }

  private host(name: string, level: number): AnyAgent & ReturnType<typeof agent> {
    const { chance } = this
    const below = level < 2 ? this.host(`${name}_${level}`, level + 1) : undefined
    const wake = chance.is(0.8) ? 'auto' : 'passive'
    const limit = chance.is(0.5) ? { concurrency: 1 } : {}
    return agent({
      name,
      instructions: `You are ${name}.`,
      model: scriptedModel((request) => this.say(request, level)),
      tools: {
        ...askTools(),
        ...backgroundSubagents({ nested: true, wake, ...(below === undefined ? {} : { agent: below }) }),
        slow: simpleTool(() => pause(chance.below(15)), { effect: 'pure' }),
      },
      subagents:
        below === undefined
          ? {}
          : {
              consult: { agent: below, ...limit },
              hasty: { agent: below, promoteAfterMs: 1 + chance.below(20), ...limit },
              again: { agent: below, retries: 1, retryDelayMs: 0, ...limit },
            },
      budget: {
        modelCalls: 6,
        children: 5,
        depth: 4,
        concurrency: 1 + chance.below(3),
        ...(chance.is(0.4) ? { treeConcurrency: 1 + chance.below(3) } : {}),
      },
    })
  }

  private say(request: ModelRequest, level: number): ScriptedAnswer | string {
    this.requests.push(request)
    const { chance } = this
    const steps = request.messages.filter(({ role }) => role === 'assistant').length
    if (request.tools.length === 0 || chance.is(0.25 + steps / 10)) return 'done'
    if (chance.is(0.05)) return { error: new Error('bad') }
    const ids = JSON.stringify(request.messages).match(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{22}/g) ?? []
    return {
      calls: Array.from({ length: 1 + chance.below(3) }, () => this.action(ids, level)),
      delayMs: chance.below(4),
    }
  }

  private action(ids: readonly string[], level: number): Call {
    const { chance } = this
    const id = () => (ids.length > 0 && chance.is(0.9) ? chance.pick(ids) : '01890000-0000-7000-8000-000000000000')
    const child = (): Json => ({ child_conversation_id: id() })
    const message = () => ({ message: 'go', ...(chance.is(0.4) ? { session_id: id() } : {}) })
    const actions: (() => Call)[] = [
      () => ({ name: 'subagent_spawn', input: { name: 'x', prompt: 'go' } }),
      () => ({ name: 'subagent_run', input: { name: 'x', prompt: 'go', timeout_ms: 1 + chance.below(30) } }),
      () => ({ name: 'subagent_wait', input: {} }),
      () => ({
        name: 'subagent_wait',
        input: {
          ids: Array.from({ length: 1 + chance.below(3) }, id),
          join: chance.pick(['all', 'any', 'settled', 2]),
          losers: chance.pick(['leave', 'cancel']),
          ...(chance.is(0.3) ? { timeout_ms: 1 + chance.below(20) } : {}),
        },
      }),
      () => ({ name: 'subagent_poll', input: child() }),
      () => ({ name: 'subagent_result', input: child() }),
      () => ({ name: 'subagent_send', input: { ...(child() as object), message: 'more' } }),
      () => ({ name: 'subagent_send', input: { ...(child() as object), message: 'more' } }),
      () => ({ name: 'subagent_cancel', input: child() }),
      () => ({ name: 'subagent_list', input: {} }),
      () => ({ name: 'consult', input: message() }),
      () => ({ name: 'consult', input: message() }),
      () => ({ name: 'hasty', input: message() }),
      () => ({ name: 'again', input: message() }),
      () => ({ name: 'ask_host', input: { question: 'why?' } }),
      () => ({ name: level === 0 ? 'slow' : 'ask_host', input: level === 0 ? {} : { question: 'what?' } }),
      () => ({ name: 'ask_person', input: { question: 'who?' } }),
      () => ({ name: 'slow', input: {} }),
      () => ({ name: chance.pick(['__proto__', 'constructor', 'subagent_wait']), input: { __proto__: 1, ids: 7 } }),
    ]
    return chance.pick(actions)()
  }

  private checkStanding(): void {
    expect(readTrees(this.store).flatMap(brokenGraph), `seed ${this.seed}`).toEqual([])
  }

  /** Every delegation has its end, and every end its reader; nobody has or waits for room any more. */
  private checkEnded(): void {
    for (const tree of readTrees(this.store)) {
      for (const turn of tree.turns.values()) this.checkTurn(turn)
      for (const conversation of tree.conversations.values()) this.checkConversation(conversation)
      for (const link of tree.links.values()) this.checkLink(link, tree.conversations.get(link.hostConversationId))
    }
  }

  private checkTurn(turn: Turn): void {
    expect(turn, this.name).toMatchObject({ state: 'ended', paused: null, account: { live: 0 } })
    if (turn.tree !== null) expect(turn.tree, this.name).toMatchObject({ live: 0, waiting: [] })
  }

  private checkConversation({ activeTurnId, places, type, background }: Conversation): void {
    expect({ activeTurnId, places }, this.name).toEqual({ activeTurnId: null, places: null })
    if (type === 'user') expect(background, this.name).toEqual([])
  }

  /** A child whose turn is over is told when it is asked again; what is passive is told to who asks. */
  private checkLink({ id, outcome, wake, mode, deliveredTo }: Link, host: Conversation | undefined): void {
    expect(outcome, this.name).not.toBeNull()
    if (wake === 'passive' || mode !== 'background') return
    const isKept = host?.type === 'sub_agent' && host.background.includes(id)
    expect(deliveredTo !== null || isKept, this.name).toBe(true)
  }

  private get name(): string {
    return `seed ${this.seed}`
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
