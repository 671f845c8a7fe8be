import { look, type Node, seenOf, type TreeReader, type Turn } from '../../../doors/rows.ts'
import type { Outcome } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import type { Desk, DeskConversation } from '../../desk/desk.ts'
import { findRun, shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { age, count, duration, moment, money, plural } from '../../terminal/amounts.ts'
import { cleanText, exactLine, oneLine } from '../../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../../terminal/output.ts'
import { type Paint, painter } from '../../terminal/paint.ts'
import { wrap, wrapSigned } from '../../terminal/width.ts'
import { type ActivityOf, activityReader, type OpenState, openStateOf } from '../../watch/activity.ts'
import { treeSoFar } from '../../watch/follow-run.ts'
import { layout } from '../../watch/layout.ts'
import { runToShow } from '../../watch/recent-runs.ts'
import {
  approveCommands,
  describeWholeCall,
  questionOnOneLine,
  replyCommand,
  settleCommand,
} from '../../watch/request-text.ts'
import type { WatchedTree } from '../../watch/run-tree.ts'
import { nodeLine, spendOfTree, treeRows } from '../../watch/tree-rows.ts'
import { NOTHING, workspaceOf } from '../../watch/words.ts'

const MOST_SUBAGENTS = 100

export function show(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    const turn = await runToShow(desk, call)
    if (isSet(call, 'graph') || isSet(call, 'dot'))
      return writePicture(desk, turn, isSet(call, 'dot') ? 'dot' : 'mermaid')
    if (isSet(call, 'nodes')) return listed(desk, turn, isSet(call, 'json'))
    const sight = await readFacts(desk, turn)
    const text = isSet(call, 'json') ? jsonLine(asJson(sight)) : asText(sight, painter(process.stdout, call.env))
    await write(text)
    return EXIT.completed
  })
}

async function listed({ store }: Desk, turn: Turn, isJson: boolean): Promise<number> {
  const nodes = await look(store, turn.rootId, (tree) => tree.nodesOf(turn.id))
  for (const node of nodes) await write(isJson ? jsonLine(node) : `${nodeLine(node)}\n`)
  return EXIT.completed
}

async function writePicture(desk: Desk, turn: Turn, format: 'mermaid' | 'dot'): Promise<number> {
  await write(cleanText(await desk.picture(turn.conversationId, { of: 'graph', format })))
  return EXIT.completed
}

/** Everything there is to show about a run. */
interface RunFacts {
  readonly turn: Turn
  readonly agent: string
  readonly tree: WatchedTree
  readonly doing: ActivityOf
  readonly outcome: Outcome | null
  readonly standing: OpenState | null
  /** The calls that may or may not have had their effect. */
  readonly uncertain: readonly Node[]
  /** The lines of a question to a person. */
  readonly asked: string
}

async function readFacts(desk: Desk, turn: Turn): Promise<RunFacts> {
  const isEnded = turn.state === 'ended'
  const tree = await treeSoFar(desk.store, turn)
  const outcome = isEnded ? await outcomeOf(desk, turn) : null
  const standing = isEnded ? null : await openStateOf(desk, turn)
  const doing = await activityReader(desk, [turn.id])
  const read = await look(desk.store, turn.rootId, (rows) => ({
    agent: rows.conversation(turn.conversationId)?.agent.name ?? '?',
    uncertain: (outcome?.uncertain ?? []).flatMap((id) => rows.node(id) ?? []),
    asked: askedLines(rows, standing),
  }))
  return { ...read, turn, tree, doing, outcome, standing }
}

async function outcomeOf(desk: Desk, { id }: Turn): Promise<Outcome> {
  const { result } = await desk.attach(id)
  return (await result) as Outcome
}

function asJson({ doing, turn, agent, tree, outcome, standing }: RunFacts): object {
  const { id, conversationId, createdAt, startedAt, endedAt, input, account } = turn
  return {
    id,
    conversationId,
    agent,
    state: outcome?.status ?? standing?.state,
    createdAt,
    startedAt,
    endedAt,
    input,
    outcome,
    usage: outcome?.usage ?? account.usage,
    usd: tree.root === undefined ? null : spendOfTree(tree.root).usd,
    doing: doing(id, tree.root?.hears)?.text ?? null,
    awaitsApproval: (standing?.asked ?? []).map(({ id: nodeId, input: { call } }) => ({ nodeId, call })),
    children: (tree.root?.children ?? []).map((child) => ({
      id: child.id,
      agent: child.agent,
      state: child.status ?? child.state,
    })),
  }
}

function asText(sight: RunFacts, paint: Paint): string {
  const { turn, agent, outcome, standing } = sight
  const state = outcome?.status ?? standing?.state ?? turn.state
  const colour = state === 'completed' ? 'green' : outcome === null ? 'cyan' : 'red'
  const parts = [
    `${paint('bold', oneLine(agent))} ${shownId(turn.id)}  ${paint(colour, state)}\n${facts(sight, paint)}`,
    section('Input', typeof turn.input === 'string' ? turn.input : JSON.stringify(turn.input, null, 2), paint),
    section(outcome?.status === 'completed' ? 'Answer' : 'So far', outcome?.text ?? '', paint),
    section('Why', errorText(outcome), paint),
    section('Uncertain', uncertainLines(sight), paint),
    section('Without', withoutLines(turn), paint),
    section('Needs a person', sight.asked, paint),
    children(sight, paint),
  ]
  return parts.filter((part) => part !== '').join('\n')
}

function facts({ doing, turn, tree, outcome }: RunFacts, paint: Paint): string {
  const { startedAt, endedAt, createdAt, account } = turn
  const usage = outcome?.usage ?? account.usage
  const spent = tree.root === undefined ? NOTHING : spendOfTree(tree.root)
  const cached = usage.cacheReadTokens > 0 ? `, ${count(usage.cacheReadTokens)} of them cached` : ''
  const time = startedAt === null ? 'not started' : duration((endedAt ?? Date.now()) - startedAt)
  const rows: readonly (readonly [string, string])[] = [
    ['run', turn.id],
    ['conversation', turn.conversationId],
    ['asked', `${moment(createdAt)} (${age(Date.now() - createdAt)} ago)`],
    ['took', time],
    ['tokens', `${count(usage.inputTokens)} in${cached}, ${count(usage.outputTokens)} out`],
    ['cost', spent.usd === null ? 'unknown' : spent.usd === 0 ? '' : money(spent.usd)],
    ['calls', `${account.modelCalls} model, ${account.toolCalls} tool, ${plural(account.children, 'subagent')}`],
    ['now', doing(turn.id, tree.root?.hears)?.text ?? ''],
  ]
  return rows
    .flatMap(([name, value]) => (value === '' ? [] : [`  ${paint('dim', name.padEnd(13))} ${value}\n`]))
    .join('')
}

function errorText(outcome: Outcome | null): string {
  if (outcome === null || outcome.error === null) return ''
  const advice = outcome.advice === null ? '' : `\n${outcome.advice}`
  return `${outcome.error.code}: ${outcome.error.message}${advice}`
}

/** Lists calls that may or may not have had their effect. */
function uncertainLines({ uncertain }: RunFacts): string {
  return uncertain.map((node) => `${describeWholeCall(node)}: ${doubtWords(node)}`).join('\n')
}

/** Describes what is known of an uncertain call, and how to settle it. */
function doubtWords(node: Node): string {
  const { id, marks } = node
  const settled = marks?.settled
  if (settled === undefined) {
    return `it may or may not have taken effect: ${settleCommand({ nodeId: id, seen: seenOf(node) ?? '' })}`
  }
  const how = { happened: 'it took effect', not_happened: 'it did not take effect', left: 'nobody found out' }[
    settled.how
  ]
  return `${how}, said ${exactLine(settled.by)} (${shownId(id)})`
}

/** Lists tool sources that could not be started for this run. */
function withoutLines({ absent }: Turn): string {
  return (absent ?? []).map(({ name, reason }) => `${name}: ${reason}`).join('\n')
}

function askedLines(rows: TreeReader, standing: OpenState | null): string {
  if (standing === null) return ''
  const { asked, questions } = standing
  return [
    ...asked.map(
      (node) => `${fitted(describeWholeCall(node, workspaceOf(rows, node.conversationId)))}\n${approveCommands(node)}`,
    ),
    ...questions.map((node) => `${questionOnOneLine(node)}\n${replyCommand(node)}`),
  ].join('\n')
}

/** A call on the terminal: the rest of a long line of a change never looks like another line. */
function fitted(text: string): string {
  return wrapSigned(text, outputColumns() - INDENT.length - 1).lines.join('\n')
}

function section(title: string, text: string, paint: Paint): string {
  if (text.trim() === '') return ''
  const lines = cleanText(text.trimEnd()).split('\n')
  return `${paint('bold', title)}\n${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}\n`
}

function children({ doing, tree }: RunFacts, paint: Paint): string {
  if (tree.root === undefined || tree.root.children.length + tree.root.limits.length === 0) return ''
  const rows = treeRows([tree], {
    doing: ({ id, hears }) => doing(id, hears),
    now: Date.now(),
    most: MOST_SUBAGENTS,
  })
  return `${paint('bold', 'Tree')}\n${layout(rows, { paint, columns: outputColumns() - 2 })
    .map(({ text }) => `  ${text}\n`)
    .join('')}`
}

const TURNS = 20
const MOST_TURNS = 1_000
const INDENT = '  '

/** Prints the latest rounds of a conversation. */
export function transcript(call: Call): Promise<number> {
  const limitTurns = turnsOf(call)
  return withDesk(call, 'read', async (desk) => {
    const { conversationId, rootId } = await runToShow(desk, call)
    const talk = await desk.conversation(conversationId)
    const before = textOption(call, 'before')
    const beforeRunId = before === undefined ? undefined : await turnBefore(desk, conversationId, before)
    const page = await talk.transcriptPage({ limitTurns, ...(beforeRunId === undefined ? {} : { beforeRunId }) })
    const paint = painter(process.stdout, call.env)
    const row = await look(desk.store, rootId, (tree) => tree.conversation(conversationId))
    const agent = row?.agent.name ?? '?'
    for (const line of page.transcript)
      await write(isSet(call, 'json') ? jsonLine(line) : messageLines(line, paint, agent))
    if (!isSet(call, 'json')) await write(await footer(page, talk))
    return EXIT.completed
  })
}

type Page = Awaited<ReturnType<DeskConversation['transcriptPage']>>
type Line = Page['transcript'][number]

function messageLines({ role, text, state }: Line, paint: Paint, agent: string): string {
  const who = role === 'user' ? paint('cyan', 'user') : paint('bold', oneLine(agent))
  const how = state === 'finished' ? '' : paint('dim', ` (${state})`)
  const lines = cleanText(text.trimEnd())
    .split('\n')
    .flatMap((line) => wrap(line, outputColumns() - INDENT.length - 1).lines)
  return `${who}${how}\n${lines.map((line) => `${INDENT}${line}`.trimEnd()).join('\n')}\n\n`
}

/** Points to the earlier rounds, if there are any. */
async function footer({ runIds, beforeRunId }: Page, talk: DeskConversation): Promise<string> {
  if (beforeRunId === null) return 'No messages.\n'
  const earlier = await talk.transcriptPage({ beforeRunId, limitTurns: 1 })
  if (earlier.runIds.length === 0) return ''
  return `${plural(runIds.length, 'round')}. Earlier: ${legate(`transcript ${shownId(talk.id)} --before ${shownId(beforeRunId)}`)}\n`
}

async function turnBefore({ store }: Desk, conversationId: string, ending: string): Promise<string> {
  const turn = await findRun(store, ending)
  if (turn.conversationId === conversationId) return turn.id
  throw new CliError(`The run ${shownId(turn.id)} belongs to another conversation.`, EXIT.usage)
}

function turnsOf(call: Call): number {
  const text = textOption(call, 'turns')
  if (text === undefined) return TURNS
  const turns = Number(text)
  if (/^\d+$/.test(text) && turns >= 1 && turns <= MOST_TURNS) return turns
  throw new CliError(`--turns is a whole number from 1 to ${MOST_TURNS}, not "${oneLine(text)}".`, EXIT.usage)
}
