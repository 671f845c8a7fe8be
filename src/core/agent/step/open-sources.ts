import { messageOf } from '../../base/error.ts'
import { MOST_FAILURES } from '../../engine/source-board.ts'
import { othersMayRun } from '../../engine/who-runs.ts'
import { type Request, requestText } from '../../grant/request.ts'
import { type AbsentSource, absenceText } from '../../graph/outcome.ts'
import type { Failure, Id, Turn } from '../../graph/rows.ts'
import type { ApprovalRequest } from '../../rules/turn/approval-of.ts'
import { deniedTo, isApproved, planAsk } from '../../rules/turn/approve.ts'
import { planHold, planResult } from '../../rules/turn/result.ts'
import { refuseStart } from '../../tool/permit.ts'
import { type OpenSource, SOURCE_SEPARATOR, type ToolSource } from '../../tool/source.ts'
import { RETRY_MS, type SourcePool, type Start } from '../../tool/source-pool.ts'
import { type ToolEntry, type Toolkit, toolEntry } from '../../tool/toolkit.ts'
import { isLive } from '../build/read-kit.ts'
import { type NodeRun, ownFolderOf, writablePath } from '../hooks/node-run.ts'

type NamedSource = readonly [name: string, source: ToolSource]

/** A source that a run must do without. */
interface MissingSource {
  readonly name: string
  readonly source: ToolSource
  readonly code: 'denied' | 'unavailable'
  readonly reason: string
}

/**
 * Adds the tools of the agent's sources to a node, and starts the sources where needed. Undefined when the node's end
 * was committed instead, or when it waits for a person who must allow a start.
 */
export async function openSources(run: NodeRun, pool: SourcePool): Promise<NodeRun | undefined> {
  const wanted = wantedBy(run, pool)
  if (wanted.length === 0) return run
  const permitted: NamedStart[] = []
  const absent: MissingSource[] = []
  for (const [name, source] of wanted) {
    const start = permitStart(run, pool, [name, source])
    if ('decided' in start) permitted.push({ name, ...start })
    else if ('reason' in start) absent.push({ name, source, code: 'denied', reason: start.reason })
    else return waitFor(run, start.ask)
  }
  const opened = await untilStopped(run, Promise.all(permitted.map((one) => open(run, pool, one))))
  if (opened === undefined) return stopped(run)
  const failed = opened.flatMap((one) => ('opened' in one ? [] : [one]))
  if (failed.length > 0 && (await isLeftToOthers(run, pool, failed))) return undefined
  absent.push(...failed)
  const missed = absent.find(({ source }) => source.required)
  if (missed !== undefined) return end(run, { code: missed.code, message: absenceText(missed) })
  const there = opened.flatMap((one) => ('opened' in one ? [one] : []))
  const twins = there.flatMap((one) => twinsOf(run.toolkit, one))
  const others = [...there.flatMap(warnings), ...twins, ...wanted.flatMap(missingSecrets)]
  await reportOnce(run, pool, { absent, others })
  return { ...run, toolkit: equipped(run.toolkit, there, absent) }
}

/**
 * A step needs all sources; a call needs the one of its tool. A call of no tool reads which there are, of the sources that
 * run already. Calls that wrap up or brief have no tools.
 */
function wantedBy(run: NodeRun, pool: SourcePool): NamedSource[] {
  const { node, agent, toolkit, turn, home } = run
  if (node.purpose === 'wrap_up' || node.purpose === 'brief') return []
  const live = placed(
    run,
    [...agent.sources].filter(([, source]) => isLive(source)),
  )
  if (node.kind !== 'task') return live
  const called = node.input.call?.name ?? ''
  if (toolkit.find(called) !== undefined) return []
  const own = live.filter(([name]) => called.startsWith(`${name}${SOURCE_SEPARATOR}`))
  if (own.length > 0) return own
  // A recording tells of sources that run nowhere.
  return live.filter(([, source]) => home.live.tape !== null || pool.isOpen(turn.rootId, source))
}

/** The sources in the folder of the run's owner, where it has one. */
function placed(run: NodeRun, sources: NamedSource[]): NamedSource[] {
  const folder = ownFolderOf(run)
  if (folder === null) return sources
  return sources.map(([name, source]): NamedSource => [name, source.inFolder?.(folder) ?? source])
}

/** Decides whether a source may start; else returns the reason, or the question for a person. */
function permitStart(
  run: NodeRun,
  pool: SourcePool,
  [name, source]: NamedSource,
): Start | { readonly reason: string } | { readonly ask: ApprovalRequest } {
  const decided = source.needs
  const withheld = secretWithheld(run, source, decided)
  if (withheld !== undefined) return { reason: withheld }
  const refused = refuseStart(run, {
    requests: decided,
    input: source.about,
    words: {
      isAllowed: (ask, keys) => pool.isAllowed(run.turn.rootId, source, keys) || isAllowedInRun(run, ask),
      heard: (keys) => pool.allow(run.turn.rootId, source, keys),
    },
  })
  if (refused?.verdict === 'deny') return { reason: refused.reason }
  if (refused?.verdict === 'ask') {
    const reason = deniedReason(run, refused.ask)
    return reason === undefined ? { ask: { ...refused.ask, ...startOf(run, name, source) } } : { reason }
  }
  return { source, decided }
}

/**
 * A definition that lies where a run of the tree may write could be a model's: it gets no secret but those that code names one by
 * one for its agent.
 */
function secretWithheld(run: NodeRun, { origin }: ToolSource, needs: readonly Request[]): string | undefined {
  if (origin.by !== 'file') return undefined
  const use = run.agent.grant?.use ?? []
  const wanted = needs.find(({ domain, name }) => domain === 'secret' && !use.includes(`secret:${name}`))
  if (wanted === undefined) return undefined
  const path = origin.withheld ?? origin.files.map((file) => writablePath(run, file)).find((one) => one !== null)
  if (path == null) return undefined
  return `${path} names ${requestText(wanted)}, and this run may write that file, so it gets no secret: deny 'file.write:${path}', or keep the file where no run may write`
}

/**
 * A person's consent for one step holds for the whole run. For others in its tree it holds while the server runs, where the same
 * layers ask for the same.
 */
function isAllowedInRun({ tree, turn, conversation }: NodeRun, ask: ApprovalRequest): boolean {
  return tree.nodesOf(turn.id).some((node) => isApproved(node, conversation, ask))
}

/** A person's denial for one step holds for the whole run. */
function deniedReason({ tree, turn }: NodeRun, ask: ApprovalRequest): string | undefined {
  for (const node of tree.nodesOf(turn.id)) {
    const reason = deniedTo(node, ask)
    if (reason !== undefined) return reason
  }
  return undefined
}

/** If its server may not be started, the call itself is denied, and its model reads why. */
function startOf({ node, agent }: NodeRun, name: string, { required }: ToolSource): Pick<ApprovalRequest, 'start'> {
  if (node.kind === 'task') return {}
  return { start: { name, required, whose: agent.inline === null ? 'agent' : 'recipe' } }
}

interface StartedSource {
  readonly name: string
  readonly source: ToolSource
  readonly opened: OpenSource
}

interface NamedStart extends Start {
  readonly name: string
}

/** How long to wait before a source is tried again that did not start, where another process could use it instead. */
const PAUSE_MS = 250

/** Opens a source. Where other processes could run the node, it tries several times before it gives up. */
async function open(
  run: NodeRun,
  pool: SourcePool,
  { name, ...start }: NamedStart,
): Promise<StartedSource | MissingSource> {
  const { turn, conversation, work } = run
  const { source } = start
  const user = { conversationId: conversation.id, rootId: turn.rootId, runId: turn.id, topRunId: topOf(run) }
  for (;;) {
    try {
      const use = () => pool.use(name, start, user)
      const { tape } = run.home.live
      return { name, source, opened: tape === null ? await use() : await tape.source(name, use) }
    } catch (error) {
      const mayTryAgain = pool.board.failures(source.key) < MOST_FAILURES && work.stopCause === null
      if (!mayTryAgain || !(await othersMayRun(run.home.ledger, conversation.agent, work.claim.engineId))) {
        return { name, source, code: 'unavailable', reason: messageOf(error) }
      }
    }
    await run.home.ledger.scheduler.pause(PAUSE_MS)
    pool.tryAgain(source, user)
  }
}

/** Gives a node back whose sources fail again and again in this process, where another process may run it. */
async function isLeftToOthers(run: NodeRun, pool: SourcePool, failed: readonly MissingSource[]): Promise<boolean> {
  const { node, work, conversation, home } = run
  const lasting = failed.filter(({ source }) => pool.board.failures(source.key) >= MOST_FAILURES)
  if (lasting.length === 0 || !(await othersMayRun(home.ledger, conversation.agent, work.claim.engineId))) return false
  for (const { source } of lasting) pool.board.leave(source.key, conversation.agent, RETRY_MS)
  const message = `${lasting.map(absenceText).join(' ')} Another process goes on with it.`
  home.settings.logger.warn(message, { runId: node.turnId })
  await home.ledger.commit({
    kind: 'note',
    rootId: node.rootId,
    plan: (draft) => {
      planHold(draft, work.claim, { until: draft.now, why: message })
      draft.event(draft.turn(node.turnId), node.id, { type: 'warning', message })
    },
  })
  return true
}

/** The run at the top that waits for this one, or this one itself. */
function topOf({ tree, turn, conversation }: NodeRun): Id {
  let top = turn
  let at = conversation
  for (;;) {
    const above = tree.turn(tree.link(top.id)?.hostTurnId ?? at.parentTurnId ?? '')
    const its = above === undefined || above.state === 'ended' ? undefined : tree.conversation(above.conversationId)
    if (above === undefined || its === undefined) return top.id
    top = above
    at = its
  }
}

function equipped(toolkit: Toolkit, there: readonly StartedSource[], absent: readonly MissingSource[]): Toolkit {
  const entries: ToolEntry[] = []
  for (const { name, opened } of there) {
    for (const [shownAs, { tool, version }] of opened.tools) {
      entries.push({ ...toolEntry(`${name}${SOURCE_SEPARATOR}${shownAs}`, tool), version })
    }
  }
  const notes = there.filter(({ opened }) => opened.notes !== '').map(({ name, opened }) => noteOf(name, opened.notes))
  return toolkit.with(entries, [...notes, ...absent.map(absenceText)].join('\n\n'))
}

/** Marks the notes as the server's own text. */
function noteOf(name: string, notes: string): string {
  return `About the tools ${name}${SOURCE_SEPARATOR}*, as their server says:\n${notes}`
}

function warnings({ name, opened }: StartedSource): string[] {
  return opened.warnings.map((warning) => `${name}: ${warning}`)
}

/** An agent's own tool keeps its name. */
function twinsOf(toolkit: Toolkit, { name, opened }: StartedSource): string[] {
  const names = [...opened.tools.keys()].map((shownAs) => `${name}${SOURCE_SEPARATOR}${shownAs}`)
  const taken = names.filter((one) => toolkit.find(one) !== undefined)
  return taken.map((one) => `${name}: its tool ${one} is left out: the agent has one of this name already`)
}

function missingSecrets([name, source]: NamedSource): string[] {
  const missing = source.missing()
  return missing.length === 0 ? [] : [`${name}: ${missing.join(', ')} is not set, and it may need it`]
}

/** Reports to everybody who watches the run, once per run. */
async function reportOnce({ node, home }: NodeRun, pool: SourcePool, { absent, others }: News): Promise<void> {
  const fresh = [...absent.map(absenceText), ...others].filter((message) => pool.recordMessage(node.turnId, message))
  if (fresh.length === 0) return
  for (const message of fresh) home.settings.logger.warn(message, { runId: node.turnId })
  await home.ledger.commit({
    kind: 'note',
    rootId: node.rootId,
    plan: (draft) => {
      const turn = draft.turn(node.turnId)
      for (const message of fresh) draft.event(turn, node.id, { type: 'warning', message })
      if (absent.length > 0 && turn.state !== 'ended') draft.changeTurn(turn, { absent: allAbsent(turn, absent) })
    },
  })
}

/** Includes sources reported before; the newest reason counts. */
function allAbsent({ absent: before }: Turn, absent: readonly MissingSource[]): readonly AbsentSource[] {
  const reasons = new Map([...(before ?? []), ...absent].map(({ name, reason }) => [name, reason]))
  return [...reasons].map(([name, reason]) => ({ name, reason }))
}

interface News {
  /** The sources that the run does without: its outcome lists them, and its host reads them with the result. */
  readonly absent: readonly MissingSource[]
  readonly others: readonly string[]
}

function untilStopped<T>({ work }: NodeRun, result: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined)
    work.signal.addEventListener('abort', stop, { once: true })
    if (work.signal.aborted) stop()
    result.then(resolve, reject).finally(() => work.signal.removeEventListener('abort', stop))
  })
}

async function waitFor({ node, work, home }: NodeRun, ask: ApprovalRequest): Promise<undefined> {
  await home.ledger.commit({ kind: 'ask', rootId: node.rootId, plan: (draft) => planAsk(draft, work.claim, ask) })
}

/** Nothing of it has run. */
async function stopped(run: NodeRun): Promise<undefined> {
  const { stopCause } = run.work
  if (stopCause === 'lost' || stopCause === 'shutdown') return undefined
  const message = stopCause === 'timeout' ? 'Its tools took too long to start.' : 'The run was asked to stop.'
  return end(run, { code: 'stopped', message }, 'stopped')
}

async function end(
  { node, work, home }: NodeRun,
  failure: Failure,
  state: 'errored' | 'stopped' = 'errored',
): Promise<undefined> {
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => planResult(draft, work.claim, { state, failure }),
  })
}
