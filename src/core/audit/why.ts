import { isDead } from '../engine/lease.ts'
import { hindrance, processName } from '../engine/who-runs.ts'
import type { EngineRow } from '../graph/commit.ts'
import { codeOf } from '../graph/kinds.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { AgentRef, Id, Link, Node, Turn } from '../graph/rows.ts'
import { approvalOf } from '../rules/turn/approval-of.ts'
import { questionOf } from '../rules/turn/question-of.ts'
import { doubtHash, seenOf } from '../rules/turn/seen-of.ts'
import { lookWith } from '../store/look.ts'
import { notFound, wasDeleted } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'

/** The reasons why a run does not proceed. */
export const WHY_CODES = [
  'ended', // it is over
  'deleted', // its tree was deleted
  'stopping', // it was asked to stop
  'queued', // another run of its conversation comes first
  'place', // a limit lets only so many delegations run
  'approval', // a person must allow a call
  'question', // a person, or its host, must answer
  'children', // it waits for what it delegated
  'timer', // it goes on at a moment
  'running', // a process works on it
  'process_gone', // the process that worked on it is gone
  'uncertain', // a call in it may have taken effect, and nobody has settled it
  'agent_missing', // no process that is known has the code of its agent
  'worker', // it can go on, and waits for a free worker
  'budget', // little is left of what it may spend
  'stuck', // nothing would make it go on: an audit says more
] as const

export type WhyCode = (typeof WHY_CODES)[number]

export interface WhyReason {
  readonly code: WhyCode
  readonly text: string
  /** Advice; null when there is nothing to do. */
  readonly advice: string | null
  /** The run it applies to: the given one, or one below it. */
  readonly runId: Id
  readonly nodeId: Id | null
  /** Agent names from the root. */
  readonly path: readonly string[]
}

export interface Why {
  readonly runId: Id
  /** True where the run will continue without any action. */
  readonly goesOn: boolean
  readonly reasons: readonly WhyReason[]
  /** The whole answer in words. */
  readonly text: string
}

export interface WhyOptions {
  /** Names the processes that could not run it, with their machines. Default true. */
  readonly processes?: boolean
}

export interface WhyContext {
  readonly store: Store
  readonly now: number
  /** True where this process runs nodes of that agent. */
  readonly knows: (agent: AgentRef) => boolean
  /** True where the answer may name processes and machines. */
  readonly namesProcesses: boolean
}

/** Explains a run, the run of a node, or the latest run of a conversation. */
export async function explainRun(context: WhyContext, id: Id): Promise<Why> {
  const { store } = context
  const engines = await store.engines()
  const why = await lookWith(store, id, (tree) => {
    const turn = tree.turn(id) ?? tree.turn(tree.node(id)?.turnId ?? '') ?? tree.turnsOf(id, { limit: 1 })[0]
    return turn === undefined ? undefined : explainTurn({ ...context, tree, engines }, turn)
  })
  if (why !== undefined) return why
  const stone = await store.archive?.tombstone(id)
  if (stone === undefined) throw await notFound(store, 'run, node or conversation', id)
  const text = `It ${wasDeleted(stone)}`
  const reason = { code: 'deleted', text, advice: null, runId: id, nodeId: null, path: [stone.agent] } as const
  return { runId: id, goesOn: false, reasons: [reason], text: lineOf(reason) }
}

/** Explains a run by rows that were read before. */
export function explainTurn(source: WhySource, turn: Turn): Why {
  return new Inquiry(source, turn).answer()
}

const GOES_ON: ReadonlySet<WhyCode> = new Set(['running', 'timer', 'worker'])

/** The rows that an answer is read from. */
export interface WhySource extends WhyContext {
  readonly tree: TreeReader
  readonly engines: readonly EngineRow[]
}

class Inquiry {
  private readonly context: WhySource
  private readonly turn: Turn
  private readonly reasons: WhyReason[] = []
  private readonly seen = new Set<Id>()

  constructor(context: WhySource, turn: Turn) {
    this.context = context
    this.turn = turn
  }

  answer(): Why {
    this.at(this.turn)
    const { reasons } = this
    if (reasons.length === 0)
      this.put(this.turn, null, ['stuck', 'Nothing in it is open, and it has not ended.', AUDIT])
    for (const id of this.seen) this.doubts(this.context.tree.turn(id))
    const goesOn = this.turn.state !== 'ended' && reasons.some(({ code }) => GOES_ON.has(code))
    return { runId: this.turn.id, goesOn, reasons, text: reasons.map(lineOf).join('\n') }
  }

  private at(turn: Turn): void {
    if (this.seen.has(turn.id)) return
    this.seen.add(turn.id)
    this.children(turn)
    if (turn.state === 'ended') return this.put(turn, null, endOf(turn))
    if (turn.cancel !== null) this.stopping(turn)
    if (turn.state === 'queued') return this.queued(turn)
    for (const node of this.context.tree.openNodes(turn.id)) this.node(turn, node)
    this.budget(turn)
  }

  /** Adds the calls of a run whose effect nobody knows. */
  private doubts(turn: Turn | undefined): void {
    for (const id of turn?.account.uncertain ?? []) {
      const node = this.context.tree.node(id)
      if (turn !== undefined && node?.state === 'uncertain') this.put(turn, node, doubt(node))
    }
  }

  private queued(turn: Turn): void {
    const { tree } = this.context
    const link = tree.link(turn.id)
    if (link !== undefined && !link.released) return this.put(turn, null, placeOf(tree, link))
    const first = tree.turn(tree.conversation(turn.conversationId)?.activeTurnId ?? '')
    if (first === undefined) return this.put(turn, null, ['stuck', 'It is queued, but nothing runs before it.', AUDIT])
    this.put(turn, null, ['queued', `It comes after the run ${first.id} of the same conversation.`, null])
    this.at(first)
  }

  private node(turn: Turn, node: Node): void {
    if (node.state === 'awaiting_approval') this.put(turn, node, asked(node, this.context.now))
    if (node.state === 'running') this.put(turn, node, this.running(turn, node))
    if (node.state === 'waiting') this.waiting(turn, node)
    if (node.state === 'pending' && node.blockers === 0) this.put(turn, node, this.pending(turn, node))
    if (node.state === 'running') this.below(turn, node, 'called')
  }

  private running(turn: Turn, node: Node): ReasonText {
    const { engines, now } = this.context
    const engine = engines.find(({ id }) => id === node.engineId)
    const what = callOf(node)
    if (engine !== undefined && !isDead(engine, now)) {
      const since = node.startedAt === null ? '' : ` for ${spanOf(now - node.startedAt)}`
      return ['running', `Process ${engine.pid} works on ${what}${since}.`, null]
    }
    return ['process_gone', `${processOf(engine)} that worked on ${what} is gone.`, this.resuming(turn)]
  }

  private pending(turn: Turn, node: Node): ReasonText {
    const { engines, now, knows, namesProcesses } = this.context
    if (node.wakeAt !== null && node.wakeAt > now) {
      const last = node.failure === null ? '' : ` Last time: ${node.failure.message}`
      return ['timer', `It tries ${callOf(node)} again in ${spanOf(node.wakeAt - now)}.${last}`, null]
    }
    const agent = this.refOf(turn)
    const alive = engines.filter((engine) => !isDead(engine, now))
    if (codeOf(agent) === '' && alive.length === 0)
      return ['process_gone', `No process works on ${callOf(node)}.`, this.resuming(turn)]
    if (knows(agent) || alive.some((engine) => hindrance(engine, agent) === null))
      return ['worker', `It can go on with ${callOf(node)} as soon as a worker is free.`, null]
    const others = hindrances(alive, agent, namesProcesses)
    const what = `It needs the agent "${agent.name}", which this process cannot run. ${others}`
    return ['agent_missing', what, this.resuming(turn)]
  }

  private waiting(turn: Turn, node: Node): void {
    const { wait } = node
    const { now } = this.context
    if (wait?.on === 'question') return this.put(turn, node, question(node, now))
    if (wait?.on === 'children') return this.below(turn, node, 'waits')
    const until = node.wakeAt === null ? '' : `, for ${spanOf(node.wakeAt - now)} more`
    if (wait !== null && node.wakeAt !== null) return this.put(turn, node, ['timer', `It waits${until}.`, null])
    this.put(turn, node, ['stuck', `The ${node.kind} ${node.id} waits and does not say for what.`, AUDIT])
  }

  /** Adds the delegations that a node waits for, and why they do not proceed. */
  private below(turn: Turn, node: Node, how: 'waits' | 'called'): void {
    const { tree } = this.context
    const links =
      how === 'waits'
        ? (node.wait?.refs ?? []).flatMap((id) => tree.link(id) ?? [])
        : tree.openLinks(turn.id).filter(({ taskId, mode }) => taskId === node.id && mode === 'called')
    const open = links.filter(({ outcome }) => outcome === null)
    if (how === 'waits' && open.length === 0) {
      return this.put(turn, node, ['stuck', `It waits for children that have all ended.`, AUDIT])
    }
    for (const link of open) {
      this.put(turn, node, ['children', `It waits for "${link.agentName}", the run ${link.id}.`, null])
      const child = tree.turn(link.id)
      if (child !== undefined) this.at(child)
    }
  }

  private stopping(turn: Turn): void {
    const { at, reason } = turn.cancel ?? { at: this.context.now, reason: null }
    const why = reason === null ? '' : `: ${reason}`
    this.put(turn, null, ['stopping', `It was asked to stop ${spanOf(this.context.now - at)} ago${why}.`, null])
  }

  private budget(turn: Turn): void {
    if (turn.spend === null) return
    const { limit, spent, held } = turn.spend
    for (const kind of ['tokens', 'usd'] as const) {
      const most = limit[kind]
      const used = spent[kind] + held[kind]
      if (most === null || used < most * 0.9) continue
      const amount = kind === 'usd' ? `$${used} of $${most}` : `${used} of ${most} tokens`
      this.put(turn, null, ['budget', `It has spent or holds back ${amount}: it may only wrap up.`, 'raise its budget'])
    }
  }

  private children(turn: Turn): void {
    const { account, limits } = turn
    if (account.children === 0 || account.children < limits.children) return
    const text = `It has started ${account.children} subagents, its limit: further delegations are refused.`
    this.put(turn, null, ['budget', text, 'raise budget.children'])
  }

  /** The command that a person types to resume the run; an agent that is kept in its row needs no code. */
  private resuming(turn: Turn): string {
    const code = codeOf(this.refOf(turn))
    return code === ''
      ? `legate resume ${turn.id.slice(-8)}`
      : `legate resume --module FILE, with the code of "${code}"`
  }

  private refOf({ conversationId }: Turn): AgentRef {
    return this.context.tree.conversation(conversationId)?.agent ?? { name: '?', hash: '' }
  }

  private put(turn: Turn, node: Node | null, [code, text, advice]: ReasonText): void {
    const path = this.context.tree.conversation(turn.conversationId)?.path ?? []
    this.reasons.push({ code, text, advice, runId: turn.id, nodeId: node?.id ?? null, path })
  }
}

type ReasonText = readonly [code: WhyCode, text: string, advice: string | null]

const AUDIT = 'legate audit'

function lineOf({ path, text, advice }: WhyReason): string {
  return `${path.join(' > ')}: ${text}${advice === null ? '' : ` (${advice})`}`
}

function endOf({ id, outcome }: Turn): ReasonText {
  const again = outcome?.status === 'failed' ? ` Then: legate retry ${id.slice(-8)}` : ''
  const why = outcome?.error ? `: ${outcome.error.message}` : '.'
  return [
    'ended',
    `It has ended, ${outcome?.status ?? 'without an outcome'}${why}`,
    outcome?.advice ? `${outcome.advice}${again}` : null,
  ]
}

function placeOf(tree: TreeReader, { keyed, hostTurnId, hostConversationId }: Link): ReasonText {
  const host = tree.turn(hostTurnId)
  const places = tree.conversation(hostConversationId)?.places?.find(({ key }) => key === keyed?.key)
  if (keyed !== null && places !== undefined && places.live >= keyed.limit) {
    return [
      'place',
      `${places.live} delegations with the key "${keyed.key}" run, the limit; it is next or later.`,
      null,
    ]
  }
  const most = host?.limits.concurrency ?? 0
  if (host !== undefined && host.account.live >= most) {
    return [
      'place',
      `${host.account.live} delegations of its host run, the limit of ${most}; it is next or later.`,
      null,
    ]
  }
  return ['place', 'The limit of delegations of a run above it is reached; it is next or later.', null]
}

function asked(node: Node, now: number): ReasonText {
  const { request, reason, since } = approvalOf(node)
  const text = `${callOf(node)} waits for a person since ${spanOf(now - since)} (${request}; ${reason}).`
  // The words are cut: the hash stands where the whole request does.
  return ['approval', text, `legate approvals ${node.id.slice(-8)}`]
}

function doubt(node: Node): ReasonText {
  const text = `It is uncertain whether ${callOf(node)} took effect. ${node.failure?.message ?? ''}`
  const settle = `legate settle ${node.id.slice(-8)} --seen ${doubtHash(node)}`
  return ['uncertain', text, `find out, then: ${settle} with --happened, --run-again or --leave`]
}

function question(node: Node, now: number): ReasonText {
  const { text = '', to = 'person', since = now } = questionOf(node) ?? {}
  if (to === 'outside') {
    const words = `It waits since ${spanOf(now - since)} for the result of a call that is executed elsewhere: ${text}`
    return ['question', words, `legate answer ${node.id.slice(-8)} --seen ${seenOf(node)} RESULT`]
  }
  const whom = to === 'host' ? 'its host' : 'a person'
  const advice = to === 'host' ? null : `legate answer ${node.id.slice(-8)} TEXT`
  return ['question', `It asked ${whom} ${spanOf(now - since)} ago: ${text}`, advice]
}

const MOST_NAMED = 5

/** Says of each process that works on the store why it does not take a run. */
function hindrances(alive: readonly EngineRow[], agent: AgentRef, isNamed: boolean): string {
  const working = alive.filter(({ agents }) => agents?.length !== 0)
  if (working.length === 0) return 'No process works on this store.'
  if (!isNamed) return 'Neither can any other that works on this store.'
  const each = working.slice(0, MOST_NAMED).map((engine) => `${processName(engine)} ${hindrance(engine, agent)}`)
  const more = working.length > MOST_NAMED ? `; and ${working.length - MOST_NAMED} more` : ''
  return `Of those that work on this store, ${each.join('; ')}${more}.`
}

function processOf(engine: EngineRow | undefined): string {
  return engine === undefined ? 'The process' : `The process ${engine.pid}`
}

function callOf({ kind, input, purpose }: Node): string {
  if (input.call !== undefined) return `the call of "${input.call.name}"`
  return kind === 'agent_message' ? `a model call (${purpose ?? 'answer'})` : `a ${kind}`
}

function spanOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
