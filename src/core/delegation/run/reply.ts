import type { ReplyContext, ReplyDelegate } from '../../agent/build/reply.ts'
import type { AnyAgent } from '../../agent/definition/agent.ts'
import { emitAfterEvent } from '../../agent/hooks/model-hooks.ts'
import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { ANSWER_LIMIT } from '../../agent/step/answer-content.ts'
import { type ConflictError, DefinitionError, DeniedError, InputError, isLegateError } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { type Json, sizeOf, toJson } from '../../base/json.ts'
import { readOptions } from '../../base/options.ts'
import { describeIssues } from '../../base/schema/schema.ts'
import { toolRequest } from '../../grant/request.ts'
import { type Content, isBlock, saysNothing, textOf } from '../../graph/content.ts'
import type { Outcome } from '../../graph/outcome.ts'
import type { Failure, Node, NodeOutput } from '../../graph/rows.ts'
import { planCodeQuestion } from '../../rules/delegation/question.ts'
import type { ChildIds } from '../../rules/delegation/spawn.ts'
import { planAsk } from '../../rules/turn/approve.ts'
import { planBeginCode, planKeep } from '../../rules/turn/claim.ts'
import { interruptedEnd, type NodeEnd } from '../../rules/turn/end-node.ts'
import { planResult } from '../../rules/turn/result.ts'
import { untilLoaded } from '../../store/look.ts'
import { DELEGATE_OPTIONS, type DelegateOptions } from '../../tool/attempts.ts'
import type { SpawnedChild, SpawnOptions } from '../../tool/current.ts'
import { orStopped } from '../../tool/invoke.ts'
import { type Needs, permit, refuseCode } from '../../tool/permit.ts'
import { type CodeResult, type Watch, watchedContext } from '../../tool/tape.ts'
import type { Delegate } from '../../tool/tool.ts'
import { questionId } from '../call-ids.ts'
import { CalledChildren } from '../called-children.ts'
import type { Offer, SpawnResult } from '../spawn.ts'
import { isSubagentEntry, type SubagentEntry, withPresets } from '../subagent.ts'

/** Runs one agent_message of an agent that is code: calls the code and commits its answer. */
export async function runReply(given: NodeRun): Promise<void> {
  if (await isRefused(given)) return
  const run = await begin(given)
  if (run === undefined) return
  const { node, work, home } = run
  const children = new ReplyChildren(run)
  if (node.epoch > 1) await children.lookBack()
  const speech = new Speech(run, children)
  if (node.epoch > 1) children.show({ type: 'reset', attempt: node.attempt })
  const answered = await answerOf(run, children, speech)
  const end = withConflict(await endOf(run, answered, speech), children)
  children.end()
  if (work.stopCause === 'lost' || work.stopCause === 'shutdown') return
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => planResult(draft, work.claim, end),
  })
}

/** Decides what the code needs. Where it may not run, the row says so: the node waits for a person, or ends. */
async function isRefused(run: NodeRun): Promise<boolean> {
  const { node, work, home, agent } = run
  const needs = (agent.reply?.needs ?? null) as Needs | null
  const refusal = needs === null ? undefined : refuseCode(run, needs, toAsk(inputOf(run)))
  if (refusal === undefined) return false
  const { rootId } = node
  if (refusal.verdict === 'ask') {
    await home.ledger.commit({ kind: 'ask', rootId, plan: (draft) => planAsk(draft, work.claim, refusal.ask) })
    return true
  }
  const end: NodeEnd = {
    state: 'errored',
    failure: failed('denied', `"${agent.name}" may not run: ${refusal.reason}.`),
  }
  await home.ledger.commit({ kind: 'result', rootId, plan: (draft) => planResult(draft, work.claim, end) })
  return true
}

/** The input as a person is asked about it. */
function toAsk(input: Json | Content): Json {
  const json = toJson(input)
  return json.ok ? json.value : null
}

/**
 * Records, before the code can have any effect, what a restart may do with the node. Undefined if another process owns
 * it.
 */
async function begin(run: NodeRun): Promise<NodeRun | undefined> {
  const { node, work, home, agent } = run
  const effect = agent.reply?.effect ?? 'effectful'
  if (node.effect === effect) return run
  const plan = (draft: Parameters<typeof planBeginCode>[0]) => planBeginCode(draft, work.claim, effect)
  const begun = await home.ledger.commit({ kind: 'note', rootId: node.rootId, plan })
  return begun === undefined ? undefined : { ...run, node: begun }
}

/** The text a generator yields while it runs. */
class Speech {
  text = ''
  chunks = 0
  private readonly run: NodeRun
  private readonly children: ReplyChildren

  constructor(run: NodeRun, children: ReplyChildren) {
    this.run = run
    this.children = children
  }

  say(text: unknown): void | Promise<void> {
    if (typeof text !== 'string') {
      throw new DefinitionError('definition', `The reply of "${this.run.agent.name}" yields what is not a text.`)
    }
    if (text === '') return
    this.text += text
    this.chunks++
    if (this.text.length > ANSWER_LIMIT) throw tooLong()
    this.run.work.noteActivity()
    this.children.show({ type: 'text-delta', text })
    if (this.run.hooks?.has('onEvent') !== true) return
    return emitAfterEvent(this.run, { type: 'text-delta', text }, (body) => this.children.show(body))
  }

  /** Describes the streamed parts that the final message replaces, if it has the same text. */
  streamedAs(content: Content | undefined): NonNullable<NodeEnd['streamed']> | null {
    if (this.chunks < 2 || content !== this.text) return null
    return { chunks: this.chunks, bytes: sizeOf(this.text), sha256: sha256(this.text) }
  }
}

function tooLong(): DefinitionError {
  return new DefinitionError('definition', `The answer is longer than ${ANSWER_LIMIT / 1e6} MB: it was left off.`)
}

function answerOf(run: NodeRun, children: ReplyChildren, speech: Speech): Promise<CodeResult> {
  const { node, work, home, agent } = run
  const code = (watch?: Watch) => runCode(run, children, speech, watch)
  if (home.live.tape === null) return code()
  const agentNamed = (name: string) => children.declared(name)
  return home.live.tape.run(
    { node, work, current: children, name: agent.name, input: run.turn.input, agentNamed },
    code,
  )
}

/** The returned value beside the text yielded; `returned` is absent if the code returned nothing. */
interface CodeAnswer {
  readonly said: string
  readonly returned?: Json
}

async function runCode(
  run: NodeRun,
  children: ReplyChildren,
  speech: Speech,
  watch: Watch | undefined,
): Promise<CodeResult> {
  const { agent, work, home } = run
  try {
    const code = agent.reply?.code as (input: unknown, context: unknown) => unknown
    const answering = children.inside(async () => {
      const context = watchedContext(children.replyContext() as never, watch)
      return runToEnd(run, speech, await code(inputOf(run), context))
    })
    const returned = await orStopped(answering, work)
    if (returned === undefined) return { value: { said: speech.text } }
    const json = toJson(returned)
    if (!json.ok) return { error: `What the reply gave is not JSON: ${json.error}`, code: 'invalid_output' }
    return { value: { said: speech.text, returned: json.value } }
  } catch (error) {
    if (work.stopCause !== null) return { stopped: work.stopCause === 'cancel' ? 'cancel' : 'lost' }
    return { error: home.settings.causeOf(error), code: isLegateError(error, 'conflict') ? 'conflict' : 'reply' }
  }
}

/** Runs a generator to its end and returns its value; returns any other value as it is. */
async function runToEnd({ work }: NodeRun, speech: Speech, given: unknown): Promise<unknown> {
  if (!isGenerator(given)) return given
  for (;;) {
    const { done, value } = await given.next()
    if (done === true) return value
    await speech.say(value)
    if (work.stopCause === null) continue
    await given.return?.(undefined)
    throw work.signal.reason
  }
}

function isGenerator(given: unknown): given is AsyncIterator<unknown> {
  const isObject = typeof given === 'object' && given !== null
  return isObject && Symbol.asyncIterator in given && typeof Reflect.get(given, 'next') === 'function'
}

/**
 * Reads the input from the rows, so that code that runs again gets the same one: checked by the schema, or the message.
 */
function inputOf({ tree, agent, turn, node }: NodeRun): Json | Content {
  if (agent.input !== null) return turn.input
  const asked = tree.nodesOf(turn.id).findLast(({ kind, ordinal }) => {
    return kind === 'user_message' && ordinal < node.ordinal
  })
  return asked?.input.content ?? ''
}

async function endOf(run: NodeRun, given: CodeResult, speech: Speech): Promise<NodeEnd> {
  if ('value' in given) return judgeAnswer(run, given.value as unknown as CodeAnswer, speech)
  const said = speech.text === '' ? {} : { output: { content: speech.text }, streamed: speech.streamedAs(speech.text) }
  if ('error' in given)
    return { ...said, state: 'errored', failure: failed(given.code ?? 'reply', textOf(given.error)) }
  return { ...said, ...interruptedEnd(run.node, 'interrupted' in given ? given.interrupted : STOPPED) }
}

const STOPPED = 'The run was asked to stop.'

function failed(code: string, message: string): Failure {
  return { code, message }
}

/** Judges an answer. One that is empty or does not fit the schema is a named failure (I6). */
async function judgeAnswer(run: NodeRun, answered: CodeAnswer, speech: Speech): Promise<NodeEnd> {
  const read = run.agent.output === null ? readWords(run, answered) : await readValue(run, answered)
  if ('code' in read) {
    const said = answered.said === '' ? {} : { output: { content: answered.said } }
    return { ...said, state: 'errored', failure: read, streamed: speech.streamedAs(answered.said) }
  }
  const extra = run.hooks === null ? undefined : run.home.live.extensions.extraOf(run.node.turnId)
  const output = extra === undefined ? read : { ...read, extra }
  return { state: 'finished', output, streamed: speech.streamedAs(read.content) }
}

/** Reads an answer without a schema: it must be text or content blocks. */
function readWords({ agent }: NodeRun, { said, returned = said }: CodeAnswer): NodeOutput | Failure {
  const isContent = typeof returned === 'string' || (Array.isArray(returned) && returned.every(isBlock))
  if (!isContent) {
    const message = `The reply of "${agent.name}" gave data, and it has no output: return a text, or define its output.`
    return failed('invalid_output', message)
  }
  const content = returned as unknown as Content
  return saysNothing(content) ? failed('empty_answer', `The reply of "${agent.name}" gave no answer.`) : { content }
}

async function readValue({ agent }: NodeRun, { said, returned }: CodeAnswer): Promise<NodeOutput | Failure> {
  const checked = await agent.output?.validate(returned)
  if (checked?.ok !== true) return failed('invalid_output', describeIssues(checked?.issues ?? []))
  const json = toJson(checked.value)
  const value = json.ok ? json.value : (returned ?? null)
  if (said.trim() !== '') return { content: said, value }
  return { content: typeof value === 'string' ? value : JSON.stringify(value), value }
}

/** Fails an answer whose code continued after a conflict: it no longer answers what was asked. */
function withConflict(end: NodeEnd, { conflict }: ReplyChildren): NodeEnd {
  if (conflict === null || end.state !== 'finished') return end
  const { output, streamed } = end
  return {
    state: 'errored',
    ...(output === undefined ? {} : { output }),
    streamed: streamed ?? null,
    failure: failed('conflict', conflict.message),
  }
}

/**
 * The children and questions of an agent that is code. Code that runs again gets the result that each call had before. A conflict
 * fails the run even if the code catches it.
 */
export class ReplyChildren extends CalledChildren {
  /** The first call that contradicts an earlier one. */
  conflict: ConflictError | null = null

  /** Makes the context that the code receives beside its input. */
  replyContext(): ReplyContext {
    const given = this.context()
    const delegate = ((to: object | string, input: unknown, call?: DelegateOptions) =>
      this.delegate(to, input, call)) as Delegate as ReplyDelegate<Record<never, never>>
    const keep = (value: Json) => this.keep(value)
    const own = { delegate, ask: (question: string) => this.ask(question), graph: this.run.tree, kept: this.kept, keep }
    return Object.defineProperties(given, Object.getOwnPropertyDescriptors(own)) as unknown as ReplyContext
  }

  /**
   * Starts a background child that never wakes its host: code cannot be woken, so it looks at the child when it wants
   * to.
   */
  override spawn(agent: object, input: unknown, options: SpawnOptions): Promise<SpawnedChild> {
    return super.spawn(agent, input, { ...options, wake: 'passive' })
  }

  /** Finds the subagent of this name; undefined if a function provides it. */
  declared(name: string): AnyAgent | undefined {
    const all = [...this.run.agent.subagents.values()].map(({ config }) => config)
    const found = all.find(({ agent, name: own }) => typeof agent !== 'function' && (own ?? agent.name) === name)
    return found === undefined ? undefined : (found.agent as AnyAgent)
  }

  /** Gives a declared subagent its declared settings, however the code refers to it. */
  protected override offerOf(agent: AnyAgent): Offer {
    const [name] = [...this.run.agent.subagents].find(([, { config }]) => config.agent === agent) ?? []
    return name === undefined ? { ...super.offerOf(agent), name: agent.name } : asOffer(this.entryOf(name))
  }

  protected override begin(offer: Offer, input: unknown, ids: ChildIds): Promise<SpawnResult> {
    return this.calls.isByPlace ? this.beginAtPlace(offer, input, ids) : super.begin(offer, input, ids)
  }

  /** For code that began under an older version: it must ask for the same at the same place. */
  private async beginAtPlace(offer: Offer, input: unknown, ids: ChildIds): Promise<SpawnResult> {
    const { tree } = this.run
    const known = await untilLoaded(() => tree.link(ids.turn))
    const isOther = known !== undefined && known.agentName !== offer.agent.name
    if (isOther || this.calls.isEarlier(questionId(ids.turn))) {
      throw this.conflicting(otherPlace(this.run, `delegates to "${offer.agent.name}"`))
    }
    const spawned = await super.begin(offer, input, ids)
    const isRefused = 'refused' in spawned && (spawned.isChanged || spawned.refused.status === 'invalid_input')
    if (!isRefused || known === undefined) return spawned
    throw this.conflicting(otherPlace(this.run, `delegates something else to "${offer.agent.name}"`))
  }

  private delegate(to: object | string, given: unknown, call: DelegateOptions | undefined): Promise<Outcome> {
    if (typeof to !== 'string') return this.start(to, given, { call }).outcome
    const { key, ...attempts } = readOptions('delegate(key, input, options)', call ?? {}, DELEGATE_OPTIONS)
    const entry = this.entryOf(to)
    const input = withPresets(given, entry.presets)
    return this.startAs({ ...asOffer(entry), ...(call === undefined ? {} : { attempts }) }, { given, input, key })
      .outcome
  }

  private entryOf(key: string): SubagentEntry {
    const entry = this.run.toolkit.find(key)
    if (entry !== undefined && isSubagentEntry(entry)) return entry
    const known = [...this.run.agent.subagents.keys()].join(', ') || 'none'
    const message = `agent "${this.run.agent.name}", delegate: there is no subagent "${key}". There are: ${known}.`
    throw new DefinitionError('definition', message)
  }

  private ask(question: string): Promise<string | null> {
    const answer = this.run.work.lend(this.asked(readQuestion(question)))
    answer.catch(() => undefined)
    return answer
  }

  private async asked(text: string): Promise<string | null> {
    const { home, node, work } = this.run
    const { id, childId } = this.calls.ofQuestion(text)
    if (this.calls.isEarlier(childId)) throw this.conflicting(otherPlace(this.run, 'asks a person'))
    if (!this.calls.isEarlier(id)) this.permitAsking(text)
    const question = await home.ledger.commit({
      kind: 'ask',
      rootId: node.rootId,
      plan: (draft) => planCodeQuestion(draft, work.claim, { id, text }),
    })
    if (question === 'changed') throw this.conflicting(otherPlace(this.run, 'asks a person something else'))
    if (question === 'limit') throw new DeniedError('denied', 'The limit of tool calls was reached: nobody was asked.')
    if (question === 'lost') throw this.lost()
    const ended = await home.live.nodeEnds.waitUnless({ id, rootId: node.rootId }, work.signal)
    if (ended === null) throw work.signal.reason
    return answerIn(ended)
  }

  /** The value that an earlier try kept. */
  private get kept(): Json {
    return this.run.node.metadata['kept'] ?? null
  }

  private async keep(value: Json): Promise<void> {
    const { home, node, work } = this.run
    const json = toJson(value)
    if (!json.ok) throw new InputError('invalid_input', `keep(value): it is not JSON. ${json.error}`)
    const bytes = sizeOf(JSON.stringify(json.value))
    if (bytes > MOST_KEPT)
      throw new InputError('invalid_input', `keep(value): at most ${MOST_KEPT} bytes, not ${bytes}.`)
    const plan = (draft: Parameters<typeof planKeep>[0]) => planKeep(draft, work.claim, json.value)
    const kept = await home.ledger.commit({ kind: 'note', rootId: node.rootId, plan })
    if (kept === undefined) throw this.lost()
  }

  private permitAsking(question: string): void {
    const permission = permit(this.run, toolRequest(ASK), { question })
    if (permission.verdict === 'allow') return
    const { reason } = permission.verdict === 'deny' ? permission : permission.ask
    throw new DeniedError('denied', `${ASK} is not allowed here: ${reason}.`)
  }

  protected override conflicting(what: string): ConflictError {
    this.conflict ??= super.conflicting(what)
    return this.conflict
  }
}

function otherPlace({ agent }: NodeRun, does: string): string {
  return `The reply of "${agent.name}" ${does} where it did something else before it was interrupted: it began under an older version, by which code that may run again must make the same calls in the same order.`
}

const ASK = 'ask_person'
const MOST_CHARS = 8_000
const MOST_KEPT = 100_000

function readQuestion(question: unknown): string {
  const text = typeof question === 'string' ? question.trim() : ''
  if (text !== '' && text.length <= MOST_CHARS) return text
  throw new InputError('invalid_input', `ask(question): a text that is not empty, of at most ${MOST_CHARS} characters.`)
}

/** Reads the answer to a question; null if nobody gave one. */
function answerIn({ state, output }: Node): string | null {
  return state === 'finished' && output.isError !== true ? textOf(output.content ?? '') : null
}

/** Adapts an entry for code, which passes the agent's own input, or a text if it has no schema. */
function asOffer(entry: SubagentEntry): Offer {
  return { ...entry, contract: 'typed', input: entry.agent.input }
}
