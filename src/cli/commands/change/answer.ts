import { parseJson } from '../../../core/base/json.ts'
import { look, type Node } from '../../../doors/rows.ts'
import type { ApprovalDecision, Json } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import type { Desk, DeskRows } from '../../desk/desk.ts'
import { findNodes, findRun, findRunIds, onlyMatch, shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { write } from '../../terminal/output.ts'
import { openStateOf } from '../../watch/activity.ts'
import {
  approveCommands,
  describeCall,
  describeWholeCall,
  isOutside,
  questionOnOneLine,
  replyCommand,
  showCommand,
} from '../../watch/request-text.ts'
import { workspaceOf } from '../../watch/words.ts'
import { typedSeen } from './seen.ts'

export function approve(call: Call): Promise<number> {
  return answer(call, true)
}

export function deny(call: Call): Promise<number> {
  return answer(call, false)
}

function answer(call: Call, allow: boolean): Promise<number> {
  return withDesk(call, 'write', async (desk) => {
    const ending = call.words[0] ?? ''
    await desk.requireScope?.('approve')
    const { store } = desk
    const node = (await namedNode(store, ending)) ?? (await onlyAsked(desk, ending))
    // `answer` below refuses a call that was answered already, and says who answered and how.
    const folder = await look(store, node.rootId, (tree) => workspaceOf(tree, node.conversationId))
    // Only what was shown is allowed. A no allows nothing: the id is enough.
    const seen = typedSeen(call, node, {
      isNeeded: allow,
      lines: () => [describeWholeCall(node, folder), approveCommands(node)],
    })
    const word = readApproval(call, allow)
    await desk.answer(node.id, { ...word, ...seen })
    const edited = 'edit' in word ? await look(store, node.rootId, (tree) => tree.node(node.id)) : undefined
    const answered = edited ?? node
    await write(`${allow ? 'Allowed' : 'Denied'}: ${describeWholeCall(answered)}\n`)
    return EXIT.completed
  })
}

function readApproval(call: Call, allow: boolean): ApprovalDecision {
  const reason = textOption(call, 'reason')
  const by = call.env['USER'] ?? 'user'
  const always = isSet(call, 'always')
  return { allow, by, always, ...(reason === undefined ? {} : { reason }), ...editOf(call) }
}

function editOf(call: Call): { readonly edit: Json } | undefined {
  const text = textOption(call, 'edit')
  if (text === undefined) return undefined
  const parsed = parseJson(text)
  if (parsed.ok) return { edit: parsed.value }
  throw new CliError(`--edit needs JSON, such as '{"to":"staging"}': ${parsed.error}`, EXIT.usage)
}

/** Finds the call with this id that waits, or waited, for a person. */
async function namedNode(store: DeskRows, ending: string): Promise<Node | undefined> {
  const found = await findNodes(store, ending)
  const asking = found.filter(isAsking)
  const named = asking.length > 0 ? asking : found.filter(({ metadata: { answered } }) => answered !== undefined)
  return named.length === 0 ? undefined : onlyMatch(named, ending, lineOf)
}

function isAsking({ state }: Node): boolean {
  return state === 'awaiting_approval'
}

/** Accepts the id of a run if exactly one of its calls waits. */
async function onlyAsked(desk: Desk, ending: string): Promise<Node> {
  await refuseNode(desk.store, ending, 'approval')
  const turn = await findRun(desk.store, ending)
  const asked = turn.state === 'ended' ? [] : (await openStateOf(desk, turn)).asked
  if (asked.length === 0) throw new CliError(`Nothing in the run ${shownId(turn.id)} waits for a person.`, EXIT.usage)
  return onlyMatch(asked, ending, lineOf)
}

/** Refuses the id of a node that does not wait for this, and names the command that answers it if it waits. */
async function refuseNode(store: DeskRows, ending: string, needed: 'approval' | 'answer'): Promise<void> {
  const found = await findRunIds(store, ending)
  const [node] = found.every(({ type }) => type === 'node') ? await findNodes(store, ending) : []
  if (node === undefined) return
  const id = shownId(node.id)
  const command = isAsking(node) ? showCommand(node.id) : isQuestion(node) ? replyCommand(node) : undefined
  const what = isAsking(node) ? 'waits for an approval' : 'is a question'
  const text = command === undefined ? `${id} waits for no ${needed}.` : `${id} ${what}: ${command}`
  throw new CliError(text, EXIT.usage, { namesHelp: false })
}

function isQuestion({ state, wait }: Node): boolean {
  return state === 'waiting' && wait?.on === 'question'
}

function lineOf(node: Node): string {
  return `${shownId(node.id)}  ${describeCall(node)}`
}

/** Answers a question that an agent asked a person. */
export function reply(call: Call): Promise<number> {
  const [ending = '', ...words] = call.words
  const text = words.join(' ').trim()
  if (text === '') throw new CliError(`The answer is empty: ${legate('answer ID TEXT')}.`, EXIT.usage)
  return withDesk(call, 'write', async (desk) => {
    const node = (await namedQuestion(desk, ending)) ?? (await onlyQuestion(desk, ending))
    const isNeeded = isOutside(node)
    const seen = typedSeen(call, node, { isNeeded, lines: () => [questionOnOneLine(node), replyCommand(node)] })
    const by = call.env['USER'] ?? 'user'
    await desk.answer(node.id, isNeeded ? { result: resultOf(text), by, ...seen } : { text, by, ...seen })
    await write(`Answered: ${questionOnOneLine(node)}\n`)
    return EXIT.completed
  })
}

/** A result is JSON, or a text. */
function resultOf(text: string): Json {
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : text
}

async function namedQuestion({ store }: Desk, ending: string): Promise<Node | undefined> {
  const nodes = await findNodes(store, ending)
  const waiting = nodes.filter(isQuestion)
  // `answer` refuses one that was answered already, and says who answered it.
  const asking = waiting.length > 0 ? waiting : nodes.filter((node) => questionOnOneLine(node) !== '')
  return asking.length === 0 ? undefined : onlyMatch(asking, ending, questionLine)
}

/** Accepts the id of a run if exactly one question waits in it. */
async function onlyQuestion(desk: Desk, ending: string): Promise<Node> {
  await refuseNode(desk.store, ending, 'answer')
  const turn = await findRun(desk.store, ending)
  const asking = turn.state === 'ended' ? [] : (await openStateOf(desk, turn)).questions
  if (asking.length === 0) throw new CliError(`Nothing in the run ${shownId(turn.id)} waits for an answer.`, EXIT.usage)
  return onlyMatch(asking, ending, questionLine)
}

function questionLine(node: Node): string {
  return `${shownId(node.id)}  ${questionOnOneLine(node)}`
}
