import type { AnyAgent } from '../agent/agent.ts'
import type { ReplyContext, ReplyDelegate } from '../agent/reply.ts'
import { ConflictError, DefinitionError, DeniedError, InputError } from '../base/error.ts'
import { deriveIds } from '../base/id.ts'
import { readOptions } from '../base/options.ts'
import { toolRequest } from '../grant/request.ts'
import { type ChildIds, childIds } from '../graph/child/spawn.ts'
import { textOf } from '../graph/content.ts'
import type { Outcome } from '../graph/outcome.ts'
import type { Id, Node } from '../graph/rows.ts'
import { planCodeQuestion } from '../graph/turn/question.ts'
import { ATTEMPTS, type Attempts } from '../tool/attempts.ts'
import type { SpawnedChild, SpawnOptions } from '../tool/current.ts'
import { permit } from '../tool/permit.ts'
import type { Delegate } from '../tool/tool.ts'
import { CalledChildren } from './called-children.ts'
import { withPresets } from './presets.ts'
import type { Offer, SpawnResult } from './spawn.ts'
import { isSubagentEntry, type SubagentEntry } from './subagent.ts'

/**
 * Whom the code of an agent delegates to and asks. Each call is known by its place: code that runs again has what it had
 * there, and a call that is another one is a conflict, which no code can talk itself out of.
 */
export class ReplyChildren extends CalledChildren {
  /** The first call that was another one. */
  conflict: ConflictError | null = null

  /** What the code gets beside its input. */
  replyContext(): ReplyContext {
    const given = this.context()
    const delegate = ((to: object | string, input: unknown, attempts?: Attempts) =>
      this.delegate(to, input, attempts)) as Delegate as ReplyDelegate<Record<never, never>>
    const own = { delegate, ask: (question: string) => this.ask(question), graph: this.run.home.ledger.store }
    return Object.defineProperties(given, Object.getOwnPropertyDescriptors(own)) as unknown as ReplyContext
  }

  /** Nobody wakes code: what it leaves in the background is looked at when somebody wants to. */
  override spawn(agent: object, input: unknown, options: SpawnOptions): Promise<SpawnedChild> {
    return super.spawn(agent, input, { ...options, wake: 'passive' })
  }

  /** The subagent of this name; undefined where a function gives it. */
  declared(name: string): AnyAgent | undefined {
    const all = [...this.run.agent.subagents.values()].map(({ config }) => config)
    const found = all.find(({ agent, name: own }) => typeof agent !== 'function' && (own ?? agent.name) === name)
    return found === undefined ? undefined : (found.agent as AnyAgent)
  }

  /** One of its subagents has the settings it has there, by whatever way it is named. */
  protected override offerOf(agent: AnyAgent): Offer {
    const [name] = [...this.run.agent.subagents].find(([, { config }]) => config.agent === agent) ?? []
    return name === undefined ? { ...super.offerOf(agent), name: agent.name } : asOffer(this.entryOf(name))
  }

  protected override async begin(offer: Offer, input: unknown, ids: ChildIds): Promise<SpawnResult> {
    const { store } = this.run.home.ledger
    const known = store.link(ids.turn)
    const isOther = known !== undefined && known.agentName !== offer.agent.name
    if (isOther || store.node(askId(ids)) !== undefined) throw this.conflicting(`delegates to "${offer.agent.name}"`)
    const spawned = await super.begin(offer, input, ids)
    const isRefused = 'refused' in spawned && (spawned.isChanged || spawned.refused.status === 'invalid_input')
    if (isRefused && known !== undefined) throw this.conflicting(`delegates something else to "${offer.agent.name}"`)
    return spawned
  }

  private delegate(to: object | string, input: unknown, attempts: Attempts | undefined): Promise<Outcome> {
    if (typeof to !== 'string') return this.start(to, input, { attempts }).outcome
    if (attempts !== undefined) readOptions('delegate(key, input, options)', attempts, ATTEMPTS)
    const entry = this.entryOf(to)
    const offer = asOffer(entry)
    const asked = withPresets(input, entry.presets)
    return this.startAs(attempts === undefined ? offer : { ...offer, attempts }, asked).outcome
  }

  private entryOf(key: string): SubagentEntry {
    const entry = this.run.toolkit.find(key)
    if (entry !== undefined && isSubagentEntry(entry)) return entry
    const known = [...this.run.agent.subagents.keys()].join(', ') || 'none'
    const message = `agent "${this.run.agent.name}", delegate: there is no subagent "${key}". There are: ${known}.`
    throw new DefinitionError('definition', message)
  }

  private ask(question: string): Promise<string | null> {
    const ids = childIds(this.run.node.id, this.nextPlace())
    const answer = this.run.work.lend(this.asked(readQuestion(question), ids))
    answer.catch(() => undefined)
    return answer
  }

  private async asked(text: string, ids: ChildIds): Promise<string | null> {
    const { home, node, work } = this.run
    const { store } = home.ledger
    const id = askId(ids)
    if (store.link(ids.turn) !== undefined) throw this.conflicting('asks a person')
    if (store.node(id) === undefined) this.permitAsking(text)
    const question = await home.ledger.commit({
      kind: 'ask',
      rootId: node.rootId,
      plan: (draft) => planCodeQuestion(draft, work.claim, { id, text }),
    })
    if (question === 'changed') throw this.conflicting('asks a person something else')
    if (question === 'limit') throw new DeniedError('denied', 'The limit of tool calls was reached: nobody was asked.')
    if (question === 'lost') throw this.lost()
    const ended = await home.waitForNode(id, work.signal)
    if (ended === null) throw work.signal.reason
    return answerIn(ended)
  }

  private permitAsking(question: string): void {
    const permission = permit(this.run, toolRequest(ASK), { question })
    if (permission.verdict === 'allow') return
    const { reason } = permission.verdict === 'deny' ? permission : permission.ask
    throw new DeniedError('denied', `${ASK} is not allowed here: ${reason}.`)
  }

  private conflicting(does: string): ConflictError {
    const message = `The reply of "${this.run.agent.name}" ${does} where it did something else before it was interrupted: code that may run again must make the same calls in the same order.`
    this.conflict ??= new ConflictError('conflict', message)
    return this.conflict
  }
}

const ASK = 'ask_person'
const MOST_CHARS = 8_000

function readQuestion(question: unknown): string {
  const text = typeof question === 'string' ? question.trim() : ''
  if (text !== '' && text.length <= MOST_CHARS) return text
  throw new InputError('invalid_input', `ask(question): a text that is not empty, of at most ${MOST_CHARS} characters.`)
}

/** The question at the place where these would be the ids of a child. */
function askId({ turn }: ChildIds): Id {
  const [id = ''] = deriveIds(turn, 'ask', 1)
  return id
}

/** Null where nobody gave one. */
function answerIn({ state, output }: Node): string | null {
  return state === 'finished' && output.isError !== true ? textOf(output.content ?? '') : null
}

/** As code delegates it: with the agent's own input, a text where it has none. */
function asOffer(entry: SubagentEntry): Offer {
  return { ...entry, contract: 'typed', input: entry.agent.input }
}
