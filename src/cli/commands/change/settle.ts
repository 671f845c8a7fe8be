import { parseJson } from '../../../core/base/json.ts'
import { look, lookWith, type Node, type SettledCall, seenOf } from '../../../doors/rows.ts'
import type { SettleDecision } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import type { Desk, DeskRows } from '../../desk/desk.ts'
import { findNodes, findRun, onlyMatch, shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { exactLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'
import { describeCall, describeWholeCall, settleCommand } from '../../watch/request-text.ts'
import { nextStep } from './edit.ts'
import { typedSeen } from './seen.ts'

/** Settles a call whose effect may or may not have happened, by the word of a person. */
export function settle(call: Call): Promise<number> {
  const word = readSettlement(call)
  return withDesk(call, 'write', async (desk) => {
    const ending = call.words[0] ?? ''
    await desk.requireScope?.('approve')
    const node = (await namedCall(desk.store, ending)) ?? (await onlyUnsettled(desk.store, ending))
    if (node.state !== 'uncertain') throw notUncertain(node)
    const seen = typedSeen(call, node, {
      isNeeded: true,
      lines: () => [describeWholeCall(node), settleCommand({ nodeId: node.id, seen: seenOf(node) ?? '' })],
    })
    const by = (await desk.speaker?.()) ?? textOption(call, 'by') ?? call.env['USER'] ?? 'user'
    const settled = await desk.settle(node.id, { ...word, ...seen }, { by })
    if (isSet(call, 'json')) await write(jsonLine({ nodeId: node.id, by, ...settled }))
    else await write(await wordsFor(call, desk, { node, settled, by }))
    return EXIT.completed
  })
}

const WORDS = ['happened', 'run-again', 'leave'] as const

function readSettlement(call: Call): SettleDecision {
  const [word, ...others] = WORDS.filter((name) => isSet(call, name))
  const result = textOption(call, 'result')
  if (word === undefined || others.length > 0) {
    const choice = '--happened (the result with --result), --run-again (it did not happen) or --leave'
    throw new CliError(`Say what became of the call, with one of ${choice}.`, EXIT.usage)
  }
  if (result !== undefined && word !== 'happened') {
    throw new CliError('--result is the result of a call that happened: it needs --happened.', EXIT.usage)
  }
  if (word === 'leave') return { leave: true }
  if (word === 'run-again') return { happened: false }
  return { happened: true, ...(result === undefined ? {} : { result: resultValue(result) }) }
}

/** Reads JSON as the value that it is, and anything else as a text. */
function resultValue(text: string) {
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : text
}

/** Finds the call with this id; an uncertain one first. */
async function namedCall(store: DeskRows, ending: string): Promise<Node | undefined> {
  const found = await findNodes(store, ending)
  const uncertain = found.filter(({ state }) => state === 'uncertain')
  const named = uncertain.length > 0 ? uncertain : found
  return named.length === 0 ? undefined : onlyMatch(named, ending, lineOf)
}

/** Accepts the id of a run if exactly one call in it or below it is unsettled. */
async function onlyUnsettled(store: DeskRows, ending: string): Promise<Node> {
  const turn = await findRun(store, ending)
  const nodes = await look(store, turn.rootId, (tree) => turn.account.uncertain.flatMap((id) => tree.node(id) ?? []))
  if (nodes.length > 0) return onlyMatch(nodes, ending, lineOf)
  const id = shownId(turn.id)
  throw new CliError(`No call of the run ${id} is uncertain. ${legate('inbox')} lists those that are.`, EXIT.usage)
}

function notUncertain({ id, state }: Node): CliError {
  const open = `If its process is gone, continue its run first: ${legate(`why ${shownId(id)}`)} says how.`
  const how = state === 'running' ? ` ${open}` : ` ${legate('inbox')} lists the calls that are uncertain.`
  return new CliError(`${shownId(id)} is ${state}, not uncertain.${how}`, EXIT.usage, { namesHelp: false })
}

async function wordsFor(
  call: Call,
  desk: Desk,
  { node, settled, by }: { readonly node: Node; readonly settled: SettledCall; readonly by: string },
): Promise<string> {
  const head = `${describeWholeCall(node)} ${SAID[settled.how]}, says ${exactLine(by)}.`
  const { runId, how, obstacle } = settled
  if (runId === null) return `${head}${how === 'left' ? '' : ` ${WHY_NOT[obstacle ?? ''] ?? STOPPED}`}\n`
  const where = runId === node.turnId ? 'Its run goes on' : `It goes on as ${shownId(runId)}`
  const what = how === 'happened' ? 'with the result' : 'and calls it again'
  const turn = await lookWith(desk.store, runId, (tree) => tree.turn(runId))
  if (turn?.state === 'ended') return `${head} ${where} ${what}, and has ended: ${legate(`show ${shownId(runId)}`)}\n`
  return `${head} ${where} ${what}. ${await nextStep(call, desk, runId)}\n`
}

const SAID = { happened: 'happened', not_happened: 'did not happen', left: 'is left as it is' } as const

const STOPPED = 'Its run was stopped, and stays so: models read this when its conversation goes on.'

/** The reasons why nothing goes on from a call that was settled. */
const WHY_NOT: Readonly<Record<string, string>> = {
  delegated:
    'The subagent has ended and its host has heard of it, so nothing is run: models read this when it goes on.',
  later_turns: 'The conversation has gone on since, so nothing is run: models read this with the next message.',
  replaced: 'Its run was replaced by another one, so nothing is run.',
  archived: 'The conversation is archived, so nothing is run.',
  wrong_kind: 'It belongs to the answer that started it, so nothing is run: ask for that answer again.',
}

function lineOf(node: Node): string {
  return `${shownId(node.id)}  ${describeCall(node)}`
}
